/**
 * Conformance: checks what agentd requires of an agent that speaks the Agent Client Protocol, for the agent's author.
 *
 * Guarantees: Each check starts its own process and judges one thing only. If an agent cannot get as far as a check
 * needs, the check is skipped, and the check of what is missing fails. When a check ends, all its processes have ended.
 */
import { Deferred, Duration, Effect, Fiber, Result, Schema } from "effect"
import type { Environment } from "../process/ChildProcess.ts"
import { END_GRACE } from "../line/RunLifecycle.ts"
import * as RunProcess from "../process/RunProcess.ts"
import * as AcpChoices from "./AcpChoices.ts"
import * as Messages from "./AcpMessages.ts"

/** Prompts that the checks use. A model may need other prompts than the defaults. */
export interface Prompts {
  readonly hello: string
  /** Prompt that makes the agent use a tool that needs an approval. */
  readonly asks: string
  /** Prompt that keeps the agent busy for some seconds. */
  readonly long: string
}

export const PROMPTS: Prompts = {
  hello: "Say hello.",
  asks: "Run the command `true` with your tool, then say what it answered.",
  long: "Count slowly from one to one hundred, a number a line."
}

export interface Options {
  readonly argv: readonly [string, ...ReadonlyArray<string>]
  readonly cwd: string
  readonly env: Environment
  readonly patience: Duration.Duration
  readonly prompts: Prompts
}

export interface Outcome {
  readonly check: string
  readonly result: "ok" | "failed" | "skipped"
  /** Why the check failed or was skipped; "" if it passed. */
  readonly why: string
}

class Broken extends Schema.TaggedError<Broken>()("Broken", { message: Schema.String }) {}
/** The agent did not get as far as the check needs, so the check has no result. */
class Untried extends Schema.TaggedError<Untried>()("Untried", { message: Schema.String }) {}

const broken = (message: string) => Effect.fail(new Broken({ message }))
const untried = (message: string) => Effect.fail(new Untried({ message }))

interface Message {
  readonly jsonrpc?: unknown
  readonly id?: unknown
  readonly method?: string
  readonly params?: Fields
  readonly result?: unknown
  readonly error?: { readonly code?: unknown; readonly message?: unknown }
}
type Fields = { readonly [name: string]: unknown }

/** How long a check waits to see that the agent does not act too early. */
const QUIET = "400 millis"
/** How long a check waits for the first sign of a turn before it cancels the turn. */
const SIGN = { looks: 60, pause: "50 millis" } as const
const MAX_MESSAGE = 16 * 1024 * 1024
const UNKNOWN = -32601
const STOPS: ReadonlyArray<unknown> = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]

const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {})

const parsed = (line: string): Message | undefined => {
  try {
    const message = fieldsOf(JSON.parse(line)) as Message
    return message.jsonrpc === "2.0" ? message : undefined
  } catch {
    return undefined
  }
}

const short = (value: unknown): string => (JSON.stringify(value) ?? "nothing").slice(0, 300)

/** A request for permission, with what the agent had said before it and when it was answered. */
interface Asked {
  readonly toolCallId: unknown
  readonly options: ReadonlyArray<Fields>
  readonly from: number
  until: number
}

const started = ({ argv, cwd, env }: Options) =>
  RunProcess.make({
    store: "conformance",
    runId: `conformance-${process.pid}`,
    argv,
    cwd,
    env,
    keepInput: true,
    grace: Duration.seconds(2)
  }).pipe(Effect.mapError(({ message }) => new Untried({ message })))

/** Starts a process of the agent and exchanges messages with it. */
const connect = Effect.fnUntraced(function* (options: Options, allows = true) {
  const { cwd, patience } = options
  const program = yield* started(options)
  const scope = yield* Effect.scope
  const heard: Array<Message> = []
  const noise: Array<string> = []
  const asked: Array<Asked> = []
  const pending = new Map<unknown, Deferred.Deferred<Message, Broken>>()
  let [last, said, ended] = [0, "", ""]

  const tell = (message: Message) => program.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
  const permit = Effect.fnUntraced(function* (id: unknown, params: Fields, from: number) {
    const options = Array.isArray(params["options"]) ? params["options"].map(fieldsOf) : []
    const toolCallId = fieldsOf(params["toolCall"])["toolCallId"]
    const one: Asked = { toolCallId, options, from, until: Number.POSITIVE_INFINITY }
    asked.push(one)
    yield* Effect.sleep(QUIET)
    one.until = heard.length
    const kind = allows ? "allow" : "reject"
    // an option that applies for good would also decide about the calls of later checks
    const option =
      options.find((each) => each["kind"] === `${kind}_once`) ??
      options.find((each) => String(each["kind"]).startsWith(kind))
    const outcome =
      option === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId: option["optionId"] }
    yield* tell({ id, result: { outcome } })
  })
  const take = (line: string): Effect.Effect<void> => {
    const message = parsed(line)
    if (message === undefined) return Effect.sync(() => void noise.push(line))
    heard.push(message)
    const { id, method, params = {} } = message
    if (method === undefined) {
      const waiting = pending.get(id)
      return waiting === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(waiting, message))
    }
    if (id === undefined) return Effect.void
    const replied =
      method === "session/request_permission"
        ? permit(id, params, heard.length)
        : tell({ id, error: { code: UNKNOWN, message: `${method} is not offered` } })
    return Effect.asVoid(Effect.forkIn(replied, scope))
  }
  const records = RunProcess.drainPlaced(program.stdout, program.ended, MAX_MESSAGE, (lines) =>
    Effect.forEach(lines, ({ text }) => (text.trim() === "" ? Effect.void : take(text)), { discard: true })
  )
  const complaints = RunProcess.drainPlaced(program.stderr, program.ended, 16_384, (lines) =>
    Effect.sync(() => void (said = lines.findLast(({ text }) => text.trim() !== "")?.text ?? said))
  )
  const whole = Effect.gen(function* () {
    yield* Effect.all([records, complaints], { concurrency: 2 })
    const { code, signal } = yield* program.exited
    ended = `it ended (${signal ?? `exit code ${code}`}${said === "" ? "" : `: ${said}`})`
    for (const waiting of pending.values()) Deferred.doneUnsafe(waiting, broken(ended))
  })
  yield* Effect.forkScoped(whole)

  /** Sends a request. The effect that it returns waits for the answer, a result or an error. */
  const ask = Effect.fnUntraced(function* (method: string, params: Fields) {
    const id = ++last
    const waiting = Deferred.makeUnsafe<Message, Broken>()
    pending.set(id, waiting)
    yield* tell({ id, method, params })
    if (ended !== "") Deferred.doneUnsafe(waiting, broken(ended))
    return Effect.timeoutOrElse(Deferred.await(waiting), {
      duration: patience,
      orElse: () => broken(`it did not answer ${method} within ${Duration.format(patience)}`)
    })
  })
  const request = (method: string, params: Fields) => Effect.flatten(ask(method, params))
  const notify = (method: string, params: Fields) => tell({ method, params })
  return { ask, asked, cwd, heard, noise, notify, program, request }
})
type Talk = Effect.Success<ReturnType<typeof connect>>

const CLIENT = {
  protocolVersion: 1,
  clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
  clientInfo: { name: "agentd", title: "agentd conformance", version: "1" }
}

const initialize = (talk: Talk) => talk.request("initialize", CLIENT)
const newSession = (talk: Talk) => talk.request("session/new", { cwd: talk.cwd, mcpServers: [] })
const idOf = ({ result }: Message): unknown => fieldsOf(result)["sessionId"]

/** Turns a fault of an earlier step into a reason to skip the check. */
const needs = <A, R>(step: Effect.Effect<A, Broken | Untried, R>): Effect.Effect<A, Untried, R> =>
  Effect.mapError(step, ({ message }) => new Untried({ message }))

/** Makes the session ask for permission, as a run does: some agents start in a mode in which they do not ask. */
const toAsk = ({ request }: Talk, sessionId: string, result: unknown) => {
  const wire = {
    request: (method: string, params: unknown) =>
      request(method, fieldsOf(params)).pipe(
        Effect.mapError(({ message }) => ({ code: 0, message })),
        Effect.flatMap(({ error, result: answer }) =>
          error === undefined
            ? Effect.succeed(answer)
            : Effect.fail({ code: Number(error.code), message: short(error.message) })
        )
      )
  }
  const choices = AcpChoices.of(Messages.read(Messages.SessionAnswer, result) ?? {})
  return AcpChoices.toAsk(wire, { name: "the agent", authMethods: [] }, { choices, sessionId })
}

/** Opens a session; skips the check if the agent opens none. */
const opened = Effect.fnUntraced(function* (options: Options, allows = true) {
  const talk = yield* connect(options, allows)
  const first = yield* needs(initialize(talk))
  const answer = yield* needs(newSession(talk))
  const sessionId = idOf(answer)
  if (typeof sessionId !== "string")
    return yield* untried(`it opened no session: ${short(answer.error ?? answer.result)}`)
  yield* toAsk(talk, sessionId, answer.result)
  const capabilities = fieldsOf(fieldsOf(first.result)["agentCapabilities"])
  return { ...talk, sessionId, capabilities }
})
type Opened = Effect.Success<ReturnType<typeof opened>>

const textOf = (text: string) => [{ type: "text", text }]
const prompting = ({ ask, sessionId }: Opened, text: string) =>
  ask("session/prompt", { sessionId, prompt: textOf(text) })

const stopOf = ({ result }: Message): unknown => fieldsOf(result)["stopReason"]

/** Runs a turn; skips the check if the turn fails. */
const turn = Effect.fnUntraced(function* (talk: Opened, text: string) {
  const answer = yield* needs(Effect.flatten(prompting(talk, text)))
  if (stopOf(answer) === undefined) return yield* untried(`its turn failed: ${short(answer.error ?? answer.result)}`)
  return answer
})

const updatesIn = (messages: ReadonlyArray<Message>): ReadonlyArray<Fields> =>
  messages.flatMap(({ method, params = {} }) =>
    method === "session/update" ? [{ sessionId: params["sessionId"], ...fieldsOf(params["update"]) }] : []
  )

/** Runs a turn in which the agent asks for permission; returns its first question and the later updates of its call. */
const questioned = Effect.fnUntraced(function* (options: Options, allows: boolean) {
  const talk = yield* opened(options, allows)
  yield* turn(talk, options.prompts.asks)
  const [first] = talk.asked
  if (first === undefined)
    return yield* untried("it asked for no permission: give a prompt that makes it ask, with --asks TEXT")
  const ofCall = (from: number, to?: number) =>
    updatesIn(talk.heard.slice(from, to)).filter(({ toolCallId }) => toolCallId === first.toolCallId)
  return { talk, first, ofCall }
})

/** Cancels a turn in its midst; returns the answer to its prompt. */
const cancelled = Effect.fnUntraced(function* (talk: Opened, text: string) {
  const from = talk.heard.length
  const answer = yield* needs(prompting(talk, text))
  const fiber = yield* Effect.forkScoped(answer)
  for (let look = 0; look < SIGN.looks && updatesIn(talk.heard.slice(from)).length === 0; look++)
    yield* Effect.sleep(SIGN.pause)
  if (talk.heard.slice(from).some(({ method }) => method === undefined))
    return yield* untried("the turn ended before it was cancelled: give a prompt that keeps it busy, with --long TEXT")
  yield* talk.notify("session/cancel", { sessionId: talk.sessionId })
  return yield* Fiber.join(fiber)
})

interface Check {
  readonly name: string
  readonly run: (
    options: Options
  ) => Effect.Effect<unknown, Broken | Untried, Effect.Services<ReturnType<typeof connect>>>
}

const BEGINNING: ReadonlyArray<Check> = [
  {
    name: "answers initialize with protocol version 1",
    run: Effect.fnUntraced(function* (options) {
      const talk = yield* Effect.mapError(connect(options), ({ message }) => new Broken({ message }))
      const { error, result } = yield* initialize(talk)
      const version = fieldsOf(result)["protocolVersion"]
      if (version !== 1) return yield* broken(`it answered ${short(error ?? result)}`)
    })
  },
  {
    name: "answers session/new with a session id",
    run: Effect.fnUntraced(function* (options) {
      const talk = yield* connect(options)
      yield* needs(initialize(talk))
      const answer = yield* newSession(talk)
      if (typeof idOf(answer) !== "string" || idOf(answer) === "")
        return yield* broken(`it answered ${short(answer.error ?? answer.result)}`)
    })
  },
  {
    name: "writes only JSON-RPC messages to standard output",
    run: Effect.fnUntraced(function* (options) {
      const talk = yield* opened(options)
      yield* turn(talk, options.prompts.hello)
      const [line] = talk.noise
      if (line !== undefined) return yield* broken(`it wrote ${short(line)}`)
    })
  },
  {
    name: "refuses an unknown method with the code -32601",
    run: Effect.fnUntraced(function* (options) {
      const talk = yield* opened(options)
      const { error, result } = yield* talk.request("_agentd/no_such_method", {})
      if (error?.code !== UNKNOWN) return yield* broken(`it answered ${short(error ?? result)}`)
    })
  },
  {
    name: "ignores an unknown notification",
    run: Effect.fnUntraced(function* (options) {
      const talk = yield* opened(options)
      yield* talk.notify("_agentd/no_such_notification", {})
      yield* Effect.sleep(QUIET)
      const answer = yield* newSession(talk)
      if (idOf(answer) === undefined) return yield* broken(`it then answered session/new with ${short(answer.error)}`)
    })
  },
  {
    name: "exits when its input is closed",
    run: Effect.fnUntraced(function* (options) {
      const { program } = yield* opened(options)
      yield* program.closeInput
      yield* Effect.timeoutOrElse(program.exited, {
        duration: END_GRACE,
        orElse: () => broken(`it was still running ${Duration.format(END_GRACE)} after its input was closed`)
      })
    })
  }
]

const TURNS: ReadonlyArray<Check> = [
  {
    name: "answers a prompt with a stop reason of the protocol",
    run: Effect.fnUntraced(function* (options) {
      const talk = yield* opened(options)
      const answer = yield* Effect.flatten(prompting(talk, options.prompts.hello))
      if (!STOPS.includes(stopOf(answer))) return yield* broken(`it answered ${short(answer.error ?? answer.result)}`)
    })
  },
  {
    name: "names the session in each update",
    run: Effect.fnUntraced(function* (options) {
      const talk = yield* opened(options)
      yield* turn(talk, options.prompts.hello)
      const wrong = updatesIn(talk.heard).find(({ sessionId }) => sessionId !== talk.sessionId)
      if (wrong !== undefined)
        return yield* broken(`it named ${short(wrong["sessionId"])}, but the session is ${short(talk.sessionId)}`)
    })
  },
  {
    name: "sends the text of a turn before it answers the prompt",
    run: Effect.fnUntraced(function* (options) {
      const talk = yield* opened(options)
      const answer = yield* turn(talk, options.prompts.hello)
      const isText = ({ sessionUpdate }: Fields) => sessionUpdate === "agent_message_chunk"
      const before = talk.heard.indexOf(answer)
      if (updatesIn(talk.heard.slice(0, before)).some(isText)) return
      yield* Effect.sleep("2 seconds")
      if (updatesIn(talk.heard.slice(before)).some(isText))
        return yield* broken("it answered first and sent text later")
      return yield* untried("it sent no text")
    })
  },
  {
    name: "accepts a second prompt",
    run: Effect.fnUntraced(function* (options) {
      const talk = yield* opened(options)
      yield* turn(talk, options.prompts.hello)
      const answer = yield* Effect.flatten(prompting(talk, options.prompts.hello))
      if (stopOf(answer) === undefined) return yield* broken(`it answered ${short(answer.error ?? answer.result)}`)
    })
  },
  {
    name: "answers a cancelled prompt with the stop reason cancelled",
    run: Effect.fnUntraced(function* (options) {
      const answer = yield* cancelled(yield* opened(options), options.prompts.long)
      if (stopOf(answer) !== "cancelled") return yield* broken(`it answered ${short(answer.error ?? answer.result)}`)
    })
  },
  {
    name: "accepts a prompt after a cancelled one",
    run: Effect.fnUntraced(function* (options) {
      const talk = yield* opened(options)
      yield* needs(cancelled(talk, options.prompts.long))
      const answer = yield* Effect.flatten(prompting(talk, options.prompts.hello))
      if (stopOf(answer) === undefined || stopOf(answer) === "cancelled")
        return yield* broken(`it answered ${short(answer.error ?? answer.result)}`)
    })
  }
]

const PERMISSIONS: ReadonlyArray<Check> = [
  {
    name: "offers to allow and to reject a call once",
    run: Effect.fnUntraced(function* (options) {
      const { first } = yield* questioned(options, true)
      for (const kind of ["allow_once", "reject_once"])
        if (!first.options.some((option) => option["kind"] === kind))
          return yield* broken(`it offered no option of the kind ${kind}: ${short(first.options)}`)
    })
  },
  {
    name: "does not run a call before its permission",
    run: Effect.fnUntraced(function* (options) {
      const { first, ofCall } = yield* questioned(options, true)
      const early = ofCall(first.from, first.until).find(({ status }) => status === "completed")
      if (early !== undefined) return yield* broken(`it reported the call as completed before it was allowed`)
    })
  },
  {
    name: "does not run a rejected call",
    run: Effect.fnUntraced(function* (options) {
      const { first, ofCall } = yield* questioned(options, false)
      if (!first.options.some((option) => String(option["kind"]).startsWith("reject")))
        return yield* untried("it offers no way to reject a call")
      if (ofCall(first.until).some(({ status }) => status === "completed"))
        return yield* broken("it reported the rejected call as completed")
    })
  }
]

/** Creates a session with one turn, ends the agent, and starts another process; skips the check if it loads none. */
const reopened = Effect.fnUntraced(function* (options: Options) {
  const sessionId = yield* Effect.scoped(
    Effect.gen(function* () {
      const talk = yield* opened(options)
      if (talk.capabilities["loadSession"] !== true) return yield* untried("it does not load sessions")
      yield* turn(talk, options.prompts.hello)
      yield* talk.program.closeInput
      yield* Effect.timeoutOption(talk.program.exited, END_GRACE)
      return talk.sessionId
    })
  )
  const talk = yield* connect(options)
  yield* needs(initialize(talk))
  return { talk, sessionId }
})
const load = (talk: Talk, sessionId: string) =>
  talk.request("session/load", { sessionId, cwd: talk.cwd, mcpServers: [] })

const SESSIONS: ReadonlyArray<Check> = [
  {
    name: "loads a session of an earlier process",
    run: Effect.fnUntraced(function* (options) {
      const { sessionId, talk } = yield* reopened(options)
      const answer = yield* load(talk, sessionId)
      if (answer.error !== undefined) return yield* broken(`it answered ${short(answer.error)}`)
    })
  },
  {
    name: "sends a loaded conversation before it answers session/load",
    run: Effect.fnUntraced(function* (options) {
      const { sessionId, talk } = yield* reopened(options)
      const answer = yield* needs(load(talk, sessionId))
      if (answer.error !== undefined) return yield* untried(`it did not load the session: ${short(answer.error)}`)
      yield* Effect.sleep("2 seconds")
      const isOld = ({ sessionUpdate }: Fields) => String(sessionUpdate).endsWith("_message_chunk")
      if (updatesIn(talk.heard.slice(talk.heard.indexOf(answer))).some(isOld))
        return yield* broken("it sent old messages after its answer")
    })
  },
  {
    name: "refuses to load a session that does not exist",
    run: Effect.fnUntraced(function* (options) {
      const talk = yield* opened(options)
      if (talk.capabilities["loadSession"] !== true) return yield* untried("it does not load sessions")
      const answer = yield* load(talk, "00000000-0000-4000-8000-000000000000")
      if (answer.error === undefined) return yield* broken(`it answered ${short(answer.result)}`)
    })
  }
]

const CHECKS: ReadonlyArray<Check> = [...BEGINNING, ...TURNS, ...PERMISSIONS, ...SESSIONS]

/** Names of all checks, in their order. */
export const NAMES: ReadonlyArray<string> = CHECKS.map(({ name }) => name)

/** Runs all checks, one after another. `told` receives the outcome of each check when that check ends. */
export const suite = (options: Options, told: (outcome: Outcome) => Effect.Effect<void>) =>
  Effect.forEach(CHECKS, ({ name, run }) =>
    Effect.gen(function* () {
      const result = yield* Effect.result(Effect.scoped(run(options)))
      const outcome: Outcome = Result.isSuccess(result)
        ? { check: name, result: "ok", why: "" }
        : {
            check: name,
            result: result.failure._tag === "Untried" ? "skipped" : "failed",
            why: result.failure.message
          }
      yield* told(outcome)
      return outcome
    })
  )
