/**
 * Every pattern of src is linear: a text four times as long costs about four times the
 * steps, whatever the text is. Steps are counted, not timed. A pattern that is new in src
 * is taken up here by itself.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { saidIn } from "../src/model-agent/ProviderFault.ts"
import { obstacles } from "../src/cli/setup/HookSettings.ts"
import { Redact } from "../src/core/event-log/Redact.ts"
import { jsonIn } from "../src/goals/AnswerJson.ts"
import * as HookEvent from "../src/plates/HookEvent.ts"
import { CountedPattern } from "./support/RegexpSteps.ts"
import { parse } from "./support/SourceFile.ts"

const root = join(import.meta.dirname, "..")
const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .toSorted()
  .map((name) => parse(join("src", name), readFileSync(join(root, "src", name), "utf8")))

/** Takes a person's own pattern, for one command of that person's. */
const ASKED = "src/cli/log/LogsWords.ts"

/** Patterns that are composed at run time, caught as their module composes them. */
const composing = files
  .filter(({ composes }) => composes > 0)
  .map(({ path }) => path)
  .filter((path) => path !== ASKED)
const composed: Array<{ readonly path: string; readonly source: string; readonly flags: string }> = []
const Native = globalThis.RegExp
globalThis.RegExp = new Proxy(Native, {
  construct: (target, args: ConstructorParameters<typeof RegExp>, newTarget) => {
    const made = new target(...args)
    const path = composing.find((one) => new Error("where").stack?.includes(one))
    if (path !== undefined) composed.push({ path, source: made.source, flags: made.flags })
    return Object.setPrototypeOf(made, newTarget.prototype) as RegExp
  }
})
for (const path of composing) await import(join(root, path))
globalThis.RegExp = Native

const patterns = [...files.flatMap(({ path, patterns }) => patterns.map((one) => ({ path, ...one }))), ...composed]

/** Longer by four: a linear pattern takes four times the steps, a quadratic one sixteen times. */
const GROWTH = 6

type Pump = (length: number) => string

const grows = (pattern: CountedPattern, pump: Pump, short: number): boolean => {
  const limit = GROWTH * pattern.stepsOver(pump(short), 1_000_000)
  return pattern.stepsOver(pump(4 * short), limit) > limit
}

/** The second look is longer than any count in a pattern, which looks quadratic up to that count. */
const superlinear = (pattern: CountedPattern, pump: Pump): boolean =>
  grows(pattern, pump, 96) && grows(pattern, pump, 1024)

/** A text that costs more than it should. */
const culprit = (source: string, flags: string): string | undefined => {
  const pattern = new CountedPattern(source, flags)
  return pattern.unbounded ? pattern.pumps().find((pump) => superlinear(pattern, pump))?.(48) : undefined
}

describe("patterns", () => {
  for (const { path, source, flags } of patterns)
    it(`${path}: /${source}/${flags} is linear`, () => {
      expect(culprit(source, flags)).toBeUndefined()
    })

  it("each module that composes patterns has shown one", () => {
    expect([...new Set(composed.map(({ path }) => path))].toSorted()).toEqual(composing)
  })

  it("the counting machine finds what RegExp finds", () => {
    for (const { source, flags } of patterns) {
      const counted = new CountedPattern(source, flags)
      const pumps = counted.unbounded ? counted.pumps() : []
      for (const text of ["", "a", ...pumps.map((pump) => pump(24))]) {
        const global = /[gy]/.test(flags)
        const real = [...text.matchAll(new RegExp(source, `${flags.replaceAll(/[gy]/g, "")}g`))]
        const found = real.map((match) => [match.index, match.index + match[0].length])
        expect([source, text, counted.all(text).map(({ index, end }) => [index, end])]).toEqual([
          source,
          text,
          global ? found : found.slice(0, 1)
        ])
      }
    }
  })

  // Patterns that stood in src, and the shapes that the machine must not miss.
  const known: ReadonlyArray<readonly [source: string, flags: string]> = [
    [String.raw`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`, "g"],
    [String.raw`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----`, "g"],
    [String.raw`\s*$`, ""],
    [String.raw`\s*\n\s*`, "g"],
    [String.raw`<(style|script)[\s\S]*?<\/\1>|<[^>]*>`, "g"],
    [String.raw`^(a|b)*\w*\d*x$`, ""],
    [String.raw`^(\w+\s?)*$`, ""],
    [String.raw`\d+(?=px)`, "i"]
  ]
  for (const [source, flags] of known)
    it(`canary: /${source}/${flags} is caught`, () => {
      expect(culprit(source, flags)).toBeDefined()
    })
})

/**
 * Readers of foreign text in several passes: ten times the text costs about ten times as long,
 * a hundred times where the reader is quadratic. Both are taken in turns until the least of each
 * shows it: other programs on the machine can lengthen a round, and shorten none.
 */
describe("readers of foreign text", () => {
  const MAX_ROUNDS = 100
  /** Of a linear reader it is 10, of a quadratic one 100. */
  const LINEAR = 40
  /** ms; what is shorter than a moment is no measure. */
  const MOMENT = 1
  /** ms of this thread's own work: what else the machine does counts for nothing. */
  const worked = (): number => {
    const { system, user } = process.threadCpuUsage()
    return (system + user) / 1_000
  }
  const isLinear = (read: (length: number) => void): boolean => {
    let [short, long] = [Infinity, Infinity]
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const began = worked()
      read(100_000)
      const between = worked()
      read(1_000_000)
      short = Math.min(short, between - began)
      long = Math.min(long, worked() - between)
      if (long < LINEAR * Math.max(short, MOMENT)) return true
    }
    return false
  }
  const redact = Effect.runSync(Redact.pipe(Effect.provide(Redact.layer)))
  const attacks: ReadonlyArray<readonly [reader: string, unit: string, read: (text: string) => unknown]> = [
    ...[
      "eyJ-",
      "eyJaaaaaaaaaaaa.",
      "-eyJaaaaaaaaaa",
      "-----BEGIN PRIVATE KEY-----",
      "-----END ",
      "sk-",
      "AKIA",
      " "
    ].flatMap((unit): ReadonlyArray<readonly [string, string, (text: string) => unknown]> => [
      ["Redact.text", unit, redact.text],
      ["Redact.json", unit, (text) => redact.json(JSON.stringify({ text, [text]: [text] }))]
    ]),
    ...["<", "<style", "<style>", "<script>a", "<a "].map((unit) => ["ProviderFault.saidIn", unit, saidIn] as const),
    ...["```", "```json\n", "```a\n{", "{", "`"].map((unit) => ["Answer.jsonIn", unit, jsonIn] as const),
    ["HookSettings.obstacles", "*1", (text) => obstacles({ allowedHttpHookUrls: [text] }, 1111)],
    [
      "HookEvent.decode",
      "<task-notification><task-id>",
      (prompt) => HookEvent.parse({ hook_event_name: "UserPromptSubmit", session_id: "s", cwd: "/", prompt }, 0)
    ]
  ]
  for (const [reader, unit, read] of attacks)
    it(`${reader} reads ${JSON.stringify(unit)} over and over in linear time`, () => {
      expect(isLinear((length) => read(unit.repeat(length / unit.length)))).toBe(true)
    })
})
