/**
 * Bench of redaction: a megabyte of text, by the text's length, over texts that are made to
 * cost time. What is linear takes as long for each megabyte of a long text as of a short one.
 */
import { Effect } from "effect"
import { Redact } from "../../src/core/event-log/Redact.ts"
import { type Bench, interleave, type Subject } from "./Bench.ts"

const ROUNDS = 3
const KILOBYTE = 1024
const SIZES = [1, 16, 128, 1024, 16 * 1024]
/** Characters that one figure is taken over, at least. */
const WORK = 256 * KILOBYTE

const TEXTS: { readonly [name: string]: string } = {
  "lines of a log": "12:00:01 INFO request served path=/api/v1/items status=200 ms=12\n",
  addresses: "see https://example.org/a/b?page=2 and git@example.org:a/b.git\n",
  "beginnings of web tokens": "eyJ-",
  "web tokens without an end": "eyJabcdefghijk.eyJabcdefghijk.",
  "keys without an end": `-----BEGIN ${"PRIVATE"} KEY-----\nMIIE\n`,
  "prefixes of keys": "sk-aB1",
  "values but for their ends": "v1-bcdefghijklmnopqrstuvwxyz01234",
  "a value that overlaps itself": "a"
}

/** Fifty values of 32 characters, and one of a single letter. */
const VALUES = [
  ...Array.from({ length: 50 }, (_, n) => {
    const letters = "abcdefghijklmnopqrstuvwxyz0123456789".repeat(2)
    return `v${n}-${letters.slice(n % 30, (n % 30) + 32)}`
  }),
  "a".repeat(64)
]

const nameOf = (kilobytes: number): string => (kilobytes < KILOBYTE ? `${kilobytes} KB` : `${kilobytes / KILOBYTE} MB`)

const run = async () => {
  const redact = Effect.runSync(
    Effect.tap(Redact, ({ register }) => register(VALUES)).pipe(Effect.provide(Redact.layer))
  )
  const subject = (kilobytes: number): Subject => {
    const size = kilobytes * KILOBYTE
    const texts = Object.entries(TEXTS).map(
      ([name, unit]) => [name, unit.repeat(Math.ceil(size / unit.length)).slice(0, size)] as const
    )
    const times = Math.max(1, Math.ceil(WORK / size))
    return {
      subject: nameOf(kilobytes),
      round: async () =>
        Object.fromEntries(
          texts.map(([name, text]) => {
            const from = performance.now()
            for (let n = 0; n < times; n++) redact.text(text)
            return [name, ((performance.now() - from) * KILOBYTE) / (kilobytes * times)]
          })
        )
    }
  }
  const measures = Object.keys(TEXTS).map((what) => ({ what, unit: "ms a MB", better: "less" as const }))
  return await interleave(measures, SIZES.toReversed().map(subject), ROUNDS)
}

// a part of what the longest text costs is its memory, which the short ones find in a cache
const aims = Object.keys(TEXTS).map((what) => ({
  what,
  of: nameOf(SIZES.at(-1)!),
  to: { subject: nameOf(128) },
  atMost: 3
}))

export const bench: Bench = { name: "redact", run, aims }
