/**
 * VerbQuery: requests the replies of verbs for pages, and caches them.
 *
 * Guarantees: the old reply stays until the new one arrives, so that the page does not jump, and an error clears
 * nothing. A late reply to an earlier request is ignored.
 */
import { signal, type Signal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import * as Api from "./Api.ts"
import { link } from "./BoardStore.ts"

export interface Answer<A> {
  readonly value?: A
  /** The problem of the newest request, if it failed. */
  readonly problem?: Api.Problem
}

const MAX_KEPT = 100
const kept = new Map<string, Signal<Answer<unknown>>>()
const asked = new Map<string, number>()
let count = 0

const slot = <A>(key: string): Signal<Answer<A>> => {
  const held = kept.get(key) ?? signal<Answer<unknown>>({})
  kept.delete(key)
  kept.set(key, held)
  if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value!)
  return held as Signal<Answer<A>>
}

/** Sends a request, and stores its reply under the key. */
export const ask = async <A>(key: string, question: () => Promise<A>): Promise<void> => {
  const turn = ++count
  asked.set(key, turn)
  const held = slot<A>(key)
  try {
    const value = await question()
    if (asked.get(key) === turn) held.value = { value }
  } catch (error) {
    if (asked.get(key) !== turn) return
    const problem = error instanceof Api.Refused ? error.problem : { status: 500, error: String(error), remedy: "" }
    held.value = { ...held.peek(), problem }
  }
}

/**
 * The replies of a verb to these payloads; if it fails for one of them, there is none. The verb is called again
 * whenever `when` changes, and when the connection to the daemon is restored.
 */
export const useAnswers = <A>(
  verb: string,
  payloads: ReadonlyArray<object>,
  when: unknown = 0
): Answer<ReadonlyArray<A>> => {
  const key = `${verb} ${JSON.stringify(payloads)}`
  const isLive = link.value.state === "live"
  useEffect(() => {
    if (isLive)
      void ask<ReadonlyArray<A>>(key, () => Promise.all(payloads.map((payload) => Api.verb<A>(verb, payload))))
  }, [key, when, isLive])
  return slot<ReadonlyArray<A>>(key).value
}

/** The reply of a verb to one payload. */
export const useAnswer = <A>(verb: string, payload: object, when: unknown = 0): Answer<A> => {
  const { problem, value } = useAnswers<A>(verb, [payload], when)
  return {
    ...(value === undefined ? {} : { value: value[0]! }),
    ...(problem === undefined ? {} : { problem })
  }
}
