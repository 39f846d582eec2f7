/**
 * AcpChoices: the models and modes that an ACP agent offers for a session, and how one is chosen.
 *
 * Agents offer them in separate lists, as options of the session, as both, or not at all for a resumed session.
 *
 * Guarantees: a name that is not offered is rejected with a list of the offers, because some agents accept anything.
 * The agent's reason for a refusal is passed on. An option counts as chosen when the agent confirms it. A mode counts
 * as one that asks the user only if its own description says so.
 */
import type { SetSessionConfigOptionRequest, SetSessionModeRequest } from "@agentclientprotocol/sdk"
import { Effect } from "effect"
import type { RunSpec } from "../Backend.ts"
import * as AgentOptions from "../AgentOptions.ts"
import * as AcpFault from "./AcpFault.ts"
import * as Messages from "./AcpMessages.ts"
import type { Refusal, Wire } from "./AcpWire.ts"

export type Kind = "model" | "mode"

/** An offer of the agent. `about`: the agent's description of it. */
type Offer = AgentOptions.Offer & { readonly about?: string }

interface Option {
  readonly id: string
  readonly current: string
  readonly values: ReadonlyArray<Offer>
}

interface Choice {
  /** Offers in the list that the protocol defines. */
  readonly listed: ReadonlyArray<Offer>
  readonly option: Option | undefined
  /** The current choice in this list; omitted if the agent has not reported it. */
  readonly current?: string
}

/** An option of the session that lets all calls run without approval. */
interface Switch {
  readonly id: string
  readonly on: boolean
  readonly off: string | false
}

export type Choices = { readonly [kind in Kind]: Choice } & { readonly letsAll?: Switch }

const optionOf = (answer: Messages.SessionAnswer, kind: Kind): Option | undefined => {
  const found = answer.configOptions?.find(({ category, id }) => (category ?? id) === kind)
  if (found === undefined) return undefined
  const values = (found.options ?? []).flatMap((value) => Messages.read(Messages.ConfigValue, value) ?? [])
  return {
    id: found.id,
    current: typeof found.currentValue === "string" ? found.currentValue : "",
    values: values.map(({ description, name, value }) => ({ id: value, name: name ?? value, about: description ?? "" }))
  }
}

const switchOf = ({ configOptions }: Messages.SessionAnswer): { readonly letsAll?: Switch } => {
  const found = (configOptions ?? []).find(
    ({ category, description, id, name }) => category !== "mode" && LETS_ALL.test(`${id} ${name} ${description}`)
  )
  if (found === undefined) return {}
  const { currentValue, id } = found
  if (typeof currentValue === "boolean") return { letsAll: { id, on: currentValue, off: false } }
  const values = (found.options ?? []).flatMap((value) => Messages.read(Messages.ConfigValue, value)?.value ?? [])
  return values.includes("off") ? { letsAll: { id, on: currentValue !== "off", off: "off" } } : {}
}

export const of = (answer: Messages.SessionAnswer): Choices => ({
  model: {
    listed: (answer.models?.availableModels ?? []).map(({ modelId, name }) => ({ id: modelId, name: name ?? modelId })),
    option: optionOf(answer, "model")
  },
  mode: {
    listed: (answer.modes?.availableModes ?? []).map(({ description, id, name }) => ({
      id,
      name: name ?? id,
      about: description ?? ""
    })),
    option: optionOf(answer, "mode"),
    ...(answer.modes?.currentModeId == null ? {} : { current: answer.modes.currentModeId })
  },
  ...switchOf(answer)
})

export const updated = (choices: Choices, answer: Messages.SessionAnswer): Choices => {
  const now = of(answer)
  const { mode, model } = choices
  const { option = mode.option } = now.mode
  const current = now.mode.option?.current ?? ""
  return {
    ...choices,
    ...now,
    mode: { ...mode, option, ...(current === "" ? {} : { current }) },
    model: { ...model, option: now.model.option ?? model.option }
  }
}

export const inMode = (choices: Choices, current: string): Choices => ({
  ...choices,
  mode: { ...choices.mode, current }
})

/** All offers in the list and in the option, each once. */
const offered = ({ listed, option }: Choice): ReadonlyArray<Offer> => [
  ...listed,
  ...(option?.values ?? []).filter(({ id }) => !listed.some((one) => one.id === id))
]

/** Words in a mode's description that mean: the user is asked about every call with side effects. */
const ASKS =
  /\balways ask|\b(asks?|prompts?|requires?|requests?)( for)? (approval|permission|confirmation)|auto-approves only read/i
/** Words in a mode's description that mean: some calls run without approval. */
const LETS =
  /yolo|bypass|dangerous|don'?t-?ask|full[- ]?(auto|access)|autopilot|\bauto|accept[- ]?(edits|all)|review|only ask|outside the workspace|handles permission/i
/** Names of modes that ask the user, for agents that give no descriptions. */
const ASKING = /^(default|normal|manual|ask)$/i
const LETS_ALL = /allow[_ -]?all|auto[_ -]?approve/i

/** Whether the user is asked in this mode; undefined if the mode's description does not say. */
const asksIn = ({ about = "", id, name }: Offer): boolean | undefined => {
  if (ASKS.test(about) || (about === "" && ASKING.test(id))) return true
  return LETS.test(`${id} ${name} ${about}`) ? false : undefined
}

export interface Leave {
  /** The current mode; empty if the agent has no modes. */
  readonly mode: string
  /** Whether the user is asked in the current mode; undefined if unknown. */
  readonly asks: boolean | undefined
  /**
   * How to make the agent ask: the mode to set, or the option to turn off. Undefined if there is no way, or if the
   * agent already asks.
   */
  readonly by?: { readonly mode: string } | { readonly letsAll: Switch } | undefined
}

export const leaveOf = ({ letsAll, mode }: Choices): Leave => {
  const current = mode.current ?? mode.option?.current ?? ""
  const all = offered(mode)
  const now = all.find(({ id }) => id === current)
  const asks = now === undefined ? undefined : asksIn(now)
  const better = asks === true ? undefined : all.find((one) => asksIn(one) === true)
  if (better !== undefined) return { mode: current, asks, by: { mode: better.id } }
  if (letsAll?.on === true) return { mode: current, asks: false, by: { letsAll } }
  return { mode: current, asks: asks ?? (letsAll === undefined ? undefined : true) }
}

export const offersOf = (choices: Choices): AgentOptions.AgentOptions => {
  const { asks, mode } = leaveOf(choices)
  const now = mode === "" ? {} : { mode: { id: mode.split("#").at(-1)!, isUnasked: asks === false } }
  return AgentOptions.bounded({ models: offered(choices.model), modes: offered(choices.mode), ...now })
}

/** Returns the model in use, according to the session's options; empty if no option contains it. */
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

export interface Chosen {
  readonly choices: Choices
  readonly id: string
}

export const choose = Effect.fnUntraced(function* (
  wire: Pick<Wire, "request">,
  agent: AcpFault.Agent,
  { choices, sessionId }: { readonly choices: Choices; readonly sessionId: string },
  kind: Kind,
  name: string
) {
  const choice = choices[kind]
  const known = offered(choice)
  const found = known.length === 0 ? { id: name, name } : AgentOptions.find(known, name)
  if (found === undefined)
    return yield* Effect.fail(
      AcpFault.fatal(
        kind,
        `${agent.name} has no ${kind} "${name}"`,
        `set ${kind} to one of: ${AgentOptions.listed(known)}`
      )
    )
  const { id } = found
  const { listed, option } = choice
  const told = Effect.mapError((refusal: Refusal) => refused(kind, agent, name, refusal))
  if (option === undefined || listed.some((one) => one.id === id)) {
    const mode: SetSessionModeRequest = { sessionId, modeId: id }
    yield* told(wire.request(METHODS[kind], kind === "mode" ? mode : { sessionId, modelId: id }))
    const chosen: Chosen = { choices: kind === "mode" ? inMode(choices, id) : choices, id }
    return chosen
  }
  const request: SetSessionConfigOptionRequest = { sessionId, configId: option.id, value: id }
  const answer = yield* told(wire.request("session/set_config_option", request))
  const now = updated(choices, Messages.read(Messages.SessionAnswer, answer) ?? {})
  const current = now[kind].option?.current ?? ""
  if (current !== "" && current !== id)
    return yield* Effect.fail(
      AcpFault.fatal(kind, `${agent.name} did not accept the ${kind} "${name}"`, `correct ${kind}, or leave it out`)
    )
  const chosen: Chosen = { choices: kind === "mode" ? inMode(now, id) : now, id }
  return chosen
})

/**
 * Returns a warning if the session runs calls without asking, or if it is unknown whether it asks; undefined if it asks.
 */
export const unasked = (
  { name }: AcpFault.Agent,
  choices: Choices,
  { approvals }: Pick<RunSpec, "approvals">
): string | undefined => {
  const { asks, mode } = leaveOf(choices)
  if (asks === true || approvals === "full_access") return undefined
  const where = mode === "" ? "it has no modes" : `its mode is ${mode}`
  const then = approvals === "read_only" ? "; the run ends at the first call that may change something" : ""
  if (asks === false) return `${name} runs calls without approval (${where})${then}`
  return `agentd does not know whether ${name} asks for approval (${where}): calls that it does not ask about run without approval${then}`
}

/** Makes the session ask the user if possible. If the agent refuses, the session does not change. */
export const toAsk = Effect.fnUntraced(function* (
  wire: Pick<Wire, "request">,
  agent: AcpFault.Agent,
  of: { readonly choices: Choices; readonly sessionId: string }
) {
  const { by } = leaveOf(of.choices)
  if (by === undefined) return of.choices
  if ("mode" in by)
    return yield* choose(wire, agent, of, "mode", by.mode).pipe(
      Effect.map(({ choices }) => choices),
      Effect.orElseSucceed(() => of.choices)
    )
  const { id, off } = by.letsAll
  const request: SetSessionConfigOptionRequest =
    off === false
      ? { sessionId: of.sessionId, configId: id, type: "boolean", value: off }
      : { sessionId: of.sessionId, configId: id, value: off }
  const answer = yield* Effect.orElseSucceed(wire.request("session/set_config_option", request), () => undefined)
  return updated(of.choices, Messages.read(Messages.SessionAnswer, answer) ?? {})
})
