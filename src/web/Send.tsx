/**
 * Send: a form that sends a message to an agent, to be delivered when the agent is free, at the next safe boundary, or
 * at once.
 *
 * Guarantees: if the daemon does not accept a message, its text stays in the input field.
 */
import { signal } from "@preact/signals"
import { useState } from "preact/hooks"
import { act, VIEW_ONLY } from "./PageActions.ts"
import { mayAct, right } from "./BoardStore.ts"

export const WAYS = {
  queue: "delivered when the agent is free",
  steer: "delivered at the next safe boundary",
  urgent: "delivered now: the current work is cut short"
} as const
export type Way = keyof typeof WAYS

/** Unsent messages by the agent's name. They are kept when the user leaves the page. */
const drafts = signal<Readonly<Record<string, string>>>({})
const note = (name: string, text: string) => {
  drafts.value = { ...drafts.peek(), [name]: text }
}

/** Splits typed text into delivery and message: `>` steers, `!` is urgent, as on the terminal. Pure. */
export const readWay = (typed: string, way: Way): { readonly how: Way; readonly text: string } => {
  if (typed.startsWith(">")) return { how: "steer", text: typed.slice(1).trim() }
  if (typed.startsWith("!")) return { how: "urgent", text: typed.slice(1).trim() }
  return { how: way, text: typed.trim() }
}

export const focusSend = (): boolean => {
  const box = document.querySelector<HTMLTextAreaElement>(".send textarea")
  box?.focus()
  return box !== null
}

const Ways = ({ how, set }: { readonly how: Way; readonly set: (way: Way) => void }) => (
  <div class="seg" role="radiogroup" aria-label="When it is delivered">
    {(Object.keys(WAYS) as ReadonlyArray<Way>).map((way) => (
      <button
        key={way}
        type="button"
        role="radio"
        aria-checked={how === way}
        title={WAYS[way]}
        onClick={() => set(way)}
      >
        {way}
      </button>
    ))}
  </div>
)

export const Send = ({ name }: { readonly name: string }) => {
  const [way, setWay] = useState<Way>("queue")
  const [isBusy, setBusy] = useState(false)
  const typed = drafts.value[name] ?? ""
  const { how, text } = readWay(typed, way)
  if (!mayAct.value) return right.value === "view" ? <p class="faint small">{VIEW_ONLY}</p> : null
  const submit = async () => {
    if (text === "" || isBusy) return
    setBusy(true)
    if (await act("Send", { name, text, how })) note(name, "")
    setBusy(false)
  }
  return (
    <form
      class="send"
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      <textarea
        rows={2}
        value={typed}
        aria-label={`Message to ${name}`}
        placeholder="Send a message …"
        onInput={(event) => note(name, event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
          event.preventDefault()
          void submit()
        }}
      />
      <div class="line">
        <Ways how={how} set={setWay} />
        <span class="faint small grow ways">{WAYS[how]}</span>
        <button class="btn primary" disabled={text === "" || isBusy}>
          Send
        </button>
      </div>
    </form>
  )
}
