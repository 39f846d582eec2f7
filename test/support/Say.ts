/** Say: a line straight to the pipe: what is printed was acknowledged, and nothing waits in a buffer. */
import { writeSync } from "node:fs"

/** A full pipe is waited for. */
export const say = (line: string): void => {
  for (let left = Buffer.from(line); left.length > 0;) {
    try {
      left = left.subarray(writeSync(1, left))
    } catch (error) {
      if ((error as { readonly code?: string }).code !== "EAGAIN") throw error
    }
  }
}
