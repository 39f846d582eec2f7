/**
 * ClaudeHistory: what an earlier daemon told a Claude Code process, set into what that has said.
 *
 * Each line that the process is given is noted beside it: what kind it was, and how much of the process's output had
 * been taken by then. By that a daemon that takes the process up tells its stream all that it knew,
 * in the order in which it came about.
 *
 * Guarantees: a note holds no words of a person or an agent; what the stream itself had to say, and an earlier daemon
 * had not said yet, is left over, in its order.
 */
import type { RunEvent } from "../Backend.ts"
import * as InputNotes from "../process/InputNotes.ts"
import type { Before } from "../process/KeptProcess.ts"
import type { ClaudeRecord } from "./ClaudeRecord.ts"
import type { ClaudeStream, Note } from "./ClaudeStream.ts"

export class ClaudeHistory {
  /** Bytes of output that were there when the process was taken up. */
  readonly size: number
  private readonly stream: ClaudeStream
  private readonly notes: Array<InputNotes.Noted<Note>>
  private replies: number
  private readonly left: Array<ClaudeRecord> = []
  /** The session that it was started with. */
  readonly session: string | undefined

  constructor({ inputs, out }: Pick<Before, "inputs" | "out">, stream: ClaudeStream) {
    this.size = out
    this.stream = stream
    this.notes = InputNotes.notesOf<Note>(inputs)
    this.replies = this.notes.filter(({ say }) => say === "reply").length
    this.session = this.notes.find((note) => note.say === "turn")?.session
  }

  /** The line beside an input: `at` bytes of the output had been taken. */
  static noteOf(note: Note, at: number): string {
    return InputNotes.noteOf(note, at)
  }

  /** Tells the stream what was said before its output up to there had been taken. */
  upTo(end: number): ReadonlyArray<RunEvent> {
    const events: Array<RunEvent> = []
    for (let [note] = this.notes; note !== undefined && note.at < end; [note] = this.notes) {
      this.notes.shift()
      this.stream.recall(note)
      if (note.say === "turn") events.push({ _tag: "Given", input: note.turnId })
    }
    return events
  }

  /** The stream has this to say: was it said? */
  says(record: ClaudeRecord): void {
    if (this.replies > 0) this.replies -= 1
    else this.left.push(record)
  }

  /** Records that were not said. */
  get unsaid(): ReadonlyArray<ClaudeRecord> {
    return this.left
  }
}
