/** ErrorOutput: reads a program's standard error by lines, and keeps the last ones for the words about its end. */
import type { Effect } from "effect"
import type { Line } from "../../config/LineSplitter.ts"
import type { RunEvent } from "../Backend.ts"
import * as RunProcess from "../process/RunProcess.ts"

const MAX_LINE = 16_384
const MAX_SAID = 4_096

export class ErrorOutput {
  /** The last lines that the program wrote. */
  said: string
  /** Number of bytes that have been handled, up to the end of a line. */
  taken: number

  constructor(program: RunProcess.RunProcess, said = "") {
    this.said = said
    this.taken = program.stderr.from ?? 0
  }

  /** Reads until the end. `count`: number of the program in its run. */
  read(
    program: RunProcess.RunProcess,
    count: number,
    tell: (make: () => ReadonlyArray<RunEvent>) => Effect.Effect<void>
  ): Effect.Effect<void> {
    const emit = (lines: ReadonlyArray<Line>, _: number, whole: number | undefined) => {
      this.said = [this.said, ...lines.map(({ text }) => text)]
        .filter((line) => line.trim() !== "")
        .join("\n")
        .slice(-MAX_SAID)
      return tell(() => {
        this.taken = whole ?? this.taken
        return RunProcess.errorsOf(program, count, lines)
      })
    }
    return RunProcess.drainPlaced(program.stderr, program.ended, MAX_LINE, emit)
  }
}
