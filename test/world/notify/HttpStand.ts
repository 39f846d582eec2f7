/** HttpStand: a real HTTP server in this process, for one test's scope: a receiver of notices, which keeps what it got. */
import { Effect, type Scope } from "effect"
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { Socket } from "node:net"

export interface Got {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Answer {
  readonly status: number
  readonly body?: string
  readonly headers?: { readonly [name: string]: string }
  /** The body is sent again and again, with so many ms in between, until the client goes. */
  readonly endless?: number
}

export interface Stand {
  readonly url: string
  readonly got: ReadonlyArray<Got>
}

/** `answer`: to the n-th request, from 1; undefined: none, ever. */
export const make = (
  answer: (got: Got, n: number) => Answer | undefined = () => ({ status: 200 })
): Effect.Effect<Stand, never, Scope.Scope> =>
  Effect.gen(function* () {
    const got: Array<Got> = []
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const { headers, method = "", url: path = "" } = request
        const one = { method, path, headers, body: Buffer.concat(chunks).toString() }
        const said = answer(one, got.push(one))
        if (said === undefined) return
        response.writeHead(said.status, said.headers)
        const { body = "", endless } = said
        if (endless === undefined) return void response.end(body)
        const write = (): void => void (response.destroyed || response.write(body, () => setTimeout(write, endless)))
        write()
      })
    })
    const sockets = new Set<Socket>()
    server.on("connection", (socket) => sockets.add(socket))
    const port = yield* Effect.callback<number>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
      })
    })
    yield* Effect.addFinalizer(() =>
      Effect.callback<void>((resume) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resume(Effect.void))
      })
    )
    return { url: `http://127.0.0.1:${port}`, got }
  })
