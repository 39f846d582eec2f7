/**
 * Call: shows a whole tool call: everything that it would do.
 *
 * Guarantees: nothing is left out. A warning names words that mix letters of several alphabets. Each line has its
 * number.
 */
import type { AskedCall } from "../domain/Messages.ts"
import { telling } from "../domain/CallSummary.ts"
import { lookalikes } from "../domain/VisibleText.ts"

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2))

/** The names and values of the fields in a call's input. Pure. */
export const fieldsOf = (input: string): ReadonlyArray<readonly [name: string, text: string]> => {
  const value = parsed(input)
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [["", textOf(value)]]
  return Object.entries(value).map(([name, one]) => [name, textOf(one)])
}

/** A one-line summary of a call, for lists. Pure. */
export const briefOf = (input: string): string => telling(input, 400) || input

/** Shows in bold the parts of a shell command that change its effect: options and operators. */
const emphasised = (line: string) =>
  line.split(/(\s--?[\w-]+\b\s*|(?:&&|\|\||;|\|)\s*)/).map((part, n) => (n % 2 === 1 ? <b key={n}>{part}</b> : part))

interface LinesProps {
  readonly text: string
  readonly label: string
  readonly tone?: "add" | "del" | ""
  readonly isShell?: boolean
}
const Lines = ({ isShell = false, label, text, tone = "" }: LinesProps) => (
  <pre class={`call ${tone}`} tabIndex={0} role="region" aria-label={label}>
    {text.split("\n").map((line, n) => (
      <div key={n}>
        <span class="ln" aria-hidden="true">
          {n + 1}
        </span>
        <code>{isShell ? emphasised(line) : line}</code>
      </div>
    ))}
  </pre>
)

/** Matches field names that tools use for the old text of an edit. */
const GOES = /^(old|old_string|oldText|old_text)$/
const COMES = /^(new|new_string|newText|new_text|content|text)$/

interface CallProps {
  readonly asked: Pick<AskedCall, "input">
  /** Distinguishes the names of the fields if several calls are shown. */
  readonly of?: string
}
export const Call = ({ asked: { input }, of = "" }: CallProps) => {
  const fields = fieldsOf(input)
  const hasOld = fields.some(([name]) => GOES.test(name))
  const mixed = lookalikes(fields.flat().join("\n"))
  return (
    <div class="fields">
      {fields.map(([name, text]) => (
        <div key={name}>
          {(fields.length > 1 || name !== "command") && name !== "" && <h3 class="label">{name}</h3>}
          <Lines
            text={text}
            label={`${name === "" ? "input" : name}${of}`}
            isShell={name === "command" || name === "cmd"}
            tone={hasOld && GOES.test(name) ? "del" : hasOld && COMES.test(name) ? "add" : ""}
          />
        </div>
      ))}
      {mixed.length > 0 && (
        <p class="c-failed" role="note">
          Letters of more than one alphabet: {mixed.join(", ")}
        </p>
      )}
    </div>
  )
}
