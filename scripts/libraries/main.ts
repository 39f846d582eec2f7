/**
 * libraries: builds dist/lib/, the five libraries as `agentd/supervision`,
 * `agentd/event-log`, `agentd/event-actor`, `agentd/backends` and `agentd/client`: JavaScript and
 * declarations, module by module, as they lie in src, with what they need of other folders and no more.
 *
 * `main.ts [OUT]`. Beside each folder stands its entry, which names the modules that a
 * user begins with, each as one namespace. src has no such file: a barrel there would
 * make every importer load everything. A module that an entry leaves out has its own
 * path (`agentd/backends/Backends`).
 */
import { spawnSync } from "node:child_process"
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"

const root = join(import.meta.dirname, "../..")
const out = process.argv[2] ?? join(root, "dist")

/** The modules of each entry. They need `effect` and nothing else; the client `@effect/platform-node`, too. */
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
  ],
  client: ["Client", "Promises"]
}

/** Folders of which users may take any module. */
const whole = [...Object.keys(entries), "gateway"]

/** Removes what nothing in those folders imports: the compiler writes also what only a type was taken of. */
const prune = async (folder: string, ending: ".js" | ".d.ts"): Promise<void> => {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(ending))
  const left = new Set(names)
  const reached = names.filter((name) => whole.includes(name.split("/")[0]!))
  for (const name of reached) {
    if (!left.delete(name)) continue
    const text = await readFile(join(folder, name), "utf8")
    for (const [, path = ""] of text.matchAll(/(?:from |import |import\()"(\.[^"]+)"/g))
      reached.push(join(dirname(name), path.replace(/\.[jt]s$/, ending)))
  }
  await Promise.all([...left].map((name) => rm(join(folder, name))))
}

/** From sources the log's threads strip types; these files hold none, so that a thread starts from the file itself. */
const THREADS = `export const logThread = new URL("./LogThread.js", import.meta.url)
export const verifyThread = new URL("./VerifyThread.js", import.meta.url)
`

const GATEWAY = `export const program = \`import \${JSON.stringify(new URL("./main.js", import.meta.url).href)}\\n\`
`

const lib = join(out, "lib")
const made = join(out, "lib.new")
await rm(made, { recursive: true, force: true })
const compiler = join(root, "node_modules/typescript/bin/tsc")
const { status } = spawnSync(process.execPath, [compiler, "-p", import.meta.dirname, "--outDir", made], {
  stdio: ["ignore", "inherit", "inherit"]
})
if (status !== 0) throw new Error("libraries: the sources do not compile, see above")

await writeFile(join(made, "event-log/ThreadFile.js"), THREADS)
await writeFile(join(made, "gateway/GatewayFile.js"), GATEWAY)
await prune(made, ".js")
await prune(made, ".d.ts")
for (const [library, modules] of Object.entries(entries)) {
  const names = modules.map((path) => `export * as ${path.replace(/^.*\//, "")} from "./${library}/${path}.js"\n`)
  await writeFile(join(made, `${library}.js`), names.join(""))
  await writeFile(join(made, `${library}.d.ts`), names.join(""))
  await mkdir(join(made, library), { recursive: true })
  await copyFile(join(root, "src", library, "README.md"), join(made, library, "README.md"))
}
await rm(lib, { recursive: true, force: true })
await rename(made, lib)
