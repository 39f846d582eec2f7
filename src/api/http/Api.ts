/**
 * Api: one table of all HTTP routes and their handlers. Both listeners share the table; they differ only in how a
 * request is authorized.
 *
 * Guarantees: a hook is answered when it has been received, before it is written to disk. A body is read only after its
 * sender has been authorized, and only up to the size limit. All error answers have the same form: the problem, and the
 * remedy.
 */
import { ByteSize, Cause, Duration, Effect, Stream } from "effect"
import {
  HttpIncomingMessage,
  HttpMiddleware,
  HttpServerError,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { inner } from "../../runs/claude/ClaudeRecord.ts"
import { answered } from "../../runs/claude/ClaudeTools.ts"
import type { Decision } from "../../plates/Approvals.ts"
import type { Origin } from "../../plates/EventIntake.ts"
import type { EventRefused } from "../../plates/JsonReader.ts"
import type { Problem } from "../../domain/Verb.ts"
import { OVER, UNSURE } from "../../domain/PageProof.ts"
import { attempt } from "../../config/Attempt.ts"
import * as HookBody from "../../plates/HookBody.ts"
import { isTooDeep, MAX_NESTING } from "../../plates/JsonDepth.ts"
import { SESSION_SOURCES } from "../../plates/SessionSources.ts"
import { Plates, type Unwritten } from "../../plates/Plates.ts"
import type { Grant } from "../../access/Access.ts"
import { type Authorization, bearer, type Headers, type Needs, turnAway } from "./Authorization.ts"
import * as HttpRoutes from "./HttpRoutes.ts"
import type { Route } from "./Route.ts"
import { hashOf, type Paired, type Pairing } from "./Pairing.ts"
import { type Refusal, refusal, toResponse } from "./Refusal.ts"

export const MAX_BODY = HookBody.MAX_BYTES

/** The name under which an HTTP caller appears in the log. */
const CALLER = { by: "http", config: null }

const RECEIVED = HttpServerResponse.empty({ status: 202 })
const DONE = HttpServerResponse.empty({ status: 204 })
const json = (value: unknown) => HttpServerResponse.jsonUnsafe(value)

const notAnEvent = ({ field, message, remedy }: EventRefused) => refusal("invalid", message, remedy, field)
const notWritten = (error: EventRefused | Unwritten) =>
  error._tag === "EventRefused" ? notAnEvent(error) : refusal("unavailable", error.message, error.remedy)

/**
 * An event that was received completely is processed even if its sender has disconnected, because the hook might have
 * timed out while the daemon was busy.
 */
const received = (taken: Effect.Effect<void, EventRefused>) =>
  Effect.uninterruptible(Effect.mapError(taken, notAnEvent)).pipe(Effect.as(RECEIVED))

/**
 * The value of a header. Undefined if the header is empty or contains a variable's name, because the variable for it
 * was not set.
 */
const header = (value: string | undefined): string | undefined =>
  value === undefined || value === "" || value.startsWith("$") ? undefined : value

const originOf = (headers: Headers): Origin => ({
  plate: header(headers["x-agentd-plate"]),
  run: header(headers["x-agentd-run"]),
  pid: undefined
})

/** The sender of a hook of another CLI. The process that runs the hook is the session's process. */
const originBy = (headers: Headers): Origin => {
  const pid = Number(headers["x-agentd-pid"])
  return { ...originOf(headers), pid: Number.isSafeInteger(pid) && pid > 1 ? pid : undefined }
}

/**
 * Fields of the answer for an allowed call: the call's input, unchanged, together with the answers to its questions.
 */
const inputOf = (body: unknown, answers: ReadonlyArray<string> | undefined): object =>
  typeof body === "object" && body !== null && "tool_input" in body
    ? { updatedInput: answers === undefined ? body.tool_input : answered(inner({ ...body }, "tool_input"), answers) }
    : {}

/**
 * The answer in Claude Code's format. If it is empty, the user decides in the terminal. An approval of a plan is
 * accepted only together with the plan's input.
 */
const toAnswer = (decision: Decision | undefined, body: unknown) =>
  decision === undefined
    ? HttpServerResponse.empty({ status: 204 })
    : json({
        hookSpecificOutput: {
          hookEventName: "PermissionRequest",
          decision: decision.behavior === "allow" ? { behavior: "allow", ...inputOf(body, decision.answers) } : decision
        }
      })

export interface About {
  /** The daemon's status; any JSON value. */
  readonly status: Effect.Effect<unknown>
  /** The daemon's metrics in the text format of Prometheus. */
  readonly metrics: Effect.Effect<string>
  /** Records how many seconds it took to answer a hook. */
  readonly hook: (seconds: number) => void
}

const PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

/** The refusal for an unknown session. Its status is 404, because each session has its own path. */
const notThere = (problem: Problem): Refusal => ({
  ...HttpRoutes.refused(problem),
  status: problem._tag === "CommandRefused" ? 404 : 503
})

/** The routes for the hooks of CLIs other than Claude Code. */
const hookRoutes = (plates: Plates["Service"]): ReadonlyArray<Route> =>
  SESSION_SOURCES.map((source): Route => ({
    method: "POST",
    path: `/hooks/${source.id}`,
    needs: "hooks",
    cuts: true,
    handle: ({ body, headers }) =>
      Effect.flatMap(body, (hook) => received(plates.hook(hook, originBy(headers), source)))
  }))

const routesOf = (plates: Plates["Service"], { metrics, status }: About): ReadonlyArray<Route> => [
  { method: "GET", path: "/health", needs: "nothing", handle: () => Effect.succeed(json({ ok: true })) },
  { method: "GET", path: "/status", needs: "full", handle: () => Effect.map(status, json) },
  {
    method: "GET",
    path: "/metrics",
    needs: "full",
    handle: () => Effect.map(metrics, (text) => HttpServerResponse.text(text, { contentType: PROMETHEUS }))
  },
  {
    method: "GET",
    path: "/plates",
    needs: "full",
    handle: ({ query }) => Effect.map(plates.list({ closed: query.get("closed") === "true" }), json)
  },
  {
    method: "POST",
    path: "/hooks/claude",
    needs: "hooks",
    cuts: true,
    handle: ({ body, headers }) => Effect.flatMap(body, (hook) => received(plates.hook(hook, originOf(headers))))
  },
  ...hookRoutes(plates),
  {
    method: "POST",
    path: "/hooks/claude/permission",
    // the hooks' token is not enough, because the answer can allow a call, and another program could listen on the
    // daemon's port
    needs: "full",
    cuts: true,
    handle: ({ body, headers }) =>
      Effect.flatMap(body, (hook) =>
        // a user who cannot see the whole call cannot decide about it, so let the user decide in the terminal
        HookBody.isCut(hook)
          ? received(plates.hook(hook, originOf(headers)))
          : Effect.map(Effect.mapError(plates.permission(hook, originOf(headers)), notAnEvent), (decision) =>
              toAnswer(decision, hook)
            )
      )
  },
  {
    method: "POST",
    path: "/events",
    needs: "hooks",
    cuts: true,
    handle: ({ body }) => Effect.flatMap(body, (event) => received(plates.event(event)))
  },
  {
    method: "POST",
    path: "/plates/register",
    needs: "full",
    handle: ({ body }) =>
      Effect.flatMap(body, (plate) => Effect.mapError(plates.register(plate), notWritten)).pipe(Effect.map(json))
  },
  {
    method: "POST",
    path: "/plates/stopped",
    needs: "full",
    handle: ({ body }) =>
      Effect.flatMap(body, (plate) => Effect.mapError(plates.stopped(plate), notWritten)).pipe(Effect.as(DONE))
  },
  {
    method: "DELETE",
    path: "/plates/:id",
    needs: "full",
    handle: ({ id }) => plates.forget(id, CALLER).pipe(Effect.map(json), Effect.mapError(notThere))
  }
]

const needsOf = ({ needs }: Route, id: string): Needs => (typeof needs === "function" ? needs(id) : needs)

/**
 * The part of the path that matches `:id`; "" if the pattern contains no `:id`; undefined if the path does not match.
 */
const match = (pattern: string, path: string): string | undefined => {
  if (!pattern.endsWith("/:id")) return pattern === path ? "" : undefined
  const prefix = pattern.slice(0, -":id".length)
  const rest = path.startsWith(prefix) ? path.slice(prefix.length) : ""
  if (rest === "" || rest.includes("/")) return undefined
  return attempt(() => decodeURIComponent(rest))
}

/** Hint for callers of the hooks' socket, which has no verbs. */
const ELSEWHERE = "Verbs are available at the port, with a token: agentd access new"

const find = (routes: ReadonlyArray<Route>, method: string, path: string, isUnix: boolean) => {
  const fitting = routes.flatMap((route) => {
    const id = match(route.path, path)
    return id === undefined ? [] : [{ route, id }]
  })
  const found = fitting.find(({ route }) => route.method === method)
  if (found !== undefined) return found
  if (fitting.length === 0) {
    return refusal(
      "not_found",
      "There is no such route.",
      `There are: ${routes.map((r) => `${r.method} ${r.path}`).join(", ")}.${isUnix ? ` ${ELSEWHERE}` : ""}`
    )
  }
  const allow = [...new Set(fitting.map(({ route }) => route.method))].join(", ")
  return { ...refusal("invalid", `This route does not take ${method}.`, `Use ${allow}.`, null, 405), allow }
}

const isTooLarge = (error: HttpServerError.HttpServerError): boolean =>
  error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"

const TOO_DEEP = refusal(
  "invalid",
  `The body has more than ${MAX_NESTING} levels of nesting.`,
  "Leave out the deep part.",
  "body"
)

const CHANGED = refusal(
  "invalid",
  "The body differs from the one that the page sent.",
  "Check for a program between the page and the daemon.",
  "body"
)

/**
 * Adapts the refusal for an unknown session to a request for an action, because the action might have been carried out.
 */
const unsure = (refused: Refusal): Refusal =>
  refused.field === OVER
    ? { ...refused, field: UNSURE, remedy: "Check whether it was done; if not, do it again." }
    : refused

const CROWDED = refusal("not_now", "Too many connections are open already.", "Try again in a moment.")

const parse = (text: string, read: (text: string) => unknown): Effect.Effect<unknown, Refusal> =>
  isTooDeep(text)
    ? Effect.fail(TOO_DEEP)
    : Effect.try({
        try: (): unknown => read(text),
        catch: (error) =>
          refusal(
            "invalid",
            `The body is not JSON: ${error instanceof Error ? error.message : error}`,
            "Send JSON.",
            "body"
          )
      })

/** The first part of a body that is too long; the rest is read and discarded. */
const headOf = ({ stream }: HttpServerRequest.HttpServerRequest) =>
  Stream.runFold(
    stream,
    () => Buffer.alloc(0),
    (head, part) => (head.length < MAX_BODY ? Buffer.concat([head, part]).subarray(0, MAX_BODY) : head)
  ).pipe(Effect.map(String))

const textOf = (request: HttpServerRequest.HttpServerRequest, cuts = false): Effect.Effect<string, Refusal> =>
  (cuts ? headOf(request) : request.text).pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(MAX_BODY)),
    Effect.mapError((error) =>
      isTooLarge(error)
        ? refusal("too_large", `The body has more than ${MAX_BODY} bytes.`, "Leave out the long part.", "body")
        : refusal("invalid", "The body did not arrive completely.", "Send it again.", "body")
    )
  )

/** The parsed body of a request. If the request is from a page, the body is first checked against the page's proof. */
const bodyOf = (request: HttpServerRequest.HttpServerRequest, cuts = false, paired?: Paired) => {
  const parsed = Effect.flatMap(textOf(request, cuts), (text) => parse(text, cuts ? HookBody.parse : JSON.parse))
  if (paired === undefined) return Effect.succeed(parsed)
  return Effect.flatMap(textOf(request), (text) =>
    hashOf(text) === paired.body ? Effect.succeed(parse(text, JSON.parse)) : Effect.fail(CHANGED)
  )
}

/**
 * Handles a request. `admit` is called when the request has been authorized; it returns false if no connection is
 * available for it.
 */
export type Api = (
  door: Authorization,
  admit: (request: object) => boolean
) => Effect.Effect<HttpServerResponse.HttpServerResponse, never, HttpServerRequest.HttpServerRequest>

export const make = Effect.fnUntraced(function* (about: About, doors?: HttpRoutes.HttpRoutes, pairing?: Pairing) {
  const ofHooks = routesOf(yield* Plates, about)
  const all =
    doors === undefined || pairing === undefined ? ofHooks : [...ofHooks, ...HttpRoutes.routesOf(doors, pairing)]

  /** The grant for a request's token. Undefined if the token is unknown, or if the log cannot be read. */
  const grantOf = (headers: Headers): Effect.Effect<Grant | undefined> => {
    const token = bearer(headers["authorization"])
    if (doors === undefined || token === undefined) return Effect.undefined
    return Effect.orElseSucceed(doors.access.of(token), () => undefined)
  }

  /**
   * The page that signed the request. Undefined if the request is not signed, or if the secret for the pages' keys
   * cannot be read.
   */
  const pairedOf = ({ headers, method, url }: HttpServerRequest.HttpServerRequest, door: Authorization) =>
    pairing === undefined || door._tag === "Unix"
      ? Effect.undefined
      : pairing
          .open({ authorization: headers["authorization"], method, path: url, after: headers["last-event-id"] ?? "" })
          .pipe(Effect.orElseSucceed(() => undefined))

  /** Records how long the answer takes if the route is for hooks. */
  const timed = (path: string, answered: Effect.Effect<HttpServerResponse.HttpServerResponse, Refusal>) =>
    path.startsWith("/hooks/")
      ? Effect.flatMap(Effect.timed(answered), ([took, response]) => {
          about.hook(Duration.toSeconds(took))
          return Effect.succeed(response)
        })
      : answered

  const answer = Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    door: Authorization,
    admit: (request: object) => boolean,
    paired: Paired | undefined
  ) {
    const [path = "", query] = request.url.split("?", 2)
    const isUnix = door._tag === "Unix"
    const found = find(isUnix ? ofHooks : all, request.method, path, isUnix)
    // an unauthorized caller must not learn which routes exist
    const needs = "route" in found ? needsOf(found.route, found.id) : "hooks"
    // a page can repeat a request that only reads; for an action it cannot know whether the action was carried out
    if (paired?.refused !== undefined) return toResponse(needs === "act" ? unsure(paired.refused) : paired.refused)
    const isOpen = door._tag === "Unix" || needs === "hooks" || needs === "full"
    const grant = isOpen ? undefined : paired === undefined ? yield* grantOf(request.headers) : paired.grant
    const turned = turnAway(door, request.headers, needs, grant?.right, paired !== undefined)
    if (turned !== undefined) return toResponse(turned)
    if (!("route" in found)) return toResponse(found)
    // a caller without a token still counts as a stranger, even if its request is answered
    const shows = door._tag === "Unix" || needs !== "nothing"
    if (shows && !admit(request.source)) return toResponse(CROWDED)
    const handled = Effect.flatMap(bodyOf(request, found.route.cuts, paired), (body) =>
      found.route.handle({ headers: request.headers, grant, query: new URLSearchParams(query), id: found.id, body })
    )
    return yield* Effect.catch(timed(path, handled), (refused) => Effect.succeed(toResponse(refused)))
  })

  const answered = (...[request, door, admit, paired]: Parameters<typeof answer>) =>
    answer(request, door, admit, paired).pipe(
      // Effect's server makes its handlers uninterruptible. But when a client disconnects, or the daemon stops,
      // requests that wait for a user must end.
      Effect.interruptible,
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.succeed(toResponse(refusal("not_now", "The daemon is stopping.", "Try again when it is running.")))
          : Effect.as(
              Effect.logError("a request crashed", cause),
              toResponse(
                refusal("unavailable", "The request crashed.", "See the daemon's log, and report it.", null, 500)
              )
            )
      ),
      Effect.map((response) => paired?.prove(response) ?? response)
    )

  const api: Api = (door, admit) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.flatMap(pairedOf(request, door), (paired) => answered(request, door, admit, paired))
    ).pipe(
      // turn tracing off, because a span for each hook would cost more than the hook itself
      Effect.provideService(HttpMiddleware.TracerDisabledWhen, () => true)
    )
  return api
})
