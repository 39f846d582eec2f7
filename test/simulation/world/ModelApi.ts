/**
 * ModelApi: the APIs of models, as the world has them: they answer a conversation in either wire
 * format, in bytes that are cut anywhere; slowly, not at all, up to the middle; or they refuse.
 *
 * What a request carries, and how far
 * its answer was read, is told to the witness.
 */
import { Cause, Effect, Layer, Queue, Stream } from "effect"
import { Headers, HttpClient, HttpClientError, type HttpClientRequest, type HttpClientResponse } from "effect/http"
import { Chance } from "../Chance.ts"
import type { Life, Universe } from "../Universe.ts"
import { type Answer, type Asked, type Dialect, type Frame, framesOf, read, type Spent } from "./ModelWire.ts"

export const API_MOODS = [
  "answers",
  "calls",
  "cutShort",
  "refuses",
  "filters",
  "pauses",
  "says nothing",
  "limited",
  "limitedFor",
  "limitedForLong",
  "overloaded",
  "fails",
  "unauthorized",
  "unpaid",
  "tooLong",
  "unreachable",
  "silent",
  "stalls",
  "breaks",
  "endsEarly",
  "garbage",
  "page",
  "breaksWithin",
  "redirects"
] as const
export type ApiMood = (typeof API_MOODS)[number]

/** How the APIs of a seed's world behave. */
export interface ApiManners {
  readonly moods: { readonly [mood in ApiMood]: number }
  /** The probability that an answer comes in pieces that are cut anywhere. */
  readonly cuts: number
  /** The longest pause between two pieces, ms. */
  readonly slowest: number
  /** Mean times in which an account answers, and in which it does not, ms; undefined: all have the same fate. */
  readonly outages: { readonly fair: number; readonly away: number } | undefined
}

/** A request, as far as it has come. */
export interface Request extends Asked {
  readonly key: string
  readonly number: number
  readonly mood: ApiMood
  /** The answer, where there is one. */
  answer: Answer | undefined
  /** All of the answer was read. */
  isRead: boolean
  isOpen: boolean
  spent: Spent
}

export interface ApiWitness {
  readonly asked: (request: Request) => void
  /** All of its answer was read. */
  readonly answered: (request: Request) => void
  /** Tells of a request that was refused as none should be. */
  readonly refused: (agent: string, why: string) => void
  /** Tells of an asker that waits longer than its file says. */
  readonly outlasted: (agent: string, ms: number) => void
}

/** The model's words: a turn's last one, and others. */
export interface Mind {
  readonly answers: (agent: string) => string
  /** Calls that it makes, if it feels like it. */
  readonly calls: (request: Request, chance: Chance) => Answer["calls"]
  readonly silence: (agent: string) => number
}

const STATUS: { readonly [mood in ApiMood]?: readonly [number, string, string] } = {
  limited: [429, "rate_limit_error", "too many requests"],
  limitedFor: [429, "rate_limit_error", "too many requests"],
  limitedForLong: [429, "rate_limit_error", "too many requests"],
  overloaded: [529, "overloaded_error", "Overloaded"],
  fails: [500, "api_error", "Internal server error"],
  unauthorized: [401, "authentication_error", "invalid x-api-key"],
  unpaid: [400, "invalid_request_error", "Your credit balance is too low to access the API"],
  tooLong: [400, "invalid_request_error", "prompt is too long: 203712 tokens > 200000 maximum"],
  redirects: [302, "", "moved"]
}

/** The bytes of an answer besides its word, which a cut can tear. */
const SMALL = "ö😀 – 好"

/** ms that whoever asked may be busy with what it has heard: its log's disk may take ten seconds. */
const SLACK = 15_000

/** The beginning of all keys: the form of no service, so that nothing but the backend knows it for a key. */
export const KEYS = "key-of-world-"
export const keyOf = (account: string): string => `${KEYS}${account}-0123456789abcdef`

/** The moods of an account that is away, and of none other. */
const AWAY = ["limitedFor", "limitedForLong", "overloaded", "unreachable"] as const satisfies ReadonlyArray<ApiMood>
/** Moods that are an account's: one that is there has none of them where accounts have fates of their own. */
const ACCOUNTS: ReadonlySet<ApiMood> = new Set([...AWAY, "limited", "fails"])

/** A stretch of an account's time, up to a moment of the world. */
interface Stretch {
  readonly until: number
  /** The mood of its answers; undefined: it is there. */
  readonly away: ApiMood | undefined
}

const broken = (request: HttpClientRequest.HttpClientRequest, cause: Error = reset()) =>
  new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause }) })

const reset = () => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })

type Wire = Queue.Queue<Uint8Array, HttpClientError.HttpClientError | Cause.Done>

interface Reply {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  readonly frames: ReadonlyArray<Frame>
  /** The break after so many bytes; undefined: the answer ends. */
  readonly breaks?: { readonly at: number; readonly how: "stalls" | "breaks" | "endsEarly" }
}

export class ModelApi {
  readonly universe: Universe
  readonly manners: ApiManners
  private readonly seed: number
  private readonly mind: Mind
  private readonly witness: ApiWitness
  /** While faults happen; afterwards it answers. */
  unruly = true
  private readonly requests = new Map<string, number>()
  private readonly stretches = new Map<string, Stretch>()
  private words = 0

  constructor(universe: Universe, seed: number, manners: ApiManners, mind: Mind, witness: ApiWitness) {
    this.universe = universe
    this.seed = seed
    this.manners = manners
    this.mind = mind
    this.witness = witness
  }

  /** As one life of the daemon reaches it. */
  readonly of = (life: Life): Layer.Layer<HttpClient.HttpClient> =>
    Layer.succeed(
      HttpClient.HttpClient,
      HttpClient.make((request, url) => this.execute(life, request, url))
    )

  private readonly execute = Effect.fnUntraced(
    { self: this },
    function* (this: ModelApi, life: Life, request: HttpClientRequest.HttpClientRequest, url: URL) {
      const dialect: Dialect = url.pathname.endsWith("/messages") ? "anthropic" : "openai"
      const key = request.headers["x-api-key"] ?? (request.headers["authorization"] ?? "").replace("Bearer ", "")
      const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
      const asked = read(dialect, body)
      const { agent } = asked
      const number = (this.requests.get(agent) ?? 0) + 1
      this.requests.set(agent, number)
      const chance = new Chance(this.seed, `request ${number} of ${agent}`)
      const mood = this.unruly ? this.moodOf(key, chance) : "answers"
      const it: Request = {
        ...asked,
        key,
        number,
        mood,
        answer: undefined,
        isRead: false,
        isOpen: true,
        spent: { input: 0, output: 0 }
      }
      this.universe.note(`request ${number} of ${agent}: ${asked.entries.length} entries, ${mood}`, body)
      this.witness.asked(it)
      if (asked.wrong !== undefined) this.witness.refused(agent, asked.wrong)
      const close = Effect.sync(() => void (it.isOpen = false))
      const waits = chance.skewed(1, this.unruly ? this.manners.slowest : 100)
      if (mood === "silent") {
        this.watch(it, life)
        return yield* Effect.ensuring(Effect.never, close)
      }
      yield* Effect.onInterrupt(Effect.sleep(waits), () => close)
      if (mood === "unreachable") {
        const cause = Object.assign(new Error("connect ECONNREFUSED 10.0.0.1:443"), { code: "ECONNREFUSED" })
        return yield* broken(request, cause)
      }
      return this.response(life, request, it, this.reply(it, chance), chance)
    }
  )

  private moodOf(key: string, chance: Chance): ApiMood {
    const { moods, outages } = this.manners
    const mood = chance.weighed(moods)
    if (outages === undefined) return mood
    return this.stretch(key, outages).away ?? (ACCOUNTS.has(mood) ? "answers" : mood)
  }

  /** The stretch of its time in which an account is now. */
  private stretch(key: string, { away, fair }: NonNullable<ApiManners["outages"]>): Stretch {
    const { now } = this.universe
    let stretch = this.stretches.get(key) ?? { until: 0, away: AWAY[0] }
    while (stretch.until <= now) {
      const chance = new Chance(this.seed, `${key} after ${stretch.until}`)
      const next = stretch.away === undefined
      const mean = next ? away : fair
      stretch = { until: stretch.until + chance.skewed(mean / 5, mean * 2), away: next ? chance.pick(AWAY) : undefined }
    }
    this.stretches.set(key, stretch)
    return stretch
  }

  private reply(it: Request, chance: Chance): Reply {
    const { mood, wrong } = it
    const [status, type, message] = wrong === undefined ? (STATUS[mood] ?? []) : [400, "invalid_request_error", wrong]
    if (status !== undefined) {
      const json = JSON.stringify({ type: "error", error: { type, message: `${message} (${it.key})` } })
      const after =
        mood === "limitedFor" ? "7" : mood === "limitedForLong" ? String(60 + chance.below(1_800)) : undefined
      const headers = {
        "content-type": "application/json",
        ...(after === undefined ? {} : { "retry-after": after }),
        ...(mood === "redirects" ? { location: "https://elsewhere.example.org/" } : {})
      }
      return { status, headers, frames: [{ text: json }] }
    }
    if (mood === "page")
      return {
        status: 200,
        headers: { "content-type": "text/html" },
        frames: [{ text: `<html><body>Sign in ${SMALL}</body></html>` }]
      }
    it.answer = this.answer(it, chance)
    const frames = [...framesOf(it.dialect, it.answer, chance)]
    const at = chance.below(frames.length)
    if (mood === "garbage") {
      const text = chance.pick([
        "data: {\n\n",
        "data: nonsense\n\n",
        'data: {"type":7}\n\ndata: [1]\n\n',
        "data: null\n\n"
      ])
      frames.splice(at, frames.length, { text })
    }
    if (mood === "breaksWithin") {
      const error = { type: "error", error: { type: "overloaded_error", message: `Overloaded ${it.key}` } }
      frames.splice(at, frames.length, { text: `event: error\ndata: ${JSON.stringify(error)}\n\n` })
    }
    const size = new TextEncoder().encode(frames.map(({ text }) => text).join("")).length
    const headers = { "content-type": "text/event-stream; charset=utf-8" }
    return mood === "stalls" || mood === "breaks" || mood === "endsEarly"
      ? { status: 200, headers, frames, breaks: { at: chance.below(size), how: mood } }
      : { status: 200, headers, frames }
  }

  private answer(it: Request, chance: Chance): Answer {
    const { agent, mood } = it
    const word = `[a${++this.words}] ${SMALL.repeat(chance.below(4))}`
    const last = (): string => `${word}\n${this.mind.answers(agent)}`
    switch (mood) {
      case "calls": {
        const calls = this.mind.calls(it, chance)
        return { text: chance.is(0.5) ? word.trim() : "", calls, stop: "calls" }
      }
      case "cutShort": {
        const calls = chance.is(0.4) ? this.mind.calls(it, chance) : []
        const cut = calls.map((call, at) =>
          at === calls.length - 1 ? { ...call, json: call.json.slice(0, chance.below(call.json.length)) } : call
        )
        return { text: chance.is(0.5) ? last() : "", calls: cut, stop: "length" }
      }
      case "refuses":
        return { text: chance.is(0.5) || it.dialect === "openai" ? word : "", calls: [], stop: "refusal" }
      case "filters":
        return { text: chance.is(0.5) ? word : "", calls: [], stop: "filter" }
      case "pauses":
        return { text: word.trim(), calls: [], stop: it.dialect === "openai" ? "end" : "pause" }
      case "says nothing":
        return { text: "", calls: [], stop: "end" }
      default:
        return { text: last(), calls: [], stop: "end" }
    }
  }

  private response(
    life: Life,
    request: HttpClientRequest.HttpClientRequest,
    it: Request,
    reply: Reply,
    chance: Chance
  ): HttpClientResponse.HttpClientResponse {
    const encoder = new TextEncoder()
    const marks: Array<{ readonly at: number; readonly frame: Frame }> = []
    let all = ""
    let size = 0
    for (const frame of reply.frames) {
      all += frame.text
      size += encoder.encode(frame.text).length
      // a carriage return ends a line, whether or not a line feed follows it
      marks.push({ at: frame.text.endsWith("\r\n") ? size - 1 : size, frame })
    }
    const bytes = encoder.encode(all).subarray(0, reply.breaks?.at ?? size)
    let taken = 0
    let isWhole = false
    const took = (chunk: Uint8Array) => {
      taken += chunk.length
      for (let next = marks[0]; next !== undefined && next.at <= taken; next = marks[0]) {
        marks.shift()
        if (next.frame.spent !== undefined) it.spent = next.frame.spent
        if (next.frame.says === "why") isWhole = true
        if (next.frame.says === "end") isAnswered()
      }
    }
    const isAnswered = () => {
      if (it.isRead) return
      it.isRead = true
      this.witness.answered(it)
    }
    const stream = Stream.unwrap(
      Effect.gen({ self: this }, function* () {
        const wire: Wire = yield* Queue.unbounded<Uint8Array, HttpClientError.HttpClientError | Cause.Done>()
        this.send(life, wire, bytes, chance, () => {
          if (reply.breaks?.how === "stalls") return this.watch(it, life)
          if (reply.breaks?.how === "breaks") return void Queue.failCauseUnsafe(wire, Cause.fail(broken(request)))
          Queue.endUnsafe(wire)
        })
        return Stream.fromQueue(wire)
      })
    ).pipe(
      Stream.tap((chunk) => Effect.sync(() => took(chunk))),
      // whose reason is there is an answer, whatever is missing
      Stream.onEnd(Effect.sync(() => isWhole && isAnswered())),
      Stream.ensuring(Effect.sync(() => void (it.isOpen = false)))
    )
    const shown = { request, status: reply.status, headers: Headers.fromInput(reply.headers), stream }
    return shown as unknown as HttpClientResponse.HttpClientResponse
  }

  /** Piece by piece; then `end`. */
  private send(life: Life, wire: Wire, bytes: Uint8Array, chance: Chance, end: () => void): void {
    const isCut = this.unruly && chance.is(this.manners.cuts)
    const step = (from: number) => {
      if (from >= bytes.length) return end()
      const size = isCut ? 1 + chance.below(chance.is(0.5) ? 8 : 400) : 4_096
      Queue.offerUnsafe(wire, bytes.slice(from, from + size))
      const pause = isCut && chance.is(0.05) ? chance.skewed(1, this.manners.slowest) : chance.skewed(0.01, 5)
      this.universe.later(pause, () => step(from + size), life)
    }
    step(0)
  }

  /** Nothing more comes: whoever waits gives up within its time. */
  private watch(it: Request, life: Life): void {
    const most = this.mind.silence(it.agent)
    this.universe.later(
      most + SLACK,
      () => {
        if (it.isOpen) this.witness.outlasted(it.agent, most)
      },
      life
    )
  }
}
