/**
 * Reach: what a run of a backend could access, computed before the run exists. The result comes from the code that
 * starts and confines runs, not from a separate list.
 *
 * Guarantees: Nothing is started or created, and no key or value of a variable is shown. An unconfined run is shown as
 * unconfined, with `/` as its only path.
 */
import { Effect, type FileSystem } from "effect"
import * as fs from "node:fs"
import { APIS, type BackendConfig, KEY_ENV, type ModelBackend, retired } from "../config/BackendConfig.ts"
import type { BackendError, RunSpec } from "./Backend.ts"
import * as ClaudeCommand from "./claude/ClaudeCommand.ts"
import * as CodexCommand from "./codex/CodexCommand.ts"
import * as CommandBackend from "./command/CommandBackend.ts"
import type { Argv, Host } from "./Host.ts"
import * as McpEnvironment from "./process/McpEnvironment.ts"
import * as ShellRules from "./ShellRules.ts"
import * as ToolEnvironment from "./process/ToolEnvironment.ts"
import * as HiddenPaths from "./HiddenPaths.ts"
import type { Environment } from "./process/ChildProcess.ts"
import * as ProcessTree from "./process/ProcessTree.ts"
import * as RunSockets from "./RunSockets.ts"
import * as ProviderKey from "./ProviderKey.ts"
import { type Mount, mountsOf, objection, shows } from "./sandbox/Confinement.ts"
import * as ConfinedSpawn from "./sandbox/ConfinedSpawn.ts"
import type { Mechanism } from "./sandbox/Sandbox.ts"

/** Path that represents everything that the daemon's user can access. */
export const ALL = "/"

export interface Reach {
  /** False if the run is not confined and has the rights of the daemon's user. */
  readonly confined: boolean
  readonly by: "bubblewrap" | "namespaces" | null
  /** Description for the user: the sandbox and its limitations, or why there is no sandbox. */
  readonly note: string
  /** Why a run would not start; null if it would start. */
  readonly refused: string | null
  /** Paths that the run can read but not write. */
  readonly reads: ReadonlyArray<string>
  readonly writes: ReadonlyArray<string>
  /** Describes the programs that the run can execute. */
  readonly runs: string
  /** Network access of the run. `gateway`: only to one model, through agentd. */
  readonly network: "host" | "gateway" | "none"
  /** Address of the model that the run reaches through agentd; null if there is none. */
  readonly provider: string | null
  readonly keys: {
    /** Names of the run's environment variables whose name or value looks like a secret. */
    readonly held: ReadonlyArray<string>
    /** The part of agentd that adds the model's key to requests, if the run itself does not have the key. */
    readonly putInBy: "gateway" | "daemon" | null
  }
  /** Names of the run's environment variables. */
  readonly environment: ReadonlyArray<string>
  /** Whether the run can call the daemon with the rights of the daemon's user. */
  readonly control: boolean
  /** MCP servers of the run, which are not confined. */
  readonly unheld: ReadonlyArray<string>
}

export interface Place {
  readonly agent: string
  readonly cwd: string
  readonly host: Host
  readonly mechanism: Mechanism
  readonly socket: string
  readonly mcp: RunSpec["mcp"]
}

const ANY = "any program, with the rights of the daemon's user"
const HELD = "the programs that it can read; no set-uid, no new namespace"

/** Id in place of a run id, because no run exists yet. */
export const RUN = "outlined"

const specOf = ({ agent, cwd, host, mcp }: Place): RunSpec => {
  const spec = { runId: RUN, agent, turnId: "", prompt: "", cwd, env: {}, resume: undefined, mcp }
  return host.sockets === undefined ? spec : RunSockets.outlined(spec, host.sockets)
}

/** Adds the environment variables that agentd sets for every process of a run. */
const marked = (env: Environment, store: string): Environment => ({
  ...env,
  PWD: "",
  ...ProcessTree.environmentOf({ store, runId: "" })
})

/** Removes the password and the query from a URL. */
const addressOf = (url: string): string => {
  const { origin, pathname } = new URL(url)
  return pathname === "/" ? origin : origin + pathname
}

const namesIn = (env: Environment): ReadonlyArray<string> =>
  Object.keys(env)
    .filter((name) => env[name] !== undefined)
    .toSorted()

const secretsIn = (env: Environment, standIn?: string): ReadonlyArray<string> =>
  namesIn(env).filter((name) => env[name] !== standIn && ToolEnvironment.isSecret(name, env[name] ?? ""))

const pathsOf = (mounts: ReadonlyArray<Mount>, kind: Mount["kind"]) =>
  [...new Set(mounts.flatMap((mount) => ("source" in mount && mount.kind === kind ? [mount.source] : [])))].toSorted()

/**
 * Whether the run can see the socket with these mounts. Compares the socket's real path, because the mount may be the
 * folder of that path.
 */
const reaches = (mounts: ReadonlyArray<Mount>, socket: string): boolean => {
  const real = fs.existsSync(socket) ? fs.realpathSync(socket) : socket
  return shows(mounts, real) !== undefined
}

const free = (env: Environment, { host }: Place, note: string): Reach => ({
  confined: false,
  by: null,
  note,
  refused: null,
  reads: [ALL],
  writes: [ALL],
  runs: ANY,
  network: "host",
  provider: null,
  keys: { held: secretsIn(env), putInBy: null },
  environment: namesIn(marked(env, host.store)),
  control: true,
  unheld: []
})

const refusedBy = ({ message, remedy }: Pick<BackendError, "message" | "remedy">): Reach => ({
  confined: false,
  by: null,
  note: "it does not run here",
  refused: `${message}: ${remedy}`,
  reads: [],
  writes: [],
  runs: "nothing",
  network: "none",
  provider: null,
  keys: { held: [], putInBy: null },
  environment: [],
  control: false,
  unheld: []
})

const ofProcess = (
  { argv, options }: { readonly argv: Argv; readonly options: ConfinedSpawn.EnclosureOptions },
  place: Place
): Effect.Effect<Reach, never, FileSystem.FileSystem> =>
  ConfinedSpawn.look(options, place.mechanism, argv).pipe(
    Effect.map(({ env, held, why }): Reach => {
      if (held === null) return free(env, place, why ?? 'its sandbox is "off"')
      const { by, keyed, mounts, network, note, provider } = held
      return {
        confined: true,
        by,
        note,
        refused: null,
        reads: pathsOf(mounts, "readOnly"),
        writes: pathsOf(mounts, "writable"),
        runs: HELD,
        network,
        provider: provider === null ? null : addressOf(provider),
        keys: { held: secretsIn(env, ConfinedSpawn.NO_KEY), putInBy: keyed ? "gateway" : null },
        environment: namesIn(marked(env, place.host.store)),
        control: reaches(mounts, place.socket),
        unheld: []
      }
    }),
    Effect.catchTag("BackendError", (error) => Effect.succeed(refusedBy(error)))
  )

const ofModel = Effect.fnUntraced(function* (config: ModelBackend, place: Place) {
  const { cwd, host, mechanism, socket } = place
  const spec = specOf(place)
  const variable = config.keyEnv ?? KEY_ENV[config.provider]
  yield* ProviderKey.read({ keyFile: config.keyFile, variable, cwd, environment: host.environment })
  const workspace = fs.existsSync(cwd) ? fs.realpathSync(cwd) : cwd
  const why = objection(workspace, host.environment)
  const servers = Object.entries(config.mcp)
  const env = ShellRules.environmentOf({ config, host, mechanism, spec })
  const hidden = HiddenPaths.around(workspace, HiddenPaths.ofModel(config, host, workspace))
  const hasShell = config.tools.includes("shell") && !(mechanism.kind === "none" && config.sandbox === "required")
  const isHeld = mechanism.kind !== "none" || !hasShell
  const mounts = hasShell && isHeld ? mountsOf(ShellRules.rulesOf({ config, host, spec }, workspace, hidden)) : []
  const writesFiles = hasShell || config.tools.includes("write") || config.tools.includes("edit")
  const seen = hasShell ? env : {}
  const reach: Reach = {
    confined: isHeld && servers.length === 0,
    by: hasShell && mechanism.kind !== "none" ? mechanism.kind : null,
    note: hasShell
      ? mechanism.kind === "none"
        ? `every command needs approval, and is not confined: ${mechanism.note}`
        : `its commands: ${mechanism.note}`
      : "it runs no commands; agentd's own tools stay within its workspace",
    refused: why === undefined ? null : `${workspace} cannot be an agent's workspace: ${why}`,
    reads: isHeld ? [...pathsOf(mounts, "readOnly"), ...(writesFiles ? [] : [workspace])] : [ALL],
    writes: isHeld ? [...new Set([...(writesFiles ? [workspace] : []), ...pathsOf(mounts, "writable")])] : [ALL],
    runs: hasShell ? (isHeld ? HELD : ANY) : "no commands",
    network: hasShell && (config.network || !isHeld) ? "host" : "none",
    provider: addressOf(config.baseUrl ?? APIS[config.provider].url),
    keys: { held: secretsIn(seen), putInBy: "gateway" },
    environment: namesIn(hasShell ? marked(env, host.store) : {}),
    control: !isHeld || servers.length > 0 || reaches(mounts, socket),
    unheld: servers.map(([name, server]) => {
      const held = secretsIn(McpEnvironment.of(server, host))
      return `MCP server ${name}${held.length === 0 ? "" : ` (has ${held.join(", ")})`}`
    })
  }
  return reach
})

export const of = (config: BackendConfig, place: Place): Effect.Effect<Reach, never, FileSystem.FileSystem> => {
  const { host } = place
  const spec = specOf(place)
  switch (config.type) {
    case "exec":
      return Effect.succeed(refusedBy(retired(config)!))
    case "command":
      return ofProcess(CommandBackend.outlined(config, host, spec), place)
    case "acp":
      return ofProcess(ConfinedSpawn.outlined(config, host, spec), place)
    case "claude":
      return ofProcess(ClaudeCommand.outlined(config, host, spec), place)
    case "codex":
      return ofProcess(CodexCommand.outlined(config, host, spec), place)
    case "model":
      return Effect.catchTag(ofModel(config, place), "BackendError", (error) => Effect.succeed(refusedBy(error)))
  }
}
