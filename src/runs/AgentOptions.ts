/**
 * AgentOptions: the models, modes and commands that an agent offers, limited in number and length. Pure.
 *
 * Guarantees: What the user types selects at most one offer: the offer with exactly this id, or else the only offer
 * whose id or name matches if case is ignored.
 */
import { Schema } from "effect"

/** A model or a mode. The user enters `id`; `name` is displayed. */
export const Offer = Schema.Struct({ id: Schema.String, name: Schema.String })
export type Offer = typeof Offer.Type

/** A command that the agent itself offers, without its slash. */
export const Command = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  /** Description of the command's arguments; empty if there is none. */
  hint: Schema.String
})
export type Command = typeof Command.Type

/**
 * The models, modes and commands that an agent offers. Omitted field: the agent has not reported it. Empty list: the
 * agent has none.
 */
export interface AgentOptions {
  readonly models?: ReadonlyArray<Offer>
  readonly modes?: ReadonlyArray<Offer>
  readonly commands?: ReadonlyArray<Command>
  /** The current mode. `isUnasked`: true if calls run without approval in this mode. */
  readonly mode?: { readonly id: string; readonly isUnasked: boolean }
}

const MAX_OFFERS = 500
const MAX_NAME = 200
const MAX_TEXT = 300
const MAX_NAMED = 20

const short = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`

/** Removes offers that cannot be selected because their id is empty or too long. */
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

export const bounded = (all: AgentOptions): AgentOptions => ({
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

export const listed = (all: ReadonlyArray<Offer>): string => {
  const names = all.slice(0, MAX_NAMED).map(({ id }) => id)
  return all.length > MAX_NAMED ? `${names.join(", ")} and ${all.length - MAX_NAMED} more` : names.join(", ")
}
