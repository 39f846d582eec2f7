/**
 * InputNotes: the notes beside the inputs of a kept program: what kind each was, and how much of the program's output
 * had been taken by then. Of them a daemon that takes the program up makes what an earlier one knew.
 */
import type { Input } from "../keeper/HeldProgram.ts"

/** A note, and the bytes of output that had been taken when it was made. */
export type Noted<N> = N & { readonly at: number }

export const noteOf = <N extends object>(note: N, at: number): string => JSON.stringify({ at, ...note })

/** Undefined for the end of the input, and for what no daemon of ours has written. */
const parse = <N>(text: string): Noted<N> | undefined => {
  try {
    const note: Noted<N> = JSON.parse(text)
    return typeof note.at === "number" ? note : undefined
  } catch {
    return undefined
  }
}

/** In the order of the inputs. */
export const notesOf = <N>(inputs: ReadonlyArray<Input>): Array<Noted<N>> =>
  inputs.flatMap(({ note }) => parse<N>(note) ?? [])
