import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { createServer, request, type IncomingHttpHeaders } from "node:http"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { claim } from "../../../src/api/rpc/Endpoint.ts"
import { MAX_BODY } from "../../../src/api/http/Api.ts"
import * as ListenerStatus from "../../../src/api/http/ListenerStatus.ts"
import * as Server from "../../../src/api/http/Server.ts"
import * as PlatesDouble from "./PlatesDouble.ts"
import { plateInfo } from "./PlatesDouble.ts"

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

interface Call {
  readonly method?: string
  readonly path: string
  readonly body?: string | object
  readonly headers?: { readonly [name: string]: string }
}

/** Makes a request over a connection of its own. */
const call = (to: { readonly socketPath: string } | { readonly port: number }, { body, headers, method, path }: Call) =>
  Effect.callback<Answer, Error>((resume) => {
    const outgoing = request(
      {
        ...to,
        host: "127.0.0.1",
        path,
        method: method ?? (body === undefined ? "GET" : "POST"),
        agent: false,
        headers
      },
      (response) => {
        let text = ""
        response.setEncoding("utf8").on("data", (part: string) => (text += part))
        response.on("end", () =>
          resume(Effect.succeed({ status: response.statusCode!, headers: response.headers, text }))
        )
      }
    )
    outgoing.on("error", (error) => resume(Effect.fail(error)))
    outgoing.end(typeof body === "object" ? JSON.stringify(body) : body)
    return Effect.sync(() => outgoing.destroy())
  })

const eventually = (holds: Effect.Effect<boolean>): Effect.Effect<void> =>
  Effect.flatMap(holds, (yes) => (yes ? Effect.void : Effect.andThen(Effect.sleep(5), eventually(holds))))

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-http-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Both listeners up, on a port of the kernel's choice unless one is given. */
const serve = Effect.fnUntraced(function* (
  board: PlatesDouble.Board,
  port: number | undefined = 0,
  more: { readonly patience?: Server.Patience } = { patience: { headers: 1_000, request: 2_000, look: 200 } }
) {
  const state = yield* folder
  const hooks: Array<number> = []
  const socketPath = join(state, "http.sock")
  const layer = Server.layer({
    state,
    socket: socketPath,
    claim,
    port,
    about: {
      status: Effect.succeed({ phase: "ready" }),
      metrics: Effect.sync(() => `# hooks: ${hooks.length}\n`),
      hook: (seconds) => void hooks.push(seconds)
    },
    ...more,
    taken: () => Effect.void
  }).pipe(
    Layer.provideMerge(ListenerStatus.layer),
    Layer.provide(PlatesDouble.layer(board)),
    Layer.provide(NodeServices.layer)
  )
  const context = yield* Layer.build(layer)
  const { report } = Context.get(context, ListenerStatus.ListenerStatus)
  const bound = (yield* report).port ?? 0
  const token = (level: string) => readFileSync(join(state, `http-${level}.token`), "utf8").trim()
  return {
    state,
    socketPath,
    report,
    port: bound,
    token,
    unix: (each: Call) => call({ socketPath }, each),
    tcp: (each: Call, level?: "hooks" | "full") =>
      call(
        { port: bound },
        {
          ...each,
          headers: { ...(level === undefined ? {} : { authorization: `Bearer ${token(level)}` }), ...each.headers }
        }
      )
  }
})

const hook = { session_id: "s1", hook_event_name: "Stop", cwd: "/srv" }
const event = { event_type: "stop", session_id: "s1", cwd: "/srv" }

describe("the routes", () => {
  it.live("an event and a hook are received with 202 and nothing else", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard()
      const { tcp, unix } = yield* serve(board)
      for (const answer of [
        yield* unix({ path: "/events", body: event }),
        yield* tcp({ path: "/events", body: event }, "hooks"),
        yield* tcp(
          { path: "/hooks/claude", body: hook, headers: { "x-agentd-plate": "p1", "x-agentd-run": "" } },
          "hooks"
        )
      ]) {
        assert.deepStrictEqual([answer.status, answer.text], [202, ""])
      }
      assert.deepStrictEqual(board.got, [
        ["event", event],
        ["event", event],
        ["hook", hook, { plate: "p1", run: undefined, pid: undefined }]
      ])
    })
  )

  it.live("a variable that the hook's environment lacks is no plate", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard()
      const { unix } = yield* serve(board)
      yield* unix({ path: "/hooks/claude", body: hook, headers: { "x-agentd-plate": "$AGENTD_PLATE" } })
      assert.deepStrictEqual(board.got[0]?.[2], { plate: undefined, run: undefined, pid: undefined })
    })
  )

  it.live("GET /metrics tells figures in Prometheus' format, and only who may read all of it", () =>
    Effect.gen(function* () {
      const { tcp, token, unix } = yield* serve(PlatesDouble.makeBoard())
      yield* unix({ path: "/hooks/claude", body: { hook_event_name: "Stop", session_id: "s1" } })
      const { status, text } = yield* unix({ path: "/metrics" })
      assert.deepStrictEqual([status, text], [200, "# hooks: 1\n"])
      const authorization = (level: string) => ({
        path: "/metrics",
        headers: { authorization: `Bearer ${token(level)}` }
      })
      assert.strictEqual((yield* tcp(authorization("full"))).status, 200)
      assert.strictEqual((yield* tcp(authorization("hooks"))).status, 403)
      assert.strictEqual((yield* tcp({ path: "/metrics" })).status, 401)
    })
  )

  it.live("plates are registered, listed, stopped and forgotten", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard({
        plates: [plateInfo(), plateInfo({ plateId: "02", sessionId: null, status: "Closed" })]
      })
      const { unix } = yield* serve(board)
      assert.deepStrictEqual(
        JSON.parse((yield* unix({ path: "/plates/register", body: { plateId: "01plate" } })).text),
        {
          plateId: "01plate"
        }
      )
      assert.deepStrictEqual(JSON.parse((yield* unix({ path: "/plates" })).text), [plateInfo()])
      assert.lengthOf(JSON.parse((yield* unix({ path: "/plates?closed=true" })).text), 2)
      assert.strictEqual((yield* unix({ path: "/plates/stopped", body: { plateId: "01plate" } })).status, 204)
      assert.strictEqual((yield* unix({ method: "DELETE", path: "/plates/01plate" })).status, 200)
      const again = yield* unix({ method: "DELETE", path: "/plates/01plate" })
      assert.strictEqual(again.status, 404)
      assert.include(JSON.parse(again.text).remedy, "agentd ps --plates")
      assert.deepStrictEqual(JSON.parse((yield* unix({ path: "/status" })).text), { phase: "ready" })
    })
  )

  it.live("what is not carried out says why, with which field, and what to do", () =>
    Effect.gen(function* () {
      const { unix } = yield* serve(PlatesDouble.makeBoard())
      const cases: ReadonlyArray<readonly [Call, number, string | null]> = [
        [{ path: "/events", body: { event_type: "stop" } }, 400, "session_id"],
        [{ path: "/events", body: "{" }, 400, "body"],
        [{ path: "/events", body: "" }, 400, "body"],
        [{ path: "/hooks/claude", body: "[]" }, 400, "session_id"],
        [{ path: "/plates/register", body: `{"x":"${"x".repeat(MAX_BODY)}"}` }, 413, "body"],
        [{ path: "/nowhere" }, 404, null],
        [{ path: "/plates/a/b", method: "DELETE" }, 404, null],
        [{ path: "/plates/%ff", method: "DELETE" }, 404, null],
        [{ path: "/events" }, 405, null]
      ]
      for (const [each, status, field] of cases) {
        const answer = yield* unix(each)
        const body = JSON.parse(answer.text)
        assert.deepStrictEqual([answer.status, body.field], [status, field], each.path)
        assert.isNotEmpty(body.error)
        assert.isNotEmpty(body.remedy)
      }
      assert.strictEqual((yield* unix({ path: "/events" })).headers.allow, "POST")
    })
  )

  it.live("a body of just the limit is read; a hook's that is longer is cut, another's refused", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard()
      const { unix } = yield* serve(board)
      const rest = `{"session_id":"s","x":""}`.length
      const body = `{"session_id":"s","x":"${"x".repeat(MAX_BODY - rest)}"}`
      assert.strictEqual((yield* unix({ path: "/hooks/claude", body })).status, 202)
      assert.strictEqual((yield* unix({ path: "/plates/stopped", body: `${body} ` })).status, 413)
      for (const path of ["/hooks/claude", "/hooks/claude/permission", "/events"]) {
        assert.strictEqual((yield* unix({ path, body: body.replace('"}', 'xx"}') })).status, 202)
        const [what, got] = board.got.at(-1)!
        // nobody decides what he does not see whole: that is left to the terminal
        assert.strictEqual(what, path === "/events" ? "event" : "hook")
        assert.deepInclude(got as object, { session_id: "s", agentd_cut: true })
      }
      const chunked = { path: "/events", body: `${body} `, headers: { "transfer-encoding": "chunked" } }
      assert.strictEqual((yield* unix(chunked)).status, 202, "also where its length is not said before")
    })
  )
})

describe("a permission request", () => {
  const asked = {
    session_id: "s1",
    hook_event_name: "PermissionRequest",
    tool_name: "Bash",
    tool_input: { command: "ls" }
  }

  it.live("waits for a person, whose answer goes back in Claude's form, with the input", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard()
      const { unix } = yield* serve(board)
      const waiting = yield* Effect.forkScoped(unix({ path: "/hooks/claude/permission", body: asked }))
      yield* eventually(Effect.sync(() => board.waiting.length === 1))
      yield* Deferred.succeed(board.waiting[0]!, { behavior: "allow" })
      const answer = yield* Fiber.join(waiting)
      assert.deepStrictEqual(JSON.parse(answer.text), {
        hookSpecificOutput: {
          hookEventName: "PermissionRequest",
          decision: { behavior: "allow", updatedInput: { command: "ls" } }
        }
      })
    })
  )

  it.live("that asks to choose is allowed with what was chosen, by question", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard()
      const { unix } = yield* serve(board)
      const tool_input = { questions: [{ question: "Which colour?", options: [] }] }
      const body = { ...asked, tool_name: "AskUserQuestion", tool_input }
      const waiting = yield* Effect.forkScoped(unix({ path: "/hooks/claude/permission", body }))
      yield* eventually(Effect.sync(() => board.waiting.length === 1))
      yield* Deferred.succeed(board.waiting[0]!, { behavior: "allow", answers: ["Blue"] })
      const { hookSpecificOutput } = JSON.parse((yield* Fiber.join(waiting)).text)
      assert.deepStrictEqual(hookSpecificOutput.decision, {
        behavior: "allow",
        updatedInput: { ...tool_input, answers: { "Which colour?": "Blue" } }
      })
    })
  )

  it.live("is denied with the reason, and left to the terminal when nobody answers", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard()
      const { unix } = yield* serve(board)
      const ask = unix({ path: "/hooks/claude/permission", body: asked })
      const [first, second] = [yield* Effect.forkScoped(ask), yield* Effect.forkScoped(ask)]
      yield* eventually(Effect.sync(() => board.waiting.length === 2))
      yield* Deferred.succeed(board.waiting[0]!, { behavior: "deny", message: "not on a Friday" })
      yield* Deferred.succeed(board.waiting[1]!, undefined)
      const answers = [yield* Fiber.join(first), yield* Fiber.join(second)].toSorted((a, b) => a.status - b.status)
      assert.deepStrictEqual(JSON.parse(answers[0]!.text).hookSpecificOutput.decision, {
        behavior: "deny",
        message: "not on a Friday"
      })
      assert.deepStrictEqual([answers[1]!.status, answers[1]!.text], [204, ""])
    })
  )

  it.live("is given up when the session hangs up, because its terminal answered", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard()
      const { unix } = yield* serve(board)
      const waiting = yield* Effect.forkScoped(unix({ path: "/hooks/claude/permission", body: asked }))
      yield* eventually(Effect.sync(() => board.waiting.length === 1))
      yield* Fiber.interrupt(waiting)
      yield* eventually(Effect.sync(() => board.abandoned === 1))
    })
  )

  it.live("that is open holds up no stop", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard()
      const scope = yield* Scope.make()
      const { unix } = yield* Scope.provide(serve(board), scope)
      yield* Effect.forkScoped(Effect.exit(unix({ path: "/hooks/claude/permission", body: asked })))
      yield* eventually(Effect.sync(() => board.waiting.length === 1))
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(board.abandoned, 1)
    })
  )
})

describe("the TCP port", () => {
  it.live("answers a sign of life to anybody, and nothing secret in it", () =>
    Effect.gen(function* () {
      const { tcp } = yield* serve(PlatesDouble.makeBoard())
      const answer = yield* tcp({ path: "/health" })
      assert.deepStrictEqual([answer.status, answer.text], [200, '{"ok":true}'])
    })
  )

  it.live("lets in who has the token that a route needs, and nobody else", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard({ plates: [plateInfo()] })
      const { tcp } = yield* serve(board)
      const hooks = [
        { path: "/events", body: event },
        { path: "/hooks/claude", body: hook }
      ]
      const others = [
        { path: "/plates" },
        { path: "/status" },
        { path: "/plates/register", body: {} },
        { path: "/plates/stopped", body: {} },
        { path: "/plates/01plate", method: "DELETE" }
      ]
      const statuses = (calls: ReadonlyArray<Call>, level?: "hooks" | "full") =>
        Effect.forEach(calls, (each) => Effect.map(tcp(each, level), ({ status }) => status))
      assert.deepStrictEqual(yield* statuses([...hooks, ...others]), Array(7).fill(401))
      assert.deepStrictEqual(yield* statuses(hooks, "hooks"), [202, 202])
      assert.deepStrictEqual(yield* statuses(others, "hooks"), Array(5).fill(403))
      assert.deepStrictEqual(yield* statuses([...hooks, ...others], "full"), [202, 202, 200, 200, 200, 204, 200])
      const wrong = { headers: { authorization: `Bearer ${"A".repeat(43)}` } }
      assert.deepStrictEqual(
        yield* statuses([...hooks, ...others].map((each) => ({ ...each, ...wrong }))),
        Array(7).fill(401)
      )
      // The hooks' token reports; what would be decided it neither hears nor answers.
      assert.deepStrictEqual(yield* statuses([{ path: "/hooks/claude/permission", body: hook }], "hooks"), [403])
      // Who may not come in is not told which routes there are.
      assert.deepStrictEqual(yield* statuses([{ path: "/nowhere" }]), [401])
    })
  )

  it.live("turns away a browser that another page, or another name, led here", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard()
      const { port, tcp } = yield* serve(board)
      const tried = (headers: { readonly [name: string]: string }) =>
        Effect.map(tcp({ path: "/hooks/claude", body: hook, headers }, "full"), ({ status }) => status)
      for (const host of [
        "evil.example",
        `evil.example:${port}`,
        "127.0.0.1",
        `127.0.0.1:${port + 1}`,
        "127.0.0.1.evil.example"
      ])
        assert.strictEqual(yield* tried({ host }), 403, host)
      for (const origin of ["https://evil.example", "null", "http://127.0.0.1:1", `https://127.0.0.1:${port}`])
        assert.strictEqual(yield* tried({ origin }), 403, origin)
      for (const host of [`127.0.0.1:${port}`, `localhost:${port}`])
        assert.strictEqual(yield* tried({ host }), 202, host)
      // a token is for programs: a browser would send it to whoever listens there
      for (const headers of [{ origin: `http://127.0.0.1:${port}` }, { "sec-fetch-site": "same-origin" }])
        assert.strictEqual(yield* tried(headers as Record<string, string>), 401)
      assert.strictEqual((yield* tcp({ path: "/health", headers: { host: "evil.example" } })).status, 403)
      assert.lengthOf(board.got, 2)
    })
  )

  it.live("reads no body of who was not let in", () =>
    Effect.gen(function* () {
      const { port } = yield* serve(PlatesDouble.makeBoard())
      // Ten megabytes are announced and none is sent: the answer does not wait for them.
      const answer = yield* Effect.callback<string>((resume) => {
        const socket = connect(port, "127.0.0.1", () =>
          socket.write(`POST /events HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-length: 10485760\r\n\r\n`)
        )
        socket.setEncoding("utf8").once("data", (text: string) => {
          socket.destroy()
          resume(Effect.succeed(text))
        })
      })
      assert.match(answer, /^HTTP\/1.1 401 /)
    })
  )

  it.live("that another program has: the daemon goes on, says so, and takes it when it is free", () =>
    Effect.gen(function* () {
      const other = createServer()
      const port = yield* Effect.callback<number>((resume) => {
        other.listen(0, "127.0.0.1", () => resume(Effect.succeed((other.address() as { port: number }).port)))
      })
      const { report, state, unix } = yield* serve(PlatesDouble.makeBoard(), port)
      assert.strictEqual((yield* unix({ path: "/health" })).status, 200)
      const before = yield* report
      assert.isFalse(before.listening)
      assert.include(before.problem?.message, `port ${port}`)
      assert.include(ListenerStatus.check(before).remedy, "http.port")
      assert.include(ListenerStatus.check(before).remedy, `agentd --state ${state} restart`)
      yield* Effect.callback<void>((resume) => void other.close(() => resume(Effect.void)))
      yield* eventually(Effect.map(report, ({ listening, problem }) => listening && problem === null))
      assert.strictEqual(ListenerStatus.check(yield* report).level, "ok")
    })
  )

  it.live("that is turned off is not listened on", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard()
      const state = yield* folder
      const context = yield* Layer.build(
        Server.layer({
          state,
          socket: join(state, "h"),
          claim,
          port: undefined,
          about: { status: Effect.void, metrics: Effect.succeed(""), hook: () => {} },
          taken: () => Effect.void
        }).pipe(
          Layer.provideMerge(ListenerStatus.layer),
          Layer.provide(PlatesDouble.layer(board)),
          Layer.provide(NodeServices.layer)
        )
      )
      assert.deepStrictEqual(yield* Context.get(context, ListenerStatus.ListenerStatus).report, {
        socket: join(state, "h"),
        port: null,
        listening: false,
        problem: null
      })
    })
  )

  it.live("two hundred sessions that call at once, each in parts as it gets time, are all answered", () =>
    Effect.gen(function* () {
      const { socketPath } = yield* serve(PlatesDouble.makeBoard(), 0, {})
      const body = JSON.stringify({ ...hook, hook_event_name: "UserPromptSubmit", prompt: "x".repeat(20_000) })
      const head = `POST /hooks/claude HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n`
      const whole = head + body
      const sessions = yield* Effect.acquireRelease(
        Effect.sync(() =>
          Array.from({ length: 200 }, () => {
            const session = { socket: connect(socketPath).on("error", () => {}), text: "", isOver: false }
            session.socket.setEncoding("utf8").on("data", (part: string) => (session.text += part))
            session.socket.on("close", () => (session.isOver = true))
            return session
          })
        ),
        (all) => Effect.sync(() => all.forEach(({ socket }) => socket.destroy()))
      )
      // nobody has got beyond its first words when the last one comes; then each waits for all before it goes on
      for (const [from, to] of [
        [0, 10],
        [10, head.length + 7],
        [head.length + 7, whole.length]
      ] as const) {
        yield* Effect.forEach(
          sessions,
          ({ socket }) =>
            Effect.callback<void>((resume) => void socket.write(whole.slice(from, to), () => resume(Effect.void))),
          { concurrency: "unbounded" }
        )
        // what was written is there to be read
        assert.strictEqual((yield* call({ socketPath }, { path: "/health" })).status, 200)
      }
      yield* eventually(Effect.sync(() => sessions.every(({ isOver }) => isOver)))
      assert.deepStrictEqual([...new Set(sessions.map(({ text }) => text.split("\r\n")[0]))], ["HTTP/1.1 202 Accepted"])
    })
  )

  it.live("serves others while silent clients hold as many connections as they get", () =>
    Effect.gen(function* () {
      const { port, unix } = yield* serve(PlatesDouble.makeBoard())
      const sockets = yield* Effect.acquireRelease(
        Effect.sync(() =>
          Array.from({ length: 300 }, (): Socket =>
            connect(port, "127.0.0.1")
              .on("error", () => {})
              .resume()
          )
        ),
        (all) => Effect.sync(() => all.forEach((socket) => socket.destroy()))
      )
      for (const socket of sockets) socket.write("POST /events HTTP/1.1\r\n")
      // Those beyond the limit are hung up on at once, the others when their time is over.
      yield* eventually(Effect.sync(() => sockets.filter(({ destroyed }) => destroyed).length >= 44))
      assert.strictEqual((yield* unix({ path: "/health" })).status, 200)
      yield* eventually(Effect.sync(() => sockets.every(({ destroyed }) => destroyed)))
    })
  )
})

describe("the secrets", () => {
  it.live("lie in files that only their owner reads, as does the socket; they outlive the daemon", () =>
    Effect.gen(function* () {
      const { socketPath, state, token } = yield* serve(PlatesDouble.makeBoard())
      for (const path of [socketPath, join(state, "http-full.token"), join(state, "http-hooks.token")]) {
        assert.strictEqual(statSync(path).mode & 0o777, 0o600, path)
      }
      assert.notStrictEqual(token("full"), token("hooks"))
    })
  )
})
