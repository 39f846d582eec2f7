/**
 * AcpBackend: runs any agent that speaks the Agent Client Protocol over its standard input and
 * output. One process is one session, which takes one turn after another.
 *
 * Guarantees: those of AcpRun. The agent is started by RunProcess, so that everything it starts ends with the run, even
 * if the configured program only launches the agent. A run outlives the daemon, together with the commands that agentd
 * runs for it. These commands run in the sandbox, if the machine has one.
 */
import { Clock, Effect, FileSystem, Scope } from "effect"
import * as path from "node:path"
import type * as Config from "../../config/BackendConfig.ts"
import * as FileContents from "../FileContents.ts"
import * as AcpHistory from "./AcpHistory.ts"
import * as AcpPrompt from "./AcpPrompt.ts"
import * as AcpRun from "./AcpRun.ts"
import * as GeminiSessions from "./GeminiSessions.ts"
import * as AcpTerminals from "./AcpTerminals.ts"
import type { KnownUpdates } from "./AcpUpdates.ts"
import { SessionCosts } from "./AcpUsage.ts"
import type { ModelUpdates } from "../model/ModelUpdates.ts"
import { type Backend, BackendError, type RunSpec } from "../Backend.ts"
import type { RemoteServers } from "../gateway/Remotes.ts"
import * as GatewayMeter from "../GatewayMeter.ts"
import type { Host } from "../Host.ts"
import * as OrphanRuns from "../OrphanRuns.ts"
import { Keeper } from "../keeper/Keeper.ts"
import * as KeptProcess from "../process/KeptProcess.ts"
import type { Mark, ProcessTree } from "../process/ProcessTree.ts"
import type { Reaper } from "../process/Reaper.ts"
import { objection } from "../sandbox/Confinement.ts"
import { type Mechanism, Sandbox } from "../sandbox/Sandbox.ts"
import * as ToolEnvironment from "../process/ToolEnvironment.ts"
import * as HiddenPaths from "../HiddenPaths.ts"
import * as ChildEnvironment from "../process/ChildEnvironment.ts"
import * as RunProcess from "../process/RunProcess.ts"
import * as Workspace from "../sandbox/Workspace.ts"
import * as ConfinedSpawn from "../sandbox/ConfinedSpawn.ts"
import { services } from "../CapturedServices.ts"

interface Held {
  readonly config: Config.AcpBackend
  readonly hidden: ReadonlyArray<string>
  readonly host: Host
  readonly workspace: Workspace.Workspace | undefined
}

/** Confines a command. The sandbox is detected at the first command. If there is none, the command is unchanged. */
const confineBy =
  (sandbox: Effect.Effect<Mechanism>, { config, hidden, host, workspace }: Held): AcpTerminals.Options["confine"] =>
  (cwd, argv) =>
    Effect.gen(function* () {
      const { environment } = host
      const mechanism = yield* sandbox
      if (mechanism.kind === "none" || workspace === undefined) return { argv }
      const why = objection(workspace.root, environment)
      if (why !== undefined) {
        yield* Effect.logWarning(`no sandbox confines commands in ${workspace.root}: ${why}`)
        return { argv }
      }
      const outlives = yield* (yield* Keeper).isThere
      const rules = { workspace: workspace.root, network: config.network, hidden, environment, outlives }
      return yield* mechanism.wrap(rules, cwd, argv)
    })

export const outlined = ConfinedSpawn.outlined

/** Starts the agent's process, or resumes the process that an earlier daemon left. */
const programOf = Effect.fnUntraced(function* (
  config: Config.AcpBackend,
  spec: RunSpec,
  { env, start }: Pick<ConfinedSpawn.ConfinedSpawn, "env" | "start">,
  { cwd, ...mark }: Mark & { readonly cwd: string }
) {
  const home = env["GEMINI_CLI_HOME"] ?? env["HOME"]
  const { adopt, resume } = spec
  const isResumed = adopt === undefined && resume !== undefined && config.resume
  if (isResumed && home !== undefined && GeminiSessions.isGemini(config.argv))
    yield* GeminiSessions.keep(home, resume.sessionId, yield* Clock.currentTimeMillis)
  const [binary = "", ...args] = config.argv
  const started = yield* start([binary, ...args], cwd)
  const takesUp = adopt !== undefined
  return yield* RunProcess.make({
    ...mark,
    ...started,
    env,
    limits: spec.limits,
    keepInput: true,
    keeps: true,
    takesUp,
    grace: config.killGrace
  })
})

/** How agentd's own model agent is driven. */
export interface Own {
  readonly updates: (known: KnownUpdates | undefined) => ModelUpdates
  /** The program's environment variables for this run, which tell it its settings. */
  readonly environment: (spec: RunSpec) => Effect.Effect<{ readonly [name: string]: string }, BackendError>
  /** The MCP servers that the program reaches through the gateway. */
  readonly remotes: RemoteServers
}

/** Opens the workspace. Without it, paths cannot be checked, so the agent reads and writes its files itself. */
const workspaceOf = Effect.fnUntraced(function* ({ agent, cwd }: RunSpec, hidden: ReadonlyArray<string>) {
  const open = yield* Workspace.Opener
  return yield* open(cwd, { hidden: HiddenPaths.around(cwd, hidden) }).pipe(
    Effect.catchTag("FileFailed", ({ message }) =>
      Effect.as(Effect.logWarning(`${agent} reads and writes its files by itself: ${message}`), undefined)
    )
  )
})

const start = Effect.fnUntraced(function* (
  config: Config.AcpBackend,
  host: Host,
  spec: RunSpec,
  { costs, own }: { readonly costs: SessionCosts; readonly own: Own | undefined }
) {
  if (config.argv.length === 0)
    return yield* new BackendError({ message: "argv is empty", remedy: "name a program in argv", fatal: true })
  const cwd = path.resolve(spec.cwd, config.cwd ?? ".")
  // a confined agent sees only files that exist when it starts, so the folder must exist now
  const folder = config.sandbox === "off" ? undefined : yield* FileContents.folderOf(host, spec)
  const files = folder === undefined ? [] : [folder.path]
  const { options } = outlined(config, host, spec)
  const settings = own === undefined ? {} : yield* own.environment(spec)
  const enclosure = yield* ConfinedSpawn.make({
    ...options,
    own: { ...options.own, ...settings },
    files,
    remotes: own?.remotes
  })
  const { env } = enclosure
  const shown = enclosure.confined
    ? env
    : {
        ...ToolEnvironment.visible({ ...ChildEnvironment.given(host.environment), ...spec.env }, []),
        ...ChildEnvironment.named(host.environment, config.passEnv),
        ...config.env
      }
  const mark = { store: host.store, runId: spec.runId }
  const grace = config.killGrace
  const program = yield* programOf(config, spec, enclosure, { ...mark, cwd })
  const hidden = HiddenPaths.of(host)
  const workspace = yield* workspaceOf(spec, hidden)
  const context = yield* services<ProcessTree | Reaper>()
  const { mechanism } = yield* Sandbox
  const confine: AcpTerminals.Options["confine"] = enclosure.confined
    ? (folder, argv) => enclosure.start(argv, folder, { part: true })
    : confineBy(mechanism, { config, hidden, host, workspace })
  const later = yield* Effect.cached(
    FileContents.folderOf(host, spec).pipe(
      Scope.provide(yield* Effect.scope),
      Effect.provideService(FileSystem.FileSystem, yield* FileSystem.FileSystem)
    )
  )
  const run = yield* AcpRun.make({
    config,
    spec,
    cwd,
    program,
    content: AcpPrompt.make(yield* FileContents.reader, folder === undefined ? later : Effect.succeed(folder)),
    workspace,
    costs,
    own: own?.updates,
    terminals: (of) =>
      AcpTerminals.make({
        ...mark,
        ...of,
        cwd,
        env: { ...shown, AGENTD_AGENT: spec.agent },
        grace,
        limits: spec.limits,
        workspace,
        confine
      }).pipe(Effect.provideContext(context))
  })
  return GatewayMeter.metered(run, enclosure.passed)
})

/**
 * Creates the backend. `costs`: costs of the agent's sessions, as its earlier processes reported them. `own`: given for
 * agentd's own model agent.
 */
export const make = Effect.fnUntraced(function* (
  config: Config.AcpBackend,
  host: Host,
  costs: SessionCosts = new SessionCosts(),
  own?: Own
) {
  const context = yield* services<ProcessTree | Reaper | Sandbox | FileSystem.FileSystem>()
  const backend: Backend = {
    name: own === undefined ? "acp" : "model",
    turns: true,
    holds: (runId) => Effect.provideContext(AcpHistory.isHeld(runId), context),
    drop: (runId) => Effect.provideContext(OrphanRuns.drop(host.store, runId), context),
    forget: (runId) => Effect.provideContext(KeptProcess.forget(runId), context),
    start: (spec) => start(config, host, spec, { costs, own }).pipe(Effect.provideContext(context))
  }
  return backend
})
