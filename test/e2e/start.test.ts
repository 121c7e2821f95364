import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { makeHome } from "./command.ts"
import { serve } from "./run-fixture.ts"

/** Says at the end of the process which of the platform's own modules it has loaded. */
const probe = `
import { writeFileSync } from "node:fs"
const file = process.env.LOADED
delete process.env.NODE_OPTIONS
process.on("exit", () => writeFileSync(file, JSON.stringify(process.moduleLoadList)))
`

it("an answer over plain HTTP is asked for without loading the platform's fetch or TLS, a tenth of the start", async () => {
  const home = makeHome()
  home.useServer(await serve({ text: "ok" }))
  const loaded = join(home.folder, "loaded.json")
  const env = { LOADED: loaded, NODE_OPTIONS: `--import=${home.write("probe.mjs", probe)}` }
  expect(await home.run(["run", "hi"], { env })).toMatchObject({ code: 0, stdout: "ok\n", stderr: "" })
  const modules: ReadonlyArray<string> = JSON.parse(readFileSync(loaded, "utf8"))
  expect(modules).toContain("NativeModule _http_client")
  expect(modules.filter((name) => /undici|^NativeModule (https|tls|http2)$/.test(name))).toEqual([])
})
