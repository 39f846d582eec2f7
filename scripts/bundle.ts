/**
 * bundle: builds dist/: agentd.mjs from src/main.ts, which starts in a third of the time of src,
 * and quick.cjs from src/app/Quick.ts, which answers what it can and hands over to the other; it
 * is compiled ahead (4 of its 14 ms), for the Node that builds; the page (`page.ts`), and the man pages.
 *
 * `bundle.ts [OUT]`. dist/ needs no node_modules. A CLI verb that is imported
 * lazily gets a chunk of its own. Names of functions and classes survive, so that a
 * stack trace in the journal can be read; those within are short, which is a quarter of the size.
 *
 * Safe while agentd runs: chunks are named by content and written before the
 * entry that names them is renamed into place; what nobody names goes last.
 */
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { mkdir, readdir, readFile, rename, rm, utimes, writeFile } from "node:fs/promises"
import { join, relative } from "node:path"
import { type OutputChunk, rolldown, type RolldownOptions, type RolldownOutput } from "rolldown"

const minify = {
  mangle: { keepNames: { function: true, class: true } },
  compress: true,
  codegen: true
} as const

const root = join(import.meta.dirname, "..")
const out = process.argv[2] ?? join(root, "dist")
const chunks = join(out, "chunks")

/** The code of a module and all that it imports, as one text: what starts late runs the code that its daemon was started with. */
const textOf = async (input: string): Promise<string> => {
  const build = await rolldown({ cwd: root, input, platform: "node" })
  const { output } = await build.generate({ format: "esm", minify })
  await build.close()
  const [entry, ...others] = output
  if (others.length > 0) throw new Error(`bundle: ${input} is not one chunk`)
  return entry.code
}

/** A thread's code as a URL that holds it: made as the thread begins, since the URL is a third longer than the code. */
const threadOf = async (input: string): Promise<string> =>
  `() => new URL("data:text/javascript;base64," + Buffer.from(${JSON.stringify(await textOf(input))}).toString("base64"))`

/**
 * The same code in ASCII: one other character makes V8 keep a whole file as two bytes a character, for as long as the
 * program runs. In strings, patterns and names the escape is the character.
 */
const ascii = (code: string): string =>
  code.replaceAll(/[^\p{ASCII}]/gu, (char) =>
    Array.from({ length: char.length }, (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")
  )

const keeperFiles = async () => {
  const names = ["keeper.mjs", "slot.sh"]
  const texts = await Promise.all(names.map((name) => readFile(join(root, "src/runs/keeper", name), "utf8")))
  return Object.fromEntries(names.map((name, index) => [name, texts[index]]))
}

/** The modules that say where the code of the threads, of the gateway and of the keeper is, made of the code itself. */
const programs: { readonly [module: string]: () => Promise<string> } = {
  "src/core/event-log/ThreadFile.ts": async () =>
    `export const logThread = ${await threadOf("src/core/event-log/LogThread.ts")}\n` +
    `export const verifyThread = ${await threadOf("src/core/event-log/VerifyThread.ts")}\n` +
    `export const copyThread = ${await threadOf("src/core/event-log/CopyThread.ts")}\n`,
  "src/runs/gateway/GatewayFile.ts": async () =>
    `export const program = ${JSON.stringify(await textOf("src/runs/gateway/main.ts"))}\n`,
  "src/runs/keeper/KeeperFile.ts": async () => `export const files = () => (${JSON.stringify(await keeperFiles())})\n`
}

const programModules = {
  name: "programs",
  load: async (id: string): Promise<string | null> => (await programs[relative(root, id)]?.()) ?? null
}

/**
 * The quick entry's code: one script, since an ES module costs 2 ms more, and each further file
 * another one. A module of a package in it would cost more than the entry saves: refused.
 */
const quickOf = async (input: string): Promise<string> => {
  const build = await rolldown({
    cwd: root,
    input,
    platform: "node"
  })
  const { output } = await build.generate({ format: "cjs", minify: true })
  await build.close()
  const [entry, ...others] = output
  const heavy = entry.moduleIds.filter((id) => id.includes("node_modules"))
  if (heavy.length > 0) throw new Error(`bundle: ${input} must be light, and holds ${heavy.join(", ")}`)
  const foreign = entry.imports.filter((id) => !id.startsWith("node:"))
  if (foreign.length > 0) throw new Error(`bundle: ${input} must be light, and imports ${foreign.join(", ")}`)
  if (others.length > 0) throw new Error(`bundle: ${input} is not one file`)
  return `(function (require, module, exports, __dirname, load) {${entry.code}\n})`
}

/** As `quick.cjs` reads the script: what is compiled once for another Node or other flags is compiled anew. */
const read = (code: string, cache: string): string =>
  `"use strict"
const { Script } = require("node:vm")
const { readFileSync } = require("node:fs")
let cachedData
try {
  cachedData = readFileSync(\`\${__dirname}/${cache}\`)
} catch {}
const script = new Script(readFileSync(\`\${__dirname}/${code}\`, "utf8"), {
  filename: \`\${__dirname}/quick.cjs\`,
  cachedData
})
const main = script.runInThisContext()
`

/** Compiles the quick entry as it answers `ps` of a daemon that is not there, up to where it would wait. */
const compiled = (code: string, folder: string): Buffer => {
  const program = `${read(code, "nothing")}
    process.argv = [process.execPath, "quick.cjs", "--state", "/nonexistent", "ps"]
    main(require, module, exports, __dirname, () => {})
    require("node:fs").writeSync(1, script.createCachedData())
    process.exit(0)`
  // flags that V8 was given belong to what it compiles
  const { NODE_OPTIONS: _, ...env } = process.env
  return execFileSync(process.execPath, ["-e", `const __dirname = ${JSON.stringify(folder)};${program}`], { env })
}

/** Mails of agentd have no attachment whose type a name must tell: this list is a twelfth of the mailer's code. */
const MIME_TYPES = "node_modules/nodemailer/dist/esm/mime-funcs/mime-types.js"
const lists = {
  name: "lists",
  load: (id: string): string | null =>
    relative(root, id) === MIME_TYPES
      ? 'export const detectMimeType = () => "application/octet-stream"\nexport const detectExtension = () => "bin"\n'
      : null
}

/** Settings of each build of the program. */
const whole = {
  cwd: root,
  platform: "node",
  // jsonc-parser's main requires its parts in a way that no bundler sees: a build would lack them, and not say so.
  resolve: { mainFields: ["module", "main"] },
  // What cannot be found must fail the build, not the first start.
  onLog: (level, log, defaultHandler) => {
    if (log.code === "UNRESOLVED_IMPORT") throw new Error(log.message)
    defaultHandler(level, log)
  }
} as const satisfies RolldownOptions

const nameOf = (kind: string, code: string): string =>
  `${kind}-${createHash("sha256").update(code).digest("base64url").slice(0, 8)}`

if (existsSync(join(root, "src/web"))) await (await import("./page.ts")).build(join(out, "web"))
const started = new Date()
const quickInput = join(root, "src/app/Quick.ts")
const quick = existsSync(quickInput) ? await quickOf(quickInput) : undefined
type Groups = ReadonlyArray<{ readonly name: string; readonly test: (id: string) => boolean }>
const outputOf = async (groups: Groups): Promise<RolldownOutput["output"]> => {
  const build = await rolldown({
    ...whole,
    input: { agentd: "src/main.ts" },
    plugins: [programModules, lists]
  })
  const { output } = await build.generate({
    format: "esm",
    entryFileNames: "[name].mjs",
    chunkFileNames: "chunks/[name]-[hash].mjs",
    comments: false,
    minify,
    codeSplitting: { groups: [...groups] }
  })
  await build.close()
  return output
}

/**
 * A daemon that a person looks at starts from few files: what all of the command line needs, too (`core`), what some
 * verb needs (`shared`), and its own.
 */
const groupsOf = (output: RolldownOutput["output"]): Groups => {
  const all = output.filter((file) => file.type === "chunk")
  const isOf = (file: OutputChunk, module: string) => file.facadeModuleId === join(root, module)
  /** The files that are loaded with those, and their modules. */
  const reach = (starts: ReadonlyArray<OutputChunk>) => {
    const reached = new Set(starts)
    for (const file of reached) for (const one of all) if (file.imports.includes(one.fileName)) reached.add(one)
    return new Set([...reached].flatMap((file) => Object.keys(file.modules)))
  }
  const isDaemons = (file: OutputChunk) => isOf(file, "src/app/Daemon.ts") || isOf(file, "src/app/DaemonBin.ts")
  const daemon = reach(all.filter(isDaemons))
  if (daemon.size === 0) return []
  const always = reach(all.filter((file) => file.isEntry || isOf(file, "src/app/Bin.ts")))
  const sometimes = reach(
    all.filter((file) => !isDaemons(file) && Object.keys(file.modules).some((id) => !daemon.has(id)))
  )
  return [
    { name: "core", test: (id) => daemon.has(id) && always.has(id) },
    { name: "mail", test: (id) => daemon.has(id) && sometimes.has(id) && !always.has(id) && id.includes("nodemailer") },
    {
      name: "shared",
      test: (id) => daemon.has(id) && sometimes.has(id) && !always.has(id) && !id.includes("nodemailer")
    }
  ]
}
const output = await outputOf(groupsOf(await outputOf([])))

await mkdir(chunks, { recursive: true })
const written = new Set<string>()
for (const file of output.slice(1)) {
  if (file.type !== "chunk") throw new Error(`bundle: ${file.fileName} is an asset, and dist/ holds none`)
  await writeFile(join(out, file.fileName), ascii(file.code))
  written.add(file.fileName)
}
const entry = output[0]
await writeFile(join(out, "agentd.mjs.new"), ascii(entry.code))
// As old as what it was built from: a file saved during the build is newer, and the launcher sees it.
await utimes(join(out, "agentd.mjs.new"), started, started)
await rename(join(out, "agentd.mjs.new"), join(out, entry.fileName))
if (quick !== undefined) {
  const name = `chunks/${nameOf("quick", quick)}`
  const [code, cache] = [`${name}.js`, `${name}.cache`]
  await writeFile(join(out, code), quick)
  await writeFile(join(out, `${cache}.new`), compiled(code, out))
  await rename(join(out, `${cache}.new`), join(out, cache))
  written.add(code).add(cache)
  await writeFile(
    join(out, "quick.cjs.new"),
    `${read(code, cache)}main(require, module, exports, __dirname, (file) => import(file))\n`
  )
  await rename(join(out, "quick.cjs.new"), join(out, "quick.cjs"))
}

for (const name of await readdir(chunks)) {
  if (!written.has(`chunks/${name}`)) await rm(join(chunks, name))
}

// A build for the tests needs none, nor has one whose scripts are not all here.
if (process.argv[2] === undefined && existsSync(new URL("./docs/ManPages.ts", import.meta.url))) {
  const { write } = await import("./docs/ManPages.ts")
  await Effect.runPromise(write(join(out, "man")))
}
