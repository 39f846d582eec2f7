/**
 * Acts: what a person does from the page, and what the daemon says to it.
 *
 * Guarantees: what ends work wants its key twice, and the first press says what the second does; nothing is done
 * without the right to act, nor in a window in which nobody has clicked; a refusal is shown with its remedy.
 */
import { signal } from "@preact/signals"
import type { BoardRow } from "../domain/BoardMessages.ts"
import type { Done } from "../domain/Messages.ts"
import * as Api from "./Api.ts"
import { isInHand } from "./Keys.ts"
import { right } from "./Store.ts"

export interface Toast {
  readonly text: string
  readonly remedy: string
  readonly isBad: boolean
  readonly key: number
}
export const toast = signal<Toast | undefined>(undefined)
let fades: ReturnType<typeof setTimeout> | undefined
let count = 0

/** Says it for a moment; what went wrong, for longer. */
export const say = (text: string, { isBad = false, remedy = "" } = {}): void => {
  toast.value = { text, remedy, isBad, key: count++ }
  clearTimeout(fades)
  fades = setTimeout(() => (toast.value = undefined), isBad ? 10_000 : 4_000)
}
export const hush = (): void => {
  toast.value = undefined
}

const sayProblem = (error: unknown): void => {
  if (error instanceof Api.Refused) say(error.problem.error, { isBad: true, remedy: error.problem.remedy })
  else say(String(error), { isBad: true })
}

export const VIEW_ONLY = "This page may look, and not act. For one that may: agentd open"

/** Whether this page decides anything now; says why not. */
export const isReady = (): boolean => {
  if (right.peek() !== "act") say(VIEW_ONLY, { isBad: true })
  else if (!isInHand())
    say("Click in this window first.", {
      isBad: true,
      remedy: "It has just opened or got the focus: what is typed for another window decides nothing here."
    })
  else return true
  return false
}

/** Asks the daemon to do it, by the one way of the page; undefined: it was not done, and why was said. */
export const ask = async <A>(name: string, payload: object): Promise<A | undefined> => {
  if (!isReady()) return undefined
  try {
    return await Api.verb<A>(name, payload)
  } catch (error) {
    sayProblem(error)
    return undefined
  }
}

/** The same of what answers with words; true: it is done, and durable. */
export const act = async (name: string, payload: object): Promise<boolean> => {
  const done = await ask<Done>(name, payload)
  if (done !== undefined) say(done.message)
  return done !== undefined
}

/** A first press is forgotten after so long, ms. */
const ARMED = 3_000
let armed = { key: "", at: -Infinity }

/** The same key on the same thing, twice. */
export const twice = (key: string, text: string, then: () => void): void => {
  if (!isReady()) return
  const isSecond = armed.key === key && performance.now() - armed.at < ARMED
  armed = isSecond ? { key: "", at: -Infinity } : { key, at: performance.now() }
  if (!isSecond) return say(text)
  hush()
  then()
}

export type Ending = "interrupt" | "restart" | "stop"
export const ENDINGS: {
  readonly [E in Ending]: { readonly key: string; readonly verb: string; readonly does: string }
} = {
  interrupt: { key: "i", verb: "Interrupt", does: "interrupt" },
  restart: { key: "r", verb: "Restart", does: "restart" },
  stop: { key: "x", verb: "Stop", does: "stop for good" }
}

/** Whether a row takes it: a person's own session has no run of ours. */
export const takes = ({ kind }: BoardRow): boolean => kind === "agent"

/** Interrupts, restarts or stops the row's agent, at the second press. */
export const end = (what: Ending, row: BoardRow): boolean => {
  if (!takes(row)) return false
  const { does, key, verb } = ENDINGS[what]
  const name = `${row.project}/${row.name}`
  const cost = row.word === "working" ? ": what it does now is cut short" : ""
  twice(`${key} ${row.id}`, `Press ${key} again to ${does} ${name}${cost}.`, () => void act(verb, { name: row.called }))
  return true
}
