/** Board: writes the measured figures of the board into docs/board.md, from the recordings. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { figuresOf, type Figures, type Played, type Recording } from "../board/Recording.ts"
import { table } from "./Markdown.ts"

const folder = join(import.meta.dirname, "../../test/fixtures/board")
const WORDS = { ready: "before the first prompt", approval: "needs you: approval", question: "needs you: question" }

export const recordings = (): ReadonlyArray<Recording> =>
  (existsSync(folder) ? readdirSync(folder) : []).toSorted().map((name) => {
    const [of, ...played] = readFileSync(join(folder, name), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    return { ...of, played } as Recording
  })

const percent = (share: number): string => `${(Math.floor(share * 1_000) / 10).toFixed(1)} %`
const row = (name: string, { changes, missed, p99, right, seconds, state }: Figures): ReadonlyArray<string> => [
  name,
  state in WORDS ? WORDS[state as keyof typeof WORDS] : state,
  seconds.toFixed(0),
  percent(right),
  missed === 0 ? `all ${changes}` : `${changes - missed} of ${changes}`,
  p99 === undefined ? "" : `${p99} ms`
]

const rowsOf = ({ name, played, version }: Recording): ReadonlyArray<ReadonlyArray<string>> => {
  const of = (bare: boolean, title: string) => {
    const those: ReadonlyArray<Played> = played.filter((one) => one.bare === bare)
    return figuresOf(those.flatMap(({ tracks }) => tracks)).map((figures, index) =>
      row(index === 0 ? title : "", figures)
    )
  }
  return [...of(false, `${name} ${version}`), ...of(true, `${name} without hooks`)]
}

const PLACE = /(<!-- measured -->\n)[^]*?(<!-- \/measured -->)/

/** The page with the current table. */
export const render = (page: string): string => {
  if (!PLACE.test(page)) throw new Error("docs/board.md has no place for the figures")
  const head = ["CLI", "state of the terminal", "seconds", "the row was right", "changes shown", "p99 of the delay"]
  return page.replace(
    PLACE,
    (_, begin: string, end: string) => `${begin}\n${table(head, recordings().flatMap(rowsOf))}\n\n${end}`
  )
}
