/**
 * What changed in a folder since it was looked at last, by git's index in a private folder: unchanged files cost a look at
 * their times and nothing else.
 *
 * In a git repository the index begins as a copy of the user's, so that nothing has to be read of what that knows already;
 * elsewhere every file is read once. What git ignores, repositories inside the folder and large files are left out. A folder
 * with too many files, or too large ones together, is not looked at, and neither is any where there is no git: `prepare`
 * then gives why.
 */
import { constants } from "node:fs"
import * as FileSystem from "node:fs/promises"
import { homedir } from "node:os"
import * as NodePath from "node:path"
import { findRepository, type UserRepository } from "../git/repository.ts"
import { absent, type FileState, lookAt, observe, type Observed, sameState } from "./file-state.ts"
import { GitFailed, PrivateGit } from "./private-git.ts"

export interface WorkTreeLimits {
  /** Bytes of one file; what is larger is not kept. */
  readonly maxFileBytes: number
  /** Files that git does not know yet, and their bytes together. */
  readonly maxNewFiles: number
  readonly maxNewBytes: number
  /** Folders that are left out, absolute: what Bezel itself writes is no work of a session. */
  readonly excluded: ReadonlyArray<string>
}

/** What became of one path between two looks. */
export interface Difference {
  /** Absolute. */
  readonly path: string
  readonly before: FileState
  readonly after: FileState
  /** Milliseconds since the epoch; for what is gone, when its folder changed. */
  readonly changedAt: number
}

const list = ["ls-files", "-z", "-t", "-m", "-d", "-o", "--exclude-standard"]

/** How many changed files are remembered here and not in git's index. */
const maxRemembered = 200

const bytesOf = (paths: Iterable<string>): string => [...paths].map((path) => `${path}\0`).join("")

const isWithin = (folder: string, path: string): boolean => path === folder || path.startsWith(folder + NodePath.sep)

/** As lines of an exclude file, so that git does not even walk there. */
const excludePatterns = (root: string, excluded: ReadonlyArray<string>): ReadonlyArray<string> =>
  excluded.filter((folder) => isWithin(root, folder) && folder !== root).map((folder) =>
    `/${NodePath.relative(root, folder).split(NodePath.sep).join("/").replace(/[\\*?[ ]/g, "\\$&")}/`
  )

export class WorkTree {
  readonly #location: string
  readonly #folder: string
  readonly #limits: WorkTreeLimits
  readonly #keep: (id: string, content: Buffer) => Promise<void>
  readonly #remembered = new Set<string>()
  readonly #observed = new Map<string, { readonly stamp: string } & Pick<Observed, "state" | "changedAt">>()
  /** How each file was when it was looked at last, by absolute path. */
  readonly #known = new Map<string, FileState>()
  #git: PrivateGit | null = null
  #alternates: string | null = null
  /** Whether what is known is how files are now, and not how an earlier process saw them. */
  isCurrent = false

  /** `folder` is the private one; `keep` takes contents that git does not keep. */
  constructor(
    location: string,
    folder: string,
    limits: WorkTreeLimits,
    keep: (id: string, content: Buffer) => Promise<void>
  ) {
    this.#location = location
    this.#folder = folder
    this.#limits = limits
    this.#keep = keep
  }

  /** Contents of files that git does not keep. */
  get remembered(): Iterable<string> {
    return this.#remembered
  }

  /** How a file was at the last look; `undefined` for one that was not looked at. */
  known(path: string): FileState | undefined {
    return this.#known.get(path)
  }

  /**
   * Gives why nothing can be said of this folder, or `null`. Where an earlier process has looked, what is known afterwards is
   * what that saw.
   */
  async prepare(signal: AbortSignal): Promise<string | null> {
    try {
      const repository = await findRepository(this.#location)
      // Nobody's work is all of a home folder, and looking through one takes long.
      if (repository === null && this.#location === homedir()) return "it is the home folder, and no git repository"
      const git = new PrivateGit(this.#folder, repository?.root ?? this.#location, this.#location)
      git.signal = signal
      const objects = repository === null ? null : NodePath.join(repository.commonDirectory, "objects")
      this.#alternates = objects
      const exclude = repository === null
        ? ""
        : await FileSystem.readFile(NodePath.join(repository.commonDirectory, "info", "exclude"), "utf8").catch(() =>
          ""
        )
      await git.make(
        [exclude, ...excludePatterns(repository?.root ?? this.#location, this.#limits.excluded)].join("\n")
      )
      await FileSystem.rm(`${git.index}.lock`, { force: true })
      const isNew = !await FileSystem.access(git.index).then(() => true, () => false)
      if (!isNew) await this.#load(git)
      else {
        const candidates = repository === null ? null : await this.#seed(git, repository)
        const why = await this.#addAll(git, candidates)
        if (why !== null) return why
      }
      git.signal = null
      this.#git = git
      this.isCurrent = isNew
      return null
    } catch (error) {
      return signal.aborted
        ? "looking through it takes too long"
        : error instanceof Error
        ? error.message
        : String(error)
    }
  }

  /** Begins with the user's index; gives what that does not know, or `null` where git cannot use it here. */
  async #seed(git: PrivateGit, repository: UserRepository): Promise<ReadonlyArray<string> | null> {
    try {
      await FileSystem.copyFile(NodePath.join(repository.gitDirectory, "index"), git.index)
      await FileSystem.chmod(git.index, 0o600)
      await this.#load(git)
      const [converted, candidates] = await Promise.all([this.#converted(git), this.#candidates(git)])
      if (converted.length === 0) return candidates
      for (const path of converted) this.#known.delete(path)
      await git.run(["update-index", "-z", "--force-remove", "--stdin"], { input: bytesOf(this.#relative(converted)) })
      return await this.#candidates(git)
    } catch (error) {
      if (error instanceof GitFailed && error.isMissing) throw error
      this.#known.clear()
      await FileSystem.rm(git.index, { force: true })
      return null
    }
  }

  /**
   * Files whose content in git is not what is on the disk (line ends, filters): they are read like new ones. The two differ in
   * size; one that was edited since does so too, and reading it anew harms nothing.
   */
  async #converted(git: PrivateGit): Promise<ReadonlyArray<string>> {
    const files = [...this.#known].flatMap(([path, state]) => state.type === "file" ? [{ path, state }] : [])
    const sizes = await git.run(["cat-file", "--batch-check=%(objectname) %(objectsize)"], {
      input: files.map(({ state }) => `${state.id}\n`).join(""),
      ...(this.#alternates === null ? {} : { alternates: this.#alternates })
    })
    return sizes.toString("latin1").split("\n").flatMap((line, index) => {
      const file = files[index]
      return file === undefined || line === `${file.state.id} ${file.state.size}` ? [] : [file.path]
    })
  }

  #relative(paths: ReadonlyArray<string>): ReadonlyArray<string> {
    return paths.map((path) => NodePath.relative(this.#location, path))
  }

  /** Reads what the index knows, and the modes and sizes that the files have. */
  async #load(git: PrivateGit): Promise<void> {
    this.#known.clear()
    const output = (await git.run(["ls-files", "-s", "-z"])).toString("utf8")
    let count = 0
    for (const line of output.split("\0")) {
      const tab = line.indexOf("\t")
      const [mode = "", id = "", stage] = line.slice(0, tab).split(" ")
      if (tab < 0 || stage !== "0" || mode === "160000") continue
      const path = NodePath.join(this.#location, line.slice(tab + 1))
      if (++count % 500 === 0) await new Promise((resume) => setImmediate(resume))
      const stats = lookAt(path)
      if (mode === "120000") this.#known.set(path, { type: "link", id })
      else {
        const otherwise = mode === "100755" ? 0o755 : 0o644
        const isFile = stats?.isFile() === true
        this.#known.set(path, {
          type: "file",
          id,
          mode: isFile ? stats.mode & 0o7777 : otherwise,
          size: isFile ? stats.size : -1
        })
      }
    }
  }

  /** Paths that git sees as changed, gone or new, seen from the location; without repositories inside it. */
  async #candidates(git: PrivateGit): Promise<ReadonlyArray<string>> {
    const output = (await git.run(list)).toString("utf8")
    const paths = new Set<string>()
    for (const line of output.split("\0")) {
      if (line.length <= 2 || line.endsWith("/")) continue
      const absolute = NodePath.join(this.#location, line.slice(2))
      if (!this.#limits.excluded.some((folder) => isWithin(folder, absolute))) paths.add(line.slice(2))
    }
    return [...paths]
  }

  /** Reads everything that the index does not know. Gives why that is too much, or `null`. */
  async #addAll(git: PrivateGit, found: ReadonlyArray<string> | null): Promise<string | null> {
    const candidates = found ?? await this.#candidates(git)
    const { maxFileBytes, maxNewBytes, maxNewFiles } = this.#limits
    if (candidates.length > maxNewFiles) return `it has more than ${maxNewFiles} files that no git repository knows`
    const added: Array<string> = []
    let bytes = 0
    for (const path of candidates) {
      const absolute = NodePath.join(this.#location, path)
      const stats = await FileSystem.lstat(absolute).catch(() => null)
      if (stats?.isFile() !== true && stats?.isSymbolicLink() !== true) continue
      // One that may not be read would keep git from adding the others.
      if (stats.isFile() && !await FileSystem.access(absolute, constants.R_OK).then(() => true, () => false)) continue
      if (stats.size > maxFileBytes) {
        this.#known.set(absolute, (await observe(absolute, maxFileBytes)).state)
        continue
      }
      bytes += stats.size
      if (bytes > maxNewBytes) return `its files are too large together (more than ${Math.round(maxNewBytes / 1e6)} MB)`
      added.push(path)
    }
    if (found !== null && added.length === 0) return null
    // All contents in one file, which costs less than a file each.
    await git.run(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"], {
      input: bytesOf(added),
      config: ["core.bigFileThreshold=1"]
    })
    await this.#load(git)
    return null
  }

  /** What has changed since the last look. */
  async look(): Promise<ReadonlyArray<Difference>> {
    const git = this.#git
    if (git === null) return []
    const candidates = await this.#candidates(git)
    // Few changes are remembered here, which spares git a second run; the index learns of them when they are many.
    const isMany = candidates.length > maxRemembered
    const differences: Array<Difference> = []
    const folders: Array<string> = []
    const indexed: Array<string> = []
    for (const relative of candidates) {
      const path = NodePath.join(this.#location, relative)
      const observed = await this.#observe(path).catch(() => null)
      // What may not be read is not kept track of.
      if (observed === null) continue
      const { changedAt, content, state } = observed
      // A folder in the place of a file: the file is gone, and what is in the folder is listed by itself.
      const isFolder = state.type === "unkept" && state.what === "folder"
      const after: FileState = isFolder ? absent : state
      if (isFolder) folders.push(relative)
      else if (state.type !== "unkept") indexed.push(relative)
      const before = this.#known.get(path) ?? absent
      if (sameState(before, after)) continue
      if (after.type === "absent") this.#known.delete(path)
      else this.#known.set(path, after)
      if (!isMany && content !== null && "id" in after) {
        await this.#keep(after.id, content)
        this.#remembered.add(after.id)
      }
      differences.push({ path, before, after, changedAt })
    }
    if (isMany) await this.#index(git, [...folders, ...indexed])
    return differences
  }

  /** The same for a file that nobody has touched since it was observed. */
  async #observe(path: string): Promise<Observed> {
    const stats = lookAt(path)
    const stamp = stats === null ? null : `${stats.ino} ${stats.mode} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`
    const known = this.#observed.get(path)
    if (stamp !== null && known?.stamp === stamp) return { ...known, content: null }
    const observed = await observe(path, this.#limits.maxFileBytes)
    // Within a tick of the clock it may be written again without a trace.
    if (stamp !== null && Date.now() - observed.changedAt > 20) {
      this.#observed.set(path, { stamp, state: observed.state, changedAt: observed.changedAt })
    }
    return observed
  }

  /** Lets the index know. What goes away meanwhile is seen at the next look. */
  async #index(git: PrivateGit, paths: ReadonlyArray<string>): Promise<void> {
    await git.run(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"], { input: bytesOf(paths) })
      .then(() => {
        this.#observed.clear()
        this.#remembered.clear()
      }, () => {})
  }

  /** Contents that git keeps, its user's repository included. */
  async contents(ids: ReadonlyArray<string>): Promise<ReadonlyMap<string, Buffer>> {
    return await this.#git?.contents(ids, this.#alternates) ?? new Map()
  }
}
