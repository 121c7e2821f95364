import { BashDetails } from "@bezel/plugins/tools"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs"
import { eventually } from "../../eventually.ts"
import type { Workspace } from "./workspace.ts"
import { textOf, workspace } from "./workspace.ts"

const decodeDetails = Schema.decodeUnknownSync(BashDetails)

const run = (place: Workspace, command: string, timeout?: number) =>
  Effect.map(place.call("bash", timeout === undefined ? { command } : { command, timeout }), (result) => ({
    text: textOf(result),
    isError: result.isError,
    details: decodeDetails(result.details)
  }))

/** Running processes whose working directory is the workspace. */
const alive = (place: Workspace): ReadonlyArray<number> =>
  readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    try {
      const there = readlinkSync(`/proc/${name}/cwd`).startsWith(place.directory)
      const state = readFileSync(`/proc/${name}/stat`, "latin1").replace(/^.*\) /, "")[0]
      return there && state !== "Z" ? [Number(name)] : []
    } catch {
      return []
    }
  })

describe("a command", () => {
  it.live("gives both outputs in their order and its exit code", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const { details, isError, text } = yield* run(place, "echo one; echo two >&2; echo three; exit 3")
      expect(text).toBe("one\ntwo\nthree\n[exit code 3]")
      expect(isError).toBe(true)
      expect(details).toMatchObject({ exitCode: 3, signal: null, timedOut: false, background: [] })
      expect(place.streamed.join("")).toBe(text)
    }))

  it.live("runs in the workspace and says in words that it printed nothing", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      expect((yield* run(place, "pwd -P")).text).toBe(`${place.directory}\n[exit code 0]`)
      expect((yield* run(place, "true")).text).toBe("(no output)\n[exit code 0]")
      expect((yield* run(place, "printf x")).text).toBe("x\n[exit code 0]")
    }))

  it.live("is told by its signal when one ends it", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      expect(yield* run(place, "kill -SEGV $$")).toMatchObject({
        isError: true,
        details: { exitCode: null, signal: "SIGSEGV" },
        text: "(no output)\n[ended by SIGSEGV]"
      })
    }))

  it.live("finds the end of input also where a full-screen program without a terminal looks for keys", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const { details, text } = yield* run(place, "seq 100000; read key <&2; echo read: $?", 5)
      expect(details).toMatchObject({ exitCode: 0, timedOut: false })
      expect(text).toMatch(/\n100000\n(?:.*\n)?read: 1\n\[exit code 0\]$/)
    }))

  it.live("has no input and no terminal to ask on, so that it fails at once", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const before = performance.now()
      expect((yield* run(place, "cat")).text).toBe("(no output)\n[exit code 0]")
      expect((yield* run(place, "read -p 'Sure? ' answer </dev/tty")).text).toContain(
        "/dev/tty: No such device or address"
      )
      expect((yield* run(place, "[ -t 0 ] || [ -t 1 ] || echo none; ps -o tty= -p $$ 2>/dev/null || echo '?'")).text)
        .toContain("none")
      expect((yield* run(place, "git clone https://user@127.0.0.1:1/x.git")).isError).toBe(true)
      expect((yield* run(place, "sudo -k true")).details.timedOut).toBe(false)
      expect(performance.now() - before).toBeLessThan(10_000)
    }))

  it.live("uses no pager and no editor", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* run(
        place,
        "git init -q && git -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -q --allow-empty -m first"
      )
      const log = yield* run(
        place,
        "git config core.pager 'sleep 60'; git --paginate log --format=%s; echo $PAGER $TERM",
        10
      )
      expect(log.text).toBe("first\ncat dumb\n[exit code 0]")
      expect((yield* run(place, "git commit --allow-empty", 10)).details.timedOut).toBe(false)
    }))

  it.live("that cannot be passed to a shell says what to do", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      expect(yield* place.bad("bash", { command: "echo \u0000" })).toContain("NUL character")
      expect(yield* place.bad("bash", { command: `: ${"x".repeat(300_000)}` })).toContain("too long for one process")
    }))

  it.live("whose workspace is gone says so", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* run(place, 'rmdir "$PWD"')
      expect(yield* place.bad("bash", { command: "true" })).toContain("the directory is gone")
    }))

  it.live("may not ask for more time than is allowed", () =>
    Effect.gen(function*() {
      const place = yield* workspace({ bashTimeoutSeconds: 900, bashMaxTimeoutSeconds: 5 })
      expect(place.offer.accept("bash", { command: "true", timeout: 6 })).toMatchObject({
        refused: { code: "invalid_arguments" }
      })
      expect(place.offer.accept("bash", { command: "true", timeout: 0 })).toMatchObject({
        refused: { code: "invalid_arguments" }
      })
      expect(place.offer.definitions.find(({ name }) => name === "bash")?.description).toContain(
        "It ends after 5 seconds"
      )
    }))
})

describe("what a command leaves running", () => {
  it.live.each([
    ["sleep 300 & echo ok", "sleep 300"],
    ["setsid sleep 301 & echo ok", "sleep 301"],
    ["sleep 30 </dev/null >/dev/null 2>&1 & echo ok", "sleep 30"],
    ["(setsid env -i sleep 302 &) ; echo ok; sleep 0.1", null]
  ])("does not hold up the result: %s", ([command, left]) =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const before = performance.now()
      const { details, isError, text } = yield* run(place, command ?? "")
      expect(performance.now() - before).toBeLessThan(2_000)
      expect(isError).toBe(false)
      if (left === null) {
        execFileSync("sh", [
          "-c",
          `for p in /proc/[0-9]*; do [ "$(readlink $p/cwd)" = "${place.directory}" ] && kill -9 \${p#/proc/}; done; true`
        ])
      } else {
        const [process] = details.background
        expect(text).toContain(`ok\n[exit code 0; still running in the background: ${process?.pid} ${process?.command}`)
        // A process has the name of the shell until it has become what it runs.
        expect([left, `bash -c ${command}`]).toContain(process?.command)
        expect(details.background).toHaveLength(1)
      }
    }))

  it.live("goes on after the call and ends with the session, wherever it went", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* run(place, "sleep 300 & setsid sleep 300 & (trap '' TERM; while :; do sleep 0.05; done) & echo ok")
      const other = yield* place.call("bash", { command: "sleep 300 & echo ok" }, "s2")
      expect(alive(place).length).toBeGreaterThanOrEqual(4)
      const [kept = 0] = decodeDetails(other.details).background.map(({ pid }) => pid)
      const before = performance.now()
      yield* place.closeSession("s1")
      expect(performance.now() - before).toBeLessThan(3_000)
      expect(alive(place)).toEqual([kept])
      yield* place.closeSession("s2")
      expect(alive(place)).toEqual([])
    }))

  it.live("is found also when it was started by a bezel inside the command", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      yield* run(place, `BEZEL_CALL_ID="$BEZEL_CALL_ID:inner" setsid sleep 300 & echo ok`)
      expect(alive(place)).toHaveLength(1)
      yield* place.closeSession("s1")
      expect(alive(place)).toEqual([])
    }))

  it.live("ends with the facet", () =>
    Effect.gen(function*() {
      const place = yield* Effect.scoped(Effect.gen(function*() {
        const place = yield* workspace()
        yield* run(place, "sleep 300 & echo ok")
        expect(alive(place)).toHaveLength(1)
        return place
      }))
      expect(alive(place)).toEqual([])
    }))

  it.live("may print on: it neither dies of a closed pipe nor spins", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const { details, text } = yield* run(place, "(while :; do echo x; done) & echo ok")
      expect(text).toContain("ok\n")
      expect(text).toContain("still running in the background")
      const pid = details.background[0]?.pid ?? 0
      const ticks = () =>
        readFileSync(`/proc/${pid}/stat`, "latin1").replace(/^.*\) /, "").split(" ").slice(11, 13).map(Number).reduce(
          (a, b) => a + b,
          0
        )
      const before = ticks()
      // How much it runs in half a second is what is looked at.
      yield* Effect.sleep(500)
      expect(ticks() - before).toBeLessThan(20)
      yield* place.closeSession("s1")
      expect(alive(place)).toEqual([])
    }))
})

describe("the end of a command", () => {
  it.live("always comes with its time limit, for the whole tree", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const before = performance.now()
      const { details, isError, text } = yield* run(
        place,
        "echo begun; setsid sleep 300 & (trap '' TERM HUP; sleep 300) & trap '' TERM; sleep 300",
        0.3
      )
      expect(performance.now() - before).toBeLessThan(3_000)
      expect(text).toBe("begun\n[timed out after 0.3 seconds; the command and all that it started were ended]")
      expect(isError).toBe(true)
      expect(details).toMatchObject({ timedOut: true, exitCode: null, background: [] })
      expect(alive(place)).toEqual([])
    }))

  it.live("comes with its time limit also when only its children hold the output", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const { details } = yield* run(place, "exec >/dev/null 2>&1; sleep 300", 0.2)
      expect(details.timedOut).toBe(true)
      expect(alive(place)).toEqual([])
    }))

  it.live("comes soon after an interruption, for the whole tree, and nothing starts afterwards", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const fiber = yield* Effect.forkChild(
        place.call("bash", { command: "echo > started; (setsid sleep 300 &); sleep 300; echo > after" })
      )
      yield* eventually(() => existsSync(place.path("started")))
      const before = performance.now()
      yield* Fiber.interrupt(fiber)
      expect(performance.now() - before).toBeLessThan(2_000)
      expect(alive(place)).toEqual([])
      expect(existsSync(place.path("after"))).toBe(false)
    }))

  it.live("comes when a fork bomb of short processes is interrupted", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const fiber = yield* Effect.forkChild(
        place.call("bash", {
          command: "f() { sleep 0.02; (f &) ; }; echo > started; for i in 1 2 3 4 5; do f & done; wait"
        })
      )
      yield* eventually(() => existsSync(place.path("started")))
      yield* Fiber.interrupt(fiber)
      // One that was left would live on in those that it starts, each for a while.
      expect(alive(place)).toEqual([])
    }))
})

describe("the output of a command", () => {
  it.live("is bounded, with both ends and a file that has the rest", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const { text } = yield* run(place, "seq 1 200000")
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(64 * 1024)
      expect(text.startsWith("1\n2\n")).toBe(true)
      expect(text.endsWith("199999\n200000\n[exit code 0]")).toBe(true)
      const path = /All of it is in (\S+),/.exec(text)?.[1] ?? ""
      expect(readFileSync(path, "utf8").split("\n").length).toBe(200_001)
      expect(yield* place.good("read", { path, offset: 100_000, limit: 1 })).toContain("100000\t100000")
    }))

  it.live("is described when it is binary", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const { text } = yield* run(place, "cat /bin/ls")
      expect(text).toMatch(/^\[The output is an ELF program or library, .* is in \S+\.txt\.\]\n\[exit code 0\]$/)
    }))

  it.live("may be one line of 5 MB", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const { text } = yield* run(place, "head -c 5000000 /dev/zero | tr '\\0' 'a'")
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(64 * 1024)
      expect(text).toContain("4.8 MiB, 2 lines")
    }))

  it.live("costs constant memory and a bounded file, however much it is", () =>
    Effect.gen(function*() {
      const place = yield* workspace()
      const before = process.memoryUsage().rss
      let peak = 0
      const watch = setInterval(() => peak = Math.max(peak, process.memoryUsage().rss), 20)
      const { text } = yield* run(place, "yes | head -c 400M")
      clearInterval(watch)
      expect(peak - before).toBeLessThan(150 * 1024 * 1024)
      expect(text).toContain("400 MiB")
      const path = /Its first [\d.]+ MiB is in (\S+),/.exec(text)?.[1] ?? ""
      expect(statSync(path).size).toBe(100 * 1024 * 1024)
    }), 60_000)
})
