/**
 * AcpChoices: the models and modes that an ACP agent offers for a session, and how one is chosen.
 *
 * Guarantees: agents offer them in lists of their own, as options of the session, as both, or without a
 * word of it when they go on: whichever it is, what is not offered is refused with what is, since some
 * agents say yes to anything; what an agent refuses is said in its own words; an option counts as chosen
 * when the agent says that it is.
 */
import type { SetSessionConfigOptionRequest, SetSessionModeRequest } from "@agentclientprotocol/sdk"
import { Effect } from "effect"
import * as Offers from "../Offers.ts"
import * as AcpFault from "./AcpFault.ts"
import * as Messages from "./AcpMessages.ts"
import type { Refusal, Wire } from "./AcpWire.ts"

export type Kind = "model" | "mode"

interface Option {
  readonly id: string
  readonly current: string
  readonly values: ReadonlyArray<Offers.Offer>
}

/** A kind of choice, as the agent offers it. */
interface Choice {
  /** Of the protocol's own list. */
  readonly listed: ReadonlyArray<Offers.Offer>
  readonly option: Option | undefined
}

export type Choices = { readonly [kind in Kind]: Choice }

const optionOf = (answer: Messages.SessionAnswer, kind: Kind): Option | undefined => {
  const found = answer.configOptions?.find(({ category, id }) => (category ?? id) === kind)
  if (found === undefined) return undefined
  const values = (found.options ?? []).flatMap((value) => Messages.read(Messages.ConfigValue, value) ?? [])
  return {
    id: found.id,
    current: typeof found.currentValue === "string" ? found.currentValue : "",
    values: values.map(({ name, value }) => ({ id: value, name: name ?? value }))
  }
}

export const of = (answer: Messages.SessionAnswer): Choices => ({
  model: {
    listed: (answer.models?.availableModels ?? []).map(({ modelId, name }) => ({ id: modelId, name: name ?? modelId })),
    option: optionOf(answer, "model")
  },
  mode: {
    listed: (answer.modes?.availableModes ?? []).map(({ id, name }) => ({ id, name: name ?? id })),
    option: optionOf(answer, "mode")
  }
})

/** With the options as the agent says they are now. */
export const updated = (choices: Choices, answer: Messages.SessionAnswer): Choices => {
  const now = of(answer)
  const { mode, model } = choices
  return {
    mode: { ...mode, option: now.mode.option ?? mode.option },
    model: { ...model, option: now.model.option ?? model.option }
  }
}

/** All that is offered, each once. */
const offered = ({ listed, option }: Choice): ReadonlyArray<Offers.Offer> => [
  ...listed,
  ...(option?.values ?? []).filter(({ id }) => !listed.some((one) => one.id === id))
]

export const offersOf = ({ mode, model }: Choices): Offers.Offers =>
  Offers.bounded({ models: offered(model), modes: offered(mode) })

/** The model that an option says is in use; empty where none does. */
export const modelOf = ({ model }: Choices): string => model.option?.current ?? ""

const refused = (kind: Kind, agent: AcpFault.Agent, name: string, { data, message }: Refusal): AcpFault.Fault => {
  const { details } = (data ?? {}) as { readonly details?: unknown }
  const words = typeof details === "string" ? `${message}: ${details}` : message
  return AcpFault.fatal(
    kind,
    `${agent.name} refused the ${kind} "${name}": ${words}`,
    `correct ${kind}, or leave it out`
  )
}

const METHODS = { mode: "session/set_mode", model: "session/set_model" } as const

/** The offers after a choice, and the id of the chosen one. */
export interface Chosen {
  readonly choices: Choices
  readonly id: string
}

/** Chooses one of these. */
export const choose = Effect.fnUntraced(function* (
  wire: Wire,
  agent: AcpFault.Agent,
  { choices, sessionId }: { readonly choices: Choices; readonly sessionId: string },
  kind: Kind,
  name: string
) {
  const choice = choices[kind]
  const known = offered(choice)
  const found = known.length === 0 ? { id: name, name } : Offers.find(known, name)
  if (found === undefined)
    return yield* Effect.fail(
      AcpFault.fatal(kind, `${agent.name} has no ${kind} "${name}"`, `set ${kind} to one of: ${Offers.listed(known)}`)
    )
  const { id } = found
  const { listed, option } = choice
  const told = Effect.mapError((refusal: Refusal) => refused(kind, agent, name, refusal))
  if (option === undefined || listed.some((one) => one.id === id)) {
    const mode: SetSessionModeRequest = { sessionId, modeId: id }
    yield* told(wire.request(METHODS[kind], kind === "mode" ? mode : { sessionId, modelId: id }))
    const chosen: Chosen = { choices, id }
    return chosen
  }
  const request: SetSessionConfigOptionRequest = { sessionId, configId: option.id, value: id }
  const answer = yield* told(wire.request("session/set_config_option", request))
  const now = updated(choices, Messages.read(Messages.SessionAnswer, answer) ?? {})
  const current = now[kind].option?.current ?? ""
  if (current !== "" && current !== id)
    return yield* Effect.fail(
      AcpFault.fatal(kind, `${agent.name} did not take the ${kind} "${name}"`, `correct ${kind}, or leave it out`)
    )
  const chosen: Chosen = { choices: now, id }
  return chosen
})
