/**
 * Time: the current time for the page, and times in readable form.
 *
 * Guarantees: the time is not updated while the page is hidden. Intl is not used before the first paint, because its
 * first use costs 20 ms.
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

/** Date and local time, such as `2026-11-26 04:05:06`. */
export const stamp = (at: number): string => {
  const date = new Date(at)
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** The time since a moment, such as `8 s` or `4 min`. */
export const ago = (at: number): string => span(now.value - at)

/** The time of day for a moment today; otherwise the day. */
export const clock = (at: number): string => moment(at, now.peek())
