/**
 * AgentPrograms: finds the coding agents that are installed on this machine, and whether each has a login or a key.
 *
 * Guarantees: no program is run, and no file's content is read. A program is an executable file in the PATH.
 */
import { Effect } from "effect"
import { type Environment, KNOWN, type Known, type Login, loginOf } from "../../board/Logins.ts"
import { located } from "../../board/Readiness.ts"
import type { AgentId } from "./InitChoices.ts"

export interface Found extends Login {
  readonly id: AgentId
  /** Path of the program; null for a model behind an API. */
  readonly program: string | null
  readonly logIn: string | null
}

const look = Effect.fnUntraced(function* (known: Known, env: Environment) {
  let program: string | undefined
  for (const name of known.programs) program ??= yield* located(name, "/", env["PATH"] ?? "")
  if (program === undefined) return []
  const { id, logIn } = known
  return [{ id, program, ...(yield* loginOf(known, (name) => env[name])), logIn } satisfies Found]
})

/** Models behind an API, which need only a key in the environment. */
const models = (env: Environment): ReadonlyArray<Found> =>
  ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]
    .filter((name) => (env[name] ?? "").trim() !== "")
    .slice(0, 1)
    .map((key) => ({ id: "model", program: null, login: key, key, logIn: null }))

/** The agents that were found. Those with a login come first. */
export const find = Effect.fnUntraced(function* (env: Environment) {
  const found = [...(yield* Effect.forEach(KNOWN, (known) => look(known, env))).flat(), ...models(env)]
  return [...found.filter(({ login }) => login !== null), ...found.filter(({ login }) => login === null)]
})
