/**
 * LiveRun: the state of an agent's live run: its handle, whether it takes turns, its current turn, its words, the ids
 * of its calls, and its work outside its turns.
 *
 * In memory only, and a hint for decisions: a turn that is unknown here was lost with an earlier daemon.
 */
import { Effect } from "effect"
import type { Decision, Run, RunEvent, Work } from "../../runs/Backend.ts"
import type { Offers } from "../../runs/Offers.ts"
import type { UsageMeter } from "./UsageMeter.ts"
import * as Excerpt from "./Excerpt.ts"
import { lateName } from "../machines/ToolsState.ts"
import { Gate } from "../actors/Gate.ts"

/** Maximum number of lasting troubles. */
const MAX_LACKS = 20
/** Maximum size of a trouble's name, bytes. */
const MAX_LACK = 100

/** Number of last characters that are searched for the newest line of an answer. */
const MAX_LINE = 400

/** Maximum stored size of an unfinished answer, bytes. */
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
  /** The whole input, as the run reported it. */
  readonly input: unknown
  readonly folder: string
}

/** State of a run between its turns, for a daemon that reads the run's output from there. */
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
  /** Set when the run has reported its start. */
  run: Run | undefined = undefined
  /** Whether the run takes several turns, one after the other. */
  turns = false
  /** The turn whose input the run has received and that has not ended. */
  turnId: string | undefined = undefined
  /** True if a turn of the run has got its answer. */
  worked = false
  /** The turn that the run was in when this daemon adopted it. */
  resumed: string | undefined = undefined
  /** True while the events that an earlier daemon read are read again. */
  recalling = false
  /** The newest event of the run: its time, ms since the epoch, and its text if it was a notice. */
  heard: { readonly at: number; readonly notice?: string } | undefined = undefined
  /** Set while the run retries a request to its model: since when, ms since the epoch, and its newest notice. */
  retries: { readonly since: number; readonly text: string } | undefined = undefined
  /** The model of the newest request, as the run names it, and how full the context is. */
  meter: Pick<UsageMeter, "newest"> = UNASKED
  /** Names of what the run lacks while a trouble lasts. */
  readonly lacks = new Set<string>()
  /** The models, modes and commands that the newest run reported. They remain after the run has ended. */
  offers: Offers = {}
  /** Whether a turn of the run has told the agent who it is. A slash command does not. */
  introduced = true
  /** Work that continues, or is scheduled, outside the turns. */
  background: ReadonlyArray<Work> = []
  /** Number of interrupts after which processes of calls are still being ended. */
  leaves = 0
  /** Open while there is no background work. */
  readonly quiet = new Gate(true)
  /** Number of calls of the turn. */
  made = 0
  /** Why agentd itself refused the turn's newest call; undefined if it did not. */
  refused: string | undefined = undefined
  /** True if the run began the turn by itself. */
  isOwn = false
  /** True if the turn's input is a slash command, which may produce no words. */
  isCommand = false
  /** The turns that the run began by itself: agentd's ids, by the run's own. */
  private readonly opened = new Map<string, string>()
  /** The run that is being ended; it takes no more turns. */
  private endingId: string | undefined = undefined
  /** The run's words in the turn since its last tool call; words beyond the limit are dropped. */
  private said = ""
  /** The end of the run's words, redacted. */
  private shown = ""
  /** By agentd's id of the call. */
  private readonly origins = new Map<string, Origin>()
  /** By the run's own id; the first call if the run uses an id twice. */
  private readonly named = new Map<string, string>()
  /** Number of calls of the run. Call ids derive from it, so that every daemon derives the same ids. */
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

  /** Records a turn that the run began by itself. */
  open(name: string, turnId: string): void {
    this.opened.clear()
    this.opened.set(name, turnId)
    this.give(turnId)
    this.isOwn = true
  }

  /** agentd's id of a turn that the run names. */
  turnOf(name: string): string {
    return this.opened.get(name) ?? name
  }

  /** All work outside the turns, including processes of interrupted calls that are being ended. */
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

  /** Whether the run can take a further turn now. */
  isFree(runId: string | null): boolean {
    const isIdle = this.turnId === undefined && !this.recalling
    return this.run?.runId === runId && this.turns && isIdle && !this.isEnding(runId)
  }

  /** Records that a lasting trouble began or ended. */
  lack({ lasting }: Extract<RunEvent, { readonly _tag: "Notice" }>): void {
    if (lasting === undefined) return
    const about = Excerpt.text(lasting.about, MAX_LACK)
    if (lasting.isOver) this.lacks.delete(about)
    else if (this.lacks.size < MAX_LACKS) this.lacks.add(about)
  }

  /** Records that the run retries a request to its model. `text`: bounded and redacted. */
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

  /** Takes redacted words, for people who watch. */
  show(text: string): void {
    this.shown = `${this.shown}${text}`.slice(-MAX_LINE)
  }

  /** Records that the run waits for its tools: its next words are another answer. */
  pause(): void {
    this.said = ""
    this.shown = ""
  }

  /** The newest whole line of the answer, or its newest sentence; undefined if there is none yet. */
  get line(): string | undefined {
    const lines = this.shown.split("\n")
    const open = lines.pop() ?? ""
    const sentences = /^.*[.!?:](?=\s)/u.exec(open)?.[0]
    const line = [...lines, ...(sentences === undefined ? [] : [sentences])].findLast((text) => text.trim() !== "")
    return line?.trim()
  }

  /** The part of the answer so far, for the event that cuts it short. */
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

  /** Creates agentd's id for a call of the run. */
  called(run: Run, call: Called, folder: string): string {
    const { arguments: input, callId: id, readOnly, tool, voice = false } = call
    const callId = `${run.runId.slice(-8)}-${++this.count}`
    this.made += 1
    this.refused = undefined
    this.origins.set(callId, { run, id, readOnly, voice, tool, input, folder })
    if (!this.named.has(id)) this.named.set(id, callId)
    return callId
  }

  /** Requests approval under another id for a call that was considered running; set by RunEvents. */
  late: (callId: string, asked: Extract<RunEvent, { _tag: "ApprovalRequested" }>) => Effect.Effect<void> = () =>
    Effect.void

  /**
   * Gives the call its other id. `keep`: also keeps the old id, so that the turn's end finds it until the new call
   * begins.
   */
  rename(callId: string, keep = false): string {
    const name = lateName(callId)
    const origin = this.origins.get(callId)
    if (origin === undefined) return name
    if (!keep) this.origins.delete(callId)
    this.origins.set(name, origin)
    if (this.named.get(origin.id) === callId) this.named.set(origin.id, name)
    return name
  }

  /** agentd's id of a call of the run that has no result yet. */
  callOf(run: Run, id: string): string | undefined {
    return this.run === run ? this.named.get(id) : undefined
  }

  /** Undefined if the run that made the call has ended. */
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

  /** The function that answers the call's run; undefined if the run has ended. */
  answerer(callId: string): ((decision: Decision) => ReturnType<Run["answer"]>) | undefined {
    const origin = this.origins.get(callId)
    return origin === undefined ? undefined : (decision) => origin.run.answer(origin.id, decision)
  }
}
