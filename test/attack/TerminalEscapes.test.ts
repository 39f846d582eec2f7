/**
 * Terminal escapes: what an agent, a repository or a peer says speaks to no terminal. Every string
 * of every reply is made hostile and goes through each verb's view and the door; the other ways
 * out (errors, the whole program's verbs, live screens) by what was sent through them before.
 */
import { assert, describe, expect, it } from "@effect/vitest"
import { Arbitrary, Console, Effect, Schema, Stdio } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { RpcSchema } from "effect/rpc"
import { SHOWN } from "../../src/board/ConversationView.ts"
import { AttachView } from "../../src/cli/tui/AttachView.ts"
import { linesOf } from "../../src/cli/parse/DeclaredVerb.ts"
import { declared } from "../../src/cli/parse/DeclaredVerbs.ts"
import { behind } from "../../src/cli/render/ProgramConsole.ts"
import { explain, told } from "../../src/cli/render/ErrorText.ts"
import * as LineEditor from "../../src/cli/tui/LineEditor.ts"
import { compose } from "../../src/cli/tui/LiveScreen.ts"
import { parse } from "../../src/cli/parse/QuickArgs.ts"
import { json, through } from "../../src/cli/render/TerminalDoor.ts"
import { Control } from "../../src/api/rpc/Protocol.ts"
import { lines } from "../world/cli/QuickLines.ts"

/** A colour, the clipboard, a title's end, a one-byte CSI, a turned reading direction, nothing at all. */
const HOSTILE = "evil\u001b[31mred\u001b]52;c;Y3VybA==\u0007\u009b2J\u202etxt\u200b\r\u0008"
// oxlint-disable-next-line no-control-regex
const RAW = /(?![\n\t])[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u
// oxlint-disable-next-line no-control-regex
const OURS = /\u001b\[(?:[0-2]|3[1-6]|90)m/gu
const WORLD = { now: 1_800_000_000_000, columns: null, world: null }
const caller = { by: "ada", config: "/p/agentd.jsonc" }

type Path = ReadonlyArray<string>
interface Node {
  readonly [key: string]: unknown
}

/** Where texts and numbers stand. */
const leavesIn = (value: unknown, at: Path = []): ReadonlyArray<Path> => {
  if (typeof value === "string" || typeof value === "number") return [at]
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => leavesIn(inner, [...at, key]))
}

const put = (value: unknown, [key, ...rest]: Path, text: string): unknown => {
  // numbers that a daemon could say
  if (key === undefined) return typeof value === "number" ? Math.abs(Math.trunc(value || 0)) % 20 : text
  const inner = put((value as Node)[key], rest, text)
  return Array.isArray(value) ? value.with(Number(key), inner) : { ...(value as Node), [key]: inner }
}

/** The value with the hostile text wherever its schema takes any text. */
const poisoned = (schema: Schema.Constraint, whole: unknown): unknown => {
  const fits = Schema.is(schema as Schema.Codec<unknown>)
  return leavesIn(whole).reduce((value, path, index) => {
    const changed = put(value, path, `${HOSTILE}${index}`)
    return fits(changed) ? changed : value
  }, whole)
}

/** Replies of a procedure, by its schema. */
const repliesOf = (tag: string, seed: number): ReadonlyArray<unknown> => {
  const { successSchema } = Control.requests.get(tag)! as unknown as { readonly successSchema: Schema.Constraint }
  const isStream = RpcSchema.isStreamSchema(successSchema)
  const schema: Schema.Constraint = isStream ? successSchema.success : successSchema
  const values = Effect.runSync(Arbitrary.sampleEffect(Arbitrary.schema(schema), { count: SAMPLES, seed }))
  const hostile = values.map((value) => poisoned(schema, value))
  return isStream ? hostile.map((_, index) => hostile.slice(index)) : hostile
}

const SAMPLES = 12

/** All that a line of the command line may print. */
const printed = (line: string, seed: number, as: "coloured" | "plain" | "json"): ReadonlyArray<string> => {
  const { input, verb } = parse(line.split(" "), declared)!
  const ask = verb.rpc(input as never, caller, WORLD)
  const replies = ask.calls.map(({ tag }, index) => repliesOf(tag, seed + index))
  return Array.from({ length: SAMPLES }, (_, index) => index).flatMap((index) => {
    const value = ask.value(replies.map((all) => all[index]))
    return linesOf(verb, value, { ...WORLD, colour: as === "coloured" }, as === "json")
  })
}

describe("no string of a reply speaks to the terminal", () => {
  for (const [verb, [line]] of Object.entries(lines)) {
    it(verb, () => {
      for (const seed of [1, 2]) {
        const plain = printed(line!, seed, "plain").map((one) => through(one, false))
        for (const one of plain) assert.notMatch(one, RAW)
        for (const one of printed(line!, seed, "coloured")) {
          assert.notInclude(one, "evil\u001b", "the view itself lets a colour of others through")
          assert.notMatch(through(one, true).replaceAll(OURS, ""), RAW)
        }
        for (const one of printed(line!, seed, "json")) {
          assert.notMatch(one, RAW)
          assert.strictEqual(through(one, false), one, "the door would change the JSON")
          JSON.parse(one)
        }
      }
    })
  }
})

it("JSON is the same JSON, whatever is in it", () => {
  for (const text of [HOSTILE, "\u{e0041}\ud800\u2028\u007f", "Grüße 你好 👍"])
    expect(JSON.parse(json({ text }))).toEqual({ text })
})

it.effect("what the whole program prints passes the door: the commit's subject of `goal merge`, a log line", () =>
  Effect.gen(function* () {
    const said: Array<unknown> = []
    const out = { ...globalThis.console, log: (line: unknown) => void said.push(line), error: said.push.bind(said) }
    const subject = "fatal: could not apply 1a2b… \u001b]52;c;Y3VybCAtcyBldmlsfHNo\u0007harmless"
    const error = explain({ _tag: "CommandRefused", message: subject, remedy: HOSTILE })
    yield* behind(
      Effect.andThen(Console.error(told(error, false)), Console.log(`${HOSTILE}\u001b[31mours\u001b[0m`))
    ).pipe(
      Effect.provideService(Console.Console, out),
      Effect.provideService(TerminalCapabilities.TerminalCapabilities, {
        canColor: true,
        canAnimate: true,
        canPrompt: true
      }),
      Effect.provide(Stdio.layerTest({}))
    )
    expect(said[0]).toContain("\\u{1b}]52;c;Y3VybCAtcyBldmlsfHNo\\u{7}harmless")
    assert.notMatch(String(said[0]), RAW)
    assert.notMatch(String(said[1]).replaceAll(OURS, ""), RAW)
    expect(said[1]).toContain("\u001b[31mours\u001b[0m")
    assert.notMatch(told(error, true), RAW)
  })
)

it("a live screen shows what is said, and obeys none of it", () => {
  const editing = { ...LineEditor.empty, text: [...HOSTILE] }
  const drawn = compose([], { partial: HOSTILE, editing, columns: 200 }, HOSTILE, false)
  // what moves the cursor is ours
  // oxlint-disable-next-line no-control-regex
  assert.notMatch(drawn.replaceAll(/\u001b\[(?:J|\d*A|\d+G)|\r\n|^\r/gu, ""), RAW)
})

it("an agent's runes say nothing to a terminal that is attached", () => {
  for (const kind of SHOWN) {
    const event = { _tag: "Received", message: { from: HOSTILE, text: HOSTILE, urgent: false } }
    const payload = new Proxy({ event } as object, { get: (of, name) => (name in of ? event : HOSTILE) })
    const rune = { kind, actor: `tool/builder/${HOSTILE}`, at: 1, payload } as never
    const view = new AttachView()
    for (const { text } of [...view.feed(rune), ...view.flush()]) assert.notMatch(through(text, false), RAW)
  }
})
