/**
 * InputRecords: notes that are stored with the inputs of a program that the keeper holds. A note contains the input's
 * kind, and how much of the program's output had been processed when the input was sent. From these notes, a daemon
 * that resumes the program reconstructs the state of the earlier daemon.
 */
import type { Input } from "../keeper/KeeperProgram.ts"

/** A note with its time. `at`: number of output bytes that had been processed when the note was made. */
export type Noted<N> = N & { readonly at: number }

export const noteOf = <N extends object>(note: N, at: number): string => JSON.stringify({ at, ...note })

/** Parses a note; undefined for the end of the input, and for text that is no note. */
const parse = <N>(text: string): Noted<N> | undefined => {
  try {
    const note: Noted<N> = JSON.parse(text)
    return typeof note.at === "number" ? note : undefined
  } catch {
    return undefined
  }
}

/** Notes in the order of the inputs. */
export const notesOf = <N>(inputs: ReadonlyArray<Input>): Array<Noted<N>> =>
  inputs.flatMap(({ note }) => parse<N>(note) ?? [])
