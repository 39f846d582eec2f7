/**
 * ClaudeHistory: merges the notes that an earlier daemon made about a Claude Code process with the output of that
 * process.
 *
 * Each line sent to the process is stored with a note: its kind, and how many bytes of output had been handled at that
 * time. From these notes, a daemon that resumes the process restores the stream's state, in the original order.
 *
 * Guarantees: a note contains no text written by the user or an agent. Records that the stream had to send, and that
 * the earlier daemon had not sent yet, are kept in order.
 */
import type { RunEvent } from "../Backend.ts"
import * as InputRecords from "../process/InputRecords.ts"
import type { Before } from "../process/KeptProcess.ts"
import type { ClaudeRecord } from "./ClaudeRecord.ts"
import type { ClaudeStream, Note } from "./ClaudeStream.ts"

export class ClaudeHistory {
  /** Bytes of output that existed when the process was resumed. */
  readonly size: number
  private readonly stream: ClaudeStream
  private readonly notes: Array<InputRecords.Noted<Note>>
  private replies: number
  private readonly left: Array<ClaudeRecord> = []
  /** Id of the session that the process was started with. */
  readonly session: string | undefined

  constructor({ inputs, out }: Pick<Before, "inputs" | "out">, stream: ClaudeStream) {
    this.size = out
    this.stream = stream
    this.notes = InputRecords.notesOf<Note>(inputs)
    this.replies = this.notes.filter(({ say }) => say === "reply").length
    this.session = this.notes.find((note) => note.say === "turn")?.session
  }

  /** Formats a note. `at`: number of output bytes that had been handled. */
  static noteOf(note: Note, at: number): string {
    return InputRecords.noteOf(note, at)
  }

  /** Replays the notes that an earlier daemon wrote while it handled the output up to `end`. */
  upTo(end: number): ReadonlyArray<RunEvent> {
    const events: Array<RunEvent> = []
    for (let [note] = this.notes; note !== undefined && note.at < end; [note] = this.notes) {
      this.notes.shift()
      this.stream.recall(note)
      if (note.say === "turn") events.push({ _tag: "Given", input: note.turnId })
    }
    return events
  }

  /** Called when the stream has a record to send. Keeps the record unless the earlier daemon had already sent it. */
  says(record: ClaudeRecord): void {
    if (this.replies > 0) this.replies -= 1
    else this.left.push(record)
  }

  get unsaid(): ReadonlyArray<ClaudeRecord> {
    return this.left
  }
}
