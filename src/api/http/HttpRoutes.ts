/**
 * HttpRoutes: the HTTP routes for pages and programs: the page's files, all verbs, and the board and the log as
 * streams.
 *
 * Guarantees: every decision or action is logged under the name of the user who gave the page or program access, with
 * the label of the page or program. A stream ends when the access right is revoked. After an interruption, a stream of
 * runes continues with the next rune (`Last-Event-ID`). The page runs only its own scripts, and no other page can put
 * it into a frame.
 */
import { Effect, Option, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import type { Access, Grant } from "../../access/Access.ts"
import type { Board, BoardNews } from "../../domain/BoardMessages.ts"
import { glimpseOf } from "../../domain/InitialBoard.ts"
import { codeOf } from "../../domain/RefusalCode.ts"
import type { Problem, Verb, Verbs } from "../../domain/Verb.ts"
import type { Pairing } from "./Pairing.ts"
import * as OpenApi from "./OpenApi.ts"
import * as PageFiles from "./PageFiles.ts"
import { type Refusal, refusal, toBody } from "./Refusal.ts"
import type { Call, Route } from "./Route.ts"

export interface HttpRoutes {
  readonly access: Access["Service"]
  readonly verbs: Verbs
  readonly page: PageFiles.PageFiles
  readonly versions: OpenApi.Versions
  /** The rows of the saved hosts, for pages: all at first, then their changes. */
  readonly others?: Stream.Stream<NonNullable<BoardNews["others"]>>
}

type Response = HttpServerResponse.HttpServerResponse

/** Interval at which a comment is sent in an event stream, so that proxies do not consider the stream dead. */
const BEAT = "20 seconds"

const json = (value: unknown): Response =>
  HttpServerResponse.jsonUnsafe(value, { headers: { "cache-control": "no-store" } })

/** The caller's name in the log: the name of the user who granted the token, with the token's label. */
const askerOf = (grant: Grant | undefined) => ({
  by: grant === undefined ? "http" : `${grant.by} (${grant.label.replaceAll(":", " ")})`
})

/**
 * The HTTP refusal for a verb's refusal. Clients of this protocol know only two statuses for it: 503 if the store
 * fails, otherwise 409.
 */
export const refused = (problem: Problem): Refusal => {
  const status = problem._tag === "CommandRefused" ? 409 : 503
  return refusal(codeOf(problem) ?? "conflict", problem.message, problem.remedy, null, status)
}

const unknown = (id: string, verbs: Verbs): Refusal =>
  refusal("unsupported", `There is no verb "${id}".`, `There are: ${[...verbs.keys()].join(", ")}.`, null, 404)

/** The payload of a request; undefined if the request has no body. */
const bodyOf = ({ body, headers }: Call): Effect.Effect<unknown, Refusal> =>
  headers["content-length"] === "0" || (headers["content-length"] ?? headers["transfer-encoding"]) === undefined
    ? Effect.undefined
    : body

const lines = (values: Stream.Stream<unknown, Problem>): Response => {
  const told = Stream.catch(values, (problem) => Stream.succeed(toBody(refused(problem))))
  const texts = Stream.map(told, (value) => `${JSON.stringify(value)}\n`)
  return HttpServerResponse.stream(Stream.encodeText(texts), {
    contentType: "application/x-ndjson",
    headers: { "cache-control": "no-store" }
  })
}

interface Told {
  readonly id: number
  readonly data: unknown
}

/** A response with server-sent events for a page. If the stream fails, the error is the last event. */
const events = (values: Stream.Stream<Told, Problem>): Response => {
  const told = values.pipe(
    Stream.map(({ data, id }) => `id: ${id}\ndata: ${JSON.stringify(data)}\n\n`),
    Stream.catch((problem) => Stream.succeed(`event: refused\ndata: ${JSON.stringify(toBody(refused(problem)))}\n\n`))
  )
  // send the first comment at once, so that the client knows that its request has been received
  const beats = Stream.concat(Stream.succeed(": agentd\n\n"), Stream.as(Stream.drop(Stream.tick(BEAT), 1), ": \n\n"))
  return HttpServerResponse.stream(Stream.encodeText(Stream.merge(told, beats, { haltStrategy: "left" })), {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-store" }
  })
}

/** Ends a stream when its token is revoked. */
const whileGranted =
  (access: Access["Service"], grant: Grant | undefined) =>
  <A, E>(stream: Stream.Stream<A, E>): Stream.Stream<A, E> =>
    grant === undefined ? stream : Stream.interruptWhen(stream, access.ended(grant.id))

const called = Effect.fnUntraced(function* ({ access, verbs }: HttpRoutes, call: Call) {
  const verb = verbs.get(call.id)
  if (verb === undefined) return yield* Effect.fail(unknown(call.id, verbs))
  const payload = yield* bodyOf(call)
  const asker = askerOf(call.grant)
  if (verb.streams) return lines(whileGranted(access, call.grant)(verb.stream(payload, asker)))
  return yield* Effect.mapBoth(verb.call(payload, asker), {
    onSuccess: (value) => json(value ?? null),
    onFailure: refused
  })
})

const numberIn = (text: string | null | undefined): number | undefined =>
  text !== null && text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined

/**
 * A stream of the runes after a position, including later ones. Query:
 * `?after=N&kinds=a,b&agent=NAME&stream=ID&internal=true`.
 */
const runes = ({ access, verbs }: HttpRoutes, { grant, headers, query }: Call): Response => {
  const after = numberIn(headers["last-event-id"]) ?? numberIn(query.get("after"))
  const text = (name: string) => {
    const value = query.get(name)
    return value === null || value === "" ? {} : { [name]: value }
  }
  const kinds = query.get("kinds")
  const payload = {
    follow: true,
    ...(after === undefined ? { tail: numberIn(query.get("tail")) ?? 0 } : { after }),
    ...(kinds === null || kinds === "" ? {} : { kinds: kinds.split(",") }),
    internal: query.get("internal") === "true",
    ...text("agent"),
    ...text("stream")
  }
  const all = verbs.get("Log")!.stream(payload, askerOf(grant))
  return events(
    whileGranted(
      access,
      grant
    )(all).pipe(Stream.map((data) => ({ id: (data as { readonly eventId: number }).eventId, data })))
  )
}

type Others = NonNullable<BoardNews["others"]>

/** Adds the rows of other hosts to the news of the board. The first news are always the whole board of this daemon. */
const withOthers = (own: Stream.Stream<unknown, Problem>, others: Stream.Stream<Others>) =>
  Stream.merge(
    Stream.map(own, (news) => ({ news: news as BoardNews })),
    others,
    { haltStrategy: "left" }
  ).pipe(
    Stream.mapAccum(
      (): { readonly head?: BoardNews["head"]; readonly early: ReadonlyArray<Others> } => ({ early: [] }),
      (state, one) => {
        const { head = "news" in one ? one.news.head : undefined, early } = state
        if (head === undefined) return [{ early: [...early, one as Others] }, []] as const
        const told = (found: ReadonlyArray<Others>) => found.map((others) => ({ head, rows: [], gone: [], others }))
        return "news" in one
          ? ([{ head: one.news.head, early: [] }, [one.news, ...told(early)]] as const)
          : ([state, told([one])] as const)
      }
    )
  )

const board = ({ access, others, verbs }: HttpRoutes, { grant }: Call): Response => {
  const own = verbs.get("BoardNews")!.stream({ follow: true }, askerOf(grant))
  // only for a page, which a person has opened: a run can open the unix socket, and must not learn of other hosts
  const isPage = grant !== undefined && grant.hash === ""
  const all = withOthers(own, isPage ? (others ?? Stream.empty) : Stream.empty)
  return events(whileGranted(access, grant)(all).pipe(Stream.map((data) => ({ id: data.head.rune, data }))))
}

/** The first rows of the board, from the state that subscribers see; null if the board is not available yet. */
const glimpse = Effect.fnUntraced(function* ({ verbs }: HttpRoutes, { grant }: Call) {
  const whole = verbs.get("BoardNews")!.stream({ follow: false }, askerOf(grant))
  const board = yield* Effect.mapError(Stream.runHead(whole), refused)
  return json(Option.getOrNull(Option.map(board, (board) => glimpseOf(board as Board))))
})

const rightOf = ({ reads }: Verb): "view" | "act" => (reads ? "view" : "act")

/**
 * Pairs a page by its link. The answer makes the browser delete everything that an earlier page stored at the same
 * origin.
 */
const claimed = Effect.fnUntraced(function* ({ access }: HttpRoutes, pairing: Pairing, { body }: Call) {
  const { handle, page } = ((yield* body) ?? {}) as { readonly handle?: unknown; readonly page?: unknown }
  if (typeof handle !== "string" || typeof page !== "string")
    return yield* Effect.fail(refusal("invalid", "The link's handle is missing.", "Get a link: agentd open", "handle"))
  const taken = yield* Effect.mapError(access.claim(handle), refused)
  return HttpServerResponse.setHeader(json(yield* pairing.seal(taken, page)), "clear-site-data", '"cache", "storage"')
})

const hello = (pairing: Pairing, { query }: Call) =>
  Effect.map(pairing.hello(query.get("id") ?? "", query.get("page") ?? ""), json)

/** The caller's right, and the tags of the daemon's current page and service worker versions. */
const me = Effect.fnUntraced(function* ({ page }: HttpRoutes, { grant }: Call) {
  const [build, worker] = [yield* PageFiles.tag(page, "index.html"), yield* PageFiles.tag(page, "worker.js")]
  return json({ id: grant?.id ?? null, right: grant?.right ?? "act", label: grant?.label ?? "", build, worker })
})

const ADDRESS = /^[\w:/.?=&%#~+-]{1,200}$/

const toldWorkers = Effect.fnUntraced(function* (pairing: Pairing, { body, grant }: Call) {
  const { foreign } = ((yield* body) ?? {}) as { readonly foreign?: unknown }
  const found = (Array.isArray(foreign) ? foreign : []).filter((one) => typeof one === "string" && ADDRESS.test(one))
  if (grant !== undefined) yield* pairing.tell(grant.id, found.slice(0, 5))
  return json(null)
})

/** The OpenAPI description, the same that `agentd schema --openapi` prints. */
const described = ({ verbs, versions }: HttpRoutes): Response => json(OpenApi.describe([...verbs.values()], versions))

export const routesOf = (doors: HttpRoutes, pairing: Pairing): ReadonlyArray<Route> => [
  { method: "GET", path: "/", needs: "nothing", handle: () => PageFiles.file(doors.page, "index.html") },
  {
    method: "GET",
    path: "/worker.js",
    needs: "nothing",
    handle: ({ query }) => PageFiles.file(doors.page, "worker.js", query.get("tag"))
  },
  {
    method: "GET",
    path: "/page/:id",
    needs: "nothing",
    handle: ({ id, query }) => PageFiles.file(doors.page, id, query.get("tag"))
  },
  { method: "POST", path: "/access/claim", needs: "nothing", handle: (call) => claimed(doors, pairing, call) },
  { method: "GET", path: "/access/hello", needs: "nothing", handle: (call) => hello(pairing, call) },
  { method: "GET", path: "/access/me", needs: "view", handle: (call) => me(doors, call) },
  { method: "POST", path: "/access/workers", needs: "view", handle: (call) => toldWorkers(pairing, call) },
  { method: "GET", path: "/glimpse", needs: "view", handle: (call) => glimpse(doors, call) },
  { method: "GET", path: "/events", needs: "view", handle: (call) => Effect.succeed(runes(doors, call)) },
  { method: "GET", path: "/board", needs: "view", handle: (call) => Effect.succeed(board(doors, call)) },
  { method: "GET", path: "/openapi.json", needs: "view", handle: () => Effect.sync(() => described(doors)) },
  {
    method: "POST",
    path: "/v1/:id",
    needs: (id) => {
      const verb = doors.verbs.get(id)
      return verb === undefined ? "view" : rightOf(verb)
    },
    handle: (call) => called(doors, call)
  }
]
