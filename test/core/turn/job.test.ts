import { type Harness, HarnessError, type JobSpec } from "@bezel/core/harness"
import { makeFileProcessHost, makeJobKind, type ProcessHost, type ProcessStatus } from "@bezel/core/turn"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { memory, open, user } from "./fixture.ts"

const settle = Effect.gen(function*() {
  for (let n = 0; n < 60; n++) yield* Effect.yieldNow
})

const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "bezel-jobs-"))),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
)

const spec = (command: JobSpec["command"], more: Partial<JobSpec> = {}): JobSpec => ({
  command,
  directory: os.tmpdir(),
  env: {},
  notBefore: null,
  every: null,
  notice: false,
  ...more
})

const startJob = (harness: Harness, job: JobSpec) =>
  harness.main.commit((tx) => {
    if (harness.job === null) throw new HarnessError({ code: "not_found", message: "no process host" })
    return tx.createTask(harness.job, job, { background: true })
  })

/** A process that has ended but was not waited for by its parent does not run. */
const isRunning = (pid: number): boolean => {
  try {
    return !fs.readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z")
  } catch {
    return false
  }
}

/** A process host whose processes end when the test says so. */
const fakeHost = () => {
  const started: Array<string> = []
  const states = new Map<string, ProcessStatus>()
  const host: ProcessHost = {
    start: (key) =>
      Effect.sync(() => {
        const known = states.get(key)
        if (known !== undefined) return known
        started.push(key)
        const status: ProcessStatus = { state: "running", pid: 1 }
        states.set(key, status)
        return status
      }),
    status: (key) => Effect.sync(() => states.get(key) ?? { state: "unknown" }),
    kill: (key) =>
      Effect.sync(() => {
        states.set(key, { state: "exited", code: null, signal: "SIGTERM" })
      }),
    output: () => Effect.succeed("some output")
  }
  return { host, started, states }
}

it.live("a job runs a real process to its exit code and output", () =>
  Effect.gen(function*() {
    const host = makeFileProcessHost(yield* folder)
    const { harness } = yield* open(memory().storage(), [], { job: makeJobKind(host) })
    yield* harness.resume
    const ref = yield* startJob(harness, spec(["sh", "-c", "echo out; echo err >&2; exit 3"]))
    expect(yield* harness.main.waitForTask(ref)).toMatchObject({
      status: "completed",
      result: { state: "exited", code: 3, signal: null, output: "out\nerr\n" }
    })
  }))

it.live("a job outlives its host: after a restart its end is found", () =>
  Effect.gen(function*() {
    const place = yield* folder
    const session = memory()
    const gate = path.join(place, "gate")
    const scope = yield* Scope.make()
    const first = yield* open(session.storage(), [], { job: makeJobKind(makeFileProcessHost(place)) }).pipe(
      Scope.provide(scope)
    )
    yield* first.harness.resume
    const ref = yield* startJob(
      first.harness,
      spec(["sh", "-c", `while [ ! -e ${gate} ]; do sleep 0.05; done; echo came through`])
    )
    yield* first.harness.main.watch.pipe(
      Effect.flatMap((watch) =>
        Effect.promise(() =>
          new Promise<void>((resolve) => {
            const look = () =>
              JSON.stringify(watch) !== "" &&
                fs.existsSync(path.join(place, encodeURIComponent(`ses_test.${ref.id}.1`), "pid"))
                ? resolve()
                : void setImmediate(look)
            look()
          })
        )
      ),
      Effect.scoped
    )
    yield* Scope.close(scope, Exit.void)
    fs.writeFileSync(gate, "")
    const second = yield* open(session.storage(), [], { job: makeJobKind(makeFileProcessHost(place)) })
    yield* second.harness.resume
    expect(yield* second.harness.main.waitForTask(ref)).toMatchObject({
      status: "completed",
      result: { state: "exited", code: 0, output: "came through\n" }
    })
  }))

it.live("aborting a job ends its process and what that started", () =>
  Effect.gen(function*() {
    const place = yield* folder
    const host = makeFileProcessHost(place)
    const { harness } = yield* open(memory().storage(), [], { job: makeJobKind(host) })
    yield* harness.resume
    const ref = yield* startJob(harness, spec(["sh", "-c", "sleep 300 & echo $!; wait"]))
    const key = `ses_test.${ref.id}.1`
    let child = ""
    while (child === "") {
      child = (yield* host.output(key, 100)).trim()
      yield* Effect.yieldNow
    }
    expect(yield* harness.main.abortTask(ref)).toMatchObject({ status: "aborted" })
    expect((yield* host.status(key)).state).not.toBe("running")
    while (isRunning(Number(child))) yield* Effect.yieldNow
    expect(isRunning(Number(child))).toBe(false)
  }))

it.live("a process that is gone without a trace is unknown, not guessed", () =>
  Effect.gen(function*() {
    const place = yield* folder
    const host = makeFileProcessHost(place)
    const status = yield* host.start("k", { command: ["sleep", "300"], directory: place, env: {} })
    expect(status.state).toBe("running")
    if (status.state === "running") process.kill(-status.pid, "SIGKILL")
    let after = yield* host.status("k")
    while (after.state === "running") {
      yield* Effect.yieldNow
      after = yield* host.status("k")
    }
    expect(after).toEqual({ state: "unknown" })
    expect(yield* host.status("never")).toEqual({ state: "unknown" })
  }))

it.live("starting twice under one key runs one process", () =>
  Effect.gen(function*() {
    const place = yield* folder
    const host = makeFileProcessHost(place)
    const marker = path.join(place, "ran")
    const job = { command: ["sh", "-c", `echo x >> ${marker}`], directory: place, env: {} }
    yield* Effect.all([host.start("k", job), host.start("k", job), host.start("k", job)], { concurrency: 3 })
    let status = yield* host.status("k")
    while (status.state === "running") status = yield* host.status("k")
    expect(yield* host.start("k", job)).toMatchObject({ state: "exited", code: 0 })
    expect(fs.readFileSync(marker, "utf8")).toBe("x\n")
  }))

it.effect("the key is stored before the start, so a crash in between starts no second process", () =>
  Effect.gen(function*() {
    const session = memory()
    const { host, started, states } = fakeHost()
    const scope = yield* Scope.make()
    const first = yield* open(session.storage(), [], {
      job: makeJobKind({ ...host, start: (key, job) => Effect.andThen(host.start(key, job), Effect.never) })
    }).pipe(Scope.provide(scope))
    yield* first.harness.resume
    const ref = yield* startJob(first.harness, spec(["x"]))
    yield* settle
    yield* Scope.close(scope, Exit.void)
    expect(started.length).toBe(1)
    const second = yield* open(session.storage(), [], { job: makeJobKind(host) })
    yield* second.harness.resume
    yield* settle
    states.set(started[0] ?? "", { state: "exited", code: 0, signal: null })
    yield* TestClock.adjust("1 second")
    expect(yield* second.harness.main.waitForTask(ref)).toMatchObject({ status: "completed" })
    expect(started.length).toBe(1)
  }))

it.effect("a schedule waits for its time, runs again after each end, and tells the model", () =>
  Effect.gen(function*() {
    const { host, started, states } = fakeHost()
    const { harness, model } = yield* open(memory().storage(), ["seen"], { job: makeJobKind(host) })
    yield* harness.resume
    const ref = yield* startJob(harness, spec(["check"], { notBefore: 60_000, every: 30_000, notice: true }))
    yield* settle
    yield* TestClock.adjust("59 seconds")
    expect(started.length).toBe(0)
    yield* TestClock.adjust("1 second")
    yield* settle
    expect(started.length).toBe(1)
    expect((yield* harness.main.snapshot).view.tasks[ref.id]?.status).toMatchObject({
      stage: "running",
      run: 1,
      command: ["check"]
    })
    states.set(started[0] ?? "", { state: "exited", code: 2, signal: null })
    yield* TestClock.adjust("1 second")
    yield* settle
    yield* TestClock.adjust("30 seconds")
    yield* settle
    expect(started.length).toBe(2)
    yield* Effect.flatMap(harness.main.send(user("anything?")), (input) => input.wait)
    expect(JSON.stringify(model.requests[0]?.messages)).toContain("failed with exit code 2")
    yield* harness.main.abortTask(ref)
    expect(states.get(started[1] ?? "")).toMatchObject({ state: "exited" })
  }))
