/**
 * libraries: builds dist/lib/, the five libraries `agentd/supervision`, `agentd/event-log`, `agentd/event-actor`,
 * `agentd/backends` and `agentd/client`. Each has JavaScript and declarations, module by module as in src, with the
 * modules that it needs from other folders and packages. Only `effect` is not included: users install it themselves.
 * `agentd/client` needs no Effect, and its types have none; `agentd/client/effect` is the client with Effect.
 *
 * `main.ts [OUT]`. Next to each folder is its entry, which exports the modules that a user needs first, each as one
 * namespace. src has no such file: with it, every importer would load all modules. A module that is not in an entry has
 * its own path (`agentd/backends/Backends`). The code is small (no comments, short names inside functions); the
 * declarations keep all comments of the sources.
 *
 * The packages in them must be in the notices that `bundle.ts` has written to OUT; otherwise the build fails.
 */
import { spawnSync } from "node:child_process"
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { dirname, join, relative } from "node:path"
import { rolldown } from "rolldown"
import * as Notices from "../Notices.ts"
import * as Declarations from "./Declarations.ts"

const root = join(import.meta.dirname, "../..")
const out = process.argv[2] ?? join(root, "dist")

/** The modules of each entry, of those libraries that have one. They need no package but `effect`. */
const entries: { readonly [library: string]: ReadonlyArray<string> } = {
  supervision: [
    "Backoff",
    "Child",
    "DynamicSupervisor",
    "Restart",
    "Supervisor",
    "SupervisorError",
    "SupervisorOptions",
    "SupervisorTrace"
  ],
  "event-log": [
    "EventKinds",
    "EventLog",
    "HashChain",
    "InvariantGuard",
    "Log",
    "LogRules",
    "MemoryEventLog",
    "OwnKinds",
    "Redact",
    "Rune",
    "Snapshot",
    "SqlEventLog",
    "StreamFold"
  ],
  "event-actor": [
    "ActorError",
    "ActorHandle",
    "ActorSystem",
    "CommitScope",
    "DeadLetters",
    "EventLoop",
    "EventSourcedActor",
    "MachineKinds",
    "Member",
    "ScopeFold",
    "StateDiagram",
    "StateMachine",
    "StateMachineActor"
  ],
  backends: [
    "Backend",
    "Outcome",
    "Question",
    "ScriptedBackend",
    "ScriptedTurns",
    "acp/AcpBackend",
    "claude/ClaudeBackend",
    "command/CommandBackend",
    "process/ChildProcess",
    "process/ProcessTable",
    "process/ProcessTree",
    "process/Reaper",
    "process/RunProcess",
    "sandbox/Sandbox"
  ]
}

/** The folder of each library in src and in dist/lib. */
const folders: { readonly [library: string]: string } = {
  supervision: "core/supervision",
  "event-log": "core/event-log",
  "event-actor": "core/event-actor",
  backends: "runs",
  client: "client"
}

/**
 * Whether users may import the module. The rest of runs is for agentd: git, the keeper, and the model agent with its
 * client of MCP servers, which alone is as large as all other backends.
 */
const isWhole = (name: string): boolean =>
  Object.values(folders).some((folder) => name.startsWith(`${folder}/`)) &&
  !/^runs\/((git|keeper|model)\/|Backends\.)/.test(name)

/** Replaced with types that name no schema. */
const PROCEDURE_TYPES = "api/rpc/ProcedureTypes.d.ts"

/** Replaced with an empty interface: a client does not see the daemon's side, whose types import the whole daemon. */
const FEATURES = "api/rpc/Features.d.ts"

/** Removes the declarations that no module of the libraries imports. */
const prune = async (folder: string): Promise<void> => {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".d.ts"))
  const left = new Set(names)
  const reached = names.filter(isWhole)
  for (const name of reached) {
    if (!left.delete(name)) continue
    const text = await readFile(join(folder, name), "utf8")
    for (const [, path = ""] of text.matchAll(/(?:from |import |import\()"(\.[^"]+)"/g))
      reached.push(join(dirname(name), path.replace(/\.[jt]s$/, ".d.ts")))
  }
  await Promise.all([...left].map((name) => rm(join(folder, name))))
  // one space per level, because indentation is half the size of the deepest types
  for (const name of reached) {
    const text = await readFile(join(folder, name), "utf8")
    await writeFile(
      join(folder, name),
      text.replaceAll(/^(?: {4})+/gm, (blanks) => " ".repeat(blanks.length / 4))
    )
  }
}

const keeperFiles = async () => {
  const names = ["keeper.mjs", "slot.sh"]
  const texts = await Promise.all(names.map((name) => readFile(join(root, "src/runs/keeper", name), "utf8")))
  return Object.fromEntries(names.map((name, index) => [name, texts[index]]))
}

/**
 * Replacements for the modules that locate code. When run from sources, a log thread strips types first; these files
 * have no types, so a thread starts from the file itself.
 */
const places: { readonly [module: string]: string } = {
  "src/core/event-log/ThreadFile.ts": `export const logThread = () => new URL("./LogThread.js", import.meta.url)
export const verifyThread = () => new URL("./VerifyThread.js", import.meta.url)
export const copyThread = () => new URL("./CopyThread.js", import.meta.url)
`,
  "src/runs/gateway/GatewayFile.ts":
    "export const program = `import ${JSON.stringify(new URL('./main.js', import.meta.url).href)}\\n`\n",
  "src/runs/keeper/KeeperFile.ts": `export const files = () => (${JSON.stringify(await keeperFiles())})\n`
}

/** Renames node_modules, because npm packs no folder of that name. */
const placeOf = (name: string): string => `${name.replaceAll("node_modules", "packages")}.js`

/** All modules that are written. */
const modules = new Set<string>()

/** Writes the code of all modules that users may import, and of the modules that these need. */
const code = async (folder: string): Promise<void> => {
  const inputs = await Promise.all(
    Object.values(folders).map(async (folder) => {
      const names = (await readdir(join(root, "src", folder), { recursive: true })).map((name) => `${folder}/${name}`)
      const modules = names.filter((name) => name.endsWith(".ts") && isWhole(name))
      return modules.map((name) => [name.slice(0, -3), join(root, "src", name)] as const)
    })
  )
  const build = await rolldown({
    cwd: root,
    input: Object.fromEntries(inputs.flat()),
    platform: "node",
    external: [/^effect(\/|$)/],
    plugins: [
      Notices.listModules(modules),
      { name: "places", load: (id: string) => places[relative(root, id)] ?? null }
    ],
    onLog: (level, log, defaultHandler) => {
      if (log.code === "UNRESOLVED_IMPORT") throw new Error(log.message)
      defaultHandler(level, log)
    }
  })
  await build.write({
    dir: folder,
    format: "esm",
    preserveModules: true,
    preserveModulesRoot: join(root, "src"),
    entryFileNames: ({ name }) => placeOf(name),
    comments: false,
    minify: { mangle: { keepNames: { function: true, class: true } }, compress: true, codegen: true }
  })
  await build.close()
}

const lib = join(out, "lib")
const made = join(out, "lib.new")
await rm(made, { recursive: true, force: true })
const compiler = join(root, "node_modules/typescript/bin/tsc")
const { status } = spawnSync(process.execPath, [compiler, "-p", import.meta.dirname, "--outDir", made], {
  stdio: ["ignore", "inherit", "inherit"]
})
if (status !== 0) throw new Error("libraries: the sources do not compile, see above")

await writeFile(join(made, FEATURES), "/** The daemon's own side of a call. */\nexport interface Features {}\n")
await writeFile(join(made, PROCEDURE_TYPES), Declarations.procedures())
await prune(made)
await code(made)
const unnamed = Notices.missingIn(out, Notices.packagesOf(modules))
if (unnamed.length > 0) throw new Error(`libraries: ${unnamed.join(", ")} not in ${join(out, Notices.NOTICES)}`)
for (const [library, folder] of Object.entries(folders)) {
  await mkdir(join(made, folder), { recursive: true })
  await copyFile(join(root, "src", folder, "README.md"), join(made, folder, "README.md"))
  const modules = entries[library]
  // the two modules of the client are its entries
  if (modules === undefined) continue
  const names = modules.map((path) => `export * as ${path.replace(/^.*\//, "")} from "./${folder}/${path}.js"\n`)
  await writeFile(join(made, `${library}.js`), names.join(""))
  await writeFile(join(made, `${library}.d.ts`), names.join(""))
}
await rm(lib, { recursive: true, force: true })
await rename(made, lib)
