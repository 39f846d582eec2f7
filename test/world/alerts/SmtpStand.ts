/**
 * SmtpStand: a real SMTP server in this process, for one test's scope, that does
 * what the test tells it to. It keeps what it took.
 */
import { Effect, Scope } from "effect"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer, type Server, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"

export interface Taken {
  readonly to: ReadonlyArray<string>
  readonly raw: string
  readonly secure: boolean
  readonly user: string | undefined
}

export interface Stand {
  readonly port: number
  readonly taken: ReadonlyArray<Taken>
  /** How often somebody connected. */
  readonly connections: () => number
}

export const header = (mail: Taken | undefined, name: string): string | undefined =>
  new RegExp(`^${name}: (.*(?:\r\n[ \t].*)*)`, "im")
    .exec(mail?.raw.split("\r\n\r\n")[0] ?? "")?.[1]
    // a long header is folded (RFC 5322, 2.2.3)
    ?.replaceAll("\r\n", "")

/** The text, with the encoding of the transfer undone. */
export const body = (mail: Taken | undefined): string => {
  const [, text = ""] = /\r\n\r\n([\s\S]*)/.exec(mail?.raw ?? "") ?? []
  switch (header(mail, "Content-Transfer-Encoding")) {
    case "base64":
      return Buffer.from(text, "base64").toString()
    case "quoted-printable":
      return Buffer.from(
        text
          .replaceAll(/=\r\n/g, "")
          .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))),
        "latin1"
      ).toString()
    default:
      return text
  }
}

export interface Script extends SMTPServerOptions {
  /** Listens there again: a server that comes back. */
  readonly port?: number
  /** The answer to the n-th mail (from 1) in place of 250. */
  readonly answer?: (n: number) => { readonly code: number; readonly text: string } | undefined
  /** Drops the connection in the middle of the n-th mail. */
  readonly dropsIn?: (n: number) => boolean
}

const refusal = (code: number, text: string) => Object.assign(new Error(text), { responseCode: code })

const listening = (server: { readonly server: Server } | Server, port: number): Effect.Effect<number> =>
  Effect.callback<number>((resume) => {
    const net = "server" in server ? server.server : server
    net.listen(port, "127.0.0.1", () => {
      const address = net.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

export const stand = (script: Script = {}): Effect.Effect<Stand, never, Scope.Scope> =>
  Effect.gen(function* () {
    const taken: Array<Taken> = []
    let mails = 0
    let connected = 0
    const { answer, dropsIn, port, ...options } = script
    const sockets = new Set<Socket>()
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: options.key === undefined ? ["STARTTLS"] : [],
      allowInsecureAuth: true,
      disableReverseLookup: true,
      logger: false,
      closeTimeout: 100,
      onData: (stream, session, done) => {
        const n = ++mails
        const chunks: Array<Buffer> = []
        stream.on("data", (chunk: Buffer) => {
          chunks.push(chunk)
          if (dropsIn?.(n) === true) for (const socket of sockets) socket.destroy()
        })
        stream.on("end", () => {
          if (dropsIn?.(n) === true) return undefined
          const said = answer?.(n)
          if (said !== undefined) return done(refusal(said.code, said.text))
          taken.push({
            to: session.envelope.rcptTo.map(({ address }) => address),
            raw: Buffer.concat(chunks).toString(),
            secure: session.secure,
            user: session.user
          })
          return done(null, "OK: taken as number " + n)
        })
      },
      ...options
    })
    server.on("error", () => {})
    server.server.on("connection", (socket: Socket) => {
      connected++
      sockets.add(socket)
      socket.on("close", () => sockets.delete(socket))
    })
    const actual = yield* listening(server, port ?? 0)
    yield* Effect.addFinalizer(() =>
      Effect.callback<void>((resume) => {
        // A socket under TLS is the server's to end: destroying it from here takes the whole process down.
        if (options.key === undefined) for (const socket of sockets) socket.destroy()
        server.close(() => resume(Effect.void))
      })
    )
    return { port: actual, taken, connections: () => connected }
  })

/** Takes connections and never says a word. */
export const silence: Effect.Effect<{ readonly port: number }, never, Scope.Scope> = Effect.gen(function* () {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
  })
  const port = yield* listening(server, 0)
  yield* Effect.addFinalizer(() =>
    Effect.callback<void>((resume) => {
      for (const socket of sockets) socket.destroy()
      server.close(() => resume(Effect.void))
    })
  )
  return { port }
})

/** A port on which nothing listens. */
export const closedPort: Effect.Effect<number> = Effect.scoped(Effect.map(silence, ({ port }) => port))

/** A certificate for localhost that signed itself, as files and as text. */
export const certificate = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "agentd-tls-"))
    const [keyFile, certFile] = [join(folder, "key.pem"), join(folder, "cert.pem")]
    execFileSync(
      "openssl",
      // prettier-ignore
      ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
       "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", keyFile, "-out", certFile],
      { stdio: "ignore" }
    )
    return { folder, certFile, key: readFileSync(keyFile), cert: readFileSync(certFile) }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true }))
)
