/**
 * KeyMap: the only key handler of the page. The part of the page that was shown last gets each key first, the frame
 * gets it last.
 *
 * Guarantees: a letter that is typed into a field is never a command. While a dialog is open, parts below it receive no
 * keys. A handler always belongs to the newest rendering, so it never uses outdated rows. After a window opens or loses
 * the focus, keys decide nothing until the user clicks in the window, because they could be meant for another window.
 */
import { useLayoutEffect, useRef } from "preact/hooks"

/** The meaning of a key. Each page decides whether it handles the action. */
export type Action =
  | { readonly is: Named }
  /** A digit key, which selects an option; the first option is 1. */
  | { readonly is: "option"; readonly option: number }
  /** The key after `g`, which selects a page to go to. */
  | { readonly is: "go"; readonly to: string }
export type Named =
  | "down"
  | "up"
  | "first"
  | "last"
  | "open"
  | "back"
  | "filter"
  | "fold"
  | "approve"
  | "deny"
  | "longer"
  | "send"
  | "new"
  | "interrupt"
  | "restart"
  | "stop"
  | "diff"
  | "help"
  | "palette"

const MAP: { readonly [key: string]: Named } = {
  j: "down",
  ArrowDown: "down",
  k: "up",
  ArrowUp: "up",
  Home: "first",
  G: "last",
  End: "last",
  Enter: "open",
  "/": "filter",
  f: "fold",
  a: "approve",
  d: "deny",
  l: "longer",
  s: "send",
  n: "new",
  i: "interrupt",
  r: "restart",
  x: "stop",
  v: "diff",
  "?": "help"
}

export const HELP: ReadonlyArray<readonly [title: string, keys: ReadonlyArray<readonly [keys: string, does: string]>]> =
  [
    [
      "Move",
      [
        ["j k", "down, up"],
        ["Home G", "first, last"],
        ["↵", "open"],
        ["Esc", "back, close"],
        ["/", "filter"],
        ["f", "fold the group"],
        ["Ctrl+K", "go to any page or row"]
      ]
    ],
    [
      "Act",
      [
        ["a", "open the call; again: approve it once"],
        ["l", "approve for longer than once"],
        ["d", "deny, with a reason"],
        ["1 9", "choose an answer"],
        ["s", "send a message"],
        ["n", "a new goal, on the goals page"],
        ["v", "an agent's changes"],
        ["i i", "interrupt"],
        ["r r", "restart"],
        ["x x", "stop (until you start it again)"]
      ]
    ]
  ]

type Handler = (action: Action) => boolean
const handlers: Array<Handler> = []
let frame: { readonly handler: Handler; readonly hasDialog: () => boolean } = {
  handler: () => false,
  hasDialog: () => false
}

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]")

const tell = (action: Action): boolean => {
  if (frame.hasDialog()) return action.is === "back" || action.is === "help" ? frame.handler(action) : true
  return handlers.findLast((handler) => handler(action)) !== undefined || frame.handler(action)
}

/** Time in ms after `g` during which the next key selects a page. */
const PREFIX = 1_500
let prefixed = -Infinity

const actionOf = (key: string, isAfterPrefix: boolean): Action | undefined => {
  if (isAfterPrefix) return { is: "go", to: key }
  if (/^[1-9]$/.test(key)) return { is: "option", option: Number(key) }
  const is = MAP[key]
  return is === undefined ? undefined : { is }
}

const onKey = (event: KeyboardEvent): void => {
  if (event.isComposing) return
  if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
    event.preventDefault()
    frame.handler({ is: "palette" })
    return
  }
  if (event.key === "Escape") {
    if (typing(event.target) && !frame.hasDialog()) (event.target as HTMLElement).blur()
    else tell({ is: "back" })
    return
  }
  if (event.metaKey || event.ctrlKey || event.altKey || typing(event.target)) return
  const isControl = event.target instanceof HTMLElement && event.target.closest("a, button, summary, [role=option]")
  if (event.key === "Enter" && isControl) return
  const isAfterPrefix = event.timeStamp - prefixed < PREFIX
  prefixed = -Infinity
  if (event.key === "g" && !isAfterPrefix && !frame.hasDialog()) {
    prefixed = event.timeStamp
    return
  }
  // while a key is held down, only movement keys repeat
  const action = actionOf(event.key, isAfterPrefix)
  if (action === undefined || (event.repeat && action.is !== "down" && action.is !== "up")) return
  if (tell(action)) event.preventDefault()
}

/** Whether the user has clicked in this window since it opened or last lost the focus. */
let clicked = false
export const isInHand = (): boolean => clicked
/**
 * Whether the window counts as clicked after this event. A real click by the user sets this state; other events
 * (hidden, focus lost) clear it. Pure.
 */
export const handAfter = (isHeld: boolean, { isTrusted, type }: Pick<Event, "isTrusted" | "type">): boolean =>
  type === "pointerdown" && (isHeld || isTrusted)
const onHand = (event: Event): void => {
  clicked = handAfter(clicked, event)
}

export const listen = (handler: Handler, hasDialog: () => boolean): void => {
  frame = { handler, hasDialog }
  addEventListener("keydown", onKey)
  addEventListener("pointerdown", onHand, true)
  // listen to the window's own events, not to those of elements; `pageshow` means that a page returns from the
  // browser's cache, so it was not visible before
  for (const type of ["blur", "pagehide", "pageshow", "visibilitychange"]) addEventListener(type, onHand)
}

/** Registers a key handler while the component is shown. The handler returns true if it handled the key. */
export const useKeys = (handler: Handler): void => {
  const newest = useRef(handler)
  newest.current = handler
  useLayoutEffect(() => {
    const own: Handler = (action) => newest.current(action)
    handlers.push(own)
    return () => void handlers.splice(handlers.indexOf(own), 1)
  }, [])
}
