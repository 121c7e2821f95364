/**
 * What changed in a folder since it was looked at last. A look costs a stamp of each file and no process.
 *
 * In a git repository the first look begins with what the user's index says, so that nothing has to be read of what git has
 * already; elsewhere every file is read once and kept. What git ignores, repositories inside the folder and large files are
 * left out. A folder with too many files, or too large ones together, is not looked at: `prepare` then gives why.
 */
import * as fs from "node:fs"
import { homedir } from "node:os"
import * as NodePath from "node:path"
import { findRepository, type UserRepository } from "../git/repository.ts"
import type { IgnoreRules } from "../tools/ignore.ts"
import { absent, type FileState, lookAt, observe, type Observed, sameState } from "./file-state.ts"
import { parseIndex } from "./git-index.ts"
import { GitObjects, hasGit } from "./git-objects.ts"
import { KeptContent } from "./kept-content.ts"
import { KnownFiles, knownOfIndex, stampOf } from "./known-files.ts"
import { hasOtherNames, mayConvert, topRules } from "./repository-rules.ts"
import { type Seen, SeenFiles, type SeenLine, seenLine } from "./seen-files.ts"
import { makePace, scan, type ScanPlace } from "./tree-scan.ts"

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

/** An entry that git ignores and that is not as it was: of a folder, only whether something came into it or went. */
export interface IgnoredChange {
  readonly path: string
  readonly changedAt: number
}

export interface Look {
  readonly differences: ReadonlyArray<Difference>
  readonly ignored: ReadonlyArray<IgnoredChange>
}

/** How many ignored entries are looked at. */
const maxIgnored = 2_000

/** With so many lines that later ones have replaced, what was seen is written anew. */
const manyLines = 2_000

/** Kept contents are tidied when so many bytes have come. */
const tidyBytes = 64 * 1024 * 1024

export class WorkTree {
  readonly #location: string
  readonly #limits: WorkTreeLimits
  readonly #known = new KnownFiles()
  readonly #ignored = new Map<string, number>()
  readonly #seen: SeenFiles
  /** Contents of known files that git does not have. */
  readonly #kept: KeptContent
  readonly #folder: string
  #place: ScanPlace | null = null
  #objects: GitObjects | null = null
  /** Whether what is known is how files are now, and not how an earlier process saw them. */
  isCurrent = false

  /** `folder` is a private one. */
  constructor(location: string, folder: string, limits: WorkTreeLimits) {
    this.#location = location
    this.#folder = folder
    this.#limits = limits
    this.#seen = new SeenFiles(folder)
    this.#kept = new KeptContent(NodePath.join(folder, "content"), limits.maxFileBytes)
  }

  /** How a file was at the last look; `undefined` for one that was not looked at. */
  known(path: string): FileState | undefined {
    return this.#known.get(path)?.state
  }

  /**
   * Gives why nothing can be said of this folder, or `null`. Where an earlier process has looked, what is known afterwards is
   * what that saw.
   */
  async prepare(signal: AbortSignal): Promise<string | null> {
    try {
      const repository = await this.#find()
      // Nobody's work is all of a home folder, and looking through one takes long.
      if (repository === null && this.#location === homedir()) return "it is the home folder, and no git repository"
      if (repository !== null && !hasGit(repository.root)) return "git is not installed"
      const root = repository?.root ?? this.#location
      const top: IgnoreRules = await topRules(root, repository)
      const place = { location: this.#location, root, top, excluded: new Set(this.#limits.excluded) }
      this.#known.clear()
      const seen = this.#seen.read()
      if (seen === null) {
        const why = await this.#begin(place, repository, signal)
        if (why !== null) return why
      } else {
        this.#load(seen, root)
        const newest = new Map(seen.lines.map((line) => [line[0], line]))
        if (seen.lines.length > manyLines + 2 * newest.size) {
          this.#seen.write({ index: seen.index, lines: [...newest.values()] })
        }
      }
      this.#place = place
      this.isCurrent = seen === null
      return null
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  async #find(): Promise<UserRepository | null> {
    const repository = await findRepository(this.#location)
    this.#objects = repository === null
      ? null
      : new GitObjects(NodePath.join(this.#folder, "git"), repository)
    return repository
  }

  /** What an earlier process saw. */
  #load({ index, lines }: Seen, root: string): void {
    if (index !== null) this.#loadIndex(index.content, index.mtimeMs, root)
    for (const [relative, state, stamp] of lines) {
      const path = NodePath.join(this.#location, relative)
      if (state.type === "absent") this.#known.delete(path)
      else this.#known.set(path, { state, stamp })
    }
  }

  /** Whether it can be used. */
  #loadIndex(content: Buffer, mtimeMs: number, root: string): boolean {
    const entries = parseIndex(content)
    // A hostile one may name what is not below the work tree.
    if (entries === null || entries.some(({ path }) => /^\/|(?:^|\/)\.{0,2}(?:\/|$)/.test(path))) return false
    const below = this.#location === root ? "" : `${NodePath.relative(root, this.#location)}/`
    const top = root === NodePath.sep ? root : root + NodePath.sep
    const excluded = this.#limits.excluded.filter((folder) => folder.startsWith(top)).map((folder) =>
      folder + NodePath.sep
    )
    for (const entry of entries) {
      const path = top + entry.path
      if (!entry.path.startsWith(below) || excluded.some((folder) => path.startsWith(folder))) continue
      this.#known.set(path, knownOfIndex(entry, mtimeMs))
    }
    return true
  }

  /** The first look of all. Gives why that is too much, or `null`. */
  async #begin(place: ScanPlace, repository: UserRepository | null, signal: AbortSignal): Promise<string | null> {
    fs.mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const index = await this.#readIndex(repository)
    const isUsed = index !== null && this.#loadIndex(index.content, index.mtimeMs, place.root)
    if (isUsed && repository !== null) await this.#doubtConverted(repository)
    const pace = makePace(signal)
    const { candidates, gone, ignored } = await scan(place, this.#known, pace)
    const { maxFileBytes, maxNewBytes, maxNewFiles } = this.#limits
    const unknown = candidates.filter((path) => this.#known.get(path) === undefined)
    if (unknown.length > maxNewFiles) return `it has more than ${maxNewFiles} files that no git repository knows`
    let bytes = 0
    const lines: Array<SeenLine> = []
    for (const { path } of gone) {
      this.#known.delete(path)
      lines.push(this.#lineOf(path))
    }
    for (const path of candidates) {
      const observed = await observe(path, maxFileBytes).catch(() => null)
      const inGit = this.#known.get(path)?.state
      const state = observed?.state ?? absent
      if (state.type === "absent" || state.type === "unkept" && state.what !== "large") this.#known.delete(path)
      else {
        if (observed?.content != null && "id" in state && !hasContent(inGit, state)) {
          bytes += observed.content.length
          if (bytes > maxNewBytes) {
            return `its files are too large together (more than ${Math.round(maxNewBytes / 1e6)} MB)`
          }
          await this.#kept.put(state.id, observed.content)
        }
        this.#know(path, state, observed)
      }
      lines.push(this.#lineOf(path))
      const turn = pace()
      if (turn !== null) await turn
    }
    this.#changedIgnored(ignored)
    this.#seen.write({ index: isUsed ? index : null, lines })
    return null
  }

  async #readIndex(repository: UserRepository | null): Promise<Seen["index"]> {
    if (repository === null || await hasOtherNames(repository)) return null
    try {
      const path = NodePath.join(repository.gitDirectory, "index")
      return { mtimeMs: fs.statSync(path).mtimeMs, content: fs.readFileSync(path) }
    } catch {
      return null
    }
  }

  /**
   * Files whose content in git is not what is on the disk (line ends, filters) are read like new ones. The two differ in
   * size.
   */
  async #doubtConverted(repository: UserRepository): Promise<void> {
    const attributes: Array<string> = []
    for (const [folder, files] of this.#known.folders) {
      if (files.has(".gitattributes")) attributes.push(NodePath.join(folder, ".gitattributes"))
    }
    for (let at = this.#location; at !== repository.root;) {
      at = NodePath.dirname(at)
      attributes.push(NodePath.join(at, ".gitattributes"))
    }
    if (!await mayConvert(repository, attributes)) return
    const files: Array<{ readonly path: string; readonly state: FileState & { readonly type: "file" } }> = []
    for (const [path, { stamp, state }] of this.#known) {
      if (stamp !== null && state.type === "file") files.push({ path, state })
    }
    const sizes = await this.#objects?.sizes(files.map(({ state }) => state.id)) ?? []
    for (const [index, { path, state }] of files.entries()) {
      if (sizes[index] !== state.size) this.#known.set(path, { state, stamp: null })
    }
  }

  #know(path: string, state: FileState, observed: Observed | null): void {
    this.#known.set(path, { state, stamp: observed?.stats == null ? null : stampOf(observed.stats, Date.now()) })
  }

  #lineOf(path: string): SeenLine {
    return seenLine(
      NodePath.relative(this.#location, path),
      this.#known.get(path) ?? { state: absent, stamp: null }
    )
  }

  /** What has changed since the last look. */
  async look(): Promise<Look> {
    if (this.#place === null) return { differences: [], ignored: [] }
    const pace = makePace(null)
    const { candidates, gone, ignored } = await scan(this.#place, this.#known, pace)
    const differences: Array<Difference> = []
    const lines: Array<SeenLine> = []
    for (const { folder, path } of gone) {
      const before = this.#known.get(path)?.state ?? absent
      this.#known.delete(path)
      differences.push({ path, before, after: absent, changedAt: lookAt(folder)?.mtimeMs ?? 0 })
      lines.push(this.#lineOf(path))
    }
    for (const path of candidates) {
      const observed = await observe(path, this.#limits.maxFileBytes).catch(() => null)
      // What may not be read is not kept track of.
      if (observed === null) continue
      const { changedAt, content, state } = observed
      // A folder in the place of a file: the file is gone, and what is in the folder is listed by itself.
      const after: FileState = state.type === "unkept" && state.what === "folder" ? absent : state
      const before = this.#known.get(path)?.state ?? absent
      if (after.type === "absent") this.#known.delete(path)
      else this.#know(path, after, observed)
      if (sameState(before, after)) continue
      if (content !== null && "id" in after) await this.#kept.put(after.id, content)
      differences.push({ path, before, after, changedAt })
      lines.push(this.#lineOf(path))
      const turn = pace()
      if (turn !== null) await turn
    }
    this.#seen.append(lines)
    return { differences, ignored: this.#changedIgnored(ignored) }
  }

  /** Removes contents that no known file has any more, once much has come. */
  async tidy(): Promise<void> {
    if (this.#kept.written < tidyBytes) return
    this.#kept.written = 0
    const needed = new Set<string>()
    for (const [, { state }] of this.#known) if ("id" in state) needed.add(state.id)
    await this.#kept.collect(needed)
  }

  #changedIgnored(entries: ReadonlyArray<string>): ReadonlyArray<IgnoredChange> {
    const changes: Array<IgnoredChange> = []
    const before = new Map(this.#ignored)
    const isFirst = !this.isCurrent
    this.#ignored.clear()
    for (const path of entries.slice(0, maxIgnored)) {
      const stats = lookAt(path)
      if (stats === null) continue
      // A folder's own times say when something came into it or went, and files in it are not looked at.
      const changedAt = stats.isDirectory() ? stats.mtimeMs : stats.ctimeMs
      this.#ignored.set(path, changedAt)
      if (before.get(path) !== changedAt) changes.push({ path, changedAt })
    }
    for (const path of before.keys()) {
      if (this.#ignored.has(path) || before.size >= maxIgnored || this.#known.get(path) !== undefined) continue
      changes.push({ path, changedAt: lookAt(NodePath.dirname(path))?.mtimeMs ?? 0 })
    }
    return isFirst ? [] : changes
  }

  /** A content that was read at a look, `null` if it was not. */
  content(id: string): Promise<Buffer | null> {
    return this.#kept.get(id)
  }

  /** Contents that the user's repository has, which takes a process. */
  async contentsOfGit(ids: ReadonlyArray<string>): Promise<ReadonlyMap<string, Buffer>> {
    if (this.#objects === null) await this.#find()
    return await this.#objects?.contents(ids) ?? new Map()
  }
}

const hasContent = (known: FileState | undefined, state: FileState): boolean =>
  known !== undefined && "id" in known && "id" in state && known.id === state.id
