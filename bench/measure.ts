/** Runs one process and measures it: wall time, CPU time and peak memory of the process itself, as it says at its end. */
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

export interface Sample {
  /** Milliseconds from spawn to exit. */
  readonly wall: number
  /** Milliseconds of CPU, user and system. */
  readonly cpu: number
  /** Peak resident memory in MiB. */
  readonly memory: number
  readonly stdout: string
}

export interface Program {
  readonly command: string
  readonly argv: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
  readonly cwd: string
}

/** Loaded into the measured Node before its program; both sides of a comparison pay for it alike. */
const probe = pathToFileURL(join(import.meta.dirname, "probe.mjs")).href

export async function measure(program: Program): Promise<Sample> {
  const folder = mkdtempSync(join(tmpdir(), "bezel-bench-"))
  const report = join(folder, "usage.json")
  try {
    const start = performance.now()
    const child = spawn(program.command, program.argv, {
      cwd: program.cwd,
      env: { ...program.env, NODE_OPTIONS: `--import=${probe}`, BENCH_USAGE: report },
      stdio: ["ignore", "pipe", "pipe"]
    })
    const output = { stdout: "", stderr: "" }
    child.stdout.setEncoding("utf8").on("data", (text: string) => output.stdout += text)
    child.stderr.setEncoding("utf8").on("data", (text: string) => output.stderr += text)
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject)
      child.once("exit", (status) => resolve(status))
    })
    const wall = performance.now() - start
    if (code !== 0) {
      throw new Error(`${program.command} ${program.argv.join(" ")} ended with ${code}: ${output.stderr.slice(-2_000)}`)
    }
    const usage = JSON.parse(readFileSync(report, "utf8")) as NodeJS.ResourceUsage
    return {
      wall,
      cpu: (usage.userCPUTime + usage.systemCPUTime) / 1_000,
      memory: usage.maxRSS / 1_024,
      stdout: output.stdout
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const [low = 0, high = low] = sorted.length % 2 === 1 ? [sorted[middle]] : sorted.slice(middle - 1, middle + 1)
  return (low + high) / 2
}

/** Half the distance between the quartiles, as a share of the median: how far to believe it. */
export const spread = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
  return (at(0.75) - at(0.25)) / 2 / (median(values) || 1)
}
