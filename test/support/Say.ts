/** Say: writes a line straight to stdout: a printed line was acknowledged, and no text waits in a buffer. */
import { writeSync } from "node:fs"

/** Waits while the pipe is full. */
export const say = (line: string): void => {
  for (let left = Buffer.from(line); left.length > 0;) {
    try {
      left = left.subarray(writeSync(1, left))
    } catch (error) {
      if ((error as { readonly code?: string }).code !== "EAGAIN") throw error
    }
  }
}
