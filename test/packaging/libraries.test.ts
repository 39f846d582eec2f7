/**
 * The five libraries as a user of the package has them: packed by npm, unpacked beside
 * `effect` and what the package itself needs, compiled against with their types, run by a plain Node. The
 * user's code is the READMEs' examples as they stand there.
 */
import { spawnSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { LIBRARIES, shown } from "../support/ReadmeExample.ts"

const root = join(import.meta.dirname, "../..")
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

const lacks = ["npm", "tar"].filter((tool) => spawnSync(tool, ["--version"]).status !== 0)
if (lacks.length > 0) console.warn(`SKIPPED: the package's libraries (no ${lacks.join(", no ")} on this machine)`)

const folder = realpathSync(mkdtempSync(join(tmpdir(), "agentd-libraries-")))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = (cwd: string, command: string, ...args: ReadonlyArray<string>): string => {
  const { error, status, stderr, stdout } = spawnSync(command, args, { cwd, encoding: "utf8" })
  assert.strictEqual(status, 0, `${command} ${args.join(" ")}: ${error ?? ""}${stdout}${stderr}`)
  return stdout
}

const user = join(folder, "user")
const installed = join(user, "node_modules/agentd")

/** Written as somebody would: by the entries, and by a module's own path. */
const MAIN = `
import { Effect, Exit } from "effect"
import { Supervisor, type SupervisorOptions } from "agentd/supervision"
import { EventKinds, SqlEventLog } from "agentd/event-log"
import { CommitScope, StateMachine } from "agentd/event-actor"
import { type Backend, Outcome, ProcessTree, ScriptedBackend } from "agentd/backends"
import { Client, Promises } from "agentd/client"
import * as Restart from "agentd/supervision/Restart"
import * as CommandBackend from "agentd/backends/command/CommandBackend"
import { steps } from "./supervision.js"
import { till } from "./event-log.js"
import { shop } from "./event-actor.js"
import { events } from "./backends.js"

const options: SupervisorOptions.Options = { name: "typed", intensity: 3 }
const backend: Backend.Backend = ScriptedBackend.make([{}])
// The types are there, and are not any: each of these is a mistake.
// @ts-expect-error
export const a: SupervisorOptions.Options = { name: 3 }
// @ts-expect-error
export const b: Backend.RunEvent = { _tag: "NoSuchEvent" }
// @ts-expect-error
export const c = SqlEventLog.layer({ path: "no such option" })
// @ts-expect-error
export const d = new CommitScope.CommitScope("no system", { id: 1 })
// @ts-expect-error
export const f = () => Promises.connect().call("Send", { name: "builder", text: "hello", how: "soon" })
// @ts-expect-error
export const g = () => Client.use()((client) => client.NoSuchProcedure())
// @ts-expect-error
export const e = Restart.noSuchFunction

const [, , file] = process.argv
const supervised = await Effect.runPromise(steps)
const first = await Effect.runPromise(till(file!))
const second = await Effect.runPromise(till(file!))
const sold = await Effect.runPromise(shop)
const said = await Effect.runPromise(events)
const made = await Effect.runPromiseExit(Effect.scoped(Supervisor.make(options)))
const names = [EventKinds.make, StateMachine.define, ProcessTree.ProcessTree, CommandBackend.outcomeOf, Outcome]
const asked = await Promises.connect({ state: "/nowhere" })
  .call("Agents")
  .catch((error: unknown) => (error instanceof Client.DaemonUnreachable ? error.reason : String(error)))
const found = names.every((name) => name !== undefined) && backend.turns === false
console.log(JSON.stringify({ supervised, first, second, sold, said, made: Exit.isSuccess(made), asked, found }))
`

const TSCONFIG = {
  compilerOptions: {
    target: "esnext",
    module: "nodenext",
    strict: true,
    exactOptionalPropertyTypes: true,
    // the declarations of the package are checked, too
    skipLibCheck: false,
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
    outDir: "out",
    rootDir: "."
  },
  files: ["main.ts"]
}

const write = (path: string, text: string) => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** The package as npm packs it, less the program: the libraries are its own build. */
const pack = () => {
  const source = join(folder, "source")
  for (const name of ["package.json", "scripts/agentd", "scripts/find-node.sh", "README.md", "LICENSE"]) {
    mkdirSync(dirname(join(source, name)), { recursive: true })
    cpSync(join(root, name), join(source, name))
  }
  run(root, process.execPath, join(root, "scripts/libraries/main.ts"), join(source, "dist"))
  run(source, "npm", "pack", "--ignore-scripts", "--offline", "--silent")
  const [tarball] = readdirSync(source).filter((name) => name.endsWith(".tgz"))
  mkdirSync(installed, { recursive: true })
  run(installed, "tar", "-xzf", join(source, tarball!), "--strip-components=1")
}

describe.skipIf(lacks.length > 0)("the package's libraries", () => {
  beforeAll(() => {
    pack()
    symlinkSync(join(root, "node_modules/effect"), join(user, "node_modules/effect"))
    // as npm does with what the package needs itself
    mkdirSync(join(installed, "node_modules/@effect"), { recursive: true })
    symlinkSync(join(root, "node_modules/@effect/platform-node"), join(installed, "node_modules/@effect/platform-node"))
    write(join(user, "package.json"), JSON.stringify({ name: "user", type: "module" }))
    write(join(user, "tsconfig.json"), JSON.stringify(TSCONFIG))
    write(join(user, "main.ts"), MAIN)
    for (const library of LIBRARIES) write(join(user, `${library}.ts`), shown(library))
  }, 120_000)

  it("are built before the package is packed, and need effect as a peer only where they are used", () => {
    assert.include(manifest.scripts.prepack, "npm run libraries")
    assert.notProperty(manifest.dependencies, "effect")
    assert.deepStrictEqual(manifest.peerDependenciesMeta, { effect: { optional: true } })
    assert.strictEqual(manifest.peerDependencies.effect, `^${manifest.devDependencies.effect}`)
    assert.deepStrictEqual(readdirSync(join(user, "node_modules")).toSorted(), ["agentd", "effect"])
  })

  it("have an entry, a README and no source each; what is exported is there", () => {
    for (const library of LIBRARIES) {
      const { default: code, types } = manifest.exports[`./${library}`]
      for (const path of [code, types, `dist/lib/${library}/README.md`]) {
        assert.isTrue(existsSync(join(installed, path)), path)
      }
      assert.deepStrictEqual(manifest.exports[`./${library}/*`], {
        types: `./dist/lib/${library}/*.d.ts`,
        default: `./dist/lib/${library}/*.js`
      })
    }
    assert.notInclude(readdirSync(installed), "src")
  })

  it("are compiled against with all their types, and run: the five READMEs' examples", { timeout: 120_000 }, () => {
    run(user, process.execPath, join(root, "node_modules/typescript/bin/tsc"), "-p", ".")
    const said = run(user, process.execPath, "out/main.js", join(user, "state/till.sqlite"))
    const rune = { refused: "INV-NEVER-BELOW-ZERO", problems: 0 }
    assert.deepStrictEqual(JSON.parse(said.trim().split("\n").at(-1)!), {
      supervised: ["Started", "Exited", "Restarting", "Started"],
      first: { kinds: ["cash.in", "cash.out"], balance: 350, ...rune },
      second: { kinds: ["cash.in", "cash.out", "cash.in", "cash.out"], balance: 700, ...rune },
      sold: { sales: 1, money: 350, refused: "Refused", runes: ["till.sold", "drawer.filled"] },
      said: ["hello, Ada", "Error"],
      made: true,
      asked: "not-running",
      found: true
    })
  })
})
