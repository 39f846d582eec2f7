/**
 * Whole: tracks whether a user has seen the whole of a text before deciding about it.
 *
 * Guarantees: a text counts as read only after its beginning and its end were visible on the screen. Until then, the
 * approve button says that the text must be read first, and scrolls the text further instead of approving.
 */
import type { ComponentChildren } from "preact"
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { Kbd } from "./Ui.tsx"

/** The part of the page in which an element is visible: inside all scroll boxes, and above the next element. */
const windowOf = (element: Element): { readonly top: number; readonly bottom: number } => {
  const next = element.nextElementSibling?.getBoundingClientRect()
  let [top, bottom] = [0, Math.min(innerHeight, next === undefined || next.height === 0 ? innerHeight : next.top)]
  for (let box = element.parentElement; box !== null; box = box.parentElement) {
    if (getComputedStyle(box).overflowY === "visible") continue
    const sight = box.getBoundingClientRect()
    top = Math.max(top, sight.top)
    bottom = Math.min(bottom, sight.bottom)
  }
  return { top, bottom }
}

export interface Read {
  /** The element that contains the text, directly before the buttons for the decision. */
  readonly box: preact.RefObject<HTMLDivElement | null>
  readonly isWhole: boolean
  /** Scrolls further down in the text. */
  readonly goOn: () => void
}

/** Tracks whether a text was read. `shown`: identifies the text; undefined if there is no text yet. */
export const useWhole = (shown: string | undefined): Read => {
  const box = useRef<HTMLDivElement>(null)
  const [whole, setWhole] = useState<string | undefined>(undefined)
  useLayoutEffect(() => {
    const element = box.current
    if (element === null || shown === undefined) return
    let [begun, ended] = [false, false]
    const look = () => {
      const { bottom, height, top } = element.getBoundingClientRect()
      const sight = windowOf(element)
      if (height === 0 || document.hidden) return
      begun ||= top >= sight.top - 1 && top <= sight.bottom
      ended ||= bottom <= sight.bottom + 1 && bottom >= sight.top
      if (begun && ended) setWhole(shown)
    }
    look()
    const sizes = new ResizeObserver(look)
    sizes.observe(element)
    const events = ["scroll", "resize", "visibilitychange"]
    for (const event of events) addEventListener(event, look, true)
    return () => {
      sizes.disconnect()
      for (const event of events) removeEventListener(event, look, true)
    }
  }, [shown])
  const goOn = () => {
    const element = box.current
    if (element === null) return
    const sight = windowOf(element)
    let scroller = element.parentElement
    while (scroller !== null && !/auto|scroll/.test(getComputedStyle(scroller).overflowY))
      scroller = scroller.parentElement
    scroller?.scrollBy({ top: (sight.bottom - sight.top) * 0.8 })
  }
  return { box, isWhole: shown !== undefined && whole === shown, goOn }
}

/**
 * Time in ms after a call appears during which a key or click is ignored, because it was meant for the previous call.
 */
const SETTLE = 350

/**
 * Returns a function that tells whether a key or click counts: only if `shown` was rendered more than `SETTLE` ms ago.
 */
export const useSettled = (shown: unknown) => {
  const since = useRef(Infinity)
  useLayoutEffect(() => {
    since.current = shown === undefined ? Infinity : performance.now()
  }, [shown])
  return () => performance.now() - since.current > SETTLE
}

export const Approve = ({
  approve,
  children,
  read: { goOn, isWhole }
}: {
  readonly read: Read
  readonly approve: () => void
  readonly children: ComponentChildren
}) => (
  <button type="button" class="btn primary large" onClick={isWhole ? approve : goOn}>
    {isWhole ? children : "Read to the end first ↓"}
    <Kbd>a</Kbd>
  </button>
)
