/**
 * Calls and state over sockets: `node bench/services.ts [--rounds N] [--only calls|state|stream] [--json]`.
 *
 * Calls: one after another and 100 at once, between two processes over a unix socket, beside a bare echo of JSON lines (the
 * limit), `vscode-jsonrpc` and `capnweb`, in turns in one run. Each has the same payload; Bezel's crosses its codecs and is
 * traced. CPU is that of both processes.
 * State: updates per second that reach 1, 10 and 100 clients. Stream: 1 MB in small appends to 100 clients, in bytes on the
 * wire per client.
 */
import { type ChildProcess, fork } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { median, spread } from "./measure.ts"
import { echoing } from "./services-bezel.ts"
import { createLineReader, lineTransport } from "./services-lines.ts"
import { installPeers } from "./services-peer.ts"
import { measureState, measureStream } from "./services-state.ts"

const root = join(import.meta.dirname, "..")
const { values: options } = parseArgs({
  options: { rounds: { type: "string" }, only: { type: "string" }, json: { type: "boolean", default: false } }
})
const rounds = Math.max(1, Number(options.rounds ?? 5))
const wants = (part: string) => options.only === undefined || options.only === part

interface Caller {
  readonly run: (calls: number, atOnce: number) => Promise<void>
  readonly close: () => unknown
}

const payload = { text: "hello", number: 7 }

/** Many loops of calls. */
const loops = (call: () => Promise<unknown>) => async (calls: number, atOnce: number): Promise<void> => {
  const each = Math.ceil(calls / atOnce)
  await Promise.all(Array.from({ length: atOnce }, async () => {
    for (let turn = 0; turn < each; turn++) await call()
  }))
}

const opened = (path: string): Promise<Socket> =>
  new Promise((resolve) => {
    const socket = connect({ path, noDelay: true }, () => resolve(socket))
  })

const raw = async (path: string): Promise<Caller> => {
  const socket = await opened(path)
  const waiting = new Map<number, (value: unknown) => void>()
  let ids = 0
  createLineReader(socket, (line) => {
    const { id, value } = JSON.parse(line)
    waiting.get(id)?.(value)
    waiting.delete(id)
  })
  const call = () =>
    new Promise((resolve) => {
      const id = ids++
      waiting.set(id, resolve)
      socket.write(`${JSON.stringify({ id, payload })}\n`)
    })
  return { run: loops(call), close: () => socket.destroy() }
}

const jsonrpc = (module: string) => async (path: string): Promise<Caller> => {
  const rpc = await import(module)
  const socket = await opened(path)
  const connection = rpc.createMessageConnection(
    new rpc.StreamMessageReader(socket),
    new rpc.StreamMessageWriter(socket)
  )
  connection.listen()
  return { run: loops(() => connection.sendRequest("echo", payload)), close: () => socket.destroy() }
}

const capnweb = (module: string) => async (path: string): Promise<Caller> => {
  const rpc = await import(module)
  const socket = await opened(path)
  const main = new rpc.RpcSession(lineTransport(socket)).getRemoteMain()
  return { run: loops(async () => await main.echo(payload)), close: () => socket.destroy() }
}

const usageOf = (child: ChildProcess): Promise<number> =>
  new Promise((resolve) => {
    child.once("message", (usage) => {
      const { system, user } = usage as NodeJS.CpuUsage
      resolve(user + system)
    })
    child.send("usage")
  })

async function measureCalls(folder: string) {
  const modules = installPeers(root)
  const kinds = [
    { name: "raw", module: "", open: raw },
    { name: "vscode-jsonrpc", module: modules.jsonrpc, open: jsonrpc(modules.jsonrpc) },
    { name: "capnweb", module: modules.capnweb, open: capnweb(modules.capnweb) },
    { name: "bezel", module: "", open: echoing }
  ]
  const sides = await Promise.all(kinds.map(async ({ module, name, open }) => {
    const path = join(folder, `${name}.sock`)
    const child = fork(join(import.meta.dirname, "services-host.ts"), [name, path, module], { serialization: "json" })
    await new Promise((resolve) => child.once("message", resolve))
    return { name, child, caller: await open(path) }
  }))
  const shapes = [{ atOnce: 1, calls: 5_000 }, { atOnce: 100, calls: 20_000 }]
  const samples = new Map<string, Array<{ readonly perSecond: number; readonly cpu: number }>>()
  for (let round = 0; round <= rounds; round++) {
    for (const { atOnce, calls } of shapes) {
      for (const { caller, child, name } of sides) {
        const usage = [process.cpuUsage(), await usageOf(child)] as const
        const start = performance.now()
        await caller.run(calls, atOnce)
        const wall = performance.now() - start
        const own = process.cpuUsage(usage[0])
        const cpu = own.user + own.system + await usageOf(child) - usage[1]
        // The first round fills caches.
        if (round === 0) continue
        const key = `${name} ${atOnce}`
        samples.set(key, [...samples.get(key) ?? [], { perSecond: calls / wall * 1_000, cpu: cpu / calls }])
      }
    }
  }
  for (const { caller, child } of sides) {
    await caller.close()
    child.disconnect()
  }
  return Object.fromEntries(shapes.map(({ atOnce }) => {
    const of = (name: string) => {
      const all = samples.get(`${name} ${atOnce}`) ?? []
      const rates = all.map(({ perSecond }) => perSecond)
      return { perSecond: median(rates), cpu: median(all.map(({ cpu }) => cpu)), spread: spread(rates) }
    }
    const result = Object.fromEntries(kinds.map(({ name }) => [name, of(name)]))
    const better = Math.max(of("vscode-jsonrpc").perSecond, of("capnweb").perSecond)
    return [`${atOnce} at once`, {
      ...result,
      ratios: { raw: of("bezel").perSecond / of("raw").perSecond, peer: of("bezel").perSecond / better }
    }]
  }))
}

const folder = mkdtempSync(join(tmpdir(), "bezel-bench-"))
const results: { [part: string]: unknown } = {}
try {
  if (wants("calls")) results["calls"] = await measureCalls(folder)
  if (wants("state")) results["state"] = await measureState(folder)
  if (wants("stream")) results["stream"] = await measureStream(folder)
  console.log(
    JSON.stringify(results, (_, value) => typeof value === "number" ? Number(value.toPrecision(4)) : value, 2)
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}
