/**
 * ModelTurn: the loop of one turn. It asks the model, runs the tool calls in the answer and sends the results to the
 * model, until the model answers without calls.
 *
 * Guarantees: the history is valid for a provider whenever the turn ends, however it ends. After an interruption it
 * contains the partial answer, and a result for each call. If a turn fails before its input was answered, the input is
 * removed, because it will be sent again. The end of each turn says what follows for the run.
 */
import { Cause, Clock, Deferred, type Duration, Effect, Exit } from "effect"
import type * as Config from "../config/BackendConfig.ts"
import type { RunEvent, TurnInput } from "../runs/Backend.ts"
import * as FileContents from "../runs/FileContents.ts"
import { type Answer, ask } from "./ProviderRequest.ts"
import { ModelCalls, plan, type Planned } from "./ModelCalls.ts"
import { ended, endOf, failed, type TurnEnd } from "./ModelOutcome.ts"
import { callsIn, SILENT, speaks, unanswered } from "./ModelHistory.ts"
import type { ModelMemory } from "./ModelMemory.ts"
import type { ModelSession } from "./ModelSession.ts"
import type { CallPart, FilePart, Message, Part, Provider, ProviderError } from "./Provider.ts"
import { ReplayFilter } from "../runs/ReplayFilter.ts"
import { definitionsOf, type Tool } from "./Tool.ts"

/** An input, with the files that came with a prompt of the protocol. */
export interface ModelInput extends TurnInput {
  readonly attached?: ReadonlyArray<FilePart>
}

export interface TurnOptions {
  readonly config: Pick<
    Config.ModelBackend,
    "contextTokens" | "maxOutputTokens" | "maxRounds" | "model" | "price" | "retries"
  >
  /** How long each call may run, from its own start. By default without end. */
  readonly toolTimeout?: Duration.Duration | undefined
  /** Delay before the first retry of a request. */
  readonly pause: Duration.Duration
  readonly provider: Provider
  readonly system: string
  readonly tools: () => ReadonlyMap<string, Tool>
  readonly session: ModelSession
  readonly memory: ModelMemory
  readonly emit: (event: RunEvent) => Effect.Effect<void>
  readonly read: FileContents.Reader
}

const INTERRUPTED = "(The turn was interrupted here.)"

/** Converts a tool name to a form that all providers accept, because a model can write any name. */
const named = (name: string) => name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed"

/**
 * Makes call ids unique in the conversation, even if the provider repeats them, in the form that
 * all providers accept.
 */
const distinct = (parts: ReadonlyArray<Part>, taken: Set<string>): ReadonlyArray<Part> =>
  parts.map((part) => {
    if (part.type !== "call") return part
    const plain = /^[A-Za-z0-9_-]{1,40}$/.test(part.id) ? part.id : "call"
    let id = plain
    for (let n = 2; taken.has(id) || id === "call"; n++) id = `${plain.slice(0, 32)}_${n}`
    taken.add(id)
    return { ...part, id, name: named(part.name) }
  })

/** True if the arguments of a call may be incomplete because the answer was cut. */
const unfinished = ({ input, invalid }: CallPart) => invalid !== undefined || Object.keys(input).length === 0

const outcomeOf = (error: ProviderError) => Effect.map(Clock.currentTimeMillis, (now) => endOf(error, now))

const broken = (cause: Cause.Cause<never>): TurnEnd => ({
  ...failed("internal", `agentd itself failed: ${Cause.pretty(cause).slice(0, 500)}`),
  fatal: true
})

const textOf = (parts: ReadonlyArray<Part>) =>
  parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")

/**
 * Builds the message for an input. It contains text files as text; the other files follow, in the order in which the
 * text names them.
 */
const inputOf = ({ attached = [], text }: ModelInput, { found, gone }: FileContents.Contents): Message => {
  const lines = found.map((one) => (FileContents.isText(one) ? FileContents.fenced(one) : `${one.label}: it follows.`))
  const others = found.filter((one) => !FileContents.isText(one))
  const own = others.map((one) => ({ filename: one.filename, type: one.type, data: FileContents.base64Of(one) }))
  const files = [...own, ...attached]
  return {
    role: "user",
    text: FileContents.withLines(text, [...lines, ...gone]),
    ...(files.length === 0 ? {} : { files })
  }
}

export class ModelTurn {
  readonly turnId: string
  readonly calls: ModelCalls
  private readonly given: ModelInput
  private input: Message
  private readonly options: TurnOptions
  private readonly interrupted = Deferred.makeUnsafe<void>()
  /** Ids of all calls in the conversation. */
  private readonly taken: Set<string>
  /** Text of the current answer, or of the last one. */
  private retelling = new ReplayFilter()
  /** True if the partial answer is not in the history yet. */
  private coming = false
  /** True if the history contains calls that have no results yet. */
  private open = false
  /** Usage of the newest answer, until it is emitted. */
  private owed: ReadonlyArray<RunEvent> = []

  constructor(options: TurnOptions, given: ModelInput) {
    const history = options.session.history()
    this.options = options
    this.turnId = given.turnId
    this.given = given
    this.input = { role: "user", text: given.text }
    this.calls = new ModelCalls(options.emit, this.interrupt, options.toolTimeout)
    this.taken = new Set(history.flatMap((message) => callsIn(message).map(({ id }) => id)))
  }

  /** Ends the turn at the next safe point. */
  get interrupt(): Effect.Effect<void> {
    return Effect.asVoid(Deferred.succeed(this.interrupted, undefined))
  }

  /**
   * Returns and clears the usage that has not been emitted yet. It is emitted together with the turn's end, so that a
   * budget does not interrupt finished work.
   */
  takeOwed(): ReadonlyArray<RunEvent> {
    const { owed } = this
    this.owed = []
    return owed
  }

  /** Emits the usage that has not been emitted yet. Uninterruptible, because `takeOwed` has already cleared it. */
  private get tellOwed(): Effect.Effect<void> {
    return Effect.uninterruptible(
      Effect.suspend(() => Effect.forEach(this.takeOwed(), this.options.emit, { discard: true }))
    )
  }

  /** Runs the turn. Emits its start; the caller emits its end. */
  get run(): Effect.Effect<TurnEnd> {
    const race = Effect.raceFirst(
      this.work.pipe(Effect.catchTag("ProviderError", outcomeOf), Effect.exit),
      Effect.as(Deferred.await(this.interrupted), undefined)
    )
    return this.options.emit({ _tag: "TurnStarted", turnId: this.turnId }).pipe(
      Effect.andThen(race),
      Effect.flatMap((exit) =>
        exit === undefined ? this.stop : this.tidy(Exit.isSuccess(exit) ? exit.value : broken(exit.cause))
      ),
      Effect.catchTag("ProviderError", outcomeOf)
    )
  }

  private get work(): Effect.Effect<TurnEnd, ProviderError> {
    const { session, config } = this.options
    return Effect.gen({ self: this }, function* () {
      this.input = inputOf(this.given, yield* this.options.read(this.given.files))
      yield* session.append(this.input)
      for (let n = 0; n < config.maxRounds; n++) {
        if (n > 0) yield* this.mayGoOn
        const end = yield* this.round
        if (end !== undefined) return end
      }
      return failed(
        "max_rounds",
        `the turn made ${config.maxRounds} requests without finishing; set a larger maxRounds`
      )
    })
  }

  /** Waits until the usage so far is counted, so that a spent budget ends the turn before the next request. */
  private get mayGoOn(): Effect.Effect<void> {
    return Effect.flatMap(Deferred.make<void>(), (told) =>
      Effect.andThen(
        this.options.emit({ _tag: "GoesOn", go: Effect.asVoid(Deferred.succeed(told, undefined)) }),
        Deferred.await(told)
      )
    )
  }

  private get request(): Effect.Effect<Answer, ProviderError> {
    return Effect.suspend(() => {
      const { config, memory, session, system, tools, ...rest } = this.options
      const { maxOutputTokens, model, price, retries } = config
      this.retelling = new ReplayFilter()
      this.coming = true
      const messages = session.history()
      const request = { system, messages, tools: definitionsOf(tools()), maxOutputTokens }
      return ask({
        ...rest,
        model,
        window: config.contextTokens,
        price,
        retries,
        request,
        retelling: this.retelling
      }).pipe(Effect.tap((answer) => Effect.sync(() => memory.answered(answer, messages))))
    })
  }

  /**
   * Asks for an answer. Compacts the history first if necessary, and once more if the request was rejected as too long.
   */
  private get answer(): Effect.Effect<Answer, ProviderError> {
    const { memory } = this.options
    const again = (error: ProviderError): Effect.Effect<Answer, ProviderError> => {
      if (error.kind !== "overflow") return Effect.fail(error)
      // the partial answer is not valid
      this.coming = false
      return Effect.flatMap(memory.after(error), (made) => (made ? this.request : Effect.fail(error)))
    }
    return Effect.andThen(memory.ahead, Effect.catch(this.request, again))
  }

  /** Asks for an answer and runs its calls; returns undefined if the model must be asked again. */
  private get round(): Effect.Effect<TurnEnd | undefined, ProviderError> {
    const { emit } = this.options
    return Effect.gen({ self: this }, function* () {
      const answer = yield* this.answer
      this.owed = answer.usage
      const parts = distinct(answer.parts, this.taken)
      const held = answer.stop === "refusal" || answer.stop === "filter"
      const asked = held ? [] : parts.flatMap((part) => (part.type === "call" ? [part] : []))
      const end = asked.length === 0 ? ended(answer, textOf(parts)) : undefined
      const cut = answer.stop === "length"
      // keep a partial answer, so that the next turn can continue it
      if (end?._tag === "Failed" && !(cut && textOf(parts).trim() !== "")) return end
      const last = asked.length - 1
      const tools = this.options.tools()
      yield* this.keep(
        parts,
        asked.map((part, at) => plan(part, tools, cut && at === last && unfinished(part)))
      )
      if (cut) yield* emit({ _tag: "Notice", text: "the answer was cut off at maxOutputTokens" })
      if (asked.length > 0) yield* Effect.andThen(this.calls.run, this.results)
      // the next request reports its own usage
      else if (end === undefined) yield* this.tellOwed
      return end
    })
  }

  /** Adds the answer to the history and emits its calls. Uninterruptible, so that both happen or neither. */
  private keep(parts: ReadonlyArray<Part>, planned: ReadonlyArray<Planned>): Effect.Effect<void, ProviderError> {
    return Effect.uninterruptible(
      Effect.gen({ self: this }, function* () {
        if (speaks(parts)) yield* this.options.session.append({ role: "assistant", parts })
        this.coming = false
        if (planned.length === 0) return
        this.open = true
        yield* this.tellOwed
        yield* this.calls.begin(planned)
      })
    )
  }

  /** Adds the results of the calls to the history. */
  private get results(): Effect.Effect<void, ProviderError> {
    return Effect.uninterruptible(
      Effect.gen({ self: this }, function* () {
        const results = yield* this.calls.settle
        this.open = false
        yield* this.options.session.append({ role: "tool", results })
      })
    )
  }

  /**
   * Ends the turn after an interruption: completes the history, so that it contains the partial answer and is valid.
   */
  private get stop(): Effect.Effect<TurnEnd, ProviderError> {
    const { session } = this.options
    return Effect.gen({ self: this }, function* () {
      const output = this.retelling.text
      if (this.open) yield* this.results
      else if (this.coming && output.trim() !== "") {
        yield* session.append({ role: "assistant", parts: [{ type: "text", text: output }] })
      }
      yield* session.append({ role: "user", text: INTERRUPTED, note: true })
      return { _tag: "Interrupted", output } satisfies TurnEnd
    })
  }

  /** Removes the part of the history that failed, so that it does not make the next turn fail. */
  private tidy(end: TurnEnd): Effect.Effect<TurnEnd, ProviderError> {
    const { session } = this.options
    return Effect.gen({ self: this }, function* () {
      if (end._tag !== "Failed") {
        // an input at the end of the history will be sent again
        if (unanswered(session.history())) yield* session.append(SILENT)
        return end
      }
      if (this.open) yield* this.results
      const begin = session.history().indexOf(this.input)
      if (end.errorType === "refusal" || end.errorType === "content_filter") {
        if (begin >= 0) yield* session.cut(begin)
      } else if (unanswered(session.history())) yield* session.cut(session.history().length - 1)
      return end
    })
  }
}
