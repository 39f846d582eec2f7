/**
 * Approvals: permission requests of sessions that the user can answer through agentd.
 *
 * Guarantees: the dialog in the terminal stays open, and the first answer wins. An answer is recorded as a rune before
 * it is returned. A request ends when it is settled elsewhere, after a timeout, or when the daemon stops. The whole
 * input stays in memory while the request waits. The rune of the answer contains the input, redacted, and its hash. An
 * approval applies to the input that the user saw: it must contain that input's hash.
 */
import { Clock, Deferred, Duration, Effect, Stream } from "effect"
import { hashOf, MAX_INPUT, refusalOf } from "../domain/CallHash.ts"
import { type AskedCall, type Caller, CommandRefused, type Done, refuse } from "../domain/Messages.ts"
import { chosen, type Question } from "../runs/Question.ts"
import * as PlateMachine from "./PlateMachine.ts"
import type { Prompt } from "./PlateState.ts"
import { askedInput, loggedInput } from "./ToolInput.ts"
import type { Redact } from "../core/event-log/Redact.ts"
import type { EventLog } from "../core/event-log/EventLog.ts"
import type { Heard } from "./HookEvent.ts"
import { actorName, type PlateActor, plateActor, type Stand } from "./PlateActor.ts"
import * as PlateId from "./PlateId.ts"
import { causeOf } from "../core/event-log/Rune.ts"

/** `answers`: the user's choices, if the request has questions. */
export type Decision =
  | {
      readonly behavior: "allow"
      readonly answers?: ReadonlyArray<string> | undefined
      /** Hash of the input that the user saw. Without it no permission is granted. */
      readonly hash?: string | undefined
    }
  | { readonly behavior: "deny"; readonly message: string }

const MAX_OPEN = 1_000
/** Maximum total length of the inputs of all waiting requests, in characters. */
const MAX_BYTES = 64 * MAX_INPUT

export interface Request {
  readonly id: string
  /** The tool's input as JSON, shortened. */
  readonly arguments: string
  /** The questions that the user must answer; empty if the request asks for permission. */
  readonly questions: ReadonlyArray<Question>
}

interface Open extends Request {
  readonly plate: PlateActor
  readonly prompt: Prompt
  /** The whole input, unredacted JSON. */
  readonly input: string
  readonly hash: string
  readonly run: string
  readonly folder: string
  readonly since: number
  readonly answer: Deferred.Deferred<Decision | undefined>
  /** True while an answer is being written to the log, and after it: other answers are rejected. */
  taken: boolean
}

const isThat = (a: Prompt, b: Prompt): boolean =>
  a.agentId === b.agentId && a.tool === b.tool && a.callId === b.callId && a.at === b.at

const isOpen = ({ data, state }: Stand, prompt: Prompt): boolean =>
  state !== "Closed" && data.prompts.some((open) => isThat(open, prompt))

export class Approvals {
  private readonly log: EventLog["Service"]
  private readonly redact: Redact["Service"]
  private readonly timeout: Duration.Duration
  private readonly open = new Map<string, Open>()

  constructor(log: EventLog["Service"], redact: Redact["Service"], timeout: Duration.Duration) {
    this.log = log
    this.redact = redact
    this.timeout = timeout
  }

  /** Length of all waiting inputs together, in characters. */
  private get bytes(): number {
    return [...this.open.values()].reduce((sum, { input }) => sum + input.length, 0)
  }

  /** The oldest waiting request of a plate; null if none can be answered through agentd. */
  of(plate: PlateActor): Request | null {
    for (const request of this.open.values()) if (request.plate === plate) return request
    return null
  }

  /**
   * Finds the open prompt of a permission request whose event was just committed. Undefined if every matching prompt
   * belongs to another waiting request.
   */
  private promptOf(plate: PlateActor, stand: Stand, event: PermissionRequest): Prompt | undefined {
    const agentId = event.agentId ?? null
    const inputs = new Map(stand.data.calls.map((call) => [call.callId, call.input]))
    const claimed = [...this.open.values()].filter((request) => request.plate === plate)
    return stand.data.prompts.find(
      (prompt) =>
        prompt.agentId === agentId &&
        prompt.tool === event.tool &&
        (prompt.callId === null ||
          event.input === undefined ||
          (inputs.get(prompt.callId) ?? event.input) === event.input) &&
        !claimed.some((request) => isThat(request.prompt, prompt))
    )
  }

  /** Waits for the user's answer. Undefined if the request cannot be answered through agentd, or not any more. */
  readonly wait = Effect.fnUntraced(
    { self: this },
    function* (
      this: Approvals,
      plate: PlateActor,
      at: { readonly eventId: number; readonly stand: Stand },
      event: PermissionRequest,
      { cwd = "", input = "null", questions = [], sessionId }: Pick<Heard, "cwd" | "input" | "questions" | "sessionId">
    ) {
      const prompt = this.promptOf(plate, at.stand, event)
      if (prompt === undefined || this.open.size >= MAX_OPEN || this.bytes + input.length > MAX_BYTES) return undefined
      // a question that cannot be shown here is answered in the terminal's dialog
      if (prompt.kind === "question" && questions.length === 0) return undefined
      const id = yield* PlateId.fresh
      const { tool } = prompt
      const of = { agent: plate.plateId, run: sessionId, call: id, tool, folder: cwd }
      const hash = hashOf({ ...of, input: JSON.parse(input) as unknown })
      // an input that cannot be hashed cannot be approved here
      if (hash === undefined) return undefined
      const request: Open = {
        id,
        plate,
        prompt,
        input,
        hash,
        run: sessionId,
        folder: cwd,
        since: yield* Clock.currentTimeMillis,
        arguments: askedInput(this.redact, input),
        questions,
        answer: yield* Deferred.make<Decision | undefined>(),
        taken: false
      }
      this.open.set(request.id, request)
      return yield* Effect.raceAllFirst([
        Deferred.await(request.answer),
        Effect.as(this.settledElsewhere(request, at.eventId, at.stand), undefined),
        Effect.as(Effect.sleep(this.timeout), undefined)
      ]).pipe(Effect.ensuring(Effect.sync(() => this.open.delete(request.id))))
    }
  )

  /** Waits until the plate's runes show that the prompt is closed. */
  private settledElsewhere({ plate, prompt }: Open, after: number, from: Stand): Effect.Effect<void> {
    let stand = from
    return this.log.subscribe({ stream: plate.plateId, kinds: PlateMachine.kinds, after }).pipe(
      Stream.takeUntil((rune) => {
        stand = plateActor.apply(stand, rune, false)
        return !isOpen(stand, prompt)
      }),
      Stream.runDrain,
      Effect.catchCause((cause) => Effect.logWarning(`${plate.plateId}: a permission request is given up`, cause))
    )
  }

  /** Finds a request by its id, or by its plate if only one of the plate's requests waits. */
  private find(id: string, plate: PlateActor | undefined): Open | CommandRefused {
    const exact = this.open.get(id)
    if (exact !== undefined) return exact
    const own = plate === undefined ? [] : [...this.open.values()].filter((request) => request.plate === plate)
    if (own.length === 1) return own[0]!
    return own.length === 0
      ? nothing(id, plate)
      : refuse(
          "ambiguous",
          `${own.length} requests of "${id}" wait for an answer.`,
          `Name one of them: ${own.map((request) => `${request.id} (${request.prompt.tool})`).join(", ")}`
        )
  }

  asked(id: string, plate: PlateActor | undefined): AskedCall | CommandRefused {
    const request = this.find(id, plate)
    if (request instanceof CommandRefused) return request
    const { folder, hash, input, prompt, questions, run, since } = request
    return {
      id: request.id,
      agent: request.plate.plateId,
      run,
      tool: prompt.tool,
      folder,
      input: this.redact.values(input),
      hash,
      reason: null,
      ...(questions.length > 0 ? { questions } : {}),
      since,
      until: since + Duration.toMillis(this.timeout)
    }
  }

  readonly answer = Effect.fnUntraced(
    { self: this },
    function* (this: Approvals, id: string, plate: PlateActor | undefined, given: Decision, caller: Caller) {
      const request = this.find(id, plate)
      if (request instanceof CommandRefused) return yield* request
      const decision = decided(request, given)
      if (decision instanceof CommandRefused) return yield* decision
      if (request.taken) return yield* tooLate(request)
      request.taken = true
      const { agentId, callId, tool } = request.prompt
      const [rune] = yield* this.log
        .append([
          {
            stream: request.plate.plateId,
            kind: "plate.answered",
            actor: actorName(request.plate.plateId),
            trigger: decision.behavior,
            payload: {
              approval: request.id,
              agentId,
              tool,
              by: caller.by,
              arguments: loggedInput(this.redact, request.input),
              hash: request.hash,
              ...decision
            }
          }
        ])
        .pipe(
          Effect.catchTag("RuneRefused", (error) => Effect.die(error)),
          Effect.onError(() => Effect.sync(() => (request.taken = false)))
        )
      const waits = this.open.has(request.id)
      if (!waits || !(yield* Deferred.succeed(request.answer, decision))) return yield* tooLate(request)
      request.plate.tell(
        {
          _tag: "PromptAnswered",
          at: yield* Clock.currentTimeMillis,
          ...(agentId === null ? {} : { agentId }),
          tool,
          ...(callId === null ? {} : { callId }),
          behavior: decision.behavior
        },
        causeOf(rune!)
      )
      const done: Done = {
        eventId: rune!.eventId,
        message: told(tool, decision)
      }
      return done
    }
  )

  /** Ends all waiting requests when the daemon stops: after that, they can only be answered in the terminal. */
  readonly giveUp: Effect.Effect<void> = Effect.suspend(() =>
    Effect.forEach([...this.open.values()], ({ answer }) => Deferred.succeed(answer, undefined), { discard: true })
  )
}

type PermissionRequest = Extract<PlateMachine.Event, { readonly _tag: "HookPermissionRequest" }>

/** The error for an answer to a request that is not waiting here: only its own terminal can answer it. */
const nothing = (id: string, plate: PlateActor | undefined): CommandRefused => {
  const { data, state } = plate?.stand ?? {}
  const agent = data?.agent ?? null
  const isOurs = agent !== null && state !== "Closed"
  if (plate === undefined || (!isOurs && state !== "AwaitingApproval" && state !== "AwaitingInput")) {
    return refuse("not_found", `Nothing waits for an answer under "${id}".`, "See what does: agentd ps")
  }
  return isOurs
    ? refuse(
        "invalid",
        `${plate.plateId} is a run of ${agent}: answer its calls by their own ids.`,
        "See what waits: agentd approve"
      )
    : refuse(
        "unsupported",
        `${plate.plateId} asks in its terminal, and cannot be answered from here.`,
        `Answer it there: agentd focus ${plate.plateId}. To answer from here, run agentd hooks install --approvals, then start a new session.`
      )
}

const told = (tool: string, decision: Decision): string => {
  if (decision.behavior === "deny") return `${tool}: denied.`
  return decision.answers === undefined ? `${tool}: allowed.` : `${tool} is answered: ${decision.answers.join("; ")}.`
}

/** Checks an answer: questions need choices, a request for permission needs the hash. Both can be denied. */
const decided = ({ hash, id, prompt, questions }: Open, given: Decision): Decision | CommandRefused => {
  if (given.behavior === "deny") return given
  const answers = chosen({ id, questions, tool: prompt.tool }, given.answers)
  if (answers === undefined) {
    const unseen = refusalOf(id, given.hash, hash)
    return unseen === undefined ? { behavior: "allow" } : new CommandRefused({ code: "conflict", ...unseen })
  }
  return "message" in answers ? new CommandRefused({ code: "invalid", ...answers }) : { behavior: "allow", answers }
}

const tooLate = ({ prompt }: Open) =>
  refuse("conflict", `The request to use ${prompt.tool} was just settled elsewhere.`, "See what waits: agentd ps")
