/**
 * PlainDataCheck: checks in tests that states are immutable plain data. It freezes each state deeply. If a state is not
 * plain data, the error names the field that is at fault.
 */
import { isDeepStrictEqual } from "node:util"

const frozen = (value: unknown, path: string): void => {
  if (typeof value === "function" || typeof value === "symbol") throw notPlain(path, typeof value)
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return
  const prototype: unknown = Object.getPrototypeOf(value)
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) {
    throw notPlain(path, String((prototype as { constructor?: { name?: string } }).constructor?.name))
  }
  Object.freeze(value)
  for (const [key, inner] of Object.entries(value)) frozen(inner, `${path}.${key}`)
}

const notPlain = (path: string, what: string) =>
  new TypeError(`${path} is ${what}: a state must be plain data, so that it can be frozen, stored and compared`)

/** Freezes a state deeply. Throws if the state is not plain data. */
export const freeze = (address: string, state: unknown): void => frozen(state, address)

/** Throws if the state that `decide` or `join` returned differs from the state that `apply` computes from the runes. */
export const compare = (address: string, handed: unknown, applied: unknown): void => {
  if (isDeepStrictEqual(handed, applied)) return
  throw new Error(
    `${address}: the returned state differs from the state that apply computes from the runes: ${JSON.stringify(handed)} is not ${JSON.stringify(applied)}`
  )
}
