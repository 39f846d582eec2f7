/**
 * The page's door: who listens in the daemon's place, or stands between the page and the daemon, hears everything and may
 * answer anything. It must learn no secret, have nothing done in the person's name, and show the page nothing.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createServer } from "node:net"
import { handleOf, nameOf } from "../../src/access/Access.ts"
import * as ListenerStatus from "../../src/api/http/ListenerStatus.ts"
import { agentInfo, draft, makeWorld } from "../world/rpc/World.ts"
import * as PageDouble from "../world/http/PageDouble.ts"
import { serve } from "../world/http/Served.ts"

const me = { by: "ada" }
const send = (text: string) => ({ name: "builder", text, how: "queue" })

interface Heard {
  readonly path: string
  readonly init: RequestInit
}
type Way = (heard: Heard, onward: PageDouble.Ask) => Effect.Effect<Response>

const plain: Way = ({ init, path }, onward) => onward(path, init)

/** A page that was let in, on a way that somebody else holds: `way` is theirs from then on. */
const paired = Effect.fnUntraced(function* (right: "view" | "act" = "act") {
  const world = makeWorld({ agents: [agentInfo()] })
  const served = yield* serve(world)
  const heard: Array<Heard> = []
  const relay = { way: plain }
  const ask: PageDouble.Ask = (path, init) => {
    heard.push({ path, init })
    return relay.way({ path, init }, served.ask)
  }
  const page = yield* PageDouble.open(ask)
  const code = yield* served.access.invite({ right, label: "page" }, me)
  yield* page.claim(code)
  const sent = () => world.commands.filter(([what]) => what === "send")
  return { ...served, code, heard, page, relay, sent }
})

const headersOf = ({ init }: Heard): string => JSON.stringify([...new Headers(init.headers)])
const failed = <A>(asked: Effect.Effect<A, PageDouble.Problem>) => Effect.flip(asked)
const textOf = (response: Response) => Effect.promise(() => response.text())

/** The answer with another text, and all its headers. */
const changed = (response: Response, change: (text: string) => string) =>
  Effect.map(
    textOf(response),
    (text) => new Response(change(text), { status: response.status, headers: response.headers })
  )

/** The field begins otherwise. */
const other =
  (field: string) =>
  (_: string, letter: string): string =>
    `"${field}":"${letter === "A" ? "B" : "A"}`

/** The text with another character there. */
const bent = (text: string, at: number): string =>
  text.slice(0, at) + String.fromCodePoint(text.codePointAt(at)! ^ 1) + text.slice(at + 1)

describe("a page that was let in", () => {
  it.live("acts under its person's name, after a reload too, and keeps no key that can be read", () =>
    Effect.gen(function* () {
      const { page, sent } = yield* paired()
      yield* page.act("Send", send("one"))
      yield* page.reload
      yield* page.act("Send", send("two"))
      assert.lengthOf(sent(), 2)
      const { key } = page.kept.get("key") as { readonly key: { readonly extractable: boolean } }
      assert.isFalse(key.extractable)
    })
  )

  it.live("sends neither its link's code nor its key: what was heard, and said anew, opens nothing", () =>
    Effect.gen(function* () {
      const { ask, code, heard, page, sent } = yield* paired()
      yield* page.read("/access/me")
      yield* page.act("Send", send("once"))
      const all = JSON.stringify(heard.map((one) => [one.path, headersOf(one), one.init.body]))
      assert.notInclude(all, code)
      assert.notMatch(all, /bearer/i)
      for (const { init, path } of heard) {
        const { status } = yield* ask(path, init)
        // to say hello costs nothing and gives nothing: the key proves the rest
        if (!path.startsWith("/access/hello")) assert.strictEqual(status, 409, path)
      }
      assert.lengthOf(sent(), 1)
    })
  )

  it.live("a relay changes no byte of an act: method, path, query, body and proof", () =>
    Effect.gen(function* () {
      const { page, relay, sent } = yield* paired()
      yield* page.read("/access/me")
      const ways: ReadonlyArray<readonly [what: string, way: Way]> = [
        ["body", ({ init, path }, on) => on(path, { ...init, body: String(init.body).replace("ask", "do!") })],
        ["no body", ({ init, path }, on) => on(path, { ...init, body: "" })],
        ["more body", ({ init, path }, on) => on(path, { ...init, body: `${String(init.body)} ` })],
        ["path", ({ init }, on) => on("/v1/Steer", init)],
        ["query", ({ init, path }, on) => on(`${path}?a=1`, init)],
        ...[8, 20, 45, 70, 90].map((at): readonly [string, Way] => [
          `authorization at ${at}`,
          ({ init, path }, on) => {
            const headers = new Headers(init.headers)
            const proof = headers.get("authorization")
            // none: the page says hello
            if (proof !== null) headers.set("authorization", bent(proof, at))
            return on(path, { ...init, headers: Object.fromEntries(headers) })
          }
        ])
      ]
      for (const [what, way] of ways) {
        relay.way = way
        const problem = yield* failed(page.act("Send", send("ask")))
        assert.isTrue(problem.isForeign === true || problem.status === 400, `${what}: ${JSON.stringify(problem)}`)
        assert.lengthOf(sent(), 0, what)
      }
      relay.way = plain
      yield* page.act("Send", send("ask"))
      assert.lengthOf(sent(), 1)
    })
  )

  it.live(
    "believes no answer that the daemon did not prove: forged, changed, of another request, or with no proof",
    () =>
      Effect.gen(function* () {
        const { page, relay } = yield* paired()
        const first: Array<Response> = []
        const ways: ReadonlyArray<readonly [what: string, way: Way]> = [
          ["forged", () => Effect.succeed(new Response(`{"right":"act"}`))],
          ["a refusal", () => Effect.succeed(new Response(`{"error":"x","field":"session"}`, { status: 401 }))],
          [
            "changed",
            (heard, on) => Effect.flatMap(plain(heard, on), (response) => changed(response, (text) => bent(text, 9)))
          ],
          [
            "another status",
            (heard, on) =>
              Effect.flatMap(plain(heard, on), (response) =>
                Effect.map(textOf(response), (text) => new Response(text, { status: 403, headers: response.headers }))
              )
          ],
          [
            "an old one",
            (heard, on) =>
              heard.path.startsWith("/access/hello") ? plain(heard, on) : Effect.succeed(first[0]!.clone())
          ]
        ]
        relay.way = (heard, on) =>
          Effect.tap(plain(heard, on), (response) => Effect.sync(() => first.push(response.clone())))
        yield* page.read("/access/me")
        first.splice(0, first.length - 1)
        for (const [what, way] of ways) {
          relay.way = way
          assert.isTrue((yield* failed(page.read("/access/me"))).isForeign, what)
          relay.way = plain
          yield* page.read("/access/me")
        }
      })
  )

  it.live("believes each line of a stream by its own proof, in its order", () =>
    Effect.gen(function* () {
      const { log, page } = yield* paired("view")
      yield* log.append([draft(), draft(), draft()])
      const items = Effect.fnUntraced(function* (bend: (parts: ReadonlyArray<string>) => ReadonlyArray<string>) {
        const answer = yield* page.ask("/events?after=0")
        const reader = answer.stream!.pipeThrough(new TextDecoderStream()).getReader()
        let text = ""
        while (text.split("\ndata: ").length <= 3) text += (yield* Effect.promise(() => reader.read())).value ?? ""
        yield* Effect.promise(() => reader.cancel())
        const parts = text.split("\n\n").slice(0, -1)
        let read = 0
        for (const part of bend(parts)) {
          const isOurs = yield* Effect.promise(() =>
            answer.item(`${part}\n\n`).then(
              () => true,
              () => false
            )
          )
          if (!isOurs) return read
          read++
        }
        return read
      })
      assert.isAtLeast(yield* items((parts) => parts), 4)
      assert.strictEqual(yield* items(([one, two = "", ...rest]) => [one!, bent(two, two.length - 3), ...rest]), 1)
      assert.strictEqual(yield* items(([one, two, three]) => [one!, three!, two!]), 1)
      assert.strictEqual(yield* items(([one]) => [one!, one!]), 1)
      assert.strictEqual(yield* items(() => ["id: 9\ndata: {}"]), 0)
    })
  )

  it.live("that is told to take up its stream elsewhere by a relay is told so by nobody", () =>
    Effect.gen(function* () {
      const { page, relay } = yield* paired("view")
      relay.way = ({ init, path }, on) => on(path, { ...init, headers: { ...init.headers, "last-event-id": "7" } })
      assert.isTrue((yield* failed(page.ask("/events?after=0"))).isForeign)
    })
  )

  it.live("whose right was taken back learns it from the daemon alone", () =>
    Effect.gen(function* () {
      const { access, page } = yield* paired()
      yield* page.read("/access/me")
      const [grant] = yield* access.list
      yield* access.revoke(grant!.id, me)
      for (const asked of [page.read("/access/me"), page.act("Send", send("x"))]) {
        const problem = yield* failed(asked)
        assert.deepStrictEqual([problem.status, problem.isForeign], [401, undefined])
      }
    })
  )

  it.live("to view does not act, by whatever it signs", () =>
    Effect.gen(function* () {
      const { page, sent } = yield* paired("view")
      assert.strictEqual((yield* failed(page.act("Send", send("x")))).status, 403)
      assert.lengthOf(sent(), 0)
      for (const path of ["/status", "/metrics", "/plates"])
        assert.strictEqual((yield* failed(page.read(path))).status, 403, path)
    })
  )

  it.live("a claim through a relay gives it nothing: another word, another handle, a sealed key that is bent", () =>
    Effect.gen(function* () {
      const { access, page, relay } = yield* paired()
      const ways: ReadonlyArray<Way> = [
        ({ init, path }, on) => on(path, { ...init, body: String(init.body).replace(/"page":"(.)/, other("page")) }),
        (heard, on) =>
          Effect.flatMap(plain(heard, on), (response) =>
            changed(response, (text) => text.replace(/"sealed":"(.)/, other("sealed")))
          )
      ]
      for (const way of ways) {
        relay.way = way
        const code = yield* access.invite({ right: "act", label: "page" }, me)
        assert.isTrue((yield* failed(page.claim(code))).isForeign)
        // it is used up, and whoever has it has nothing
        relay.way = plain
        assert.strictEqual((yield* failed(page.claim(code))).status, 409)
      }
      assert.notStrictEqual(handleOf("a".repeat(43)), handleOf("b".repeat(43)))
    })
  )

  it.live("keeps its own files as the daemon proved them, with their policy", () =>
    Effect.gen(function* () {
      const { page, relay } = yield* paired("view")
      assert.include((yield* page.ask("/")).policy, "frame-ancestors 'none'")
      relay.way = (heard, on) =>
        Effect.map(plain(heard, on), (response) => {
          const headers = new Headers(response.headers)
          headers.delete("content-security-policy")
          return new Response(response.body, { status: response.status, headers })
        })
      assert.isTrue((yield* failed(page.ask("/"))).isForeign)
    })
  )

  it.live("that finds another program's service worker at its origin tells the daemon, and doctor says so", () =>
    Effect.gen(function* () {
      const { ask, listening, page } = yield* paired("view")
      const tell = (foreign: ReadonlyArray<string>) => ({ method: "POST", body: JSON.stringify({ foreign }) })
      const found = Effect.map(listening.report, ListenerStatus.check)
      assert.strictEqual((yield* ask("/access/workers", tell(["http://x/evil.js"]))).status, 401)
      assert.strictEqual((yield* found).level, "ok")
      yield* page.ask("/access/workers", tell(["http://x/evil.js", "http://x/\u001b[31m", "y".repeat(900)]))
      const { detail, level } = yield* found
      assert.strictEqual(level, "fail")
      assert.match(detail, /http:\/\/x\/evil\.js \(page \w+\)$/)
      yield* page.ask("/access/workers", tell([]))
      assert.strictEqual((yield* found).level, "ok")
    })
  )

  it.live("has an origin of its own, and no other origin's page is answered by it", () =>
    Effect.gen(function* () {
      const { ask, listening } = yield* paired()
      const { port } = yield* listening.report
      const [own, other] = ["a".repeat(43), "b".repeat(43)].map(nameOf)
      assert.match(own!, /^agentd-[a-f\d]{20}\.localhost$/)
      const { request } = yield* Effect.promise(() => import("node:http"))
      const from = (host: string, origin: string) =>
        Effect.callback<number>((resume) => {
          const headers = { host: `${host}:${port}`, origin }
          request({ host: "127.0.0.1", port: Number(port), path: "/health", headers }, (response) => {
            response.resume()
            resume(Effect.succeed(response.statusCode ?? 0))
          }).end()
        })
      assert.strictEqual(yield* from(own!, `http://${own}:${port}`), 200)
      for (const origin of [`http://${other}:${port}`, `http://127.0.0.1:${port}`, `http://localhost:${port}`])
        assert.strictEqual(yield* from(own!, origin), 403, origin)
      for (const host of ["evil.localhost", "agentd-x.localhost", `${own}.evil.example`, `x.${own}`])
        assert.strictEqual(yield* from(host, `http://${host}:${port}`), 403, host)
      assert.strictEqual((yield* ask("/health")).status, 200)
    })
  )
})

describe("a port that is ours at one address and another program's at the other", () => {
  it.live("is not ours: a browser asks at both for a page's name", (context) =>
    Effect.gen(function* () {
      const squatter = createServer((conn) => void conn.destroy())
      const port = yield* Effect.callback<number | undefined>((resume) => {
        squatter.once("error", () => resume(Effect.undefined))
        squatter.listen(0, "::1", () => resume(Effect.succeed((squatter.address() as { port: number }).port)))
      })
      if (port === undefined) return context.skip("this machine has no IPv6")
      const { listening } = yield* serve(makeWorld(), [], port)
      const report = yield* listening.report
      assert.isFalse(report.listening)
      assert.include(report.problem?.message, `port ${port}`)
      squatter.close()
      while (!(yield* listening.report).listening) yield* Effect.sleep(50)
    })
  )
})
