/**
 * Chat: shows an agent's conversation. A tool call is shown as one line. Failed calls and diffs are unfolded at first.
 *
 * Guarantees: an agent's text is shown as plain text, and never as HTML. Unchanged items are not rendered again.
 */
import { Component, type FunctionComponent } from "preact"
import { briefOf, fieldsOf } from "./Call.tsx"
import { hrefTo } from "./Router.ts"
import type { Item, Note, Printed, Said, Thought, ToolUse } from "./ChatItems.ts"
import { Clock, Glyph, Kbd, Patch, rich } from "./Ui.tsx"

const took = (ms: number): string =>
  ms < 1_000
    ? `${ms} ms`
    : ms < 60_000
      ? `${Math.round(ms / 1_000)} s`
      : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`

const field = (input: string, ...names: ReadonlyArray<string>): string | undefined =>
  fieldsOf(input).find(([name]) => names.includes(name))?.[1]

/** A diff of the text before and after a change. Equal lines at the beginning and end are shown as context. Pure. */
export const patchOf = (goes: string, comes: string): string => {
  const [before, after] = [goes.split("\n"), comes.split("\n")]
  let head = 0
  while (head < Math.min(before.length, after.length) && before[head] === after[head]) head++
  let tail = 0
  while (
    tail < Math.min(before.length, after.length) - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  )
    tail++
  return [
    ...before.slice(0, head).map((line) => ` ${line}`),
    ...before.slice(head, before.length - tail).map((line) => `-${line}`),
    ...after.slice(head, after.length - tail).map((line) => `+${line}`),
    ...before.slice(before.length - tail).map((line) => ` ${line}`)
  ].join("\n")
}

/** The diff of a file change that a call's input contains; undefined if it contains none. */
const changeIn = (input: string): string | undefined => {
  const goes = field(input, "old", "old_string", "oldText", "old_str")
  const comes = field(input, "new", "new_string", "newText", "new_str")
  return goes === undefined || comes === undefined ? undefined : patchOf(goes, comes)
}

const lineOf = (input: string): string =>
  field(input, "command", "path", "file_path", "pattern", "url", "query") ?? briefOf(input)

const WORDS = {
  running: "working",
  asks: "needs you",
  done: "done",
  failed: "failed",
  denied: "paused",
  stopped: "paused"
} as const

const isCount = (sign: string) => (line: string) => line.startsWith(sign)

const Tool = ({ item }: { readonly item: ToolUse }) => {
  const { by, id, output, status, tool, took: ms } = item
  const input = typeof item.input === "string" ? item.input : JSON.stringify(item.input ?? {})
  const change = changeIn(input)
  const lines = change?.split("\n") ?? []
  if (status === "asks") return <Asks id={id} tool={tool} input={input} at={item.at} />
  return (
    <details class="tool" open={change !== undefined || status === "failed"}>
      <summary>
        <Glyph word={WORDS[status]} size={12} />
        <b>{tool}</b>
        <code>{lineOf(input)}</code>
        {change !== undefined && (
          <span class="num small">
            <span class="c-good">+{lines.filter(isCount("+")).length}</span>{" "}
            <span class="c-failed">−{lines.filter(isCount("-")).length}</span>
          </span>
        )}
        {status === "denied" && <span class="small muted">denied</span>}
        {ms !== undefined && <span class="num faint small">{took(ms)}</span>}
      </summary>
      {change !== undefined && <Patch text={change} label={`Change by ${tool}`} />}
      {(change === undefined || status === "failed") && output !== "" && (
        <pre tabIndex={0} role="region" aria-label={`Output of ${tool}`}>
          {output}
        </pre>
      )}
      {by !== "" && <p class="small faint by">{status === "denied" ? `denied by ${by}` : `approved by ${by}`}</p>}
    </details>
  )
}

const Asks = ({ at, id, input, tool }: Pick<ToolUse, "at" | "id" | "tool"> & { readonly input: string }) => (
  <div class="ask-card">
    <p class="line">
      <Glyph word="needs you" />
      <b class="grow">asks to run {tool}</b>
      <Clock at={at} />
    </p>
    <pre tabIndex={0} role="region" aria-label={`What ${tool} would do`}>
      {lineOf(input)}
    </pre>
    <a class="btn you" href={hrefTo("needs", id)}>
      Look at it<Kbd>a</Kbd>
    </a>
  </div>
)

/** Shows a text: paragraphs, and code blocks between fences. */
const Body = ({ text }: { readonly text: string }) => (
  <>
    {text.split(/^```[^\n]*\n?/m).map((part, n) =>
      n % 2 === 1 ? (
        <pre key={n} class="fence" tabIndex={0} role="region" aria-label="Code">
          {part.replace(/\n$/, "")}
        </pre>
      ) : (
        part
          .split(/\n{2,}/)
          .filter((one) => one.trim() !== "")
          .map((one, m) => (
            <p key={`${n} ${m}`} class="told">
              {rich(one.replace(/^\n+|\s+$/g, ""))}
            </p>
          ))
      )
    )}
  </>
)

const Message = ({ item, name }: { readonly item: Said; readonly name: string }) => {
  const { at, by, how, isOpen, isWaiting, text } = item
  return (
    <article class={by === "" ? "msg" : "msg mine"}>
      <header>
        <b>{by === "" ? name : by}</b>
        {how !== "" && <span class="chip">{how}</span>}
        {isWaiting && <span class="chip">waits</span>}
        <Clock at={at} />
      </header>
      <Body text={text} />
      {isOpen && <i class="caret" role="img" aria-label="still arriving" />}
    </article>
  )
}

const Aside = ({ item: { at, isBad, text } }: { readonly item: Note }) => (
  <p class={isBad ? "notice c-failed" : "notice"}>
    {text} <Clock at={at} />
  </p>
)

const Thinks = ({ item: { at, isOpen, text, took: ms } }: { readonly item: Thought }) => (
  <details class="thought">
    <summary>
      <span class="muted">{isOpen ? "thinks …" : ms < 1_000 ? "thought" : `thought for ${took(ms)}`}</span>
      <span class="clip faint grow">{text.trim().split("\n", 1)[0]}</span>
      <Clock at={at} />
    </summary>
    <Body text={text} />
  </details>
)

const Output = ({ item: { isError, text } }: { readonly item: Printed }) => (
  <pre class={isError ? "printed c-failed" : "printed"} tabIndex={0} role="region" aria-label="Output">
    {text}
  </pre>
)

interface OneProps {
  readonly item: Item
  readonly name: string
}
const Any: FunctionComponent<OneProps> = ({ item, name }) => {
  switch (item.is) {
    case "said":
      return <Message item={item} name={name} />
    case "tool":
      return <Tool item={item} />
    case "note":
      return <Aside item={item} />
    case "printed":
      return <Output item={item} />
    case "thought":
      return <Thinks item={item} />
  }
}

/** Shows one item of the conversation. It is rendered again only when `item` is a different object. */
class One extends Component<OneProps> {
  override shouldComponentUpdate(next: OneProps): boolean {
    return next.item !== this.props.item
  }
  override render() {
    return <Any {...this.props} />
  }
}

export const Chat = ({ items, name }: { readonly items: ReadonlyArray<Item>; readonly name: string }) => (
  <>
    {items.map((item) => (
      <One key={item.key} item={item} name={name} />
    ))}
  </>
)
