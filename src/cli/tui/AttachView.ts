/**
 * AttachView: turns the items of an agent's conversation into lines for a terminal. Pure except for its memory of
 * unfinished text and calls.
 *
 * Guarantees: the number of lines per item and their length are limited. No line can control the terminal.
 */
import { type About, ConversationView, type Item, textOf } from "../../board/ConversationView.ts"
import type { Rune } from "../../core/event-log/Rune.ts"
import { age, type Colour, cut, plain, plainLines } from "../render/Output.ts"
import { choices } from "../daemon/Waiting.ts"

export interface Line {
  readonly text: string
  readonly colour?: Colour | undefined
}
/** A line of an item, with its kind and severity. `isHint`: true if the line only helps a user at this terminal. */
export interface ItemLine extends Line, Pick<About, "level" | "what"> {
  readonly isHint?: true
}

/** Maximum length of a line in characters, then maximum numbers of lines for several kinds of items. */
const LONG = 2000
const SHORT = 300
const INPUT_LINES = 12
const ANSWER_LINES = 400
const RESULT_LINES = 8
const PROGRESS_LINES = 200
const THOUGHT_LINES = 40
/** Maximum length of an unfinished line in characters. A line that becomes longer is printed before it is complete. */
const PARTIAL = 4000

type Of<Is extends Item["is"]> = Extract<Item, { readonly is: Is }>
type How = Pick<About, "level" | "what">

const said: How = { level: "info", what: "output" }
const line = ({ level, what }: How, text: string, colour?: Colour): ItemLine => ({
  text: cut(text, LONG),
  colour,
  level,
  what
})
const hint = (text: string, colour?: Colour): ItemLine => ({
  ...line({ level: "notice", what: "decision" }, text, colour),
  isHint: true
})

/** The first `most` lines of a text, each with `margin` in front. If there are more, a last line says how many. */
const block = (how: How, whole: string, most: number, margin: string, colour?: Colour): ReadonlyArray<ItemLine> => {
  const lines = plainLines(whole.trimEnd())
  const shown = lines.slice(0, most).map((each) => line(how, `${margin}${each}`, colour))
  return lines.length <= most ? shown : [...shown, line(how, `${margin}… ${lines.length - most} more lines`, "dim")]
}

/** The colour for an item: red for an error, yellow for a warning, otherwise the colour `otherwise`. */
const shade = ({ level }: How, otherwise?: Colour): Colour | undefined =>
  level === "error" ? "red" : level === "warning" ? "yellow" : otherwise

export class AttachView {
  /** The last line of the agent's answer, which is not complete yet. */
  partial = ""
  private readonly view = new ConversationView()
  /** The last line of the agent's thought, which is not complete yet. */
  private thought = ""
  /** Number of lines of the thought so far. */
  private thoughtLines = 0
  private readonly progress = new Map<string, number>()

  feed(rune: Rune): ReadonlyArray<ItemLine> {
    return this.view.feed(rune).flatMap((item) => this.show(item))
  }

  show(item: Item): ReadonlyArray<ItemLine> {
    if (item.is === "piece") {
      return item.of === "answer"
        ? [...this.thoughtOver(), ...this.answers(item.text)]
        : [...this.answerOver(), ...this.thinks(item.text)]
    }
    return [...this.flush(), ...this.lines(item)]
  }

  flush(): ReadonlyArray<ItemLine> {
    return [...this.thoughtOver(), ...this.answerOver()]
  }

  private answerOver(): ReadonlyArray<ItemLine> {
    const { partial } = this
    this.partial = ""
    return partial === "" ? [] : [line(said, partial)]
  }

  private thoughtOver(): ReadonlyArray<ItemLine> {
    const { thought } = this
    const last = thought === "" ? [] : this.thoughts([thought])
    ;[this.thought, this.thoughtLines] = ["", 0]
    return last
  }

  private thinks(text: string): ReadonlyArray<ItemLine> {
    const lines = plainLines(this.thought + text)
    this.thought = lines.at(-1) ?? ""
    const done = this.thoughts(lines.slice(0, -1))
    if (this.thought.length <= PARTIAL) return done
    const rest = this.thoughts([this.thought])
    this.thought = ""
    return [...done, ...rest]
  }

  /** The lines of a thought up to a limit. After the limit, one line says that there are more. */
  private thoughts(lines: ReadonlyArray<string>): ReadonlyArray<ItemLine> {
    const left = THOUGHT_LINES - this.thoughtLines
    this.thoughtLines += lines.length
    const shown = lines.slice(0, Math.max(0, left)).map((each) => line(said, `  ┊ ${each}`, "dim"))
    return left > 0 && lines.length > left ? [...shown, line(said, "  ┊ … the rest is in the log", "dim")] : shown
  }

  private answers(text: string): ReadonlyArray<ItemLine> {
    const lines = plainLines(this.partial + text)
    this.partial = lines.at(-1) ?? ""
    const done = lines.slice(0, -1).map((each) => line(said, each))
    return this.partial.length > PARTIAL ? [...done, ...this.flush()] : done
  }

  private lines(item: Exclude<Item, { readonly is: "piece" }>): ReadonlyArray<ItemLine> {
    const text = () => plain(item.text)
    switch (item.is) {
      case "begin":
        if (item.isTold) return []
        return [
          hint(""),
          line(item, `▶ ${text()}`, "bold"),
          ...block(item, item.input, INPUT_LINES, "  ", "dim").map((each) => ({ ...each, isHint: true as const }))
        ]
      case "answer":
        return block(item, item.text, ANSWER_LINES, "")
      case "printed":
        return block(item, item.text, ANSWER_LINES, "", item.isError ? "dim" : undefined)
      case "over":
        return [line(item, this.over(item), shade(item, "green"))]
      case "call":
        return [line(item, `⚙ ${plain(item.tool)} ${cut(plain(textOf(item.input).slice(0, LONG)), SHORT)}`, "cyan")]
      case "asks":
        return asked(item)
      case "answered":
      case "withdrawn":
        return [line(item, `  ${text()}`, shade(item, "dim"))]
      case "progress":
        return this.progressed(item)
      case "result":
        this.progress.delete(item.id)
        return [
          line(item, `  → ${text()}`, shade(item, "dim")),
          ...block(said, item.output, RESULT_LINES, "    ", "dim")
        ]
      case "message":
        return received(item)
      case "run":
        return [
          line(
            item,
            `${item.how === "stopped" ? "■" : "—"} ${text()}`,
            shade(item, item.how === "stopped" ? undefined : "dim")
          )
        ]
      case "note":
        return [
          line(
            item,
            item.sign === "" ? text() : `${item.sign} ${text()}`,
            shade(item, item.sign === "★" ? "green" : "dim")
          )
        ]
      case "inbox":
      case "usage":
        return []
    }
  }

  private over({ how, text, took, usage }: Of<"over">): string {
    if (how !== "completed") return `${how === "failed" ? "✗" : "■"} ${plain(text)}`
    return `✓ ${plain(text)}${took === undefined ? "" : ` after ${age(took)}`}${usage}`
  }

  private progressed(item: Of<"progress">): ReadonlyArray<ItemLine> {
    const before = this.progress.get(item.id) ?? 0
    if (before >= PROGRESS_LINES) return []
    const lines = block(item, item.text, PROGRESS_LINES - before, "  │ ", "dim")
    this.progress.set(item.id, before + lines.length)
    return before + lines.length >= PROGRESS_LINES
      ? [...lines, line(item, "  │ … the rest is in the log", "dim")]
      : lines
  }
}

const asked = (item: Of<"asks">): ReadonlyArray<ItemLine> => {
  const id = plain(item.id)
  const question = line(item, `? ${plain(item.text)}`, "yellow")
  if (item.questions === undefined) return [question, hint(`  /approve ${id}   or   /deny ${id} why`, "yellow")]
  return [
    question,
    ...choices(item.questions).map((each) => line({ ...item, level: "notice" }, `  ${each}`, "cyan")),
    hint(`  type ${item.questions.map(() => "1").join("; ")}   or   /answer ${id} a text`, "yellow")
  ]
}

const received = (item: Of<"message">): ReadonlyArray<ItemLine> => {
  const how = item.how === "urgent" ? ", urgent" : ""
  return [
    line(item, `✉ from ${plain(item.by)}${how}: ${cut(plain(item.text.slice(0, LONG)), SHORT)}`, "cyan"),
    ...item.files.map((file) => line(item, `  with ${cut(plain(file), SHORT)}`, "cyan"))
  ]
}
