/**
 * Secrets: the secrets that the model agent knows: its key if it has one, and the tokens of its MCP servers.
 *
 * Guarantees: no message that the agent sends contains one of them, because the daemon stores the messages.
 */
import { Effect, Layer } from "effect"
import { LearnedSecrets } from "../runs/LearnedSecrets.ts"

export interface Secrets {
  readonly learn: (values: ReadonlyArray<string>) => void
  /** The same value, with "[redacted]" in place of each secret. */
  readonly without: <A>(value: A) => A
}

/** A shorter secret could occur in any text. */
const LEAST = 8

export const make = (first: ReadonlyArray<string>): Secrets => {
  const known = new Set<string>()
  const learn = (values: ReadonlyArray<string>) =>
    values.forEach((value) => {
      // as it stands within a JSON text
      if (value.length >= LEAST) known.add(JSON.stringify(value).slice(1, -1))
    })
  learn(first)
  return {
    learn,
    without: <A>(value: A): A => {
      if (known.size === 0) return value
      const text = JSON.stringify(value)
      const found = [...known].filter((secret) => text?.includes(secret))
      return found.length === 0
        ? value
        : (JSON.parse(found.reduce((all, secret) => all.replaceAll(secret, "[redacted]"), text)) as A)
    }
  }
}

export const layer = (secrets: Secrets) =>
  Layer.succeed(LearnedSecrets)((values) => Effect.sync(() => secrets.learn(values)))
