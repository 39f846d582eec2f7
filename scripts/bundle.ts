/**
 * bundle: builds dist/. agentd.mjs, from src/main.ts, starts in a third of the time that src needs. quick.cjs, from
 * src/app/Quick.ts, answers the commands that it can and hands the others to agentd.mjs; it is compiled ahead for the
 * Node that builds (this saves 4 of its 14 ms). dist/ also has the page (`page.ts`), the man pages, and the notices of
 * the packages whose code it contains (`Notices.ts`).
 *
 * `bundle.ts [OUT]`. dist/ needs no node_modules. A CLI verb that is imported lazily gets its own chunk. Functions and
 * classes keep their names, so that a stack trace in the journal is readable. Local names are shortened, which saves a
 * quarter of the size.
 *
 * Safe while agentd runs: chunks are named by their content. They are written before the entry that refers to them is
 * renamed into place; unused chunks are removed last.
 */
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { mkdir, readdir, readFile, rename, rm, utimes, writeFile } from "node:fs/promises"
import { join, relative } from "node:path"
import { type OutputChunk, rolldown, type RolldownOptions, type RolldownOutput } from "rolldown"
import * as Notices from "./Notices.ts"

const minify = {
  mangle: { keepNames: { function: true, class: true } },
  compress: true,
  codegen: true
} as const

const root = join(import.meta.dirname, "..")
const out = process.argv[2] ?? join(root, "dist")
const chunks = join(out, "chunks")

/** All modules that the builds have written. */
const modules = new Set<string>()
const listed = Notices.listModules(modules)

/**
 * The code of a module and its imports as one text, so that a program that starts later runs the same build as its
 * daemon.
 */
const textOf = async (input: string): Promise<string> => {
  const build = await rolldown({ cwd: root, input, platform: "node", plugins: [listed] })
  const { output } = await build.generate({ format: "esm", minify })
  await build.close()
  const [entry, ...others] = output
  if (others.length > 0) throw new Error(`bundle: ${input} is not one chunk`)
  return entry.code
}

/**
 * A function that makes a data URL of a thread's code when the thread starts: the URL is a third longer than the code.
 */
const threadOf = async (input: string): Promise<string> =>
  `() => new URL("data:text/javascript;base64," + Buffer.from(${JSON.stringify(await textOf(input))}).toString("base64"))`

/**
 * The same code in ASCII. If a file has any other character, V8 stores all of it with two bytes per character while the
 * program runs. In strings, regular expressions and names, the escape means the same character.
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

/**
 * Replacements for the modules that locate the code of the threads, the gateway and the keeper: they contain the code.
 */
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
 * The quick entry's code as one script: an ES module would cost 2 ms more, and each further file another ms. A module
 * of a package would cost more time than the entry saves, so it is an error.
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

/**
 * The code with which `quick.cjs` reads the script. If the cache is for another Node or other flags, V8 compiles again.
 */
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

/** Compiles the quick entry while it runs `ps` without a daemon, up to the point at which it would wait. */
const compiled = (code: string, folder: string): Buffer => {
  const program = `${read(code, "nothing")}
    process.argv = [process.execPath, "quick.cjs", "--state", "/nonexistent", "ps"]
    main(require, module, exports, __dirname, () => {})
    require("node:fs").writeSync(1, script.createCachedData())
    process.exit(0)`
  // the cache is only valid for the same V8 flags, so compile without extra ones
  const { NODE_OPTIONS: _, ...env } = process.env
  return execFileSync(process.execPath, ["-e", `const __dirname = ${JSON.stringify(folder)};${program}`], { env })
}

/**
 * Parts of packages that agentd does not use: nodemailer's list of MIME types, a twelfth of its code, because mails of
 * agentd have no attachments; and the compiler for JSON schemas of the MCP client, a third of its code, because agentd
 * gives it a validator.
 */
const unused: { readonly [module: string]: string } = {
  "node_modules/nodemailer/dist/esm/mime-funcs/mime-types.js":
    'export const detectMimeType = () => "application/octet-stream"\nexport const detectExtension = () => "bin"\n',
  "node_modules/@modelcontextprotocol/client/dist/shimsNode.mjs":
    "export const CORS_IS_POSSIBLE = false\nexport class DefaultJsonSchemaValidator {}\n"
}
const lists = { name: "lists", load: (id: string): string | null => unused[relative(root, id)] ?? null }

/** Settings of both builds of the program. */
const whole = {
  cwd: root,
  platform: "node",
  // jsonc-parser's `main` requires its parts in a way that bundlers do not see: they would be missing without an error.
  resolve: { mainFields: ["module", "main"] },
  // An import that cannot be resolved must fail the build, not the first start.
  onLog: (level, log, defaultHandler) => {
    if (log.code === "UNRESOLVED_IMPORT") throw new Error(log.message)
    defaultHandler(level, log)
  }
} as const satisfies RolldownOptions

const nameOf = (kind: string, code: string): string =>
  `${kind}-${createHash("sha256").update(code).digest("base64url").slice(0, 8)}`

if (existsSync(join(root, "src/web"))) await (await import("./page.ts")).build(join(out, "web"), listed)
const started = new Date()
const quickInput = join(root, "src/app/Quick.ts")
const quick = existsSync(quickInput) ? await quickOf(quickInput) : undefined
type Groups = ReadonlyArray<{ readonly name: string; readonly test: (id: string) => boolean }>
const outputOf = async (groups: Groups): Promise<RolldownOutput["output"]> => {
  const build = await rolldown({
    ...whole,
    input: { agentd: "src/main.ts" },
    plugins: [programModules, lists, listed]
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
 * Groups modules so that a daemon starts from few files: the modules that every command needs too (`core`), those that
 * some verb needs (`shared`, `mail`), and its own.
 */
const groupsOf = (output: RolldownOutput["output"]): Groups => {
  const all = output.filter((file) => file.type === "chunk")
  const isOf = (file: OutputChunk, module: string) => file.facadeModuleId === join(root, module)
  /** The modules of all files that are loaded with `starts`. */
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
// The time of the build's start, so that the launcher notices a source file that was saved during the build.
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
await Notices.write(out, root, modules)

for (const name of await readdir(chunks)) {
  if (!written.has(`chunks/${name}`)) await rm(join(chunks, name))
}

// Man pages: a build for the tests needs none, and they need a script that is not in every copy.
if (process.argv[2] === undefined && existsSync(new URL("./docs/ManPages.ts", import.meta.url))) {
  const { write } = await import("./docs/ManPages.ts")
  await Effect.runPromise(write(join(out, "man")))
}
