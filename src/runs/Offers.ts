/**
 * Offers: the models, modes and commands that an agent says it has, bounded. Pure.
 *
 * Guarantees: a name leads to one offer or to none: as its id, else as the only one that is called so.
 */
import { Schema } from "effect"

/** A model or a mode: `id` is what a person names, `name` what it is called. */
export const Offer = Schema.Struct({ id: Schema.String, name: Schema.String })
export type Offer = typeof Offer.Type

/** A command of the agent's own, without its slash. */
export const Command = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  /** For what follows it; empty: nothing is said of that. */
  hint: Schema.String
})
export type Command = typeof Command.Type

/** Left out: the agent has not said; empty: it has none. */
export interface Offers {
  readonly models?: ReadonlyArray<Offer>
  readonly modes?: ReadonlyArray<Offer>
  readonly commands?: ReadonlyArray<Command>
  /** The mode that it is in; `isUnasked`: in that, calls run for which nobody is asked. */
  readonly mode?: { readonly id: string; readonly isUnasked: boolean }
}

const MAX_OFFERS = 500
const MAX_NAME = 200
const MAX_TEXT = 300
const MAX_NAMED = 20

const short = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`

/** Leaves out what could not be named: an id that is too long, or none. */
const named = <A>(all: ReadonlyArray<A>, idOf: (one: A) => string): ReadonlyArray<A> =>
  all.filter((one) => idOf(one) !== "" && idOf(one).length <= MAX_NAME).slice(0, MAX_OFFERS)

const offers = (all: ReadonlyArray<Offer>): ReadonlyArray<Offer> =>
  named(all, ({ id }) => id).map(({ id, name }) => ({ id, name: short(name === "" ? id : name, MAX_NAME) }))

const commands = (all: ReadonlyArray<Command>): ReadonlyArray<Command> =>
  named(all, ({ name }) => name).map(({ description, hint, name }) => ({
    name,
    description: short(description, MAX_TEXT),
    hint: short(hint, MAX_NAME)
  }))

export const bounded = (all: Offers): Offers => ({
  ...(all.models === undefined ? {} : { models: offers(all.models) }),
  ...(all.modes === undefined ? {} : { modes: offers(all.modes) }),
  ...(all.commands === undefined ? {} : { commands: commands(all.commands) }),
  ...(all.mode === undefined ? {} : { mode: { ...all.mode, id: short(all.mode.id, MAX_NAME) } })
})

export const find = (all: ReadonlyArray<Offer>, named: string): Offer | undefined => {
  const exact = all.find(({ id }) => id === named)
  if (exact !== undefined) return exact
  const called = all.filter(({ id, name }) => [id, name].some((one) => one.toLowerCase() === named.toLowerCase()))
  return called.length === 1 ? called[0] : undefined
}

/** As a refusal names them. */
export const listed = (all: ReadonlyArray<Offer>): string => {
  const names = all.slice(0, MAX_NAMED).map(({ id }) => id)
  return all.length > MAX_NAMED ? `${names.join(", ")} and ${all.length - MAX_NAMED} more` : names.join(", ")
}
