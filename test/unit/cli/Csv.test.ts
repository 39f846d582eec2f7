import { expect, it } from "@effect/vitest"
import { csv, type Field, moment } from "../../../src/cli/render/Csv.ts"

const fields: ReadonlyArray<Field<{ readonly a: string; readonly n: number | null }>> = [
  { name: "a", of: ({ a }) => a },
  { name: "n", of: ({ n }) => n }
]

/** As RFC 4180 reads it. */
const readBack = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  const rows: Array<Array<string>> = [[""]]
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const [one, row] = [text[at]!, rows.at(-1)!]
    if (quoted && one === '"' && text[at + 1] === '"') row.push(row.pop()! + text[++at]!)
    else if (one === '"') quoted = !quoted
    else if (!quoted && one === ",") row.push("")
    else if (!quoted && one === "\n") rows.push([""])
    else row.push(row.pop()! + one)
  }
  return rows
}

it("each field is read back as it is, with a header", () => {
  const texts = ["plain", 'a "quote"', "comma, and\nline\r\nbreak", "", "'already", "文字"]
  const lines = csv(
    fields,
    texts.map((a, n) => ({ a, n }))
  )
  expect(readBack(lines.join("\n"))).toEqual([["a", "n"], ...texts.map((a, n) => [a, String(n)])])
})

it.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("x")'])("%j is no formula", (a) => {
  const [, row] = csv(fields, [{ a, n: -1 }])
  expect(readBack(row!)).toEqual([[`'${a}`, "-1"]])
})

it("what is not known is empty; parts of a cent have an end", () => {
  expect(csv(fields, [{ a: "x", n: null }])[1]).toBe("x,")
  expect(csv(fields, [{ a: "x", n: 0.1 + 0.2 }])[1]).toBe("x,0.3")
  expect([moment(0), moment(null)]).toEqual(["1970-01-01T00:00:00.000Z", null])
})
