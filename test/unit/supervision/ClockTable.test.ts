/** The table of docs/clocks.md: each place of the daemon that waits, or reads a clock, is named there, and none that does not. */
import { assert, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"

const WAITS =
  /Effect\.(sleep|delay|timeout|schedule)|Schedule\.(spaced|recurs|exponential|fixed)|setTimeout|setInterval|Stream\.(debounce|tick|schedule|groupedWithin|throttle)|untilItPasses\(|Backoff\.waits/
const MONOTONIC = /Monotonic\.now|monotonicTimeNanos|performance\.now|hrtime/
const WALL = /currentTimeMillis|currentTimeNanos|DateTime\.now|Date\.now|new Date\(\)/

const root = resolve(import.meta.dirname, "../../..")
const doc = readFileSync(join(root, "docs", "clocks.md"), "utf8")

const table = doc.split("\n").filter((line) => line.startsWith("|"))
const listed = (title: string): ReadonlyArray<string> => {
  const [, list = ""] = new RegExp(`\\*\\*${title}\\*\\*[^:]*:\\n([^]*?)\\.\\n\\n`).exec(doc) ?? []
  return [...list.matchAll(/`([^`]+)`/g)].map(([, path]) => path!)
}
const [onlyWait, onlyStamp] = [listed("Only wait"), listed("Only stamp")]

const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((path) => /\.(ts|mjs)$/.test(path) && !path.startsWith("cli/"))
  .map((path) => ({ path, text: readFileSync(join(root, "src", path), "utf8") }))

const uses = (text: string) => WAITS.test(text) || MONOTONIC.test(text) || WALL.test(text)

/** By its name, by its path, or by its folder. */
const isInTable = (path: string): boolean =>
  table.some((row) => {
    const name = basename(path)
    return row.includes(`\`${name}\``) || row.includes(`/${name}\``) || row.includes(`\`${dirname(path)}/\``)
  })

it("each place that waits or reads a clock is named in docs/clocks.md", () => {
  const left = sources.filter(({ path, text }) => uses(text) && !isInTable(path))
  assert.deepStrictEqual(
    left.map(({ path }) => path).filter((path) => !onlyWait.includes(path) && !onlyStamp.includes(path)),
    []
  )
})

it("what only waits reads no wall clock, and what is named is there", () => {
  const textOf = (path: string) => sources.find((source) => source.path === path)?.text ?? ""
  assert.deepStrictEqual(
    onlyWait.filter((path) => WALL.test(textOf(path)) || !uses(textOf(path))),
    []
  )
  assert.deepStrictEqual(
    onlyStamp.filter((path) => !WALL.test(textOf(path))),
    []
  )
})

it("each test that the table names is there", () => {
  const tests = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" }).map((path) => basename(path))
  const named = table.flatMap((row) => [...row.matchAll(/`(\w+\.test\.ts)`/g)].map(([, name]) => name!))
  assert.isNotEmpty(named)
  assert.deepStrictEqual(
    named.filter((name) => !tests.includes(name)),
    []
  )
})
