/**
 * Enclosure: how the programs of a run are started: as they are, or confined, as its backend's
 * `sandbox` says. An ACP agent's terminals are in the same one.
 *
 * Confined, a run has its workspace, a home of its own that is kept for the agent, the files of the
 * user's home that its config shares, the socket by which it speaks to the daemon and the program
 * that does so (agentd mcp), and of the daemon's variables only those that name no secret and no
 * socket, and those that its config names. Its way out is the machine's network, or the gateway to
 * its model, or none.
 *
 * Guarantees: where a sandbox is required and none works, nothing starts; a provider's key is in
 * no variable, argument or file that the run sees: it has a word that stands for it; the route of
 * the gateway lives as long as the scope, and so does the folder of its socket. `look` tells what a
 * run would be held by, by the same decisions, and makes nothing.
 */
import { Clock, Effect, type FileSystem, Option, Result, type Scope } from "effect"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { attempt } from "../../config/Attempt.ts"
import { type AcpBackend, APIS, type Confinement, type ExecBackend } from "../../config/BackendConfig.ts"
import { FORWARDER_SCRIPT } from "../gateway/ForwarderScript.ts"
import { prefixOf } from "../gateway/Gateway.ts"
import type { PassedBy } from "../GatewayMeter.ts"
import { Gateway } from "../gateway/GatewayClient.ts"
import { Keeper } from "../keeper/Keeper.ts"
import { BackendError, Left, type RunSpec } from "../Backend.ts"
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
  /** Without a key the agent's own login, from a file that is shared, goes to the provider. */
  readonly login?: boolean
}

export interface EnclosureOptions {
  readonly config: Confinement
  readonly provider: Provider | undefined
  readonly host: Host
  readonly spec: RunSpec
  /** The variables that it has when it is not confined. */
  readonly inherited: Environment
  /** The names of those that it is handed in any case, as far as the gateway does not hold them. */
  readonly passEnv: ReadonlyArray<string> | undefined
  /** The variables that it has in any case. */
  readonly own: Environment
  /** Files that agentd has made for it. */
  readonly files?: ReadonlyArray<string> | undefined
  /** True where the keeper may hold its own program. */
  readonly keeps?: boolean
}

/** A run of a program that outlives daemons, as it would be. */
export const outlined = (config: AcpBackend | ExecBackend, host: Host, spec: RunSpec) => {
  const [binary = "", ...args] = config.argv
  const options: EnclosureOptions = {
    config,
    provider: config.provider,
    host,
    spec,
    inherited: ChildEnvironment.given(host.environment, { program: binary, passEnv: config.passEnv }),
    passEnv: config.passEnv,
    keeps: true,
    own: { ...config.env, ...spec.env, AGENTD_AGENT: spec.agent }
  }
  return { argv: [binary, ...args], options } as const
}

export interface Enclosed {
  readonly argv: Argv
  readonly cwd: string
  readonly handed?: ReadonlyArray<Uint8Array>
}

export interface Enclosure {
  readonly confined: boolean
  readonly env: Environment
  /** The counts of the gateway, where it counts. */
  readonly passed?: PassedBy
  /**
   * `cwd`: a path that is absolute. `part`: a further program of a run that is at work, and could move a mount in its
   * home meanwhile: it gets none there.
   */
  readonly start: (
    argv: Argv,
    cwd: string,
    options?: { readonly part: boolean }
  ) => Effect.Effect<Enclosed, BackendError>
}

const refused = (message: string, remedy: string, fatal = true): BackendError =>
  new BackendError({ message, remedy, fatal })

/** Stands where an agent insists on a key. */
export const NO_KEY = "held-by-agentd"
/** On the loopback of the run's own network. */
const PORT = 3128
/** Within the sandbox; the folder is mounted and not the socket, so that one that is bound anew is seen. */
const SOCKETS = "/run/agentd"
const SOCKET = "model.sock"
/** Where a confined run finds its way out. */
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
        "make room, and see that the state folder can be written",
        false
      )
  })

const passingFolder = (name: string) =>
  Effect.flatMap(Keeper, (keeper) =>
    Effect.acquireRelease(folder(name), (made) =>
      // a run that works on still sees it
      Effect.sync(() => keeper.isLeaving() || fs.rmSync(made, { recursive: true, force: true }))
    )
  )

const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The config of Codex' adapter, which takes no address from a variable; `before`: its own, `keyEnv`: undefined for a login. */
const codexConfig = (url: string, keyEnv: string | undefined, before = "{}"): string => {
  const parsed = Result.getOrElse(
    Result.try((): unknown => JSON.parse(before)),
    () => ({})
  )
  const login = keyEnv === undefined ? { requires_openai_auth: true } : { env_key: keyEnv }
  const agentd = { name: "agentd", base_url: url, wire_api: "responses", ...login }
  return JSON.stringify({
    ...(isRecord(parsed) ? parsed : {}),
    model_provider: "agentd",
    model_providers: { agentd }
  })
}

/** The variables by which an agent is told where its model is, and that its key is not its own; `own`: those that it has. */
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

/** The way to the model: the folder of the run's socket, what the agent is told, and what its command begins with. */
interface Exit {
  readonly sockets: string
  readonly variables: Environment
  /** Held by the gateway. */
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

/** The way out through a gateway whose sockets for the run lie in this folder. */
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

/** A port of the machine's loopback that nobody has now. */
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

/** The counts of the run's route; a gateway that does not answer has nothing to tell just now. */
const passedBy =
  (gateway: Gateway["Service"], runId: string): PassedBy =>
  (isOver) =>
    gateway.count(runId, isOver).pipe(
      Effect.map((count) => count ?? {}),
      Effect.orElseSucceed(() => ({}))
    )

/** `isFree`: nothing holds the run; its agent keeps its own key, and is only counted. */
const exitOf = Effect.fnUntraced(function* (provider: Provider, options: EnclosureOptions, isFree: boolean) {
  const { config, host, spec } = options
  const { api, baseUrl = APIS[api].url } = provider
  const found = yield* Effect.serviceOption(Gateway)
  if (host.gateway === undefined || Option.isNone(found)) return yield* noGateway
  const gateway = found.value
  const key = isFree ? undefined : yield* keyOf(provider, options)
  const isMetered = config.metering === "gateway"
  const sockets = yield* passingFolder(socketsOf(host.gateway, spec))
  const route = {
    socket: path.join(sockets, SOCKET),
    baseUrl,
    key: key === undefined ? null : headersOf(api, key),
    ...(isMetered ? { metered: true } : {})
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

/** Files of the program that lie where nothing else is shared: those beside it, where a package manager put it. */
const programOf = (file: string): string => {
  const modules = file.indexOf("/node_modules/")
  return modules < 0 ? file : file.slice(0, modules + "/node_modules".length)
}

const real = (file: string): string | undefined => attempt(() => fs.realpathSync(file))

const NONE: Mechanism = { kind: "none", note: "none is there for this backend" }

const same = (file: string) => ({ source: file, target: file })

/** Where the program is, as a shell finds it. */
const find = (argv: Argv, cwd: string, env: Environment): string | undefined =>
  argv[0].includes("/") ? real(path.resolve(cwd, argv[0])) : locate(argv[0], env)

const noProgram = (argv: Argv) =>
  refused(`there is no program "${argv[0]}"`, "install it, or correct agentd.jsonc or the daemon's PATH")

const unconfined = ({ inherited, own }: EnclosureOptions): Enclosure => ({
  confined: false,
  env: { ...inherited, ...own },
  start: (argv, cwd) => Effect.succeed({ argv, cwd })
})

/** Nothing holds it; its way to its model leads through the gateway, which counts. */
const counted = Effect.fnUntraced(function* (options: EnclosureOptions, provider: Provider) {
  const { env, start } = unconfined(options)
  const exit = yield* exitOf(provider, options, true)
  const [first = "", ...rest] = exit.forwarder
  const enclosure: Enclosure = {
    confined: false,
    env: { ...env, ...exit.variables },
    // what it has run besides finds the same way
    start: (argv, cwd, more) => (more?.part === true ? start(argv, cwd) : start([first, ...rest, ...argv], cwd)),
    ...(exit.passed === undefined ? {} : { passed: exit.passed })
  }
  return enclosure
})

/** A confined run, once it is known where it lives and how it gets out. */
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
 * Lists the files that the config shares: those of the user's home at its place in the run's own. A login is of no use where the key is put
 * in, and a `part` gets nothing in the home.
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

/** A shorter key stands for none, and may be part of any text. */
const LEAST_KEY = 12

/** The variables that the config names. One that holds the key that the gateway has is left out, whatever its name. */
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

/** Files of the servers that it is given, where they lie apart from what it writes. */
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
      ...sharedOf(quarters, part)
    ]
  }
}

const startIn = (quarters: Quarters): Enclosure["start"] =>
  Effect.fnUntraced(function* (argv: Argv, cwd: string, { part } = { part: false }) {
    const { env, exit, workspace, wrap } = quarters
    const place = real(cwd)
    if (place === undefined || !within(workspace, place))
      return yield* refused(`${cwd} is no folder of the workspace ${workspace}`, "correct cwd in agentd.jsonc")
    const program = find(argv, place, env)
    if (program === undefined) return yield* noProgram(argv)
    const [first, ...rest] = argv
    const named: Argv = [first.includes("/") ? program : first, ...rest]
    const [head = named[0], ...tail] = [...(exit?.forwarder ?? []), ...named]
    const wrapped = wrap(rulesOf(quarters, program, part), place, [head, ...tail])
    const confined = yield* Effect.mapError(wrapped, ({ message, remedy }) => refused(message, remedy))
    return { ...confined, cwd: place }
  })

/** The way out of a run that is held: the machine's network, the gateway to one model, or none. */
type Way = "host" | Provider | "none"

/** How a run is to be held, before anything is made of it. */
type Plan =
  | { readonly _tag: "Free"; readonly why: string | undefined }
  | {
      readonly _tag: "Held"
      readonly mechanism: Exclude<Mechanism, { kind: "none" }>
      readonly workspace: string
      /** Undefined: one that ends with the run. */
      readonly home: string | undefined
      readonly way: Way
    }

export const homeIn = (homes: string, agent: string, workspace: string): string =>
  path.join(homes, `${agent}-${short(real(workspace) ?? workspace)}`)

const homeFor = ({ host, spec }: EnclosureOptions, workspace: string) =>
  host.homes === undefined ? undefined : homeIn(real(host.homes) ?? path.resolve(host.homes), spec.agent, workspace)

const wayOf = ({ config, provider }: EnclosureOptions): Way => (config.network ? "host" : (provider ?? "none"))

/** Decides by what the config asks for and the machine has. */
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
        "put the project into a folder of its own, or give the agent a worktree"
      )
    )
  const home = homeFor(options, workspace)
  return home !== undefined && within(workspace, home)
    ? Effect.fail(
        refused(
          `the agent's home would lie in its workspace: ${home}`,
          "put agentd's state folder (--state) out of the project"
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

/** Takes set-gid off the files that the run has left, once it is over, and says so. */
const sweeping = Effect.fnUntraced(function* ({ spec }: EnclosureOptions, folders: ReadonlyArray<string>) {
  const { isLeaving } = yield* Keeper
  const tell = yield* Left
  // of one that was taken up it is not known when it began
  const since = spec.adopt === undefined ? yield* Clock.currentTimeMillis : 0
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      if (isLeaving()) return
      const [first, ...more] = (yield* Effect.forEach(folders, (one) => SetIds.sweep(one, since - 1000))).flat()
      if (first === undefined) return
      const others = more.length === 0 ? "" : ` and ${more.length} more`
      yield* tell(`it has left a set-gid file: ${first}${others}; the bit is taken off`)
    })
  )
})

export const make = Effect.fnUntraced(function* (
  options: EnclosureOptions
): Effect.fn.Return<Enclosure, BackendError, Scope.Scope | FileSystem.FileSystem> {
  const { config, spec } = options
  const planned = yield* plan(options, yield* mechanismOf(config))
  if (planned._tag === "Free") {
    if (planned.why !== undefined) yield* Effect.logWarning(`${spec.agent} runs unconfined: ${planned.why}`)
    return config.metering === "gateway" && options.provider !== undefined
      ? yield* counted(options, options.provider)
      : unconfined(options)
  }
  const { mechanism, way, workspace } = planned
  if (way === "host" && config.metering === "gateway")
    return yield* refused(
      "a run that is given the machine's network cannot be held to the gateway that counts its tokens",
      'set "network" to false, or "metering" to "agent", in agentd.jsonc'
    )
  const home = yield* planned.home === undefined
    ? passingFolder(path.join(os.tmpdir(), `agentd-home-${short(spec.runId)}`))
    : folder(planned.home)
  yield* sweeping(options, [workspace, home])
  const exit = typeof way === "string" ? undefined : yield* exitOf(way, options, false)
  const env = environmentOf(options, home, exit)
  const outlives = options.keeps === true && (yield* (yield* Keeper).isThere)
  const start = startIn({ options, wrap: mechanism.wrap, workspace, home, exit, env, outlives })
  return { confined: true, env, start, ...(exit?.passed === undefined ? {} : { passed: exit.passed }) }
})

/** The view of a run from outside, before it is started. */
export interface View {
  /** Null: nothing holds it. */
  readonly held: {
    readonly by: "bubblewrap" | "namespaces"
    /** For a person: the program, and what it lacks. */
    readonly note: string
    readonly mounts: ReadonlyArray<Mount>
    readonly network: "host" | "gateway" | "none"
    /** The address behind the gateway. */
    readonly provider: string | null
    /** Whether the gateway puts a key in. */
    readonly keyed: boolean
  } | null
  /** Why nothing holds it although it was asked for. */
  readonly why: string | undefined
  readonly env: Environment
}

/** Tells how the run would be started; fails where it would not. Makes nothing, and asks no gateway. */
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
