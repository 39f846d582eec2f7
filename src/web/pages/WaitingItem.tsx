/** WaitingItem: shows a waiting item that is not a call, and the actions that a user can take. */
import { useRef } from "preact/hooks"
import type { BoardRow } from "../../domain/BoardMessages.ts"
import type { WaitingRow } from "../../board/WaitingMessages.ts"
import { act } from "../PageActions.ts"
import { useKeys } from "../KeyMap.ts"
import { hrefOf } from "../Router.ts"
import { mayAct } from "../BoardStore.ts"
import { Remedies } from "../WhyStory.tsx"
import { Kbd } from "../Ui.tsx"

interface Props {
  readonly row: WaitingRow
  readonly board: BoardRow | undefined
  readonly next: () => void
}

interface Step {
  readonly does: string
  readonly verb: string
  readonly more?: object
}
/** Actions for a waiting item, by its kind. Each calls a verb with the name of the item's row. */
const STEPS: { readonly [kind in WaitingRow["kind"]]?: ReadonlyArray<Step> } = {
  dropped: [
    { does: "Retry it", verb: "Retry" },
    { does: "Discard it", verb: "Dismiss", more: { held: false } }
  ],
  bound: [{ does: "Dismiss it", verb: "Dismiss", more: { held: false } }],
  held: [
    { does: "Start it", verb: "Start" },
    { does: "Discard them", verb: "Dismiss", more: { held: true } }
  ]
}

/** A form for a free-text answer to an agent's question. */
const Words = ({ called, next }: { readonly called: string; readonly next: () => void }) => {
  const input = useRef<HTMLTextAreaElement>(null)
  const send = async () => {
    const text = input.current?.value.trim() ?? ""
    if (text !== "" && (await act("Send", { name: called, text, how: "queue" }))) next()
  }
  useKeys(({ is }) => {
    if (is !== "send" && is !== "deny" && is !== "approve") return false
    input.current?.focus()
    return true
  })
  return (
    <form
      class="send"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <textarea
        ref={input}
        rows={3}
        placeholder="Your answer …"
        aria-label="Your answer"
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
          event.preventDefault()
          void send()
        }}
      />
      <div class="answers">
        <button class="btn primary large">
          Answer<Kbd>↵</Kbd>
        </button>
        <button
          type="button"
          class="btn large"
          onClick={() => void act("Dismiss", { name: called, held: false }).then((isDone) => isDone && next())}
        >
          Dismiss it
        </button>
        <span class="grow" />
        <button type="button" class="btn quiet-btn large" onClick={next}>
          Later<Kbd>j</Kbd>
        </button>
      </div>
    </form>
  )
}

export const WaitingItem = ({ board, next, row }: Props) => {
  const called = board?.called ?? ""
  const isWords = row.kind === "question" && called !== ""
  const steps = called === "" ? [] : (STEPS[row.kind] ?? [])
  return (
    <>
      {row.details.length > 0 && !(row.kind === "question" && row.details.length === 1) && (
        <ul class="details">
          {row.details.map((line, n) => (
            <li key={n} class="told">
              {line}
            </li>
          ))}
        </ul>
      )}
      {!isWords && <Remedies commands={row.commands} />}
      {isWords && mayAct.value ? (
        <Words called={called} next={next} />
      ) : (
        <div class="answers">
          {mayAct.value &&
            steps.map(({ does, more, verb }) => (
              <button
                key={does}
                type="button"
                class="btn large"
                onClick={() => void act(verb, { name: called, ...more })}
              >
                {does}
              </button>
            ))}
          {board !== undefined && row.kind !== "conversation" && board.kind !== "matter" && (
            <a class="btn large" href={hrefOf(board)}>
              Open it<Kbd>↵</Kbd>
            </a>
          )}
          <span class="grow" />
          <button type="button" class="btn quiet-btn large" onClick={next}>
            Later<Kbd>j</Kbd>
          </button>
        </div>
      )}
    </>
  )
}
