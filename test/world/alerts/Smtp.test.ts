/** Tests of mail to a real server: every security, every refusal, and servers that hang or die. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Layer, Schema } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Smtp from "../../../src/alerts/Smtp.ts"
import { MailConfig } from "../../../src/config/Config.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import { body, certificate, closedPort, header, type Script, silence, stand } from "./SmtpStand.ts"

const SECRET = "korrekt horse 7"
const timeouts: Smtp.Timeouts = { greeting: "10 seconds", silence: "10 seconds", whole: "20 seconds" }
const letter = { subject: "[agentd] builder stopped: 5 errors in a row", text: "Why:\n  grüße\n" }

const decodeMail = Schema.decodeUnknownSync(MailConfig)

const mailTo = (smtp: object, rest: object = {}): MailConfig =>
  decodeMail({
    to: "ada@example.org",
    from: "agentd <agentd@example.net>",
    smtp: { host: "localhost", security: "none", ...smtp },
    ...rest
  })

const withLayers = Effect.provide(Layer.mergeAll(NodeFileSystem.layer, Redact.layer))
const send = (mail: MailConfig, within = timeouts) =>
  Smtp.send(mail, { ...letter, messageId: "<a.1@example.net>" }, within)

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-smtp-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

/** Only ada's password lets anybody in. */
const onlyAda: Script = {
  authOptional: false,
  onAuth: ({ password, username }, _, done) =>
    username === "ada" && password === SECRET
      ? done(null, { user: "ada" })
      : done(Object.assign(new Error(`no entry for ${password}`), { responseCode: 535 }))
}

describe("Smtp", () => {
  it.live("hands over the mail with its Message-ID and answers what the server said", () =>
    Effect.gen(function* () {
      const server = yield* stand()
      const receipt = yield* send(mailTo({ port: server.port }, { to: ["ada@example.org", "bob@example.org"] }))
      assert.deepStrictEqual(receipt.to, ["ada@example.org", "bob@example.org"])
      assert.include(receipt.response, "taken as number 1")
      assert.strictEqual(server.taken.length, 1)
      const [mail] = server.taken
      assert.deepStrictEqual(mail?.to, ["ada@example.org", "bob@example.org"])
      assert.strictEqual(header(mail, "Message-ID"), "<a.1@example.net>")
      assert.strictEqual(header(mail, "Subject"), letter.subject)
      assert.strictEqual(header(mail, "From"), "agentd <agentd@example.net>")
      assert.strictEqual(header(mail, "Auto-Submitted"), "auto-generated")
      assert.include(body(mail), "grüße")
    }).pipe(Effect.scoped, withLayers)
  )

  for (const security of ["starttls", "tls"] as const) {
    it.live(`${security}: trusts a certificate through caFile and logs in with the password of a file`, () =>
      Effect.gen(function* () {
        const { cert, certFile, key } = yield* certificate
        const passwordFile = join(yield* folder, "password")
        writeFileSync(passwordFile, `${SECRET}\nsecond line\n`)
        const server = yield* stand({ ...onlyAda, key, cert, secure: security === "tls" })
        yield* send(mailTo({ port: server.port, security, caFile: certFile, user: "ada", passwordFile }))
        assert.deepStrictEqual(
          server.taken.map(({ secure, user }) => ({ secure, user })),
          [{ secure: true, user: "ada" }]
        )
      }).pipe(Effect.scoped, withLayers)
    )

    it.live(`${security}: a certificate that nobody vouches for is a matter of setup`, () =>
      Effect.gen(function* () {
        const { cert, key } = yield* certificate
        const server = yield* stand({ key, cert, secure: security === "tls" })
        const error = yield* Effect.flip(send(mailTo({ port: server.port, security })))
        assert.strictEqual(error.class, "setup")
        assert.include(error.remedy, "caFile")
        assert.strictEqual(server.taken.length, 0)
      }).pipe(Effect.scoped, withLayers)
    )
  }

  it.live("starttls: does not fall back to plain text where the server has no TLS", () =>
    Effect.gen(function* () {
      const server = yield* stand()
      const error = yield* Effect.flip(send(mailTo({ port: server.port, security: "starttls" })))
      assert.strictEqual(error.class, "setup")
      assert.strictEqual(server.taken.length, 0)
    }).pipe(Effect.scoped, withLayers)
  )

  it.live("a wrong password is a matter of setup, and in no error", () =>
    Effect.gen(function* () {
      const passwordFile = join(yield* folder, "password")
      writeFileSync(passwordFile, "hunter2\n")
      const server = yield* stand(onlyAda)
      const error = yield* Effect.flip(send(mailTo({ port: server.port, user: "ada", passwordFile })))
      assert.strictEqual(error.class, "setup")
      assert.include(error.message, "535")
      assert.include(error.remedy, "password")
      assert.notInclude(error.message, "hunter2")
    }).pipe(Effect.scoped, withLayers)
  )

  it.live("the password comes from the environment or a systemd credential, and the redactor knows it", () =>
    Effect.gen(function* () {
      const credentials = yield* folder
      writeFileSync(join(credentials, "smtp"), SECRET)
      const provider = ConfigProvider.layer(
        ConfigProvider.fromUnknown({ MAIL_PASSWORD: SECRET, CREDENTIALS_DIRECTORY: credentials })
      )
      const server = yield* stand(onlyAda)
      for (const source of [{ passwordEnv: "MAIL_PASSWORD" }, { passwordCredential: "smtp" }]) {
        yield* Effect.gen(function* () {
          const { text } = yield* Redact
          assert.include(text(`it is ${SECRET}`), SECRET)
          yield* send(mailTo({ port: server.port, user: "ada", ...source }))
          assert.notInclude(text(`it is ${SECRET}`), SECRET)
        }).pipe(Effect.provide(Layer.merge(Layer.fresh(Redact.layer), provider)))
      }
      assert.strictEqual(server.taken.length, 2)
    }).pipe(Effect.scoped, withLayers)
  )

  for (const [what, smtp, hint] of [
    ["a password file that is not there", { passwordFile: "/nowhere/password" }, "/nowhere/password"],
    ["an environment variable that is not set", { passwordEnv: "AGENTD_TEST_NOT_SET" }, "AGENTD_TEST_NOT_SET"],
    ["a credential without systemd", { passwordCredential: "smtp" }, "LoadCredential"]
  ] as const) {
    it.live(`${what} is a matter of setup and says what to do`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(send(mailTo({ port: 1, user: "ada", ...smtp })))
        assert.strictEqual(error.class, "setup")
        assert.include(`${error.message} ${error.remedy}`, hint)
      }).pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({}))), withLayers)
    )
  }

  it.live("a server that is down is transient", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(send(mailTo({ port: yield* closedPort })))
      assert.strictEqual(error.class, "transient")
      assert.include(error.message, "localhost:")
    }).pipe(withLayers)
  )

  it.live("a server that never greets is given up after the time for it", () =>
    Effect.gen(function* () {
      const { port } = yield* silence
      const error = yield* Effect.flip(send(mailTo({ port }), { ...timeouts, greeting: "200 millis" }))
      assert.strictEqual(error.class, "transient")
      assert.match(error.message, /greeting/i)
    }).pipe(Effect.scoped, withLayers)
  )

  it.live("the deadline for everything holds where no single step is slow enough", () =>
    Effect.gen(function* () {
      const { port } = yield* silence
      const patient = { greeting: "1 minute", silence: "1 minute", whole: Duration.millis(200) } as const
      const error = yield* Effect.flip(send(mailTo({ port }), patient))
      assert.include(error.message, "in time")
    }).pipe(Effect.scoped, withLayers)
  )

  it.live("a server that dies in the middle of DATA is transient", () =>
    Effect.gen(function* () {
      const server = yield* stand({ dropsIn: () => true })
      const error = yield* Effect.flip(send(mailTo({ port: server.port })))
      assert.strictEqual(error.class, "transient")
      assert.strictEqual(server.taken.length, 0)
    }).pipe(Effect.scoped, withLayers)
  )

  for (const [code, expected] of [
    [451, "transient"],
    [554, "permanent"]
  ] as const) {
    it.live(`the answer ${code} to the mail is ${expected}`, () =>
      Effect.gen(function* () {
        const server = yield* stand({ answer: () => ({ code, text: "not like this" }) })
        const error = yield* Effect.flip(send(mailTo({ port: server.port })))
        assert.strictEqual(error.class, expected)
        assert.include(error.message, "not like this")
      }).pipe(Effect.scoped, withLayers)
    )
  }

  it.live("a recipient that is refused is permanent when it is the only one, and named when there are others", () =>
    Effect.gen(function* () {
      const server = yield* stand({
        onRcptTo: ({ address }, _, done) =>
          address.startsWith("bob") ? done(Object.assign(new Error("no bob here"), { responseCode: 550 })) : done()
      })
      const error = yield* Effect.flip(send(mailTo({ port: server.port }, { to: "bob@example.org" })))
      assert.strictEqual(error.class, "permanent")
      const receipt = yield* send(mailTo({ port: server.port }, { to: ["bob@example.org", "ada@example.org"] }))
      assert.deepStrictEqual([receipt.to, receipt.rejected], [["ada@example.org"], ["bob@example.org"]])
    }).pipe(Effect.scoped, withLayers)
  )

  it.live(
    "of several recipients each has the server's code; where none is taken, but one only for now, that one is left",
    () =>
      Effect.gen(function* () {
        const codes: { readonly [name: string]: number } = { bob: 550, grey: 451 }
        const server = yield* stand({
          onRcptTo: ({ address }, _, done) => {
            const responseCode = codes[address.split("@")[0]!]
            return responseCode === undefined ? done() : done(Object.assign(new Error("not now"), { responseCode }))
          }
        })
        const [ada, bob, grey] = ["ada@example.org", "bob@example.org", "grey@example.org"]
        const refused = [
          { to: bob, code: 550 },
          { to: grey, code: 451 }
        ]
        const some = yield* send(mailTo({ port: server.port }, { to: [ada, bob, grey] }))
        assert.deepInclude(some, { to: [ada], rejected: [bob], refused })
        const none = yield* send(mailTo({ port: server.port }, { to: [bob, grey] }))
        assert.deepInclude(none, { to: [], rejected: [bob], refused })
        const error = yield* Effect.flip(send(mailTo({ port: server.port }, { to: [grey] })))
        assert.strictEqual(error.class, "transient")
        assert.lengthOf(server.taken, 1)
      }).pipe(Effect.scoped, withLayers)
  )

  it.live("no subject or sender can add a header", () =>
    Effect.gen(function* () {
      const server = yield* stand()
      const evil = { subject: "x\r\nBcc: eve@example.org\r\n\r\nhello", text: "." }
      yield* Smtp.send(mailTo({ port: server.port }), evil, timeouts)
      assert.deepStrictEqual(server.taken[0]?.to, ["ada@example.org"])
      assert.isUndefined(header(server.taken[0], "Bcc"))
    }).pipe(Effect.scoped, withLayers)
  )

  it.live("a probe greets and logs in, and sends nothing; a server that refuses says why", () =>
    Effect.gen(function* () {
      const passwordFile = join(yield* folder, "password")
      writeFileSync(passwordFile, SECRET)
      const server = yield* stand(onlyAda)
      const good = yield* Smtp.probe(mailTo({ port: server.port, user: "ada", passwordFile }))
      assert.match(good, /:\d+ answers without TLS and accepts the login of ada; nothing was sent/)
      writeFileSync(passwordFile, "hunter2")
      const wrong = yield* Effect.flip(Smtp.probe(mailTo({ port: server.port, user: "ada", passwordFile })))
      assert.include(wrong.message, "535")
      assert.notInclude(wrong.message, "hunter2")
      const refusing = yield* stand({
        onConnect: (_, done) => done(Object.assign(new Error("go away"), { responseCode: 554 }))
      })
      assert.include((yield* Effect.flip(Smtp.probe(mailTo({ port: refusing.port })))).message, "go away")
      const nobody = yield* Effect.flip(Smtp.probe(mailTo({ port: yield* closedPort })))
      assert.include(nobody.message, "ECONNREFUSED")
      const silent = yield* silence
      const quick = { greeting: "200 millis", silence: "200 millis", whole: "1 second" } as const
      assert.strictEqual((yield* Effect.flip(Smtp.probe(mailTo({ port: silent.port }), quick))).class, "transient")
      assert.deepStrictEqual([server.taken.length, refusing.taken.length], [0, 0])
    }).pipe(Effect.scoped, withLayers)
  )
})
