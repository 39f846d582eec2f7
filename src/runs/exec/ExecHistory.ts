/**
 * ExecHistory: merges the inputs that an earlier daemon sent to an external program with that program's output.
 *
 * Each line that was sent to the program is stored with a note: its kind, and how much of the program's output had been
 * processed when the line was sent. Guarantees: A note contains no text from the user or an agent. The stream gets all
 * inputs and outputs in their original order.
 */
import type { RunEvent } from "../Backend.ts"
import * as InputRecords from "../process/InputRecords.ts"
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
  private readonly notes: Array<InputRecords.Noted<Note>>

  constructor({ inputs, out }: Pick<Before, "inputs" | "out">, stream: ExecStream) {
    this.size = out
    this.stream = stream
    this.notes = InputRecords.notesOf<Note>(inputs)
  }

  static noteOf(note: Note, at: number): string {
    return InputRecords.noteOf(note, at)
  }

  /** Applies inputs to the stream: those that an earlier daemon sent before it had processed the output up to `end`. */
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
