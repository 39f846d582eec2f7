import { expect, it } from "@effect/vitest"
import { shown as bytes } from "../../../src/config/ByteCount.ts"
import { age, cut, paint, plain, table } from "../../../src/cli/render/Output.ts"
import { atOf } from "../../../src/cli/parse/TimeExpression.ts"
import { parse } from "../../../src/cli/render/MomentText.ts"
import { node, reaped } from "../../../src/cli/setup/DoctorChecks.ts"

it("columns line up whatever is in them", () => {
  const lines = table(
    ["A", "B", "C"],
    [
      [{ text: "日本", colour: "red" }, { text: "x" }, { text: "last" }],
      [{ text: "abcdef" }, { text: "longer" }, { text: "last" }]
    ],
    { colour: false, columns: null }
  )
  expect(lines).toEqual(["A       B       C", "日本    x       last", "abcdef  longer  last"])
})

it("colours do not move columns", () => {
  const rows = [[{ text: "Running", colour: "green" as const }, { text: "x" }]]
  const plainly = table(["STATE", "Y"], rows, { colour: false, columns: null })
  const coloured = table(["STATE", "Y"], rows, { colour: true, columns: null })
  // oxlint-disable-next-line no-control-regex
  expect(coloured.map((line) => line.replaceAll(/\u001b\[\d+m/g, ""))).toEqual(plainly)
  expect(coloured).not.toEqual(plainly)
})

it("the last column is cut to the terminal, and the cut is shown", () => {
  expect(table(["A", "B"], [[{ text: "a" }, { text: "x".repeat(50) }]], { colour: false, columns: 20 })[1]).toBe(
    `a  ${"x".repeat(16)}…`
  )
})

it("where the terminal is narrow, spare columns make room for what is going on", () => {
  const rows = [["web/coder", "main", "asks for shell"].map((text) => ({ text }))]
  const at = (columns: number | null) =>
    table(["AGENT", "BRANCH", "DETAIL"], rows, { colour: false, columns, spare: ["SINCE", "BRANCH"] })[1]
  expect(at(31)).toBe("web/coder  asks for shell")
  expect(at(33)).toBe("web/coder  main    asks for shell")
  expect(at(null)).toBe("web/coder  main    asks for shell")
})

it.each([
  ["short", 10, "short"],
  ["exactly10!", 10, "exactly10!"],
  ["elevenchars", 10, "elevencha…"],
  ["日本語", 4, "日…"]
])("%s in %i columns is %s", (text, columns, is) => expect(cut(text, columns)).toBe(is))

it("no control character is left of a text", () => {
  expect(plain("a\u001b[31m\u0007b\r\n\tc\u009b")).toBe("a·[31m·b c·")
})

it.each([
  [-5, "0s"],
  [59_999, "59s"],
  [60_000, "1m"],
  [3_599_999, "59m"],
  [3_600_000, "1h"],
  [86_400_000, "1d"]
])("%i ms is an age of %s", (millis, text) => expect(age(millis)).toBe(text))

it.each([
  [0, "0 B"],
  [999, "999 B"],
  [4096, "4.1 kB"],
  [250_000_000, "250 MB"]
])("%i bytes are %s", (count, text) => expect(bytes(count)).toBe(text))

it("without colour nothing is painted", () => expect(paint(false, "red", "x")).toBe("x"))

it.each([
  ["10m", { _tag: "Ago", millis: 600_000 }],
  ["2 hours", { _tag: "Ago", millis: 7_200_000 }],
  ["2026-11-21T09:00:00Z", { _tag: "At", at: Date.parse("2026-11-21T09:00:00Z") }],
  ["lunch", undefined],
  ["17", undefined],
  ["-5m", { _tag: "Ago", millis: 300_000 }],
  ["10min ago", { _tag: "Ago", millis: 600_000 }],
  ["yesterday", { _tag: "Day", back: 1 }],
  ["14:00", { _tag: "Clock", seconds: 50_400 }],
  ["now", { _tag: "Ago", millis: 0 }],
  ["2026-11-21", { _tag: "At", at: new Date(2026, 10, 21).getTime() }],
  ["24:00", undefined],
  ["ago", undefined],
  ["2026-99-99", undefined]
])("--since %s", (text, moment) => expect(parse(text)).toEqual(moment))

it.each([
  ["10m", new Date(2026, 10, 26, 13, 20).getTime()],
  ["today", new Date(2026, 10, 26).getTime()],
  ["yesterday", new Date(2026, 10, 25).getTime()],
  ["13:30", new Date(2026, 10, 26, 13, 30).getTime()],
  // today's is still to come
  ["14:00", new Date(2026, 10, 25, 14, 0).getTime()]
])("at half past one %s is then", (text, at) =>
  expect(atOf(parse(text)!, new Date(2026, 10, 26, 13, 30).getTime())).toBe(at)
)

it.each([
  ["v24.21.0", "ok"],
  ["v24.15.0", "ok"],
  ["v24.14.9", "fail"],
  ["v25.0.0", "ok"],
  ["v20.19.0", "fail"]
])("Node %s is %s", (version, level) => expect(node(version).level).toBe(level))

it("a daemon that is the first process of its container reaps nothing, which is told with the remedy", () =>
  expect(reaped(1)).toMatchObject([
    { name: "pid 1", level: "warn", remedy: expect.stringContaining("docker run --init") }
  ]))
