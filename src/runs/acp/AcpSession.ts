/**
 * AcpSession: opens a session that takes prompts, for a process that has just started.
 *
 * Guarantees: the login method of the config is used only if the agent requires a login. Resuming a session is always
 * tried, whatever capabilities the agent claims. A session to resume that no longer exists is replaced by a new one,
 * with a notice. Unless the config names a mode or gives full access, the session gets a mode that asks the user. If
 * there is no such mode, a notice says so. Every failure has a class and a remedy.
 */
import type { InitializeRequest, LoadSessionRequest, McpServer, NewSessionRequest } from "@agentclientprotocol/sdk"
import { Clock, Effect } from "effect"
import type { AcpBackend } from "../../config/BackendConfig.ts"
import * as AcpFault from "./AcpFault.ts"
import * as AcpChoices from "./AcpChoices.ts"
import type * as AcpPrompt from "./AcpPrompt.ts"
import * as Messages from "./AcpMessages.ts"
import * as AcpMeta from "./AcpMeta.ts"
import { METHOD_NOT_FOUND, type Refusal, type Wire } from "./AcpWire.ts"
import type { RunSpec } from "../Backend.ts"
import { CLIENT_INFO } from "../ClientInfo.ts"

export interface AcpSession {
  readonly sessionId: string
  readonly agent: AcpFault.Agent
  /**
   * True for Gemini CLI. Gemini CLI reads each file before it writes the file, and treats a missing file like any other
   * error. It would therefore never create a file. If a file is missing, it gets an empty file instead of the error.
   */
  readonly missingIsEmpty: boolean
  /** True for Copilot, whose answers report the usage since its process began. */
  readonly isSum: boolean
  /** Name of the model; empty if the agent reports none. */
  readonly model: string
  readonly takes: AcpPrompt.Takes
  readonly choices: AcpChoices.Choices
}

export interface Options {
  readonly config: AcpBackend
  readonly spec: RunSpec
  readonly cwd: string
  /** Whether agentd can read and write files for the agent. */
  readonly files: boolean
  /** Reports that the agent has lost its memory of the session, and why. */
  readonly forgot: (text: string) => Effect.Effect<void>
  /** Waits until a loaded session has been replayed. Some agents begin the replay only after they have answered. */
  readonly replayed: Effect.Effect<void>
}

type Fault = AcpFault.Fault
const VERSION = 1
/** Timeout for a request that the agent may not support. */
const UNTOLD = "5 seconds"

/** Gemini CLI, and a fork of it. */
const GEMINI: ReadonlySet<string> = new Set(["gemini-cli", "qwen-code"])

/** An agent that has reported what it can do. */
interface Known extends AcpFault.Agent {
  readonly load: boolean
  readonly resume: boolean
  readonly fork: boolean
  /** True if `session/load` can continue a copy of a session. */
  readonly copies: boolean
  readonly missingIsEmpty: boolean
  readonly isSum: boolean
  readonly takes: AcpPrompt.Takes
}

const initialize = Effect.fnUntraced(function* (wire: Wire, { config, files }: Options) {
  const program = config.argv.join(" ")
  const request: InitializeRequest = {
    protocolVersion: VERSION,
    clientCapabilities: { fs: { readTextFile: files, writeTextFile: files }, terminal: true },
    clientInfo: CLIENT_INFO
  }
  const nobody = { name: program, authMethods: [] }
  const now = yield* Clock.currentTimeMillis
  const result = yield* Effect.mapError(wire.request("initialize", request), (refusal) =>
    AcpFault.ofRefusal(refusal, "to begin", nobody, now)
  )
  const answer = Messages.read(Messages.InitializeAnswer, result)
  const remedy = `check that argv starts an agent that speaks the Agent Client Protocol, version ${VERSION}; many agents need an argument such as "acp" or "--acp"`
  if (answer === undefined)
    return yield* Effect.fail(AcpFault.fatal("protocol", `${program} does not report its protocol version`, remedy))
  if (answer.protocolVersion !== VERSION) {
    const message = `${program} speaks version ${answer.protocolVersion} of the protocol, agentd version ${VERSION}`
    return yield* Effect.fail(AcpFault.fatal("protocol", message, remedy))
  }
  const { agentCapabilities, agentInfo, authMethods } = answer
  const can = agentCapabilities?.sessionCapabilities
  const known: Known = {
    name: agentInfo?.title ?? agentInfo?.name ?? program,
    authMethods: authMethods ?? [],
    load: agentCapabilities?.loadSession === true,
    resume: (can?.resume ?? undefined) !== undefined,
    fork: (can?.fork ?? undefined) !== undefined,
    copies: AcpMeta.forks((result as { readonly agentCapabilities?: unknown }).agentCapabilities),
    missingIsEmpty: agentInfo?.name === "gemini-cli",
    isSum: agentInfo?.name === "Copilot",
    takes: {
      images: agentCapabilities?.promptCapabilities?.image === true,
      resources: agentCapabilities?.promptCapabilities?.embeddedContext === true,
      leavesOut: GEMINI.has(agentInfo?.name ?? "")
    }
  }
  return known
})

/** Repeats the request after a login, if the agent requires one and the config names a method. */
const loggedIn = Effect.fnUntraced(function* (
  wire: Wire,
  agent: Known,
  { config }: Options,
  request: Effect.Effect<unknown, Refusal>
) {
  return yield* Effect.catchIf(
    request,
    (refusal) => config.authMethod !== undefined && AcpFault.isAuth(refusal),
    (): Effect.Effect<unknown, Fault | Refusal> => {
      const methodId = config.authMethod!
      if (agent.authMethods.length > 0 && !agent.authMethods.some(({ id }) => id === methodId))
        return Effect.fail(
          AcpFault.fatal(
            "auth",
            `${agent.name} has no login method "${methodId}"`,
            `correct authMethod in the agent's backend, then start the agent.${AcpFault.offered(agent)}`
          )
        )
      return wire.request("authenticate", { methodId }).pipe(
        Effect.mapError(({ message }): Fault | Refusal =>
          AcpFault.auth(`the login "${methodId}" failed: ${message}`, agent)
        ),
        Effect.andThen(request)
      )
    }
  )
})

const serversOf = ({ mcp }: RunSpec): Array<McpServer> =>
  Object.entries(mcp).map(([name, { argv, env }]) => ({
    name,
    command: argv[0] ?? "",
    args: argv.slice(1),
    env: Object.entries(env).map(([variable, value]) => ({ name: variable, value }))
  }))

const isFault = (error: Fault | Refusal): error is Fault => "outcome" in error

/** A request that resumes a session. `told`: whether the agent says that it supports the request. */
interface Way {
  readonly method: "session/resume" | "session/load" | "session/fork"
  readonly told: boolean
}

/** Lists the requests that may resume a session, first those that the agent says it supports. */
const waysOf = ({ copies, fork, load, resume }: Known, isCopy: boolean): ReadonlyArray<Way> => {
  if (isCopy) return fork || copies ? [{ method: fork ? "session/fork" : "session/load", told: true }] : []
  const ways: ReadonlyArray<Way> = [
    { method: "session/resume", told: resume },
    { method: "session/load", told: load }
  ]
  return ways.toSorted((one, other) => Number(other.told) - Number(one.told))
}

const SILENT: Refusal = { code: METHOD_NOT_FOUND, message: "no answer" }

/** Resumes the session if possible. Events of the replay that the agent sends belong to no turn. */
const goOn = Effect.fnUntraced(function* (
  wire: Wire,
  agent: Known,
  options: Options,
  { fork, sessionId }: NonNullable<RunSpec["resume"]>
) {
  const { cwd, forgot, spec } = options
  const anew = (why: string) => Effect.as(forgot(`${why}: a new one begins, without memory of the old one`), undefined)
  const meta = fork ? { ...Messages.RETRIES, agentd: { fork } } : Messages.RETRIES
  const request: LoadSessionRequest = { sessionId, cwd, mcpServers: serversOf(spec), _meta: meta }
  let failure: Refusal | undefined
  let isGone = false
  for (const { method, told } of waysOf(agent, fork)) {
    const asks = loggedIn(wire, agent, options, wire.request(method, request))
    const untold = Effect.timeoutOrElse(asks, { duration: UNTOLD, orElse: () => Effect.fail(SILENT) })
    const result = yield* Effect.result(told ? asks : untold)
    if (result._tag === "Success") {
      if (method === "session/load") yield* options.replayed
      const answer = Messages.read(Messages.SessionAnswer, result.success ?? {}) ?? {}
      return fork
        ? { ...answer, sessionId: answer.sessionId ?? AcpMeta.copyOf(result.success) }
        : { ...answer, sessionId }
    }
    const refusal = result.failure
    if (isFault(refusal)) return yield* Effect.fail(refusal)
    if (AcpFault.isUnknown(refusal)) continue
    if (AcpFault.isGone(refusal)) isGone = true
    // the login or the provider caused this, so another request would also fail
    else if (AcpFault.isOutside(refusal)) return yield* Effect.fail(refusal)
    else failure = refusal
  }
  if (isGone) return yield* anew(`${agent.name} no longer has the session ${sessionId}`)
  if (failure !== undefined) return yield* Effect.fail(failure)
  return yield* anew(
    fork
      ? `${agent.name} cannot copy session ${sessionId}, which is open in another process`
      : `${agent.name} cannot resume a session`
  )
})

const begin = (wire: Wire, agent: Known, options: Options) => {
  const request: NewSessionRequest = { cwd: options.cwd, mcpServers: serversOf(options.spec), _meta: Messages.RETRIES }
  return Effect.map(
    loggedIn(wire, agent, options, wire.request("session/new", request)),
    (result) => Messages.read(Messages.SessionAnswer, result) ?? {}
  )
}

export const open = Effect.fnUntraced(function* (wire: Wire, options: Options) {
  const agent = yield* initialize(wire, options)
  const now = yield* Clock.currentTimeMillis
  const told = Effect.mapError((error: Fault | Refusal) =>
    isFault(error) ? error : AcpFault.ofRefusal(error, "a session", agent, now)
  )
  const { config, spec } = options
  const old =
    spec.resume === undefined || !config.resume ? undefined : yield* told(goOn(wire, agent, options, spec.resume))
  const answer = old ?? (yield* told(begin(wire, agent, options)))
  const sessionId = answer.sessionId ?? ""
  if (sessionId === "") return yield* Effect.fail(AcpFault.error("protocol", `${agent.name} reported no session`, true))
  const { mode, model: wanted } = config
  let choices = AcpChoices.of(answer)
  let model = answer.models?.currentModelId ?? AcpChoices.modelOf(choices)
  if (wanted !== undefined)
    ({ choices, id: model } = yield* AcpChoices.choose(wire, agent, { choices, sessionId }, "model", wanted))
  if (mode !== undefined) ({ choices } = yield* AcpChoices.choose(wire, agent, { choices, sessionId }, "mode", mode))
  else if (spec.approvals !== "full_access") choices = yield* AcpChoices.toAsk(wire, agent, { choices, sessionId })
  const { isSum, missingIsEmpty, takes } = agent
  const session: AcpSession = { sessionId, agent, missingIsEmpty, isSum, model, takes, choices }
  return session
})
