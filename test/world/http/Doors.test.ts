/** Tests of the doors for pages and programs: who may come in, verbs, streams that go on, the page's guards. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope, Stream } from "effect"
import * as PageFiles from "../../../src/api/http/PageFiles.ts"
import { handleOf } from "../../../src/access/Access.ts"
import { agentInfo, callInfo, draft, makeWorld } from "../rpc/World.ts"
import { PAGE, place, serve, serveIn } from "./Served.ts"
import * as PageDouble from "./PageDouble.ts"

const json = (response: Response) => Effect.promise(() => response.json() as Promise<Record<string, unknown>>)
const text = (response: Response) => Effect.promise(() => response.text())

/** Reads a stream of events until so many have come. */
const eventsOf = (response: Response, count: number) =>
  Effect.promise(async () => {
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    let all = ""
    while (all.split("\ndata: ").length <= count) {
      const { done, value } = await reader.read()
      if (done) break
      all += value
    }
    await reader.cancel()
    return all
      .split("\n\n")
      .filter((part) => part.startsWith("id: "))
      .map((part) => Number(part.slice(4, part.indexOf("\n"))))
  })

const me = { by: "ada" }

describe("who may come in", () => {
  it.live("nobody without a token; who may view does not act; what is revoked opens nothing, streams included", () =>
    Effect.gen(function* () {
      const world = makeWorld({ agents: [agentInfo()] })
      const { access, ask, verb } = yield* serve(world)
      const view = yield* access.grant({ right: "view", label: "wall" }, me)
      const act = yield* access.grant({ right: "act", label: "phone: mine" }, me)
      for (const path of ["/board", "/events", "/access/me"]) assert.strictEqual((yield* ask(path)).status, 401, path)
      assert.strictEqual((yield* verb("Status", {})).status, 401)
      assert.strictEqual((yield* verb("Status", {}, "x".repeat(43))).status, 401)
      assert.strictEqual((yield* verb("Status", {}, view.token)).status, 200)
      const send = { name: "builder", text: "hello", how: "queue" }
      assert.strictEqual((yield* verb("Send", send, view.token)).status, 403)
      assert.strictEqual((yield* verb("Send", send, act.token)).status, 200)
      // under the name of whoever granted it, whatever the payload says
      assert.deepStrictEqual(world.commands.at(-1)?.[0], "send")
      const forged = yield* verb("Send", { ...send, caller: { by: "agentd", config: null } }, act.token)
      assert.strictEqual(forged.status, 200)
      const board = yield* ask("/board", { token: view.token })
      yield* access.revoke(view.id, me)
      assert.strictEqual((yield* verb("Status", {}, view.token)).status, 401)
      yield* text(board)
      // neither the daemon's own procedures, nor those by which a run speaks or tokens are made
      for (const name of ["Hello", "VoiceAsk", "Grant", "Invite", "Revoke", "nothing", "toString"])
        assert.strictEqual((yield* verb(name, {}, act.token)).status, 404, name)
    })
  )

  it.live("an invitation is good once", () =>
    Effect.gen(function* () {
      const { access, ask } = yield* serve(makeWorld())
      const code = yield* access.invite({ right: "act", label: "page" }, me)
      const take = (handle: unknown) =>
        ask("/access/claim", { method: "POST", body: JSON.stringify({ handle, page: "p".repeat(22) }) })
      const page = yield* PageDouble.open(ask)
      yield* page.claim(code)
      assert.deepInclude(yield* page.read("/access/me"), { right: "act", label: "page" })
      assert.strictEqual((yield* take(handleOf(code))).status, 409)
      assert.strictEqual((yield* take(code)).status, 409)
      assert.strictEqual((yield* take(7)).status, 400)
    })
  )

  it.live("by other names than those that are named, and from pages of other origins, nobody", () =>
    Effect.gen(function* () {
      const { access, ask, listening } = yield* serve(makeWorld(), ["box.example.net"])
      const { token } = yield* access.grant({ right: "act", label: "p" }, me)
      const { port } = yield* listening.report
      const from = (headers: Record<string, string>) =>
        Effect.map(ask("/access/me", { token, headers }), ({ status }) => status)
      assert.strictEqual(yield* from({}), 200)
      // a browser would send its token to whoever listens there
      assert.strictEqual(yield* from({ origin: `http://127.0.0.1:${port}` }), 401)
      assert.strictEqual(yield* from({ "sec-fetch-site": "same-origin" }), 401)
      for (const origin of [
        `http://127.0.0.1:${Number(port) + 1}`,
        `http://localhost:${port}`,
        "https://evil.example",
        "null",
        "https://box.example.net"
      ])
        assert.strictEqual(yield* from({ origin }), 403, origin)
    })
  )

  it.live("a port that nobody asked for is taken when a page is opened", () =>
    Effect.gen(function* () {
      const { ask, listening } = yield* serve(makeWorld(), [], null)
      assert.isFalse((yield* listening.report).listening)
      yield* listening.ask
      while (!(yield* listening.report).listening) yield* Effect.sleep(5)
      assert.strictEqual((yield* ask("/")).status, 200)
    })
  )
})

describe("verbs", () => {
  it.live("refuse in one shape, by the bounds of the protocol", () =>
    Effect.gen(function* () {
      const { access, ask, verb } = yield* serve(makeWorld({ agents: [agentInfo()], calls: [callInfo()] }))
      const { token } = yield* access.grant({ right: "act", label: "p" }, me)
      const bad = yield* verb("Send", { name: "builder", text: "", how: "queue" }, token)
      assert.strictEqual(bad.status, 409)
      assert.hasAllKeys(yield* json(bad), ["error", "code", "field", "remedy"])
      for (const body of ["", "[1]", '"x"', "null", "{"]) {
        const { status } = yield* ask("/v1/Send", { method: "POST", body, token })
        assert.include([400, 409], status, body)
      }
      const listed = yield* json(yield* verb("Agents", {}, token))
      assert.lengthOf(listed as unknown as ReadonlyArray<unknown>, 1)
    })
  )

  it.live("sign for the caller, and leave alone what says something else by that name", () =>
    Effect.gen(function* () {
      const { access, verb } = yield* serve(makeWorld())
      const { token } = yield* access.grant({ right: "act", label: "p" }, me)
      assert.strictEqual((yield* verb("Costs", { by: ["agent"], since: "" }, token)).status, 200)
      assert.strictEqual((yield* verb("Shutdown", { by: "agentd", reason: "" }, token)).status, 200)
    })
  )

  it.live("are described to whom may view", () =>
    Effect.gen(function* () {
      const { access, ask } = yield* serve(makeWorld())
      assert.strictEqual((yield* ask("/openapi.json")).status, 401)
      const { token } = yield* access.grant({ right: "view", label: "p" }, me)
      const { openapi } = yield* json(yield* ask("/openapi.json", { token }))
      assert.strictEqual(openapi, "3.1.0")
    })
  )

  it.live("with many answers give a line for each", () =>
    Effect.gen(function* () {
      const { access, log, verb } = yield* serve(makeWorld())
      yield* log.append([draft(), draft()])
      const { token } = yield* access.grant({ right: "view", label: "p" }, me)
      const all = yield* text(yield* verb("Log", { follow: false }, token))
      const ids = all
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { eventId: number }).eventId)
      assert.deepStrictEqual(ids.slice(0, 2), [1, 2])
    })
  )
})

describe("streams", () => {
  it.live("of runes go on after the last one that was heard", () =>
    Effect.gen(function* () {
      const { access, ask, log } = yield* serve(makeWorld())
      const { token } = yield* access.grant({ right: "view", label: "p" }, me)
      yield* log.append([draft(), draft(), draft()])
      const first = yield* eventsOf(yield* ask("/events?after=1", { token }), 2)
      assert.deepStrictEqual(first.slice(0, 2), [2, 3])
      const next = yield* eventsOf(yield* ask("/events?after=1", { token, headers: { "last-event-id": "3" } }), 1)
      assert.deepStrictEqual(next[0], 4)
    })
  )

  it.live("of runes have internal ones where they are asked for", () =>
    Effect.gen(function* () {
      const { access, ask, log } = yield* serve(makeWorld())
      const { token } = yield* access.grant({ right: "view", label: "p" }, me)
      const head = yield* log.head
      yield* log.append([draft({ visibility: "internal" }), draft()])
      const first = (query: string) =>
        Effect.flatMap(ask(`/events?after=${head}${query}`, { token }), (response) => eventsOf(response, 1))
      assert.strictEqual((yield* first(""))[0], head + 2)
      assert.strictEqual((yield* first("&internal=true"))[0], head + 1)
    })
  )

  it.live("of the board begin with all of it", () =>
    Effect.gen(function* () {
      const { access, ask } = yield* serve(makeWorld({ agents: [agentInfo()] }))
      const { token } = yield* access.grant({ right: "view", label: "p" }, me)
      const scope = yield* Scope.make()
      assert.lengthOf(yield* eventsOf(yield* ask("/board", { token }), 1), 1)
      yield* Scope.close(scope, Exit.void)
    })
  )
})

describe("the rows of other hosts", () => {
  it.live("are for a page; a program with a token makes nobody connect to them", () =>
    Effect.gen(function* () {
      const looks: Array<string> = []
      const others = Stream.fromEffect(
        Effect.sync(() => (looks.push("one"), { rows: [], gone: ["cellar:shop/builder"] }))
      )
      const { access, ask } = yield* serveIn(yield* place(makeWorld({ agents: [agentInfo()] })), { others })
      const { token } = yield* access.grant({ right: "act", label: "p" }, me)
      yield* eventsOf(yield* ask("/board", { token }), 1)
      assert.deepStrictEqual(looks, [])
      const page = yield* PageDouble.open(ask)
      yield* page.claim(yield* access.invite({ right: "view", label: "page" }, me))
      yield* page.ask("/board")
      while (looks.length === 0) yield* Effect.sleep(5)
    })
  )
})

describe("the page", () => {
  it.live("runs its own script alone, is framed by nobody, and tells the board to whom may see it", () =>
    Effect.gen(function* () {
      const { access, ask } = yield* serve(makeWorld({ agents: [agentInfo({ detail: "</script><script>alert(1)" })] }))
      const page = yield* ask("/")
      assert.strictEqual(yield* text(page), PAGE)
      const policy = page.headers.get("content-security-policy")!
      for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"])
        assert.include(policy, part)
      assert.notInclude(policy, "unsafe")
      const { token } = yield* access.grant({ right: "view", label: "p" }, me)
      assert.strictEqual(yield* text(yield* ask("/", { token })), PAGE)
      assert.strictEqual((yield* ask("/glimpse")).status, 401)
      const { rows } = yield* json(yield* ask("/glimpse", { token }))
      assert.lengthOf(rows as ReadonlyArray<unknown>, 1)
      // what is asked for by its content's tag is kept; by another one it is not
      const keeps = (path: string) => Effect.map(ask(path), ({ headers }) => headers.get("cache-control"))
      assert.match((yield* keeps(`/page/app.js?tag=${PageFiles.tagOf("1")}`)) ?? "", /immutable/)
      for (const path of ["/page/app.js", "/page/app.js?tag=old", "/page/app.js?tag="])
        assert.strictEqual(yield* keeps(path), "no-cache", path)
      for (const path of ["/page/..%2fsecret", "/page/secret", "/page/none"])
        assert.strictEqual((yield* ask(path)).status, 404, path)
    })
  )
})
