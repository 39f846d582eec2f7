/**
 * Contract: what a backend promises of its runs (Backend.ts), held against what it tells and against
 * what the run's program said: turns begin and end once, calls are told before anything is said of
 * them, answers come to the call that asked, nothing that was said is lost, doubled or mixed.
 */
import type { Decision, RunEvent, RunSpec } from "../../../src/runs/Backend.ts"
import { CONTINUED } from "../../../src/config/LineSplitter.ts"
import type { Machine } from "../world/Machine.ts"
import type { AgentProcess } from "../world/Processes.ts"
import type { Check, Verdicts } from "./Check.ts"

interface Call {
  asked: boolean
  done: boolean
}

/** The told part of a turn, by its agent. */
interface Said {
  text: string
  tokens: number
  output: string | undefined
}

interface Book {
  readonly of: RunSpec
  readonly backend: string
  readonly calls: Map<string, Call>
  /** Given, and not begun. */
  readonly given: Set<string>
  /** Begun, and not ended. */
  turn: string | undefined
  /** Begun by the run itself: a turn that it is given meanwhile takes it in. */
  isOwn: boolean
  isUp: boolean
  hasExited: boolean
  /** The told text and tokens of the turn. */
  text: string
  tokens: number
  /** Decisions that the program has not heard, by the program's name of the call. */
  readonly decided: Map<string, Array<boolean>>
  /** Lines that were told of a command's output, as they were written. */
  lines: string
}

const isEnd = (event: RunEvent) =>
  event._tag === "TurnCompleted" || event._tag === "TurnInterrupted" || event._tag === "TurnError"

/** Whether a call before the given turn begins is of a turn of Claude Code's own, which the given one takes in. */
const takesIn = ({ backend, given, isUp }: Book): boolean => backend === "claude" && isUp && given.size > 0

export class Contract implements Check {
  private readonly verdicts: Verdicts
  private readonly isAlive: (runId: string) => boolean
  private readonly books = new Map<string, Book>()
  private readonly said_ = new Map<string, Said>()
  /** Output of commands on their standard output. */
  private readonly written = new Map<string, Array<Uint8Array>>()
  private readonly liars = new Set<string>()
  /** Runs of which the machine has lost a part of what they wrote. */
  private readonly torn = new Set<string>()
  private readonly recordeds = new Set<string>()
  /** Processes that agents have started, and that can be found. */
  left: Machine["left"] = () => []

  constructor(verdicts: Verdicts, isAlive: (runId: string) => boolean) {
    this.verdicts = verdicts
    this.isAlive = isAlive
  }

  private broken(promise: string, { of }: Book, detail: string): void {
    this.verdicts.broken(promise, `${of.agent}: run ${of.runId}: ${detail}`)
  }

  // What the program does.

  spawned({ agent, isLiar, runId }: AgentProcess): void {
    const left = this.left((other) => other.agent === agent && other.runId !== runId)
    if (left.length > 0)
      this.verdicts.broken("nothing is left of a run when the next begins", `${agent}: ${left.join()}`)
    if (isLiar) this.liars.add(runId)
  }

  said({ turnId }: AgentProcess, event: RunEvent): void {
    const of = event._tag === "TurnCompleted" ? event.turnId : turnId
    if (of === undefined) return
    const said = this.said_.get(of) ?? { text: "", tokens: 0, output: undefined }
    this.said_.set(of, said)
    if (event._tag === "Delta") said.text += event.text
    if (event._tag === "Usage") said.tokens += event.inputTokens + event.outputTokens
    if (event._tag === "TurnCompleted") said.output = event.output
  }

  seen(what: string): void {
    this.verdicts.sometimes(what)
  }

  /** A process that is no run's had a signal. */
  struck(pid: number, signal: string): void {
    this.verdicts.broken("only processes of runs are ended", `${signal} to ${pid}`)
  }

  /** To its standard output. */
  wrote({ runId }: AgentProcess, bytes: Uint8Array): void {
    if (this.books.get(runId)?.backend === "command")
      this.written.set(runId, [...(this.written.get(runId) ?? []), bytes])
  }

  /** Takes an answer that the process has heard. */
  heard({ runId }: AgentProcess, callId: string, allowed: boolean): void {
    const book = this.books.get(runId)
    if (book === undefined || book.backend === "command") return
    const decided = book.decided.get(callId) ?? []
    const at = decided.indexOf(allowed)
    if (at >= 0) decided.splice(at, 1)
    // what nobody was asked is denied
    else if (allowed) this.broken("what is allowed somebody has allowed, once", book, `${callId}: ${decided.join()}`)
    this.verdicts.sometimes(`an answer is heard by ${book.backend}`)
  }

  // What the backend is asked, and what it tells.

  started(backend: string, of: RunSpec): void {
    this.books.set(of.runId, {
      of,
      backend,
      calls: new Map(),
      given: new Set([of.turnId]),
      turn: undefined,
      isOwn: false,
      isUp: false,
      hasExited: false,
      text: "",
      tokens: 0,
      // what an earlier daemon has decided may be on its way
      decided: this.books.get(of.runId)?.decided ?? new Map(),
      lines: ""
    })
  }

  sent(runId: string, turnId: string): void {
    this.books.get(runId)?.given.add(turnId)
  }

  decided(runId: string, callId: string, { behavior }: Decision): void {
    const name = callId.replace(/#\d+$/, "")
    const decided = this.books.get(runId)?.decided
    decided?.set(name, [...(decided.get(name) ?? []), behavior === "allow"])
  }

  /** A power cut has taken what was on no disk yet. */
  tore(runId: string): void {
    this.torn.add(runId)
  }

  /** A keeper has the exit of the run's program for good. */
  recorded(runId: string): void {
    this.recordeds.add(runId)
  }

  /** Nobody has watched a run for longer than it may work alone. */
  outlived({ agent, runId }: AgentProcess): void {
    this.verdicts.broken("no run works on beyond its lease", `${agent}: ${runId}`)
  }

  told(runId: string, event: RunEvent): void {
    const book = this.books.get(runId)
    if (book === undefined || this.torn.has(runId)) return
    this.verdicts.sometimes(`${book.backend} tells ${event._tag}`)
    if (book.hasExited) this.broken("an exit is the last that is told", book, event._tag)
    if (isEnd(event)) return this.ended(book, event)
    switch (event._tag) {
      case "Started":
        if (book.isUp) this.broken("a run starts once", book, String(event.sessionId))
        book.isUp = true
        return
      case "TurnStarted":
        if ((book.turn !== undefined && !book.isOwn) || !book.given.delete(event.turnId))
          this.broken("a turn begins once", book, `${event.turnId}, in ${book.turn}`)
        book.turn = event.turnId
        book.isOwn = false
        book.text = ""
        book.tokens = 0
        return
      case "Delta":
        if (event.stream === "assistant") book.text += event.text
        if (event.stream === "stdout")
          book.lines += event.text.endsWith(CONTINUED) ? event.text.slice(0, -CONTINUED.length) : `${event.text}\n`
        return
      case "Usage":
        book.tokens += event.inputTokens + event.outputTokens
        if (!(event.inputTokens >= 0 && event.outputTokens >= 0))
          this.broken("what is spent is a number", book, JSON.stringify(event))
        return
      case "Given":
        return void book.given.add(event.input)
      case "Exited":
        if (event.outcome._tag === "Uncounted" && event.outcome.reason === "lost" && this.recordeds.has(runId))
          this.broken("an exit that is recorded is known", book, "it is called lost")
        return this.exited(book)
      case "TurnOpened":
        if (book.turn !== undefined) this.broken("a turn begins once", book, `${event.turnId}, in ${book.turn}`)
        book.turn = event.turnId
        book.isOwn = true
        book.text = ""
        book.tokens = 0
        return
      case "MemoryLost":
      case "Background":
      case "Offers":
      case "Compacted":
      case "Notice":
      case "Resumed":
      case "Recalled":
      case "Reached":
      case "Windows":
      case "Passed":
      case "GoesOn":
        return
      default:
        return this.called(book, event)
    }
  }

  private called(book: Book, event: Extract<RunEvent, { readonly callId: string }>): void {
    const { callId } = event
    const call = book.calls.get(callId)
    if (event._tag === "ToolCall") {
      if (call !== undefined) this.broken("a call is told once", book, callId)
      if (book.turn === undefined && !takesIn(book)) this.broken("a call is of a turn", book, callId)
      book.calls.set(callId, { asked: false, done: false })
      return
    }
    if (call === undefined) return this.broken("a call is told before all of it", book, `${event._tag} ${callId}`)
    if (call.done) this.broken("a call's result is the last of it", book, `${event._tag} ${callId}`)
    if (event._tag === "ApprovalRequested") {
      if (call.asked) this.broken("a call asks once", book, callId)
      call.asked = true
    }
    if (event._tag === "ToolResult") call.done = true
  }

  private ended(book: Book, event: RunEvent): void {
    const { turnId } = event as { readonly turnId: string }
    if (book.turn !== turnId) this.broken("a turn that has begun ends once", book, `${turnId}, in ${book.turn}`)
    book.turn = undefined
    if (event._tag !== "TurnCompleted" || this.liars.has(book.of.runId)) return
    const said = this.said_.get(turnId)
    if (said?.output !== event.output)
      this.broken("an answer is what its agent said", book, `${turnId}: ${said?.output} became ${event.output}`)
    if (said === undefined) return
    if (!book.text.startsWith(said.text))
      this.broken("what an agent says is told once, in order", book, `${turnId}: ${said.text} became ${book.text}`)
    if (book.tokens > said.tokens)
      this.broken("no more is told than was spent", book, `${turnId}: ${said.tokens} became ${book.tokens}`)
  }

  private exited(book: Book): void {
    const { runId } = book.of
    book.hasExited = true
    if (book.turn !== undefined) this.broken("a turn that has begun ends once", book, `${book.turn} has no end`)
    if (this.isAlive(runId)) this.broken("an exit is told when all of the run is gone", book, "it lives")
    const left = this.left((other) => other.runId === runId)
    if (left.length > 0) this.broken("an exit is told when all of the run is gone", book, `${left.join()} are left`)
    if (book.backend === "command") this.printed(book)
  }

  /** A command's lines are what it wrote. */
  private printed(book: Book): void {
    const text = new TextDecoder().decode(Buffer.concat(this.written.get(book.of.runId) ?? []))
    const lines = text.replaceAll("\r\n", "\n")
    const expected = lines === "" || lines.endsWith("\n") ? lines : `${lines}\n`
    // one that was taken up is heard from its last point on
    if (book.of.adopt === undefined ? expected === book.lines : expected.endsWith(book.lines)) return
    const at = [...expected].findIndex((_, index) => expected[index] !== book.lines[index])
    const near = (all: string) => JSON.stringify(all.slice(Math.max(0, at - 20), at + 40))
    this.broken("a command's lines are what it wrote", book, `at ${at}: ${near(expected)} became ${near(book.lines)}`)
  }
}
