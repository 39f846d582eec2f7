/**
 * PageActions: a user's actions on the page, and the daemon's replies.
 *
 * Guarantees: for an action that ends work, its key must be pressed twice; after the first press, a message says what
 * the second press will do. Nothing is done without the right to act, or before the user has clicked in the window. A
 * refusal is shown with its remedy.
 */
import { signal } from "@preact/signals"
import type { BoardRow } from "../domain/BoardMessages.ts"
import type { Done } from "../domain/Messages.ts"
import * as Api from "./Api.ts"
import { isInHand } from "./KeyMap.ts"
import { right } from "./BoardStore.ts"

export interface Toast {
  readonly text: string
  readonly remedy: string
  readonly isBad: boolean
  readonly key: number
}
export const toast = signal<Toast | undefined>(undefined)
let fades: ReturnType<typeof setTimeout> | undefined
let count = 0

/** Shows a message for a moment; an error is shown for longer. */
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

export const VIEW_ONLY = "This page can only show things. To open a page that can act: agentd open"

/** True if this page may make decisions now. If not, a message shows the reason. */
export const isReady = (): boolean => {
  if (right.peek() !== "act") say(VIEW_ONLY, { isBad: true })
  else if (!isInHand())
    say("Click in this window first.", {
      isBad: true,
      remedy:
        "It has just opened or got the focus: a key that was meant for another window must not decide anything here."
    })
  else return true
  return false
}

/**
 * Calls a verb of the daemon. All actions of the page use this function. Undefined: the action was not done, and a
 * message has shown the reason.
 */
export const ask = async <A>(name: string, payload: object): Promise<A | undefined> => {
  if (!isReady()) return undefined
  try {
    return await Api.verb<A>(name, payload)
  } catch (error) {
    sayProblem(error)
    return undefined
  }
}

/**
 * Like `ask`, for verbs that reply with a message, which is then shown. Returns true if the action has been done and is
 * durable.
 */
export const act = async (name: string, payload: object): Promise<boolean> => {
  const done = await ask<Done>(name, payload)
  if (done !== undefined) say(done.message)
  return done !== undefined
}

/** Time in ms after a first key press during which the second press counts. */
const ARMED = 3_000
let armed = { key: "", at: -Infinity }

/** Runs `then` at the second press of the same key for the same row or item. The first press shows `text`. */
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
  stop: { key: "x", verb: "Stop", does: "stop" }
}

/** True if the row's work can be ended. False for a user's own session, because the daemon does not run it. */
export const takes = ({ kind }: BoardRow): boolean => kind === "agent"

/** Interrupts, restarts or stops the row's agent when the key is pressed a second time. */
export const end = (what: Ending, row: BoardRow): boolean => {
  if (!takes(row)) return false
  const { does, key, verb } = ENDINGS[what]
  const name = `${row.project}/${row.name}`
  const cost = row.word === "working" ? ": its current work is cut short" : ""
  twice(`${key} ${row.id}`, `Press ${key} again to ${does} ${name}${cost}.`, () => void act(verb, { name: row.called }))
  return true
}
