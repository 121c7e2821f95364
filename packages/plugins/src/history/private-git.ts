/**
 * Git over a folder of our own: its index remembers what files looked like, and its objects what was in them.
 *
 * Nothing of the user's repository is written: the folder, the index and the objects are private, and no setting of the
 * repository applies, nor what its attributes would make of line ends. What git ignores for the user is ignored here.
 */
import * as FileSystem from "node:fs/promises"
import * as NodePath from "node:path"
import { spawnGit } from "../git/process.ts"

/** Git could not be run, or refused. `isMissing`: there is no git. */
export class GitFailed extends Error {
  readonly isMissing: boolean

  constructor(message: string, isMissing = false) {
    super(message)
    this.isMissing = isMissing
  }
}

export interface GitRun {
  readonly input?: Uint8Array | string
  readonly config?: ReadonlyArray<string>
  /** Further folders of objects to read from. */
  readonly alternates?: string
}

const timeLimitMillis = 60_000

const settings = [
  "core.autocrlf=false",
  "core.safecrlf=false",
  "core.untrackedCache=false",
  "core.splitIndex=false",
  "core.fileMode=true",
  "core.symlinks=true",
  "core.compression=0"
]

export class PrivateGit {
  readonly directory: string
  /** Ends whatever runs. */
  signal: AbortSignal | null = null
  readonly #workTree: string
  readonly #location: string

  /** `location` is the part of the work tree that is looked at. */
  constructor(directory: string, workTree: string, location: string) {
    this.directory = directory
    this.#workTree = workTree
    this.#location = location
  }

  get index(): string {
    return NodePath.join(this.directory, "index")
  }

  /** Makes the folder. `exclude` is what the user's repository ignores beside its files. */
  async make(exclude: string): Promise<void> {
    for (const part of ["objects", "refs/heads", "info"]) {
      await FileSystem.mkdir(NodePath.join(this.directory, part), { recursive: true, mode: 0o700 })
    }
    const write = (name: string, text: string) => FileSystem.writeFile(NodePath.join(this.directory, name), text)
    await write("HEAD", "ref: refs/heads/main\n")
    await write("config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    await write("info/attributes", "* -text -filter -ident -working-tree-encoding\n")
    await write("info/exclude", exclude)
  }

  /** What it prints. Paths are seen from the location. */
  run(args: ReadonlyArray<string>, options: GitRun = {}): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const child = spawnGit(args, {
        directory: this.#location,
        workTree: this.#workTree,
        limitMillis: timeLimitMillis,
        ...(this.signal === null ? {} : { signal: this.signal }),
        config: [...settings, ...options.config ?? []],
        environment: {
          GIT_DIR: this.directory,
          GIT_WORK_TREE: this.#workTree,
          GIT_LITERAL_PATHSPECS: "1",
          ...(options.alternates === undefined ? {} : { GIT_ALTERNATE_OBJECT_DIRECTORIES: options.alternates })
        }
      })
      const out: Array<Buffer> = []
      const problems: Array<Buffer> = []
      child.stdout.on("data", (chunk: Buffer) => out.push(chunk))
      child.stderr.on("data", (chunk: Buffer) => problems.length < 100 && problems.push(chunk))
      child.stdin.on("error", () => {})
      child.on("error", (error) => {
        const isMissing = "code" in error && error.code === "ENOENT"
        reject(new GitFailed(isMissing ? "git is not installed" : `git could not be run: ${error.message}`, isMissing))
      })
      child.on("close", (code) => {
        if (code === 0) return resolve(Buffer.concat(out))
        const why = Buffer.concat(problems).toString("utf8").trim().split("\n")[0] ?? ""
        reject(new GitFailed(`git ${args[0] ?? ""} failed${why === "" ? "" : `: ${why.slice(0, 300)}`}`))
      })
      child.stdin.end(options.input ?? "")
    })
  }

  /** Contents of blobs by id; those that are nowhere are left out. */
  async contents(ids: ReadonlyArray<string>, alternates: string | null): Promise<ReadonlyMap<string, Buffer>> {
    const found = new Map<string, Buffer>()
    if (ids.length === 0) return found
    const output = await this.run(["cat-file", "--batch"], {
      input: ids.map((id) => `${id}\n`).join(""),
      ...(alternates === null ? {} : { alternates })
    })
    for (let at = 0; at < output.length;) {
      const end = output.indexOf(10, at)
      if (end < 0) break
      const [id = "", type, size] = output.toString("latin1", at, end).split(" ")
      at = end + 1
      if (size === undefined || type === "missing") continue
      const length = Number(size)
      if (type === "blob") found.set(id, output.subarray(at, at + length))
      at += length + 1
    }
    return found
  }
}
