/**
 * ClaudeProtocol: Claude Code's records as a LineProtocol. ClaudeStream computes their meaning; this file turns records
 * into lines and back, adds notes for a later daemon, and converts files to the form of the model's API.
 */
import type { Decision } from "../Backend.ts"
import * as FileContents from "../FileContents.ts"
import type { End, Heard, Input, LineProtocol, Said } from "../line/LineProtocol.ts"
import type { ExitStatus } from "../process/ChildProcess.ts"
import * as ClaudeFault from "./ClaudeFault.ts"
import { type ClaudeRecord, parse } from "./ClaudeRecord.ts"
import { ClaudeStream, type KnownStream, type Note } from "./ClaudeStream.ts"

/** The name of each file comes before its content. Claude Code passes the content on to the model unchanged. */
const blocksOf = ({ found, gone }: FileContents.Contents): ReadonlyArray<ClaudeRecord> => [
  ...found.flatMap((content): ReadonlyArray<ClaudeRecord> => {
    const name = { type: "text", text: `${content.label}:` }
    const { type } = content
    if (FileContents.isText(content)) {
      const source = { type: "text", media_type: type, data: FileContents.textOf(content) }
      return [name, { type: "document", title: content.label, source }]
    }
    const source = { type: "base64", media_type: type, data: FileContents.base64Of(content) }
    return [name, { type: FileContents.isImage(content) ? "image" : "document", source }]
  }),
  ...gone.map((text) => ({ type: "text", text }))
]

const said = (record: ClaudeRecord | undefined, note: Note): ReadonlyArray<Said<Note>> =>
  record === undefined ? [] : [{ text: JSON.stringify(record), note }]

export class ClaudeProtocol implements LineProtocol<Note> {
  private readonly opened: string
  private readonly stream: ClaudeStream

  /**
   * Creates the protocol of a process. `opened`: id of the session that the process was started with. `servers`: MCP
   * servers that agentd provides to the run.
   */
  constructor(pid: number, opened: string, servers: ReadonlyArray<string>, known: KnownStream | undefined) {
    this.opened = opened
    this.stream = new ClaudeStream(pid, servers, known)
  }

  get session() {
    return this.stream.session
  }

  get turnId() {
    return this.stream.turnId
  }

  get isGiven() {
    return this.stream.given
  }

  get isInterrupted() {
    return this.stream.interrupted
  }

  get isUp() {
    return this.stream.isUp
  }

  get isIdle() {
    return this.stream.idle
  }

  get waits() {
    return this.stream.waits
  }

  get fault() {
    return this.stream.fault
  }

  get known() {
    return this.stream.known
  }

  take(line: string, now: number): Heard<Note> | undefined {
    const record = parse(line)
    if (record === undefined) return undefined
    const { events, says } = this.stream.take(record, now)
    return { events, says: says.flatMap((one) => said(one, { say: "reply" })) }
  }

  opening(): ReadonlyArray<Said<Note>> {
    return []
  }

  give({ files, text, turnId, uuid }: Input) {
    const record = this.stream.give(turnId, uuid, text, blocksOf(files))
    return said(record, { say: "turn", turnId, uuid, session: this.opened })
  }

  interrupt() {
    return said(this.stream.interrupt(), { say: "interrupt" })
  }

  answer(callId: string, decision: Decision) {
    return said(this.stream.answer(callId, decision), { say: "answer", callId, behavior: decision.behavior })
  }

  forget(callId: string) {
    this.stream.forget(callId)
  }

  choose(kind: "model" | "mode", name: string, answered: (refusal: string | undefined) => void) {
    return said(this.stream.choose(kind, name, answered), { say: "request" })
  }

  settle() {
    return this.stream.settle()
  }

  end(end: End) {
    return this.stream.end(end)
  }

  recall(note: Note) {
    this.stream.recall(note)
  }

  birth(status: ExitStatus, last: string) {
    return ClaudeFault.birthOf(status, `${last}\n${this.stream.complaint}`)
  }
}
