/** Commands in the sandbox that a setting wants, through the command; with the real bubblewrap where it works. */
import { spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { type Home, makeHome } from "./command.ts"

/** Whether this machine lets anybody make a sandbox at all. */
const works = spawnSync("bwrap", ["--ro-bind", "/", "/", "--unshare-net", "true"]).status === 0

const refusal = "Commands are to run in a sandbox"

const place = (sandbox: object) => {
  const home = makeHome()
  mkdirSync(join(home.folder, "tmp"))
  home.write("work/.git/hooks/pre-commit", "exit 0\n")
  home.write(".local/share/bezel/credentials.json", '{"version":1,"providers":{}}\n')
  home.settings({ sandbox })
  return home
}

/** In a script, where no rule sees what it does. */
const command = async (home: Home, line: string, env: { readonly [name: string]: string } = {}) => {
  home.write("work/script.sh", `${line}\n`)
  const ended = await home.run(["run", "--yes", "run . ./script.sh"], {
    env: { TMPDIR: join(home.folder, "tmp"), ...env }
  })
  return ended.stdout
}

describe("a command in the sandbox", { timeout: 60_000 }, () => {
  it("writes the workspace and temporary files, and nothing else; where there is no sandbox it is not run", async () => {
    const home = place({ bash: true })
    const outside = join(home.folder, "outside")
    const said = await command(home, `echo a > inside; echo b > "$TMPDIR/t"; echo c > ${outside}; echo end`)
    expect(existsSync(outside)).toBe(false)
    expect(said).toContain(works ? "Read-only file system" : refusal)
    expect(existsSync(join(home.work, "inside"))).toBe(works)
    expect(existsSync(join(home.folder, "tmp/t"))).toBe(works)
  })

  it("sees no keys and no sessions, and leaves alone what would run outside later", async () => {
    const home = place({ bash: true })
    const said = await command(home, "echo evil > .git/hooks/pre-commit; ls -A ~/.local/share/bezel | wc -l")
    expect(readFileSync(join(home.work, ".git/hooks/pre-commit"), "utf8")).toBe("exit 0\n")
    expect(said).toMatch(works ? /^0$/m : new RegExp(refusal))
  })

  it("is told what it has made that would decide over what runs outside, and leads git nowhere else", async () => {
    const home = place({ bash: true })
    home.write("other/hooks/pre-commit", "touch pwned\n")
    const said = await command(
      home,
      "mkdir .bezel; echo '{}' > bezel.jsonc; echo ../../other > .git/commondir; echo end"
    )
    expect(said).toContain(works ? "[bezel.jsonc is new: settings of this project" : refusal)
    expect(said.includes("[.bezel is new:")).toBe(works)
    expect(said.includes("[.git/commondir is now .git/commondir.set-aside: it would have git run something")).toBe(
      works
    )
    expect(existsSync(join(home.work, ".git/commondir"))).toBe(false)
    // So do hooks where there were none.
    rmSync(join(home.work, ".git/hooks"), { recursive: true })
    const hooked = await command(home, "mkdir .git/hooks; echo evil > .git/hooks/pre-commit")
    expect(hooked.includes("[.git/hooks is now .git/hooks.set-aside:")).toBe(works)
    expect(existsSync(join(home.work, ".git/hooks"))).toBe(false)
    // What stood there before the sandbox is nobody's to take away, and not to be changed either.
    home.write("work/.git/commondir", ".\n")
    await command(home, "echo ../../other > .git/commondir; rm -f .git/commondir")
    expect(readFileSync(join(home.work, ".git/commondir"), "utf8")).toBe(".\n")
  })

  it("leaves the hooks and settings of submodules alone", async () => {
    const home = place({ bash: true })
    home.write("work/.git/modules/sub/config", "[core]\n")
    home.write("work/.git/modules/sub/hooks/pre-commit", "exit 0\n")
    await command(home, "cd .git/modules/sub; echo evil >> config; echo evil > hooks/pre-commit; touch index")
    expect(readFileSync(join(home.work, ".git/modules/sub/config"), "utf8")).toBe("[core]\n")
    expect(readFileSync(join(home.work, ".git/modules/sub/hooks/pre-commit"), "utf8")).toBe("exit 0\n")
    expect(existsSync(join(home.work, ".git/modules/sub/index"))).toBe(works)
  })

  it("takes away what was left to be made behind it, at the latest when the session ends", async () => {
    const home = place({ bash: true })
    home.write("work/script.sh", "(sleep 0.6; echo ../../other > .git/commondir) & echo end\n")
    await home.run(["run", "--yes", "run . ./script.sh then run sleep 1"], {
      env: { TMPDIR: join(home.folder, "tmp") }
    })
    expect(existsSync(join(home.work, ".git/commondir"))).toBe(false)
  })

  it("sees none of them below a folder that it may write either, and cannot put another .git in the place of this one", async () => {
    const home = place({ bash: true, write: ["~/.local", "~/.config"] })
    const said = await command(
      home,
      "ls -A ~/.local/share/bezel | wc -l; echo x > ~/.config/bezel/bezel.jsonc; mv .git elsewhere && mkdir .git; echo end"
    )
    expect(said).toMatch(works ? /^0$/m : new RegExp(refusal))
    expect(readFileSync(join(home.folder, ".config/bezel/bezel.jsonc"), "utf8")).toContain("sandbox")
    expect(existsSync(join(home.work, ".git/hooks/pre-commit"))).toBe(true)
  })

  it("reaches the network only if the setting lets it", async () => {
    const server = createServer((socket) => socket.end("hello\n"))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const line = `cat < /dev/tcp/127.0.0.1/${port}`
    expect(await command(place({ bash: true }), line)).toContain(works ? "hello" : refusal)
    const without = await command(place({ bash: true, network: false }), line)
    expect(without).not.toContain("hello")
    expect(without).toMatch(works ? /exit code 1/ : new RegExp(refusal))
    server.close()
  })

  it("writes further folders that the setting names, and says where it has ended", async () => {
    const home = place({ bash: true, write: ["~/more"] })
    mkdirSync(join(home.folder, "more"))
    const said = await command(home, "mkdir -p sub && cd sub && echo a > ~/more/a && pwd")
    expect(existsSync(join(home.folder, "more/a"))).toBe(works)
    expect(said).toMatch(works ? /the working directory is now \S+\/work\/sub/ : new RegExp(refusal))
    const all = place({ bash: true, write: ["~"] })
    await command(all, "echo a > ~/anywhere")
    expect(existsSync(join(all.folder, "anywhere"))).toBe(works)
  })

  it("is refused in plain words where bubblewrap does not work, and runs as ever without the setting", async () => {
    const home = place({ bash: true })
    const broken = home.write("bin/bwrap", "#!/bin/sh\necho 'bwrap: no permission to make namespaces' >&2\nexit 1\n")
    chmodSync(broken, 0o755)
    const env = { PATH: `${join(home.folder, "bin")}:${process.env.PATH ?? ""}` }
    const said = await command(home, "echo a > inside", env)
    expect(said).toContain(
      "(the setting sandbox.bash), and bubblewrap does not work here: bwrap: no permission to make namespaces; so none is run"
    )
    expect(existsSync(join(home.work, "inside"))).toBe(false)
    home.settings({})
    await command(home, "echo a > inside", env)
    expect(existsSync(join(home.work, "inside"))).toBe(true)
  })

  it("is asked for by a project that nobody trusts, but never let go by one", async () => {
    const home = place({ bash: true })
    const outside = join(home.folder, "outside")
    home.write("work/bezel.jsonc", JSON.stringify({ sandbox: { bash: false, write: ["/"] } }))
    await command(home, `echo c > ${outside}`)
    expect(existsSync(outside)).toBe(false)
    home.settings({})
    home.write("work/bezel.jsonc", JSON.stringify({ sandbox: { bash: true } }))
    await command(home, `echo c > ${outside}`)
    expect(existsSync(outside)).toBe(false)
  })
})
