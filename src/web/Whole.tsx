/**
 * Whole: what a person decides on, and whether all of it has been in sight.
 *
 * Guarantees: a text counts as read only once its beginning and its end were on the screen, and nothing lay over them;
 * until then the button that approves it says so, and goes on in the text.
 */
import type { ComponentChildren } from "preact"
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { Kbd } from "./Ui.tsx"

/** The part of the page in which an element can be seen: within all that scrolls, above what follows it. */
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
  /** Stands around the text, directly before what decides. */
  readonly box: preact.RefObject<HTMLDivElement | null>
  readonly isWhole: boolean
  /** Brings more of the text into sight. */
  readonly goOn: () => void
}

/** `shown`: another one is another text; undefined: none is there yet. */
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

/** The button that approves what was shown. */
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
