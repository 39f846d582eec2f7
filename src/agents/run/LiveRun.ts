/**
 * LiveRun: what is known of the run of an agent that is alive now: its handle, whether
 * it takes turns, the turn that it works on, what it has said, its names for its calls, what
 * it has at work beside its turns.
 *
 * In memory only, and a hint for decisions: a turn that this does not know was lost
 * with the daemon that knew it.
 */
import { Effect } from "effect"
import type { Decision, Run, RunEvent, Work } from "../../runs/Backend.ts"
import type { Offers } from "../../runs/Offers.ts"
import type { UsageMeter } from "./UsageMeter.ts"
import * as Excerpt from "./Excerpt.ts"
import { lateName } from "../machines/ToolsState.ts"
import { Gate } from "../actors/Gate.ts"

/** Most troubles that are known at once. */
const MAX_LACKS = 20
/** Bytes of a name of one. */
const MAX_LACK = 100

/** Characters in which the newest line of an answer is looked for. */
const MAX_LINE = 400

/** Bytes of an unfinished answer that are kept. */
const MAX_SAID = 64 * 1024

const UNASKED: Pick<UsageMeter, "newest"> = { newest: { model: "", context: undefined } }

/** A call as its run knows it. */
export interface Origin {
  readonly run: Run
  /** The call's id in the run. */
  readonly id: string
  readonly readOnly: boolean
  readonly voice: boolean
  readonly tool: string
  /** Whole, as the run told it. */
  readonly input: unknown
  readonly folder: string
}

/** Knowledge of a run that takes no turn, for a daemon that hears it from there on. */
export interface KnownRun {
  readonly count: number
  readonly worked: boolean
  readonly background: ReadonlyArray<Work>
  readonly lacks: ReadonlyArray<string>
  readonly offers: Offers
  readonly introduced: boolean
}

type Called = Pick<Extract<RunEvent, { _tag: "ToolCall" }>, "arguments" | "callId" | "readOnly" | "tool" | "voice">

export class LiveRun {
  /** Once it has said that it is up. */
  run: Run | undefined = undefined
  /** Whether it takes one turn after the other. */
  turns = false
  /** The turn whose input it has been given and has not ended. */
  turnId: string | undefined = undefined
  /** A turn of it has come to its answer. */
  worked = false
  /** The turn that a run was at when this daemon took it up. */
  resumed: string | undefined = undefined
  /** True while all is told again that an earlier daemon heard of it. */
  recalling = false
  /** The newest thing that it told: when, ms since the epoch, and its words where it was a notice. */
  heard: { readonly at: number; readonly notice?: string } | undefined = undefined
  /** Set while the run asks its model again by itself: since when, ms since the epoch, and its newest words. */
  retries: { readonly since: number; readonly text: string } | undefined = undefined
  /** The model of its newest request, as the run names it, and how full its context is. */
  meter: Pick<UsageMeter, "newest"> = UNASKED
  /** Names of what the run is without as long as a trouble goes on. */
  readonly lacks = new Set<string>()
  /** The models, modes and commands that the newest run has told of; those of one that is over are kept. */
  offers: Offers = {}
  /** Whether a turn of the run has said who its agent is: one that begins with a command has not. */
  introduced = true
  /** Work that goes on, or is scheduled, beside its turns. */
  background: ReadonlyArray<Work> = []
  /** Interrupts after which what the calls have begun has not ended yet. */
  leaves = 0
  /** Open while there is nothing of that. */
  readonly quiet = new Gate(true)
  /** Calls of the turn. */
  made = 0
  /** Why agentd itself has refused the turn's newest call. */
  refused: string | undefined = undefined
  /** True where the turn is one that it has begun by itself. */
  isOwn = false
  /** True where the turn's input is a command of the agent's own, which may say nothing. */
  isCommand = false
  /** The turns that it has begun by itself: our names, by its own. */
  private readonly opened = new Map<string, string>()
  /** The run that is being ended; it takes no turn any more. */
  private endingId: string | undefined = undefined
  /** The run's words in the turn since its last tool call; words beyond the limit are left out. */
  private said = ""
  /** The end of its words, as they may be seen. */
  private shown = ""
  /** By our id. */
  private readonly origins = new Map<string, Origin>()
  /** By the run's own id; the first where it uses one twice. */
  private readonly named = new Map<string, string>()
  /** Calls that the run has made: its names for them are the same for every daemon that hears it. */
  private count = 0

  up(run: Run, turns: boolean, turnId: string, introduced = true): void {
    this.introduced = introduced
    this.run = run
    this.turns = turns
    this.give(turnId)
    this.isCommand = !introduced
  }

  get known(): KnownRun {
    const { background, count, introduced, lacks, offers, worked } = this
    return { background, count, introduced, lacks: [...lacks], offers, worked }
  }

  recalls({ background, count, introduced, lacks, offers, worked }: KnownRun): void {
    this.count = count
    this.worked = worked
    this.introduced = introduced
    this.works(background)
    for (const about of lacks) this.lacks.add(about)
    this.offer(offers)
  }

  /** Records that the turn's input is on its way to the run. */
  give(turnId: string): void {
    this.turnId = turnId
    this.said = ""
    this.shown = ""
    this.made = 0
    this.refused = undefined
    this.isOwn = false
    this.isCommand = false
    this.retries = undefined
  }

  /** The run has begun a turn by itself. */
  open(name: string, turnId: string): void {
    this.opened.clear()
    this.opened.set(name, turnId)
    this.give(turnId)
    this.isOwn = true
  }

  /** Our name for the turn of which the run tells. */
  turnOf(name: string): string {
    return this.opened.get(name) ?? name
  }

  /** All that goes on beside its turns, with what interrupted calls have begun and is being ended. */
  get beside(): ReadonlyArray<Work> {
    return this.leaves === 0
      ? this.background
      : [{ id: "interrupted", kind: "shell", text: "of an interrupted call, being ended" }, ...this.background]
  }

  works(background: ReadonlyArray<Work>): void {
    this.background = background
    if (background.length === 0) this.quiet.openUnsafe()
    else this.quiet.closeUnsafe()
  }

  end(): void {
    this.turnId = undefined
    this.retries = undefined
  }

  ending(runId: string): void {
    this.endingId = runId
  }

  isEnding(runId: string | null): boolean {
    return runId !== null && this.endingId === runId
  }

  /** True where the run takes a further turn now. */
  isFree(runId: string | null): boolean {
    const isIdle = this.turnId === undefined && !this.recalling
    return this.run?.runId === runId && this.turns && isIdle && !this.isEnding(runId)
  }

  /** Notes a trouble that goes on, or that it is over. */
  lack({ lasting }: Extract<RunEvent, { readonly _tag: "Notice" }>): void {
    if (lasting === undefined) return
    const about = Excerpt.text(lasting.about, MAX_LACK)
    if (lasting.isOver) this.lacks.delete(about)
    else if (this.lacks.size < MAX_LACKS) this.lacks.add(about)
  }

  /** Notes that it asks its model again; `text`: bounded, without secrets. */
  again({ since }: { readonly since?: number }, text: string, now: number): void {
    this.retries = { since: since ?? this.retries?.since ?? now, text }
  }

  offer({ commands, mode, models, modes }: Offers): void {
    this.offers = {
      ...this.offers,
      ...(commands === undefined ? {} : { commands }),
      ...(models === undefined ? {} : { models }),
      ...(modes === undefined ? {} : { modes }),
      ...(mode === undefined ? {} : { mode })
    }
  }

  say(text: string): void {
    if (this.said.length < MAX_SAID) this.said += text
  }

  /** Takes words in which nothing secret is left, for who looks. */
  show(text: string): void {
    this.shown = `${this.shown}${text}`.slice(-MAX_LINE)
  }

  /** Records that the run goes on to its tools: its next words are another answer. */
  pause(): void {
    this.said = ""
    this.shown = ""
  }

  /** The newest line of the answer that is whole, or its newest sentence; undefined where there is none yet. */
  get line(): string | undefined {
    const lines = this.shown.split("\n")
    const open = lines.pop() ?? ""
    const sentences = /^.*[.!?:](?=\s)/u.exec(open)?.[0]
    const line = [...lines, ...(sentences === undefined ? [] : [sentences])].findLast((text) => text.trim() !== "")
    return line?.trim()
  }

  /** The part of the answer that came, for the event that cuts it short. */
  get partial(): { readonly partialOutput?: string } {
    return this.said === "" ? {} : { partialOutput: Excerpt.text(this.said, MAX_SAID) }
  }

  gone(): void {
    this.end()
    this.run = undefined
    this.turns = false
    this.worked = false
    this.resumed = undefined
    this.recalling = false
    this.heard = undefined
    this.lacks.clear()
    this.works([])
    this.opened.clear()
    this.said = ""
    this.shown = ""
    this.origins.clear()
    this.named.clear()
    this.count = 0
  }

  /** A name of ours for a call of the run. */
  called(run: Run, call: Called, folder: string): string {
    const { arguments: input, callId: id, readOnly, tool, voice = false } = call
    const callId = `${run.runId.slice(-8)}-${++this.count}`
    this.made += 1
    this.refused = undefined
    this.origins.set(callId, { run, id, readOnly, voice, tool, input, folder })
    if (!this.named.has(id)) this.named.set(id, callId)
    return callId
  }

  /** Asks for leave under another name for a call that was taken to run; set by who hears the run. */
  late: (callId: string, asked: Extract<RunEvent, { _tag: "ApprovalRequested" }>) => Effect.Effect<void> = () =>
    Effect.void

  /** Gives the call its other name. `keep`: until the call is begun anew under that, the turn's end has to find the old one. */
  rename(callId: string, keep = false): string {
    const name = lateName(callId)
    const origin = this.origins.get(callId)
    if (origin === undefined) return name
    if (!keep) this.origins.delete(callId)
    this.origins.set(name, origin)
    if (this.named.get(origin.id) === callId) this.named.set(origin.id, name)
    return name
  }

  /** Our name for a call of the run that has no result yet. */
  callOf(run: Run, id: string): string | undefined {
    return this.run === run ? this.named.get(id) : undefined
  }

  /** Undefined: the run that made the call is over. */
  origin(callId: string): Origin | undefined {
    return this.origins.get(callId)
  }

  settled(callId: string): void {
    const origin = this.origins.get(callId)
    this.origins.delete(callId)
    if (origin !== undefined && this.named.get(origin.id) === callId) this.named.delete(origin.id)
  }

  /** Calls of the run without a result. */
  get calls(): ReadonlyArray<readonly [callId: string, origin: Origin]> {
    return [...this.origins]
  }

  /** The answering function for the call's run; undefined where that is over. */
  answerer(callId: string): ((decision: Decision) => ReturnType<Run["answer"]>) | undefined {
    const origin = this.origins.get(callId)
    return origin === undefined ? undefined : (decision) => origin.run.answer(origin.id, decision)
  }
}
