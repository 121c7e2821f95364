// Writes at the end of a measured process what it has used. Only the process that was started itself reports.
import { writeFileSync } from "node:fs"

const file = process.env.BENCH_USAGE
delete process.env.BENCH_USAGE
delete process.env.NODE_OPTIONS
if (file !== undefined) process.on("exit", () => writeFileSync(file, JSON.stringify(process.resourceUsage())))
