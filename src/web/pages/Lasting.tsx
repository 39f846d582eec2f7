/**
 * Lasting: approves a call for longer than once: the user chooses a rule and how far it reaches, and sees what it
 * changes.
 *
 * Guarantees: nothing is approved before the whole change was on the screen. The approval names the hash of what was shown, so it is
 * refused if the call, the rule or the file has changed since.
 */
import { useRef, useState } from "preact/hooks"
import { type AnswerScope, scopeWords } from "../../approvals/AnswerScope.ts"
import type { AnswerPreview, AskedCall } from "../../domain/Messages.ts"
import { act } from "../PageActions.ts"
import { useKeys } from "../KeyMap.ts"
import { Failed, Kbd, Loading } from "../Ui.tsx"
import { useAnswer } from "../VerbQuery.ts"
import { Approve, type Read, useSettled, useWhole } from "../Whole.tsx"
import { DiffLines } from "./Config.tsx"

const MARKS = { run: "✓", ask: "?", deny: "✗" } as const

/** The parts of a call. A part that lacks leave stands out. */
export const Parts = ({ parts }: { readonly parts: NonNullable<AskedCall["parts"]> }) => (
  <ul class="parts" aria-label="Parts of the call">
    {parts.map(({ reason, text, verdict }, n) => (
      <li key={n} class={verdict === "run" ? "muted" : ""}>
        <span class={verdict === "run" ? "c-good" : "c-you"} aria-hidden="true">
          {MARKS[verdict]}
        </span>
        <span>
          {text !== "" && <code>{text}</code>} <span class="muted">{reason}</span>
          {verdict === "ask" && <b> lacks leave</b>}
        </span>
      </li>
    ))}
  </ul>
)

interface Row {
  readonly label: string
  readonly isCode: boolean
}
interface PickProps {
  readonly label: string
  readonly rows: ReadonlyArray<Row>
  readonly chosen: number
  readonly pick: (index: number) => void
}
const Pick = ({ chosen, label, pick, rows }: PickProps) => (
  <div>
    <h3 class="label">{label}</h3>
    <ul class="options" aria-label={label}>
      {rows.map((row, n) => (
        <li key={n}>
          <button type="button" aria-pressed={n === chosen} onClick={() => pick(n)}>
            {row.isCode && <kbd>{n + 1}</kbd>}
            <span>{row.isCode ? <code>{row.label}</code> : <b>{row.label}</b>}</span>
          </button>
        </li>
      ))}
    </ul>
  </div>
)

interface ChangeProps {
  readonly preview: AnswerPreview
  readonly read: Read
}
const Change = ({ preview: { diff, file, offer }, read }: ChangeProps) => (
  <div class="change" ref={read.box}>
    <h3 class="label">{file === null ? "Kept in the state of the run, and gone with it" : `Written into ${file}`}</h3>
    {file === null ? (
      <pre class="boxed">{offer.rules.map((rule) => `allow ${rule}`).join("\n")}</pre>
    ) : (
      <DiffLines diff={diff} />
    )}
  </div>
)

interface Props {
  readonly asked: AskedCall
  readonly next: () => void
  readonly cancel: () => void
}
export const Lasting = ({ asked, cancel, next }: Props) => {
  const { id, offers = [], onlyHere, scopes = [] } = asked
  const [offer, setOffer] = useState(0)
  const [scope, setScope] = useState<AnswerScope>(scopes[0] ?? "run")
  const [tries, setTries] = useState(0)
  const isBusy = useRef(false)
  const lasting = { scope, offer: offer + 1 }
  const { problem, value: preview } = useAnswer<AnswerPreview>("AnswerPreview", { name: id, lasting }, tries)
  const read = useWhole(preview?.hash)
  const isSettled = useSettled(read.isWhole ? preview?.hash : undefined)
  const approve = async () => {
    if (!read.isWhole) return read.goOn()
    if (preview === undefined || problem !== undefined || !isSettled() || isBusy.current) return
    isBusy.current = true
    if (await act("Answer", { name: id, decision: "allow", reason: "", hash: preview.hash, lasting })) next()
    else setTries(tries + 1)
    isBusy.current = false
  }
  useKeys((action) => {
    if (action.is === "approve") void approve()
    else if (action.is === "back") cancel()
    else if (action.is === "option" && action.option <= offers.length) setOffer(action.option - 1)
    else return false
    return true
  })
  const rows = offers.map(({ words }) => ({ label: words, isCode: true }))
  return (
    <section class="lasting" aria-label="Approve for longer">
      <div class="fields">
        <Pick label="What is allowed" rows={rows} chosen={offer} pick={setOffer} />
        <Pick
          label="How far it reaches"
          rows={scopes.map((one) => ({ label: scopeWords[one], isCode: false }))}
          chosen={scopes.indexOf(scope)}
          pick={(n) => setScope(scopes[n] ?? "run")}
        />
        {onlyHere !== undefined && <p class="muted">No longer than that: {onlyHere}</p>}
        {problem !== undefined && <Failed problem={problem} />}
      </div>
      {preview === undefined ? problem === undefined && <Loading /> : <Change preview={preview} read={read} />}
      <div class="answers">
        <Approve read={read} approve={() => void approve()}>
          Approve {scopeWords[scope]}
        </Approve>
        <span class="grow" />
        <button type="button" class="btn quiet-btn large" onClick={cancel}>
          Not so<Kbd>Esc</Kbd>
        </button>
      </div>
    </section>
  )
}
