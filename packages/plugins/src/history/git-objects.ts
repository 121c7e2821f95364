/**
 * What git keeps of the user's files, read by one `git` over a folder of our own that borrows the repository's objects: no
 * setting of the repository applies, and nothing of it is written.
 */
import * as fs from "node:fs"
import * as NodePath from "node:path"
import { spawnGit, trustedPath } from "../git/process.ts"
import type { UserRepository } from "../git/repository.ts"

const timeLimitMillis = 60_000

/** Whether there is a git to run for this work tree. */
export const hasGit = (workTree: string): boolean =>
  trustedPath(process.env["PATH"], workTree).split(NodePath.delimiter).some((folder) => {
    try {
      fs.accessSync(NodePath.join(folder, process.platform === "win32" ? "git.exe" : "git"), fs.constants.X_OK)
      return folder !== ""
    } catch {
      return false
    }
  })

export class GitObjects {
  readonly #folder: string
  readonly #repository: UserRepository

  /** `folder` is the private one, made at first use. */
  constructor(folder: string, repository: UserRepository) {
    this.#folder = folder
    this.#repository = repository
  }

  /** Contents of blobs by id; those that are nowhere are left out. */
  async contents(ids: ReadonlyArray<string>): Promise<ReadonlyMap<string, Buffer>> {
    const found = new Map<string, Buffer>()
    if (ids.length === 0) return found
    const output = await this.#run(["cat-file", "--batch"], ids)
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

  /** Bytes of blobs, in the same order; `null` for those that are nowhere. */
  async sizes(ids: ReadonlyArray<string>): Promise<ReadonlyArray<number | null>> {
    const output = await this.#run(["cat-file", "--batch-check=%(objectsize)"], ids)
    return output.toString("latin1").split("\n").slice(0, ids.length).map((line) =>
      /^\d+$/.test(line) ? Number(line) : null
    )
  }

  #make(): void {
    for (const part of ["objects", "refs/heads"]) {
      fs.mkdirSync(NodePath.join(this.#folder, part), { recursive: true, mode: 0o700 })
    }
    fs.writeFileSync(NodePath.join(this.#folder, "HEAD"), "ref: refs/heads/main\n")
    fs.writeFileSync(NodePath.join(this.#folder, "config"), "[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
  }

  #run(args: ReadonlyArray<string>, ids: ReadonlyArray<string>): Promise<Buffer> {
    if (!fs.existsSync(NodePath.join(this.#folder, "config"))) this.#make()
    return new Promise((resolve, reject) => {
      const child = spawnGit(args, {
        directory: this.#folder,
        workTree: this.#repository.root,
        limitMillis: timeLimitMillis,
        environment: {
          GIT_DIR: this.#folder,
          GIT_ALTERNATE_OBJECT_DIRECTORIES: NodePath.join(this.#repository.commonDirectory, "objects")
        }
      })
      const out: Array<Buffer> = []
      const problems: Array<Buffer> = []
      child.stdout.on("data", (chunk: Buffer) => out.push(chunk))
      child.stderr.on("data", (chunk: Buffer) => problems.length < 100 && problems.push(chunk))
      child.stdin.on("error", () => {})
      child.on("error", (error) => reject(new Error(`git could not be run: ${error.message}`)))
      child.on("close", (code) => {
        if (code === 0) return resolve(Buffer.concat(out))
        const why = Buffer.concat(problems).toString("utf8").trim().split("\n")[0] ?? ""
        reject(new Error(`git ${args[0] ?? ""} failed${why === "" ? "" : `: ${why.slice(0, 300)}`}`))
      })
      child.stdin.end(ids.map((id) => `${id}\n`).join(""))
    })
  }
}
