/**
 * InputNotes: notes that are stored with the inputs of a program that the keeper holds. A note has the input's kind,
 * and how much of the program's output had been processed by then. A daemon that resumes the program reconstructs from
 * them what the earlier daemon knew.
 */
import type { Input } from "../keeper/HeldProgram.ts"

/** A note, and the bytes of output that had been processed when it was made. */
export type Noted<N> = N & { readonly at: number }

export const noteOf = <N extends object>(note: N, at: number): string => JSON.stringify({ at, ...note })

/** Undefined for the end of the input, and for a text that is not such a note. */
const parse = <N>(text: string): Noted<N> | undefined => {
  try {
    const note: Noted<N> = JSON.parse(text)
    return typeof note.at === "number" ? note : undefined
  } catch {
    return undefined
  }
}

/** The notes, in the order of the inputs. */
export const notesOf = <N>(inputs: ReadonlyArray<Input>): Array<Noted<N>> =>
  inputs.flatMap(({ note }) => parse<N>(note) ?? [])
