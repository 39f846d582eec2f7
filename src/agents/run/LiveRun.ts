/**
 * LiveRun: the state of an agent's live run: its handle, its current turn, its text, the ids of its calls, and its work
 * outside of turns.
 *
 * The state is only in memory. Decisions may read it: a turn that is unknown here was lost with an earlier daemon.
 */
import { Effect } from "effect"
import type { Decision, Run, RunEvent, Work } from "../../runs/Backend.ts"
import type { AgentOptions } from "../../runs/AgentOptions.ts"
import type { UsageMeter } from "./UsageMeter.ts"
import * as LogExcerpt from "./LogExcerpt.ts"
import type { Folders } from "../../approvals/Reading.ts"
import { movedBy } from "./CallSubject.ts"
import { lateName } from "../machines/ToolsState.ts"
import { AgentLatch } from "../actors/AgentLatch.ts"
import { type RunFacts, UNKNOWN_FACTS } from "../actors/Approval.ts"

/** Maximum number of stored problems of a run that last for some time, for example a server that is down. */
const MAX_LACKS = 20
/** Maximum size of the name of such a problem of a run, bytes. */
const MAX_LACK = 100

/** How many of an answer's last characters are searched for its newest line. */
const MAX_LINE = 400

/** Maximum size of an unfinished answer that is stored, bytes. */
const MAX_SAID = 64 * 1024

const UNASKED: Pick<UsageMeter, "newest"> = { newest: { model: "", context: undefined } }

/** The data that a run has reported about one of its tool calls. */
export interface Origin {
  readonly run: Run
  /** The id that the run itself gave the call. */
  readonly id: string
  readonly readOnly: boolean
  readonly voice: boolean
  readonly tool: string
  /** The complete input, as the run reported it. */
  readonly input: unknown
  readonly folder: string
  /** Where the run's shell may have stood before the call, and behind it. */
  readonly stood: { readonly before: Folders; readonly after: Folders }
  /** The run's request for approval of the call; undefined if there was none. */
  readonly asked?: Asked
  /** Whether an earlier daemon has stored the call, and so may have decided it. */
  readonly isStored: boolean
}

type Asked = Extract<RunEvent, { _tag: "ApprovalRequested" }>

/** A run's state between two turns. A later daemon restores this state and reads the run's output from that point. */
export interface KnownRun {
  readonly count: number
  readonly worked: boolean
  readonly background: ReadonlyArray<Work>
  readonly lacks: ReadonlyArray<string>
  readonly offers: AgentOptions
  readonly introduced: boolean
  /** Absent: it is not known where the shell may stand, as a daemon of an earlier version does not tell it. */
  readonly folders?: Folders
  readonly facts?: RunFacts
}

type Called = Pick<Extract<RunEvent, { _tag: "ToolCall" }>, "arguments" | "callId" | "readOnly" | "tool" | "voice">

export class LiveRun {
  /** Set after the run has reported its start. */
  run: Run | undefined = undefined
  /** True if the run can have several turns. */
  turns = false
  /** Facts of the run since its start. */
  facts = UNKNOWN_FACTS
  /** The turn that the run is working on: the run has received the turn's input and has not ended the turn. */
  turnId: string | undefined = undefined
  /** True if a turn of the run got an answer. */
  worked = false
  /** The turn that was open when this daemon adopted the run. */
  resumed: string | undefined = undefined
  /** True while this daemon reads events that an earlier daemon has already read. */
  recalling = false
  /** When the run's newest event arrived, ms since the epoch, and its text if it was a notice. */
  heard: { readonly at: number; readonly notice?: string } | undefined = undefined
  /**
   * Set while the run retries a request to its model. `since`: start of the retries, ms since the epoch. `text`: the
   * newest notice.
   */
  retries: { readonly since: number; readonly text: string } | undefined = undefined
  /** The model of the newest request, as the run names it, and how much of its context window is used. */
  meter: Pick<UsageMeter, "newest"> = UNASKED
  /** The preparation that is being done in the agent's worktree before its run, and since when, ms since the epoch. */
  preparing: { readonly text: string; readonly since: number } | undefined = undefined
  /** Names of the run's current problems, for example a server that is down. */
  readonly lacks = new Set<string>()
  /** Models, modes and commands that the newest run reported. They are kept after the run's end. */
  offers: AgentOptions = {}
  /** True if a turn of the run has introduced the agent. A slash command does not introduce it. */
  introduced = true
  /** The run's background work: work that continues, or is scheduled, outside of turns. */
  background: ReadonlyArray<Work> = []
  /** Number of interrupted turns whose calls still have processes to end. */
  leaves = 0
  /** Open if there is no background work. */
  readonly quiet = new AgentLatch(true)
  /** Number of calls that the current turn has made. */
  made = 0
  /** Why agentd itself refused the turn's newest call; undefined if it did not. */
  refused: string | undefined = undefined
  /** True if the run started the current turn by itself. */
  isOwn = false
  /** True if the turn's input is a slash command, for which an empty answer is normal. */
  isCommand = false
  /** Turns that the run started by itself: agentd's turn id, by the run's own turn id. */
  private readonly opened = new Map<string, string>()
  /** Id of a run that is being ended, and therefore gets no more turns. */
  private endingId: string | undefined = undefined
  /** Text of the turn since its last tool call, up to a limit. */
  private said = ""
  /** The end of the run's text, redacted. */
  private shown = ""
  /** Open calls, by agentd's call id. */
  private readonly origins = new Map<string, Origin>()
  /** agentd's call ids, by the run's own call ids. If the run uses an id twice, the first call is found. */
  private readonly named = new Map<string, string>()
  /** Where the run's shell may stand, relative to the start: the end of each call that has moved it. */
  private folders: Folders = [""]
  /** Number of calls of the run. Call ids are derived from it, so that a later daemon derives the same ids. */
  private count = 0

  /** Records the first event of a run. */
  begins(isAdopted: boolean, facts = UNKNOWN_FACTS): void {
    this.facts = facts
    this.recalling = isAdopted
  }

  up(run: Run, turns: boolean, turnId: string, introduced = true): void {
    this.introduced = introduced
    this.run = run
    this.turns = turns
    this.give(turnId)
    this.isCommand = !introduced
  }

  get known(): KnownRun {
    const { background, count, facts, folders, introduced, lacks, offers, worked } = this
    return { background, count, facts, folders, introduced, lacks: [...lacks], offers, worked }
  }

  recalls({ background, count, facts, folders, introduced, lacks, offers, worked }: KnownRun): void {
    this.facts = facts ?? UNKNOWN_FACTS
    this.folders = folders
    this.count = count
    this.worked = worked
    this.introduced = introduced
    this.works(background)
    for (const about of lacks) this.lacks.add(about)
    this.offer(offers)
  }

  /** Records that the turn's input is being sent to the run. */
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

  /** Records a turn that the run started by itself. */
  open(name: string, turnId: string): void {
    this.opened.clear()
    this.opened.set(name, turnId)
    this.give(turnId)
    this.isOwn = true
  }

  /** Returns agentd's id for a turn that the run names. */
  turnOf(name: string): string {
    return this.opened.get(name) ?? name
  }

  /** All background work, including the processes of interrupted calls that are being ended. */
  get beside(): ReadonlyArray<Work> {
    return this.leaves === 0
      ? this.background
      : [
          { id: "interrupted", kind: "shell", text: "processes of an interrupted call, being ended" },
          ...this.background
        ]
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

  isFree(runId: string | null): boolean {
    const isIdle = this.turnId === undefined && !this.recalling
    return this.run?.runId === runId && this.turns && isIdle && !this.isEnding(runId)
  }

  /** Records that a problem of the run has begun or ended. */
  lack({ lasting }: Extract<RunEvent, { readonly _tag: "Notice" }>): void {
    if (lasting === undefined) return
    const about = LogExcerpt.text(lasting.about, MAX_LACK)
    if (lasting.isOver) this.lacks.delete(about)
    else if (this.lacks.size < MAX_LACKS) this.lacks.add(about)
  }

  /** Records that the run retries a request to its model. `text`: the notice, limited in length and redacted. */
  again({ since }: { readonly since?: number }, text: string, now: number): void {
    this.retries = { since: since ?? this.retries?.since ?? now, text }
  }

  offer({ commands, mode, models, modes }: AgentOptions): void {
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

  /** Adds redacted text, which is shown to users. */
  show(text: string): void {
    const all = `${this.shown}${text}`
    // a text that is cut begins at its next sentence or line, else at its next word
    this.shown =
      all.length <= MAX_LINE ? all : all.slice(-MAX_LINE).replace(/^(?:[^\n]*?[.!?:](?=\s)|[^\n]*(?=\n)|\S*\s)/u, "")
  }

  /** Records that the run now waits for its tools: text that follows belongs to another answer. */
  pause(): void {
    this.said = ""
    this.shown = ""
  }

  /** The newest complete line of the answer, or its newest sentence; undefined if there is none yet. */
  get line(): string | undefined {
    const lines = this.shown.split("\n")
    const open = lines.pop() ?? ""
    const sentences = /^.*[.!?:](?=\s)/u.exec(open)?.[0]
    const line = [...lines, ...(sentences === undefined ? [] : [sentences])].findLast((text) => text.trim() !== "")
    return line?.trim()
  }

  /** The answer so far. Used if an event ends the turn before the answer is complete. */
  get partial(): { readonly partialOutput?: string } {
    return this.said === "" ? {} : { partialOutput: LogExcerpt.text(this.said, MAX_SAID) }
  }

  gone(): void {
    this.end()
    this.run = undefined
    this.turns = false
    this.facts = UNKNOWN_FACTS
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
    this.folders = [""]
  }

  /** Records a call of the run, and returns agentd's id for the call. */
  called(run: Run, call: Called, folder: string, isStored = false): string {
    const { arguments: input, callId: id, readOnly, tool, voice = false } = call
    const callId = `${run.runId.slice(-8)}-${++this.count}`
    this.made += 1
    this.refused = undefined
    const before = this.folders
    this.folders = movedBy(call, folder, before)
    const stood = { before, after: this.folders }
    this.origins.set(callId, { run, id, readOnly, voice, tool, input, folder, stood, isStored })
    if (!this.named.has(id)) this.named.set(id, callId)
    return callId
  }

  /** Requests approval under a new id for a call that was recorded as running. Set by RunEvents. */
  late: (callId: string, asked: Asked) => Effect.Effect<void> = () => Effect.void

  /** Keeps the run's request for approval, with which the call is decided again when a rule is added. */
  asks(callId: string, asked: Asked): void {
    const origin = this.origins.get(callId)
    if (origin !== undefined) this.origins.set(callId, { ...origin, asked })
  }

  /**
   * Gives a call the new id for its late request for approval. `keep`: also keeps the old id, so that the turn's end
   * can find the old call until the new call is recorded.
   */
  rename(callId: string, keep = false): string {
    const name = lateName(callId)
    const origin = this.origins.get(callId)
    if (origin === undefined) return name
    if (!keep) this.origins.delete(callId)
    this.origins.set(name, { ...origin, isStored: origin.isStored && !keep })
    if (this.named.get(origin.id) === callId) this.named.set(origin.id, name)
    return name
  }

  /** Returns agentd's id of a call that has no result yet. `id`: the run's own id. */
  callOf(run: Run, id: string): string | undefined {
    return this.run === run ? this.named.get(id) : undefined
  }

  /** The data that the run reported about an open call; undefined if the run has ended. */
  origin(callId: string): Origin | undefined {
    return this.origins.get(callId)
  }

  /** Where the shell may stand as an open call begins: a later call may have moved it while the call waits. */
  standsAt(callId: string): Folders {
    const { after, before } = this.origins.get(callId)?.stood ?? {}
    return this.folders === after ? before : this.folders
  }

  settled(callId: string): void {
    const origin = this.origins.get(callId)
    this.origins.delete(callId)
    if (origin !== undefined && this.named.get(origin.id) === callId) this.named.delete(origin.id)
  }

  /** Calls of the run that have no result yet. */
  get calls(): ReadonlyArray<readonly [callId: string, origin: Origin]> {
    return [...this.origins]
  }

  /** Returns a function that sends the decision on a call to the run of the call; undefined if that run has ended. */
  answerer(callId: string): ((decision: Decision) => ReturnType<Run["answer"]>) | undefined {
    const origin = this.origins.get(callId)
    return origin === undefined ? undefined : (decision) => origin.run.answer(origin.id, decision)
  }
}
