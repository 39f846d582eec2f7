/**
 * LineHistory: merges the notes that an earlier daemon made about a process with the output of that process. From both,
 * a daemon that resumes the process restores the state of its protocol, in the original order.
 *
 * Guarantees: lines that the protocol had to send, and that the earlier daemon had not sent yet, are kept in order.
 */
import type { RunEvent } from "../Backend.ts"
import * as InputRecords from "../process/InputRecords.ts"
import type { Before } from "../process/KeptProcess.ts"
import type { LineProtocol, Note, Said } from "./LineProtocol.ts"

export class LineHistory<N extends Note> {
  /** Bytes of output that existed when the process was resumed. */
  readonly size: number
  private readonly protocol: LineProtocol<N>
  private readonly notes: Array<InputRecords.Noted<N>>
  private replies: number
  private readonly left: Array<Said<N>> = []

  constructor({ inputs, out }: Pick<Before, "inputs" | "out">, protocol: LineProtocol<N>) {
    this.size = out
    this.protocol = protocol
    this.notes = InputRecords.notesOf<N>(inputs)
    this.replies = this.notes.filter(({ say }) => say === "reply").length
  }

  /** Repeats the inputs that an earlier daemon gave before it had handled the output up to `end`. */
  upTo(end: number): ReadonlyArray<RunEvent> {
    const events: Array<RunEvent> = []
    for (let [note] = this.notes; note !== undefined && note.at < end; [note] = this.notes) {
      this.notes.shift()
      this.protocol.recall(note)
      if (note.say === "turn" && note.turnId !== undefined) events.push({ _tag: "Given", input: note.turnId })
    }
    return events
  }

  /** Called when the protocol has a line to send. Keeps the line unless the earlier daemon had already sent it. */
  says(line: Said<N>): void {
    if (this.replies > 0) this.replies -= 1
    else this.left.push(line)
  }

  get unsaid(): ReadonlyArray<Said<N>> {
    return this.left
  }
}
