/**
 * Acts: what a person does from the page, and what the daemon says to it.
 *
 * Guarantees: what ends work wants its key twice, and the first press says what the second does; nothing is sent
 * without the right to act; a refusal is shown with its remedy.
 */
import { signal } from "@preact/signals"
import type { BoardRow } from "../domain/BoardMessages.ts"
import type { Done } from "../domain/Messages.ts"
import * as Api from "./Api.ts"
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

export const sayProblem = (error: unknown): void => {
  if (error instanceof Api.Refused) say(error.problem.error, { isBad: true, remedy: error.problem.remedy })
  else say(String(error), { isBad: true })
}

export const VIEW_ONLY = "This page may look, and not act. For one that may: agentd open"

/** Asks the daemon to do it; true: it is done, and durable. */
export const act = async (name: string, payload: object): Promise<boolean> => {
  if (right.peek() !== "act") {
    say(VIEW_ONLY, { isBad: true })
    return false
  }
  try {
    const done = await Api.verb<Done>(name, payload)
    say(done.message)
    return true
  } catch (error) {
    sayProblem(error)
    return false
  }
}

/** A first press is forgotten after so long, ms. */
const ARMED = 3_000
let armed = { key: "", at: -Infinity }

/** The same key on the same thing, twice. */
export const twice = (key: string, text: string, then: () => void): void => {
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
  if (right.peek() !== "act") {
    say(VIEW_ONLY, { isBad: true })
    return true
  }
  const { does, key, verb } = ENDINGS[what]
  const name = `${row.project}/${row.name}`
  const cost = row.word === "working" ? ": what it does now is cut short" : ""
  twice(`${key} ${row.id}`, `Press ${key} again to ${does} ${name}${cost}.`, () => void act(verb, { name: row.called }))
  return true
}
