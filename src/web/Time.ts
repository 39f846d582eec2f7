/**
 * Time: the current time for the page, and times in readable form.
 *
 * Guarantees: nothing ticks while the page is hidden. Intl is not used before the first paint, because its first use
 * costs 20 ms.
 */
import { signal } from "@preact/signals"
import { moment, span } from "../domain/StatusWords.ts"

export const now = signal(Date.now())

const tick = () => {
  if (!document.hidden) now.value = Date.now()
}
setInterval(tick, 1_000)
document.addEventListener("visibilitychange", tick)

const two = (n: number): string => String(n).padStart(2, "0")

/** Date and time: `2026-11-26 04:05:06`, local time. */
export const stamp = (at: number): string => {
  const date = new Date(at)
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** Age of a moment: `8 s`, `4 min`. */
export const ago = (at: number): string => span(now.value - at)

/** Time of day if it is today, otherwise the day. */
export const clock = (at: number): string => moment(at, now.peek())
