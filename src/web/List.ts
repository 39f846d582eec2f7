/**
 * List: keyboard navigation in a short list. Keys move the selection and open the selected entry. `Esc` first removes
 * the selection, then goes back to the board.
 */
import { useEffect, useState } from "preact/hooks"
import { useKeys } from "./KeyMap.ts"
import { go, hrefTo } from "./Router.ts"

/** Index of the selected entry; -1 if no entry is selected. */
export const useList = (count: number, open: (n: number) => void): number => {
  const [at, set] = useState(-1)
  useKeys(({ is }) => {
    if (is === "back") {
      if (at >= 0) set(-1)
      else go(hrefTo(""))
      return true
    }
    if (count === 0) return false
    if (is === "down" || is === "up") set(Math.max(0, Math.min(count - 1, at + (is === "down" ? 1 : -1))))
    else if (is === "first" || is === "last") set(is === "first" ? 0 : count - 1)
    else if (is === "open" && at >= 0 && at < count) open(at)
    else return false
    return true
  })
  useEffect(() => document.querySelector("main [aria-current=true]")?.scrollIntoView({ block: "nearest" }), [at])
  return at
}
