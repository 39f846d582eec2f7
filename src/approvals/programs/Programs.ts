/**
 * Programs: the table of programs, by name. A program that is not in it is not known.
 */
import { BUILD } from "./BuildPrograms.ts"
import { GIT } from "./GitPrograms.ts"
import { NEVER } from "./NeverPrograms.ts"
import { NODE } from "./NodePrograms.ts"
import type { Program } from "./Program.ts"
import { READING } from "./ReadingPrograms.ts"
import { WRITING } from "./WritingPrograms.ts"

export const PROGRAMS: { readonly [name: string]: Program } = {
  ...NEVER,
  ...READING,
  ...GIT,
  ...NODE,
  ...BUILD,
  ...WRITING
}

/** The entry of a program, called by its bare name. */
export const programNamed = (name: string): Program | undefined =>
  Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name] : undefined
