/** The program that the terminal tests run in a pseudo terminal: the real terminal host over a stub session. */
import { Plugin } from "@bezel/core/host"
import { runTerminal, span, text, type TuiContext } from "@bezel/tui"
import * as Effect from "effect/Effect"
import { chatScreen } from "../../packages/plugins/src/chat/screen.ts"
import { Approval } from "../../packages/plugins/src/permissions/contract.ts"
import { tui as permissionsTui } from "../../packages/plugins/src/permissions/tui.ts"
import { tui as questionTui } from "../../packages/plugins/src/question/tui.ts"
import { tui as toolsTui } from "../../packages/plugins/src/tools/tui.ts"
import { scene, sceneParts } from "./scenes.ts"
import { assistant, makeStubSession, type Script, tool, toolResult } from "./stub-session.ts"

const answer = (words: string, script: Script) =>
  Effect.andThen(script.entry("bezel.assistant", assistant(words)), script.finish)

const stream = (words: string, script: Script, step = 40) =>
  Effect.gen(function*() {
    for (let end = step; end < words.length + step; end += step) {
      yield* script.turn([{ type: "text", text: words.slice(0, end) }])
      yield* Effect.sleep("4 millis")
    }
    yield* answer(words, script)
  })

const hostile = "\x1b]0;owned\x07\x1b[2Jwiped \u009b31mred \u202egnp.exe\x1b]52;c;aGk=\x07 \u{e0041}hidden"

const respond = (input: string, script: Script): Effect.Effect<void, unknown> => {
  const played = scene(input, script)
  if (played !== null) return played
  const [word, ...rest] = input.split(" ")
  switch (word) {
    case "stream":
      return stream(
        Array.from({ length: Number(rest[0]) }, (_, index) => `Line ${index + 1} of **many**`).join("\n\n"),
        script
      )
    case "think":
      return Effect.gen(function*() {
        yield* script.turn([{ type: "reasoning", text: "Let me see" }])
        yield* Effect.sleep("50 millis")
        yield* script.entry("bezel.assistant", [{
          role: "assistant",
          content: [{ type: "reasoning", text: "Let me see" }, { type: "text", text: "Done thinking" }]
        }])
        yield* script.finish
      })
    case "tool":
      return Effect.gen(function*() {
        const args = { command: "make test", description: "Run the tests" }
        yield* script.turn([{ type: "tool-call", id: "c1", name: "bash", text: '{"command":"ma' }])
        yield* Effect.sleep("30 millis")
        yield* script.entry(
          "bezel.assistant",
          assistant("I run it", [{ type: "tool-call", id: "c1", name: "bash", params: args }])
        )
        for (let line = 1; line <= 20; line++) {
          const output = Array.from({ length: line }, (_, index) => `out ${index + 1}`).join("\n")
          yield* script.turn([], [tool({ callId: "c1", name: "bash", args, output })])
          yield* Effect.sleep("5 millis")
        }
        yield* script.entry("bezel.tool_result", toolResult("c1", "bash", "all 20 passed"))
        yield* answer("Tests pass", script)
      })
    case "hang":
      return Effect.andThen(script.turn([{ type: "text", text: "Working on it" }]), Effect.never)
    case "hostile":
      return Effect.gen(function*() {
        const params = { command: hostile }
        yield* script.entry(
          "bezel.assistant",
          assistant(hostile, [{ type: "tool-call", id: "h1", name: "bash", params }, {
            type: "tool-call",
            id: "h2",
            name: "\x1b]0;tool\x07",
            params
          }])
        )
        yield* script.entry("bezel.tool_result", toolResult("h1", "bash", hostile))
        yield* answer("After the hostile text", script)
      })
    case "ask":
      return Effect.gen(function*() {
        yield* script.turn([])
        const response = yield* script.ask(Approval, {
          conversationID: "main",
          taskID: "t",
          callID: "c",
          tool: "bash",
          args: {},
          access: "bash",
          subjects: [`rm -rf build ${hostile}`],
          reasons: ["No rule allows it."],
          grants: ["bash(rm -rf build)"]
        })
        yield* answer(`You said ${JSON.stringify(response)}`, script)
      })
    case "crash":
      return Effect.sync(() => {
        setTimeout(() => {
          throw new Error("something broke deep inside")
        }, 10)
      })
    case "reject":
      return Effect.sync(() => {
        void Promise.reject(new Error("nobody waits for this"))
      })
    case "exit":
      return Effect.sync(() => process.exit(7))
    case "retry":
      return Effect.andThen(
        script.update((view) => ({
          ...view,
          turn: {
            inputs: [],
            generation: {
              task: "t1",
              stage: "retrying",
              attempt: 1,
              model: null,
              retryAt: Date.now() + 30_000,
              error: { kind: "rate_limit", message: "Too many requests" }
            },
            message: null,
            tools: []
          }
        })),
        Effect.never
      )
    default:
      return answer(`You said: ${input}`, script)
  }
}

const broken = (ctx: TuiContext) =>
  Effect.gen(function*() {
    yield* ctx.slots.add("chat.footer", {
      order: 0,
      render: () => {
        throw new Error("broken slot")
      }
    })
    yield* ctx.commands.register("broken.fail", {
      slash: "fail",
      description: "Fails",
      run: () => Effect.die(new Error("broken command"))
    })
    yield* ctx.commands.register("test.quit-later", {
      slash: "interrupt-host",
      description: "Interrupts the host",
      run: () => Effect.sync(() => process.emit("bezel-test-interrupt" as never))
    })
    yield* ctx.commands.register("broken.noisy", {
      slash: "noisy",
      description: "Prints",
      run: () => Effect.sync(() => console.error("printed %s", "\x1b]0;x\x07by a library"))
    })
    yield* ctx.slots.add("chat.header", { order: 0, render: () => [headerBlock] })
  })
const headerBlock = text(span("a slot's text"))

const main = Effect.scoped(Effect.gen(function*() {
  const session = yield* makeStubSession(respond)
  const mode = process.env["TEST_MODE"] ?? ""
  const screen = process.env["TEST_SCREEN"] ?? "inline"
  const chat = Plugin.define({
    id: "bezel.chat",
    tui: (ctx) =>
      Effect.gen(function*() {
        const changed = yield* chatScreen(ctx, {
          conversation: () => session.conversation,
          location: () => "/home/me/project",
          home: "/home/me"
        })
        yield* ctx.onActivate(
          Effect.asVoid(Effect.forkScoped(session.conversation.view.forEach(() => Effect.sync(changed))))
        )
      })
  })
  const failing = Plugin.define({ id: "test.failing", tui: () => Effect.die(new Error("setup of failing")) })
  const end = yield* runTerminal({
    presentation: session.presentation,
    plugins: Plugin.sources("tui", [
      chat,
      Plugin.define({ id: "bezel.tools", tui: toolsTui }),
      Plugin.define({ id: "bezel.permissions", tui: permissionsTui }),
      Plugin.define({ id: "bezel.question", tui: questionTui }),
      Plugin.define({ id: "test.scenes", tui: (ctx) => sceneParts(ctx, session) }),
      ...(mode === "broken" ? [Plugin.define({ id: "test.broken", tui: broken })] : []),
      ...(mode.startsWith("failing") ? [failing] : [])
    ], mode === "failing-required" ? { "test.failing": { required: true } } : {}),
    fullScreen: screen === "full" || screen === "mouse" ? { mouse: screen === "mouse" } : null,
    report: () => Effect.void
  })
  return end
}))

if (process.env["TEST_MODE"] === "handler") {
  process.on("uncaughtException", (error) => {
    process.stdout.write(`reported: ${error.message}\n`)
    process.exit(9)
  })
}

const fiber = Effect.runFork(main)
process.on("bezel-test-interrupt" as never, () => fiber.interruptUnsafe())
fiber.addObserver((exit) => {
  if (exit._tag === "Success") {
    process.stdout.write(`ended: ${exit.value.type === "quit" ? "quit" : exit.value.signal}\n`)
    process.exitCode = exit.value.type === "quit"
      ? 0
      : exit.value.signal === "SIGINT"
      ? 130
      : exit.value.signal === "SIGHUP"
      ? 129
      : 143
    process.stdin.unref()
  } else {
    process.stdout.write(`failed: ${exit.cause.toString().slice(0, 300)}\n`)
    process.exitCode = 1
  }
})
