/**
 * ConfinedSpawn: starts the programs of a run either directly or confined, as the `sandbox` setting of its backend
 * says. The terminals of an ACP agent are in the same sandbox.
 *
 * A confined run sees its workspace, and a home folder that is kept for the agent. It sees the files in the user's home
 * that its config shares, the socket to the daemon, and the program that uses this socket (agentd mcp). Of the daemon's
 * environment variables, it gets only those without secrets and sockets, and those that its config names. Its network
 * is the machine's, or the gateway to its model, or none.
 *
 * Guarantees: If a sandbox is required and none works, nothing starts. If the gateway adds a key, no variable, argument
 * or file that the run sees contains that key; they contain only a placeholder. The route of the gateway and the folder
 * of its socket exist as long as the scope. `look` makes the same decisions and reports how a run would be confined,
 * but creates nothing.
 */
import { Clock, Effect, type FileSystem, Option, Result, type Scope } from "effect"
import { isReadonlyObject as isObject } from "effect/Predicate"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { attempt } from "../../config/Attempt.ts"
import { type AcpBackend, APIS, type Confinement } from "../../config/BackendConfig.ts"
import { FORWARDER_SCRIPT } from "../gateway/ForwarderScript.ts"
import { prefixOf } from "../gateway/Gateway.ts"
import type { RemoteServers } from "../gateway/Remotes.ts"
import type { PassedBy } from "../GatewayMeter.ts"
import { Gateway } from "../gateway/GatewayClient.ts"
import { Keeper } from "../keeper/Keeper.ts"
import { BackendError, Left, type RunSpec } from "../Backend.ts"
import { askingEnvironment } from "../AcpProgram.ts"
import type { Argv, Host } from "../Host.ts"
import * as ChildEnvironment from "../process/ChildEnvironment.ts"
import type { Environment } from "../process/ChildProcess.ts"
import * as ProviderKey from "../ProviderKey.ts"
import { homeOf, type Mount, mountsOf, objection, refusalOf, type Rules } from "./Confinement.ts"
import { within } from "./PathContainment.ts"
import { locate, type Mechanism, Sandbox } from "./Sandbox.ts"
import * as SetIds from "./SetIds.ts"

export interface Provider {
  readonly api: keyof typeof APIS
  readonly baseUrl?: string | undefined
  readonly keyEnv?: string | undefined
  readonly keyFile?: string | undefined
  /** If true and there is no key, the provider gets the agent's own login, which is in a shared file. */
  readonly login?: boolean
}

export interface EnclosureOptions {
  readonly config: Confinement
  readonly provider: Provider | undefined
  readonly host: Host
  readonly spec: RunSpec
  /** Environment variables of an unconfined run. */
  readonly inherited: Environment
  /** Names of variables to pass on in any case, except variables with a key that the gateway adds. */
  readonly passEnv: ReadonlyArray<string> | undefined
  /** Variables that the run gets in any case. */
  readonly own: Environment
  /** Files that agentd has created for the run. */
  readonly files?: ReadonlyArray<string> | undefined
  /** True if the keeper can hold the run's main program. */
  readonly keeps?: boolean
  /**
   * Set for a program that reaches its model and these MCP servers by the gateway's socket, so that it has neither the
   * key nor a token.
   */
  readonly remotes?: RemoteServers | undefined
}

/** The variable with the path of the gateway's socket, or else the one with the key, for such a program. */
export const MODEL_SOCKET = "AGENTD_MODEL_SOCKET"
export const MODEL_KEY = "AGENTD_MODEL_KEY"

/** Returns the command of a run and the options for its confinement, for a program that survives daemon restarts. */
export const outlined = (config: AcpBackend, host: Host, spec: RunSpec) => {
  const [binary = "", ...args] = config.argv
  const options: EnclosureOptions = {
    config,
    provider: config.provider,
    host,
    spec,
    inherited: ChildEnvironment.given(host.environment, { program: binary, passEnv: config.passEnv }),
    passEnv: config.passEnv,
    keeps: true,
    own: {
      ...(spec.asksAll === true ? askingEnvironment(config) : {}),
      ...config.env,
      ...spec.env,
      AGENTD_AGENT: spec.agent
    }
  }
  return { argv: [binary, ...args], options } as const
}

export interface Enclosed {
  readonly argv: Argv
  readonly cwd: string
  readonly handed?: ReadonlyArray<Uint8Array>
}

export interface ConfinedSpawn {
  readonly confined: boolean
  readonly env: Environment
  /** Reads the gateway's counts; omitted if the gateway does not count. */
  readonly passed?: PassedBy
  /**
   * Starts a program. `cwd`: an absolute path. `part`: true for an additional program of a live run. This program gets
   * no mounts in the run's home, because programs that already run could redirect such a mount meanwhile.
   */
  readonly start: (
    argv: Argv,
    cwd: string,
    options?: { readonly part: boolean }
  ) => Effect.Effect<Enclosed, BackendError>
}

const refused = (message: string, remedy: string, fatal = true): BackendError =>
  new BackendError({ message, remedy, fatal })

/** Placeholder that agents get in place of a key, because they require one. */
export const NO_KEY = "held-by-agentd"
/** Port that a confined run uses for the gateway, on the loopback interface of its own network. */
const PORT = 3128
/**
 * Folder of the gateway's sockets in the sandbox. The folder is mounted instead of the socket, so that a new socket is
 * visible, too.
 */
const SOCKETS = "/run/agentd"
const SOCKET = "model.sock"
/** URL at which a confined run reaches the gateway. */
const CONFINED = { port: PORT, socket: `${SOCKETS}/${SOCKET}` }

const short = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 12)

const folder = (name: string) =>
  Effect.try({
    try: () => {
      fs.mkdirSync(name, { recursive: true, mode: 0o700 })
      return fs.realpathSync(name)
    },
    catch: (error) =>
      refused(
        `${name} could not be made: ${error instanceof Error ? error.message : String(error)}`,
        "free disk space, and check that the state directory is writable",
        false
      )
  })

const passingFolder = (name: string) =>
  Effect.flatMap(Keeper, (keeper) =>
    Effect.acquireRelease(folder(name), (made) =>
      // a run that continues still has this folder mounted
      Effect.sync(() => keeper.isLeaving() || fs.rmSync(made, { recursive: true, force: true }))
    )
  )

/**
 * Builds the config for Codex' adapter, which reads no URL from a variable. `before`: its existing config. `keyEnv`:
 * the variable with the key; undefined if the agent uses a login.
 */
const codexConfig = (url: string, keyEnv: string | undefined, before = "{}"): string => {
  const parsed = Result.getOrElse(
    Result.try((): unknown => JSON.parse(before)),
    () => ({})
  )
  const login = keyEnv === undefined ? { requires_openai_auth: true } : { env_key: keyEnv }
  const agentd = { name: "agentd", base_url: url, wire_api: "responses", ...login }
  return JSON.stringify({
    ...(isObject(parsed) ? parsed : {}),
    model_provider: "agentd",
    model_providers: { agentd }
  })
}

/**
 * Returns the environment variables that tell an agent the URL of its model and the placeholder for a key. `own`: the
 * agent's other variables.
 */
const variablesOf = (
  { api, keyEnv }: Provider,
  url: string,
  hasKey: boolean,
  own: Environment
): { readonly [name: string]: string } => {
  const key = (...names: ReadonlyArray<string>) =>
    hasKey ? Object.fromEntries(names.map((name) => [name, NO_KEY])) : {}
  switch (api) {
    case "anthropic":
      return { ANTHROPIC_BASE_URL: url, ...key(APIS.anthropic.key) }
    case "openai": {
      const known = [keyEnv, APIS.openai.key, "CODEX_API_KEY"].filter((name) => name !== undefined)
      const has = hasKey ? APIS.openai.key : known.find((name) => (own[name] ?? "") !== "")
      return {
        OPENAI_BASE_URL: url,
        ...key(APIS.openai.key, "CODEX_API_KEY"),
        CODEX_CONFIG: codexConfig(url, has, own["CODEX_CONFIG"])
      }
    }
    case "gemini":
      return { GOOGLE_GEMINI_BASE_URL: url, ...key(APIS.gemini.key) }
  }
}

const headersOf = (api: Provider["api"], key: string): { readonly [name: string]: string } => {
  switch (api) {
    case "anthropic":
      return { "x-api-key": key }
    case "openai":
      return { authorization: `Bearer ${key}` }
    case "gemini":
      return { "x-goog-api-key": key }
  }
}

/**
 * How a run reaches its model. `forwarder`: beginning of the command that forwards connections to the gateway.
 */
interface Exit {
  readonly sockets: string
  readonly variables: Environment
  /** The key that the gateway adds; undefined if there is none. */
  readonly key: string | undefined
  readonly forwarder: ReadonlyArray<string>
  readonly passed?: PassedBy
}

const keyOf = (provider: Provider, { host, spec }: EnclosureOptions) => {
  const { api, keyEnv, keyFile, login = false } = provider
  const place = { keyFile, variable: keyEnv ?? APIS[api].key, cwd: spec.cwd, environment: host.environment }
  const isSet = keyFile !== undefined || keyEnv !== undefined || (host.environment[place.variable] ?? "").trim() !== ""
  return login && !isSet ? Effect.succeed(undefined) : Effect.map(ProviderKey.read(place), ({ key }) => key)
}

/** How a run reaches its model through the gateway. `sockets`: folder of the gateway's sockets for the run. */
const exitBy = (
  provider: Provider,
  sockets: string,
  key: string | undefined,
  { own, port, socket }: { readonly own: Environment; readonly port: number; readonly socket: string }
): Exit => {
  const { api, baseUrl = APIS[api].url } = provider
  const url = `http://127.0.0.1:${port}${prefixOf(baseUrl)}`
  return {
    sockets,
    variables: { ...variablesOf(provider, url, key !== undefined, own), AGENTD_GATEWAY_URL: url },
    key,
    forwarder: [process.execPath, "--max-old-space-size=24", "-e", FORWARDER_SCRIPT, "--", socket, `${port}`]
  }
}

const noGateway = refused("there is no gateway to the model here", 'set "network" in agentd.jsonc')

const socketsOf = (gateway: string, { runId }: RunSpec) => path.join(gateway, short(runId))

/** Finds a port that is free now on the machine's loopback interface. */
const freePort = Effect.callback<number, BackendError>((resume) => {
  const server = net.createServer()
  const fail = ({ message }: Error) =>
    resume(Effect.fail(refused(`no port is free: ${message}`, "end programs that listen", false)))
  server.on("error", fail)
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() =>
      typeof address === "object" && address !== null
        ? resume(Effect.succeed(address.port))
        : fail(new Error("it has no name"))
    )
  })
})

/** Reads the gateway's counts of a run. They are empty if the gateway does not answer. */
const passedBy =
  (gateway: Gateway["Service"], runId: string): PassedBy =>
  (isOver) =>
    gateway.count(runId, isOver).pipe(
      Effect.map((count) => count ?? {}),
      Effect.orElseSucceed(() => ({}))
    )

/**
 * Opens the run's route in the gateway. `isFree`: true if the run is not confined: its agent then uses its own key, and
 * the gateway only counts.
 */
const exitOf = Effect.fnUntraced(function* (provider: Provider, options: EnclosureOptions, isFree: boolean) {
  const { config, host, spec } = options
  const { api, baseUrl = APIS[api].url } = provider
  const found = yield* Effect.serviceOption(Gateway)
  if (host.gateway === undefined || Option.isNone(found)) return yield* noGateway
  const gateway = found.value
  const key = isFree ? undefined : yield* keyOf(provider, options)
  const isMetered = config.metering === "gateway"
  const sockets = yield* passingFolder(socketsOf(host.gateway, spec))
  const { remotes = {} } = options
  const route = {
    socket: path.join(sockets, SOCKET),
    baseUrl,
    key: key === undefined ? null : headersOf(api, key),
    ...(isMetered ? { metered: true } : {}),
    // a gateway of an older agentd keeps a route only if the order for it is the same as before
    ...(Object.keys(remotes).length === 0 ? {} : { remotes })
  }
  const { isLeaving } = yield* Keeper
  yield* Effect.mapError(gateway.open(spec.runId, route, isLeaving), ({ message, remedy }) =>
    refused(message, remedy, false)
  )
  yield* Effect.addFinalizer(() =>
    gateway.count(spec.runId).pipe(
      Effect.flatMap((count) =>
        count === undefined || count.refused === 0
          ? Effect.void
          : Effect.logWarning(`${spec.agent} was refused ${count.refused} requests that were not for its model`)
      ),
      Effect.ignore
    )
  )
  const own = { ...options.inherited, ...options.own }
  const way = isFree ? { port: yield* freePort, socket: route.socket } : CONFINED
  const exit = exitBy(provider, sockets, key, { ...way, own })
  return isMetered ? { ...exit, passed: passedBy(gateway, spec.runId) } : exit
})

/**
 * The path that must be shared to run a program. For a program in node_modules, this is all of node_modules, because
 * the program needs other packages there.
 */
const programOf = (file: string): string => {
  const modules = file.indexOf("/node_modules/")
  return modules < 0 ? file : file.slice(0, modules + "/node_modules".length)
}

const real = (file: string): string | undefined => attempt(() => fs.realpathSync(file))

const NONE: Mechanism = { kind: "none", note: "this backend has none" }

const same = (file: string) => ({ source: file, target: file })

/** Finds the path of the program as a shell does. */
const find = (argv: Argv, cwd: string, env: Environment): string | undefined =>
  argv[0].includes("/") ? real(path.resolve(cwd, argv[0])) : locate(argv[0], env)

const noProgram = (argv: Argv) =>
  refused(`there is no program "${argv[0]}"`, "install it, or correct agentd.jsonc or the daemon's PATH")

const unconfined = ({ inherited, own }: EnclosureOptions): ConfinedSpawn => ({
  confined: false,
  env: { ...inherited, ...own },
  start: (argv, cwd) => Effect.succeed({ argv, cwd })
})

/** Prepares a run that is not confined, but whose requests to the model go through the gateway, which counts tokens. */
const counted = Effect.fnUntraced(function* (options: EnclosureOptions, provider: Provider) {
  const { env, start } = unconfined(options)
  const exit = yield* exitOf(provider, options, true)
  const [first = "", ...rest] = exit.forwarder
  const enclosure: ConfinedSpawn = {
    confined: false,
    env: { ...env, ...exit.variables },
    // further programs inherit the environment variables that lead to the gateway
    start: (argv, cwd, more) => (more?.part === true ? start(argv, cwd) : start([first, ...rest, ...argv], cwd)),
    ...(exit.passed === undefined ? {} : { passed: exit.passed })
  }
  return enclosure
})

/** Prepares a run that is not confined, but whose key the gateway adds. If there is no gateway, the run has the key. */
const keyless = Effect.fnUntraced(function* (options: EnclosureOptions, provider: Provider) {
  const { env, ...others } = unconfined(options)
  if (options.host.gateway === undefined || Option.isNone(yield* Effect.serviceOption(Gateway)))
    return { ...others, env: { ...env, [MODEL_KEY]: yield* keyOf(provider, options) } }
  const { sockets } = yield* exitOf(provider, options, false)
  return { ...others, env: { ...env, [MODEL_SOCKET]: path.join(sockets, SOCKET) } }
})

interface Quarters {
  readonly options: EnclosureOptions
  readonly wrap: Exclude<Mechanism, { kind: "none" }>["wrap"]
  readonly workspace: string
  readonly home: string
  readonly exit: Exit | undefined
  readonly env: Environment
  readonly outlives: boolean
}

/**
 * Lists the files that the config shares. Files in the user's home have the same relative path in the run's home. They
 * are not shared if the gateway adds a key, because they can contain a login. An additional program (`part`) gets no
 * files in the home.
 */
const sharedOf = ({ exit, home, options: { config, host } }: Quarters, part: boolean) => {
  const person = homeOf(host.environment)
  return config.share.flatMap((name) => {
    const isOfHome = !path.isAbsolute(name)
    if (isOfHome && (part || person === undefined || exit?.key !== undefined)) return []
    const source = real(isOfHome ? path.join(person ?? "/", name) : name)
    return source === undefined ? [] : [{ source, target: isOfHome ? path.join(home, name) : path.normalize(name) }]
  })
}

/**
 * Minimum length of a key that is searched as a part of a value. A shorter key must match the whole value, because it
 * could occur in any text.
 */
const LEAST_KEY = 12

/**
 * Returns the environment variables that the config names, without those that contain the gateway's key, whatever their
 * names are.
 */
const handedOver = ({ host, passEnv }: EnclosureOptions, exit: Exit | undefined): Environment => {
  const { key = "" } = exit ?? {}
  const isHeld = (value = "") => key !== "" && (key.length < LEAST_KEY ? value.trim() === key : value.includes(key))
  return Object.fromEntries(
    Object.entries(ChildEnvironment.named(host.environment, passEnv)).filter(([, value]) => !isHeld(value))
  )
}

const environmentOf = (options: EnclosureOptions, home: string, exit: Exit | undefined): Environment => ({
  ...ChildEnvironment.plain(options.host.environment),
  ...handedOver(options, exit),
  SHELL: "/bin/sh",
  ...options.own,
  ...exit?.variables,
  HOME: home,
  USER: "agent",
  LOGNAME: "agent",
  TMPDIR: "/tmp"
})

/** Lists files that the run's MCP servers need and that are outside the folders that the run can write. */
const serversOf = ({ home, options: { spec }, workspace }: Quarters): ReadonlyArray<string> =>
  Object.values(spec.mcp)
    .flatMap(({ files = [] }) => files.flatMap((file) => real(file) ?? []))
    .map(programOf)
    .filter((source) => !within(source, workspace) && !within(source, home))

const rulesOf = (quarters: Quarters, program: string, part: boolean): Rules => {
  const { exit, home, options, workspace } = quarters
  const { config, files = [], host, spec } = options
  const needed = [programOf(real(program) ?? program), ...(exit === undefined ? [] : [process.execPath]), ...files]
  const own = [...new Set([...needed, ...serversOf(quarters)])]
  return {
    workspace,
    network: config.network,
    hidden: (host.hidden ?? []).flatMap((one) => real(one) ?? []),
    environment: host.environment,
    home,
    outlives: quarters.outlives,
    shared: [
      ...own.filter((source) => !within(workspace, source) && !within(home, source)).map(same),
      ...(spec.socket === undefined ? [] : [same(spec.socket.folder)]),
      ...(exit === undefined ? [] : [{ source: exit.sockets, target: SOCKETS }]),
      ...sharedOf(quarters, part),
      ...(spec.mounts ?? [])
    ]
  }
}

const startIn = (quarters: Quarters): ConfinedSpawn["start"] =>
  Effect.fnUntraced(function* (argv: Argv, cwd: string, { part } = { part: false }) {
    const { env, exit, workspace, wrap } = quarters
    const place = real(cwd)
    if (place === undefined || !within(workspace, place))
      return yield* refused(`${cwd} is not a folder in the workspace ${workspace}`, "correct cwd in agentd.jsonc")
    const program = find(argv, place, env)
    if (program === undefined) return yield* noProgram(argv)
    const [first, ...rest] = argv
    const named: Argv = [first.includes("/") ? program : first, ...rest]
    const [head = named[0], ...tail] = [...(exit?.forwarder ?? []), ...named]
    const wrapped = wrap(rulesOf(quarters, program, part), place, [head, ...tail])
    const confined = yield* Effect.mapError(wrapped, ({ message, remedy }) => refused(message, remedy))
    return { ...confined, cwd: place }
  })

/** The network of a confined run: the machine's network, only the gateway to one model, or none. */
type Way = "host" | Provider | "none"

/** How a run will be confined, before anything is created for it. */
type Plan =
  | { readonly _tag: "Free"; readonly why: string | undefined }
  | {
      readonly _tag: "Held"
      readonly mechanism: Exclude<Mechanism, { kind: "none" }>
      readonly workspace: string
      /** Path of the agent's home folder; undefined if the home folder is removed when the run ends. */
      readonly home: string | undefined
      readonly way: Way
    }

export const homeIn = (homes: string, agent: string, workspace: string): string =>
  path.join(homes, `${agent}-${short(real(workspace) ?? workspace)}`)

const homeFor = ({ host, spec }: EnclosureOptions, workspace: string) =>
  host.homes === undefined ? undefined : homeIn(real(host.homes) ?? path.resolve(host.homes), spec.agent, workspace)

const wayOf = ({ config, provider }: EnclosureOptions): Way => (config.network ? "host" : (provider ?? "none"))

const plan = (options: EnclosureOptions, mechanism: Mechanism): Effect.Effect<Plan, BackendError> => {
  const { config, host, spec } = options
  if (config.sandbox === "off") return Effect.succeed<Plan>({ _tag: "Free", why: undefined })
  if (mechanism.kind === "none") {
    const why = `no sandbox works on this machine: ${mechanism.note}`
    return config.sandbox === "on"
      ? Effect.succeed<Plan>({ _tag: "Free", why })
      : Effect.fail(refused(why, 'install bubblewrap, or set "sandbox" to "on" or "off" in agentd.jsonc'))
  }
  const workspace = real(spec.cwd) ?? spec.cwd
  const why = objection(workspace, host.environment)
  if (why !== undefined)
    return Effect.fail(
      refused(
        `${workspace} cannot be an agent's workspace: ${why}`,
        "move the project into its own folder, or give the agent a worktree"
      )
    )
  const home = homeFor(options, workspace)
  return home !== undefined && within(workspace, home)
    ? Effect.fail(
        refused(
          `the agent's home would lie in its workspace: ${home}`,
          "move agentd's state directory (--state) out of the project"
        )
      )
    : Effect.succeed<Plan>({ _tag: "Held", mechanism, workspace, home, way: wayOf(options) })
}

const mechanismOf = (config: Confinement) =>
  config.sandbox === "off"
    ? Effect.succeed(NONE)
    : Effect.flatMap(Effect.serviceOption(Sandbox), (sandbox) =>
        Option.isSome(sandbox) ? sandbox.value.mechanism : Effect.succeed(NONE)
      )

/** When the run is over, removes the set-gid bit from files that the run has left, and reports the files. */
const sweeping = Effect.fnUntraced(function* ({ spec }: EnclosureOptions, folders: ReadonlyArray<string>) {
  const { isLeaving } = yield* Keeper
  const tell = yield* Left
  // it is unknown when a resumed run started
  const since = spec.adopt === undefined ? yield* Clock.currentTimeMillis : 0
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      if (isLeaving()) return
      const [first, ...more] = (yield* Effect.forEach(folders, (one) => SetIds.sweep(one, since - 1000))).flat()
      if (first === undefined) return
      const others = more.length === 0 ? "" : ` and ${more.length} more`
      yield* tell(`it has left a set-gid file: ${first}${others}; the set-gid bit was removed`)
    })
  )
})

export const make = Effect.fnUntraced(function* (
  options: EnclosureOptions
): Effect.fn.Return<ConfinedSpawn, BackendError, Scope.Scope | FileSystem.FileSystem> {
  const { config, spec } = options
  const planned = yield* plan(options, yield* mechanismOf(config))
  if (planned._tag === "Free") {
    if (planned.why !== undefined) yield* Effect.logWarning(`${spec.agent} runs unconfined: ${planned.why}`)
    if (options.remotes !== undefined && options.provider !== undefined)
      return yield* keyless(options, options.provider)
    return config.metering === "gateway" && options.provider !== undefined
      ? yield* counted(options, options.provider)
      : unconfined(options)
  }
  const { mechanism, way, workspace } = planned
  if (way === "host" && config.metering === "gateway")
    return yield* refused(
      "a run with the machine's network could bypass the gateway that counts its tokens",
      'set "network" to false, or "metering" to "agent", in agentd.jsonc'
    )
  const home = yield* planned.home === undefined
    ? passingFolder(path.join(os.tmpdir(), `agentd-home-${short(spec.runId)}`))
    : folder(planned.home)
  const kept = (spec.mounts ?? []).flatMap(({ source, writable }) => (writable ? [source] : []))
  yield* sweeping(options, [workspace, home, ...kept])
  const exit = typeof way === "string" ? undefined : yield* exitOf(way, options, false)
  const env = environmentOf(options, home, exit)
  const outlives = options.keeps === true && (yield* (yield* Keeper).isThere)
  const start = startIn({ options, wrap: mechanism.wrap, workspace, home, exit, env, outlives })
  return { confined: true, env, start, ...(exit?.passed === undefined ? {} : { passed: exit.passed }) }
})

/** How a run would be confined, before it is started. */
export interface View {
  /** How the run is confined; null if it is not. */
  readonly held: {
    readonly by: "bubblewrap" | "namespaces"
    /** Describes the sandbox program and its limitations for the user. */
    readonly note: string
    readonly mounts: ReadonlyArray<Mount>
    readonly network: "host" | "gateway" | "none"
    /** URL of the model behind the gateway; null if there is no gateway. */
    readonly provider: string | null
    /** Whether the gateway adds a key. */
    readonly keyed: boolean
  } | null
  /** Why the run is not confined although its config asks for that. */
  readonly why: string | undefined
  readonly env: Environment
}

/**
 * Returns how a run would be confined. Fails if the run would not start. Creates nothing, and does not contact the
 * gateway.
 */
export const look = Effect.fnUntraced(function* (
  options: EnclosureOptions,
  mechanism: Mechanism,
  argv: Argv
): Effect.fn.Return<View, BackendError, FileSystem.FileSystem> {
  const planned = yield* plan(options, mechanism)
  if (planned._tag === "Free") return { held: null, why: planned.why, env: unconfined(options).env }
  const { mechanism: by, way, workspace } = planned
  const { host, spec } = options
  const home = planned.home ?? path.join(os.tmpdir(), `agentd-home-${short(spec.runId)}`)
  const provider = typeof way === "string" ? undefined : way
  if (provider !== undefined && host.gateway === undefined) return yield* noGateway
  const key = provider === undefined ? undefined : yield* keyOf(provider, options)
  const own = { ...options.inherited, ...options.own }
  const sockets = socketsOf(host.gateway ?? "", spec)
  const exit = provider === undefined ? undefined : exitBy(provider, sockets, key, { ...CONFINED, own })
  const env = environmentOf(options, home, exit)
  const program = find(argv, workspace, env)
  if (program === undefined) return yield* noProgram(argv)
  const rules = rulesOf({ options, wrap: by.wrap, workspace, home, exit, env, outlives: false }, program, false)
  const mounts = mountsOf(rules)
  const no = refusalOf(rules, mounts)
  if (no !== undefined) return yield* refused(no.message, no.remedy)
  return {
    held: {
      by: by.kind,
      note: by.note,
      mounts,
      network: way === "host" ? "host" : way === "none" ? "none" : "gateway",
      provider: provider === undefined ? null : (provider.baseUrl ?? APIS[provider.api].url),
      keyed: key !== undefined
    },
    why: undefined,
    env
  }
})
