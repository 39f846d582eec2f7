/**
 * EventDraft: a draft made ready for the writer, in the caller's own time: its kind is
 * known, its payload has the kind's shape and is free of known secrets, it is not
 * too large, and its payload is encoded and hashed. Pure but for `Redact`.
 */
import { Result } from "effect"
import type { Payload, RuneDraft, Visibility } from "./Rune.ts"
import { hashPayload } from "./HashChain.ts"
import { accepts, explain, kinds } from "../app/EventKinds.ts"
import { RuneRefused } from "./EventLog.ts"

/** Longest stream, kind, actor, state or trigger, in UTF-16 units. */
const MAX_NAME = 512

export interface ReadyDraft {
  readonly stream: string
  readonly kind: string
  readonly actor: string
  readonly from: string | null
  readonly to: string | null
  readonly trigger: string | null
  readonly cause: number | null
  readonly visibility: Visibility
  /** As it will be read back. */
  readonly payload: Payload
  readonly text: string
  readonly payloadHash: string
}

export interface Limits {
  /** Of one payload, UTF-8 bytes of its JSON. */
  readonly maxRuneBytes: number
  /** Of one append. */
  readonly maxDrafts: number
}

export const defaultLimits: Limits = { maxRuneBytes: 1024 * 1024, maxDrafts: 4096 }

type Scrub = (json: string) => string

/** Control characters and lone surrogates do not survive every store's text column. */
// oxlint-disable-next-line no-control-regex
const plain = (name: string): boolean => name.length <= MAX_NAME && name.isWellFormed() && !/[\u0000-\u001f]/.test(name)

const names = (draft: RuneDraft): ReadonlyArray<string> =>
  [draft.stream, draft.kind, draft.actor, draft.from, draft.to, draft.trigger].filter(
    (name) => typeof name === "string"
  )

const encode = (draft: RuneDraft): Result.Result<string, RuneRefused> => {
  try {
    return Result.succeed(JSON.stringify(draft.payload))
  } catch (error) {
    return refuse(draft, "schema", `the payload is not JSON: ${String(error)}`)
  }
}

const refuse = (draft: RuneDraft, rule: string, message: string) =>
  Result.fail(new RuneRefused({ kind: draft.kind, rule, message: `${draft.kind} (${draft.actor}): ${message}` }))

export const ready = (draft: RuneDraft, scrub: Scrub, limits: Limits): Result.Result<ReadyDraft, RuneRefused> => {
  const entry = kinds.get(draft.kind)
  if (entry === undefined) return refuse(draft, "schema", explain(draft.kind, draft.payload))
  if (draft.stream === "" || !names(draft).every(plain)) {
    return refuse(draft, "schema", `a name is empty, longer than ${MAX_NAME} characters, or not plain text`)
  }
  const encoded = encode(draft)
  if (Result.isFailure(encoded)) return Result.fail(encoded.failure)
  const text = scrub(encoded.success)
  const bytes = Buffer.byteLength(text)
  if (bytes > limits.maxRuneBytes) {
    return refuse(draft, "size", `the payload has ${bytes} bytes; at most ${limits.maxRuneBytes} are kept`)
  }
  const payload = JSON.parse(text) as Payload
  if (!accepts(draft.kind, payload)) return refuse(draft, "schema", explain(draft.kind, payload))
  return Result.succeed({
    stream: draft.stream,
    kind: draft.kind,
    actor: draft.actor,
    from: draft.from ?? null,
    to: draft.to ?? null,
    trigger: draft.trigger ?? null,
    cause: draft.cause ?? null,
    visibility: draft.visibility ?? entry.visibility,
    payload,
    text,
    payloadHash: hashPayload(text)
  })
}

/** All of one append, or the first refusal. */
export const readyAll = (
  drafts: ReadonlyArray<RuneDraft>,
  scrub: Scrub,
  limits: Limits
): Result.Result<ReadonlyArray<ReadyDraft>, RuneRefused> => {
  if (drafts.length > limits.maxDrafts) {
    return refuse(drafts[0]!, "size", `${drafts.length} runes in one append; at most ${limits.maxDrafts} are taken`)
  }
  const all: Array<ReadyDraft> = []
  for (const draft of drafts) {
    const one = ready(draft, scrub, limits)
    if (Result.isFailure(one)) return Result.fail(one.failure)
    all.push(one.success)
  }
  return Result.succeed(all)
}

/** One that nobody waits for: no fold may read its kind. */
export const readyLazy = (draft: RuneDraft, scrub: Scrub, limits: Limits): Result.Result<ReadyDraft, RuneRefused> =>
  kinds.get(draft.kind)?.lazy === false
    ? refuse(draft, "schema", "the kind is not lazy: it is appended, and waited for")
    : ready(draft, scrub, limits)

/** A rune of the log's own making: it has its kind's shape and holds no secret. */
export const readyOwn = (draft: RuneDraft): ReadyDraft => Result.getOrThrow(ready(draft, (json) => json, defaultLimits))
