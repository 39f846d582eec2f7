/**
 * ExecHistory: merges what an earlier daemon told an external program into that program's output.
 *
 * Each line that was sent to the program has a note: its kind, and how much of the program's output had been processed
 * by then. Guarantees: A note contains no text of a person or an agent. The stream gets everything in its original
 * order.
 */
import type { RunEvent } from "../Backend.ts"
import * as InputNotes from "../process/InputNotes.ts"
import type { Before } from "../process/KeptProcess.ts"
import type { ExecStream } from "./ExecStream.ts"

export type Note =
  | { readonly say: "start" | "interrupt" | "end" }
  | { readonly say: "turn"; readonly turnId: string }
  | { readonly say: "answer"; readonly callId: string }

export class ExecHistory {
  /** Bytes of output that existed when the program was resumed. */
  readonly size: number
  private readonly stream: ExecStream
  private readonly notes: Array<InputNotes.Noted<Note>>

  constructor({ inputs, out }: Pick<Before, "inputs" | "out">, stream: ExecStream) {
    this.size = out
    this.stream = stream
    this.notes = InputNotes.notesOf<Note>(inputs)
  }

  static noteOf(note: Note, at: number): string {
    return InputNotes.noteOf(note, at)
  }

  /** Tells the stream what was sent before the output up to `end` was processed. */
  upTo(end: number): ReadonlyArray<RunEvent> {
    const events: Array<RunEvent> = []
    for (let [note] = this.notes; note !== undefined && note.at < end; [note] = this.notes) {
      this.notes.shift()
      if (note.say === "interrupt") this.stream.interrupt()
      if (note.say === "answer") this.stream.answer(note.callId)
      if (note.say !== "turn") continue
      this.stream.give(note.turnId)
      events.push({ _tag: "Given", input: note.turnId })
    }
    return events
  }
}
