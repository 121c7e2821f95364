/** All commands of `bezel`: names and options are a contract that scripts rely on. Code is loaded when a command is called. */
import { agentModule, sharingAgentModule } from "./agent-module.ts"
import { type Command, command, notBuilt } from "./arguments/command.ts"
import { choice, flag, positive, text, texts, whole } from "./arguments/option.ts"

const model = text("PROVIDER/MODEL", "the model to use", { short: "m" })
const agent = text("NAME", "the agent to use")
const session = text("ID", "go on with this session")
const goOn = flag("go on with the latest session of this folder", { short: "c" })
const trust = flag("trust this folder's settings for this run")
const fullScreen = flag("fills the terminal and scrolls by itself, without the terminal's history")
const json = flag("JSON on stdout")
const dir = text("PATH", "the folder to work in (default: here)")

const terminal = command({
  name: "",
  summary: "a coding agent in your terminal",
  arguments: ["[PATH]"],
  options: {
    continue: goOn,
    session,
    model,
    agent,
    attach: text("URL", "show a session of this server"),
    inline: flag("run here, also where a server of this user runs"),
    fullScreen,
    trust
  },
  examples: ["bezel", "bezel ~/work/shop --continue", "bezel --model anthropic/claude-sonnet-5-5"],
  load: async ({ environment, positionals }) => (await agentModule(positionals[0] ?? ".", environment.set)).terminal
})

const run = command({
  name: "run",
  summary: "answers one prompt without a screen; reads it from stdin when there is none or it is -",
  arguments: ["[PROMPT…]"],
  options: {
    model,
    agent,
    session,
    continue: goOn,
    fork: text("ENTRY", 'start from a copy of the session up to this entry, or "latest"'),
    dir,
    title: text("TEXT", "name of a new session"),
    file: texts("PATH", "attaches a file to the prompt"),
    system: text("TEXT", "adds to the system prompt"),
    json: flag("events as JSON, one per line, on stdout"),
    allow: texts("RULE", 'allows what the rule names, as "bash(git status*)" or "write"'),
    deny: texts("RULE", "denies what the rule names; beats every allow"),
    yes: flag("allows what would be asked inside the folder and no rule denies"),
    maxSteps: whole("N", 1, "at most so many requests to the model"),
    maxCost: positive("USD", "ends the turn when it has cost so much; sub-agents count"),
    timeout: positive("SECONDS", "ends the run after this time, with exit code 124"),
    trust
  },
  examples: [
    'bezel run "why does the build fail?"',
    'git diff | bezel run - --system "You review changes." --max-steps 1',
    'bezel run --continue --yes --timeout 600 "now fix it"',
    'bezel run --json --allow "bash(npm test*)" "run the tests" | jq -r \'select(.type=="result").text\''
  ],
  load: async ({ environment, options }) => (await agentModule(options.dir ?? ".", environment.set)).run
})

export const commands: ReadonlyArray<Command> = [
  terminal,
  run,
  command({
    name: "session list",
    summary: "lists the sessions of this folder, newest first",
    options: {
      all: flag("those of every folder"),
      dir,
      search: text("TEXT", "those with this in their title"),
      json
    },
    examples: ["bezel session list", "bezel session list --all --json", "bezel session list --search build"],
    load: async () => (await import("./agent.ts")).sessionList
  }),
  command({
    name: "session show",
    summary: "prints a session's transcript",
    arguments: ["ID"],
    options: { json },
    examples: ["bezel session show 01J9ZQ4T"],
    load: async () => (await import("./agent.ts")).sessionShow
  }),
  command({
    name: "session export",
    summary: "prints a whole session: as JSON that can be imported, or as markdown or a web page to read",
    arguments: ["ID"],
    options: { format: choice(["json", "markdown", "html"], "json", "what it is printed as") },
    examples: [
      "bezel session export 01J9ZQ4T > session.json",
      "bezel session export 01J9ZQ4T --format html > session.html"
    ],
    load: async () => (await import("./agent.ts")).sessionExport
  }),
  command({
    name: "session remove",
    summary: "deletes sessions and all that belongs to them",
    arguments: ["ID…"],
    options: {},
    examples: ["bezel session remove 01J9ZQ4T"],
    load: async () => (await import("./agent.ts")).sessionRemove
  }),
  command({
    name: "session repair",
    summary: "makes a session with damaged files usable again, and keeps the damaged files aside",
    arguments: ["ID"],
    options: { dryRun: flag("only says what is damaged and what would be done"), json },
    examples: ["bezel session repair 01J9ZQ4T --dry-run", "bezel session repair 01J9ZQ4T"],
    load: async () => (await import("./agent.ts")).sessionRepair
  }),
  command({
    name: "session import",
    summary: "takes in an exported session, as one of this folder",
    arguments: ["[FILE]"],
    options: { dir },
    examples: ["bezel session import session.json", "bezel session export 01J9ZQ4T | bezel session import"],
    load: async () => (await import("./agent.ts")).sessionImport
  }),
  command({
    name: "session fork",
    summary: "makes a new session of another one, up to an entry",
    arguments: ["ID"],
    options: { at: text("ENTRY", "the last entry to take over; default: the newest") },
    examples: ["bezel session fork 01J9ZQ4T", "bezel session fork 01J9ZQ4T --at e12"],
    load: async () => (await import("./agent.ts")).sessionFork
  }),
  command({
    name: "session compact",
    summary: "summarizes the older part of a session, with its model",
    arguments: ["ID"],
    options: { instructions: text("TEXT", "what the summary must keep"), trust },
    examples: ["bezel session compact 01J9ZQ4T"],
    load: async () => (await sharingAgentModule()).sessionCompact
  }),
  command({
    name: "session revert",
    summary: "takes back turns of a session, with what they did to files",
    arguments: ["ID"],
    options: {
      to: text("ENTRY", "takes back the turn of this entry and all after it; last: the newest turn"),
      clear: flag("brings back what was taken back"),
      dryRun: flag("only shows what would be done"),
      keep: flag("leaves files that others have changed as they are, and does the rest"),
      json,
      trust
    },
    examples: [
      "bezel session revert 01J9ZQ4T --to last --dry-run",
      "bezel session revert 01J9ZQ4T --to e12",
      "bezel session revert 01J9ZQ4T --clear"
    ],
    load: async () => (await sharingAgentModule()).sessionRevert
  }),
  command({
    name: "model list",
    summary: "lists the models that can be used here",
    options: { dir, json, trust, refresh: flag("asks the providers first which models they have") },
    examples: ["bezel model list", "bezel model list --refresh", "bezel model list --json"],
    load: async ({ environment, options }) => (await agentModule(options.dir ?? ".", environment.set)).modelList
  }),
  command({
    name: "tool list",
    summary: "lists the tools that a model is offered here",
    options: { dir, json, trust },
    examples: ["bezel tool list"],
    load: async ({ environment, options }) => (await agentModule(options.dir ?? ".", environment.set)).toolList
  }),
  command({
    name: "plugin list",
    summary: "lists the plugins that are loaded here, and the state of each",
    options: { dir, json, trust },
    examples: ["bezel plugin list"],
    load: async ({ environment, options }) => (await agentModule(options.dir ?? ".", environment.set)).pluginList
  }),
  command({
    name: "plugin add",
    summary: "installs a plugin for this user, or a package of models; scripts of packages are not run",
    arguments: ["NAME[@VERSION]|PATH|TARBALL"],
    options: {},
    examples: ["bezel plugin add bezel-plugin-jira@1.2.0", "bezel plugin add ./ticket.ts"],
    load: async () => (await sharingAgentModule()).pluginAdd
  }),
  command({
    name: "plugin remove",
    summary: "removes a plugin that was added",
    arguments: ["NAME|PATH"],
    options: {},
    examples: ["bezel plugin remove bezel-plugin-jira"],
    load: async () => (await sharingAgentModule()).pluginRemove
  }),
  command({
    name: "plugin doctor",
    summary: "checks the plugins, and says what to do about each fault",
    options: { dir, json, trust },
    examples: ["bezel plugin doctor"],
    load: async ({ environment, options }) => (await agentModule(options.dir ?? ".", environment.set)).pluginDoctor
  }),
  command({
    name: "skill list",
    summary: "lists the skills of this folder, and where each is",
    options: { dir, json, trust },
    examples: ["bezel skill list"],
    load: async ({ environment, options }) => (await agentModule(options.dir ?? ".", environment.set)).skillList
  }),
  command({
    name: "agent list",
    summary: "lists the agents of this folder, and where each is from",
    options: { dir, json, trust },
    examples: ["bezel agent list", 'bezel run --agent plan "how could the cache be made smaller?"'],
    load: async ({ environment, options }) => (await agentModule(options.dir ?? ".", environment.set)).agentList
  }),
  command({
    name: "auth list",
    summary: "lists the providers that take a key, and where each has one from",
    options: { dir, json, trust },
    examples: ["bezel auth list"],
    load: async ({ environment, options }) => (await agentModule(options.dir ?? ".", environment.set)).authList
  }),
  command({
    name: "auth set",
    summary: "stores a provider's key, which it reads from stdin",
    arguments: ["PROVIDER"],
    options: { dir, trust },
    examples: ["bezel auth set anthropic", "pass show openai | bezel auth set openai"],
    load: async ({ environment, options }) => (await agentModule(options.dir ?? ".", environment.set)).authSet
  }),
  command({
    name: "auth login",
    summary: "signs in to a provider whose settings say how, or to an MCP server, and stores what that gives",
    arguments: ["PROVIDER|SERVER"],
    options: { dir, trust },
    examples: ["bezel auth login work", "bezel auth login docs"],
    load: async () => (await import("./agent.ts")).authLogin
  }),
  command({
    name: "auth remove",
    summary: "forgets a provider's key, or the sign-in to an MCP server",
    arguments: ["PROVIDER|SERVER"],
    options: {},
    examples: ["bezel auth remove openai"],
    load: async () => (await import("./agent.ts")).authRemove
  }),
  command({
    name: "auth token",
    summary: "makes, lists and revokes tokens by which others may call the server of this user",
    arguments: ["create|list|revoke", "[NAME]"],
    options: {
      scope: choice(
        ["read", "prompt", "admin"],
        "prompt",
        "what a new one allows: to see, to give work, or everything"
      ),
      json
    },
    examples: [
      "bezel auth token create phone --scope read",
      "bezel auth token list",
      "bezel auth token revoke phone"
    ],
    load: async () => (await import("./agent.ts")).authToken
  }),
  command({
    name: "doctor",
    summary: "checks node, folders, settings, providers, plugins and sessions, and says what to do about each fault",
    options: { dir, json, trust },
    examples: ["bezel doctor"],
    load: async ({ environment, options }) => (await agentModule(options.dir ?? ".", environment.set)).doctor
  }),
  command({
    name: "serve",
    summary: "runs a server: sessions that go on without a screen, for terminals and programs",
    options: {
      host: text("ADDRESS", "where it listens (default 127.0.0.1)"),
      port: whole("N", 0, "its port; 0 takes any that is free (default 4747)"),
      isolation: choice(
        ["none", "location", "session"],
        "location",
        "what has a process of its own: nothing, each folder, or each session"
      ),
      allowHost: texts("NAME", "another name by which clients may call it"),
      allowOrigin: texts("ORIGIN", "an origin whose pages may call it"),
      browser: choice(
        ["none", "read", "prompt", "admin"],
        "none",
        "prints an address that signs a browser in, once, and what it may do then"
      ),
      json: flag("JSON on stdout: url and token, once it answers")
    },
    examples: ["bezel serve", "bezel serve --port 0 --json", "bezel serve --isolation session"],
    // Folders that it serves itself may have plugins, wherever it was started.
    load: async ({ environment, options }) =>
      (await (options.isolation === "none" ? sharingAgentModule() : agentModule(".", environment.set))).serve
  }),
  command({
    name: "attach",
    summary: "shows a session of a running server; without URL, of the one that this user runs here",
    arguments: ["[URL]"],
    options: {
      token: text("TOKEN", "the server's token (default: BEZEL_TOKEN, or that of the state folder)"),
      continue: goOn,
      session,
      model,
      agent,
      fullScreen,
      dir: text("PATH", "the folder to work in, on the server's machine")
    },
    examples: ["bezel attach", "bezel attach http://127.0.0.1:4747 --continue"],
    load: async ({ environment }) => (await agentModule(".", environment.set)).attach
  }),
  notBuilt("acp", "speaks the Agent Client Protocol on stdio, for editors"),
  command({
    name: "completions",
    summary: "prints a completion script for a shell",
    arguments: ["SHELL"],
    options: {},
    examples: ["bezel completions bash > ~/.local/share/bash-completion/completions/bezel"],
    load: async () => (await import("./command/completions.ts")).printCompletions
  })
]
