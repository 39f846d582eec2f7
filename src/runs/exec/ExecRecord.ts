/**
 * ExecRecord: the records that agentd and an external program exchange, one line of JSON each. docs/exec-backend.md is
 * the contract.
 *
 * Guarantees: If a record does not match its schema, the report names the invalid field. A record of an unknown type is
 * not an error, because a later version may define it.
 */
import { Result, Schema } from "effect"
import type { Decision, RunSpec } from "../Backend.ts"
import { Question } from "../Question.ts"

/** Version of the contract. Additions do not change the version. A program that reports a later version is rejected. */
export const VERSION = 1

const { String, optionalKey } = Schema
const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const record = <const T extends string, const F extends Schema.Struct.Fields>(type: T, fields: F) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })

const STATUSES = ["success", "error", "denied", "cancelled", "timeout"] as const

/** Records from the program. */
const Said = {
  ready: record("ready", { version: Schema.Int, session: optionalKey(String) }),
  failed: record("failed", { message: String, remedy: String }),
  began: record("began", { turn: String }),
  text: record("text", { text: String }),
  thinking: record("thinking", { text: String }),
  notice: record("notice", { text: String }),
  call: record("call", {
    call: String,
    tool: String,
    arguments: Schema.Json,
    ask: optionalKey(String),
    questions: optionalKey(Schema.Array(Question))
  }),
  progress: record("progress", { call: String, text: String }),
  result: record("result", { call: String, status: Schema.Literals(STATUSES), output: Schema.Json }),
  usage: record("usage", {
    input: Count,
    output: Count,
    cacheRead: optionalKey(Count),
    cacheWrite: optionalKey(Count),
    model: optionalKey(String),
    usd: optionalKey(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)))
  }),
  done: record("done", { turn: String, output: String }),
  interrupted: record("interrupted", { turn: String, output: optionalKey(String) }),
  error: record("error", {
    turn: String,
    error: String,
    message: String,
    retry: optionalKey(Schema.Boolean),
    remedy: optionalKey(String)
  })
}
type Types = keyof typeof Said
export type Said = { readonly [T in Types]: (typeof Said)[T]["Type"] }[Types]
export type Named<T extends Types> = (typeof Said)[T]["Type"]

export type Read =
  | { readonly _tag: "Said"; readonly said: Said }
  | { readonly _tag: "Unknown"; readonly type: string }
  | { readonly _tag: "Wrong"; readonly why: string }

const decoders = new Map<string, (value: unknown) => Result.Result<Said, { readonly message: string }>>(
  Object.entries(Said).map(([type, schema]) => [type, Schema.decodeUnknownResult(schema as Schema.Codec<Said>)])
)

const wrong = (why: string): Read => ({ _tag: "Wrong", why })
const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ").trim().slice(0, 300)

export const read = (line: string): Read => {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return wrong(`it is not JSON: ${JSON.stringify(line.slice(0, 200))}`)
  }
  const type = typeof value === "object" && value !== null && "type" in value ? value.type : undefined
  if (typeof type !== "string") return wrong(`it has no type: ${oneLine(line)}`)
  const decode = decoders.get(type)
  if (decode === undefined) return { _tag: "Unknown", type }
  const result = decode(value)
  return Result.isFailure(result)
    ? wrong(`"${type}" does not fit: ${oneLine(result.failure.message)}`)
    : { _tag: "Said", said: result.success }
}

/** A file that belongs to a turn, with the path where the program can read the file. */
export interface TurnFile {
  readonly name: string
  readonly type: string
  readonly path: string
}

/** Records from agentd. */
export type Told =
  | {
      readonly type: "start"
      readonly version: number
      readonly agent: string
      readonly run: string
      readonly cwd: string
      /** The session to resume; null for a new session. `fork`: resume a copy. */
      readonly session: string | null
      readonly fork: boolean
      readonly mcp: { readonly [name: string]: { readonly argv: ReadonlyArray<string>; readonly env: object } }
    }
  | {
      readonly type: "turn"
      readonly turn: string
      readonly text: string
      readonly files?: ReadonlyArray<TurnFile>
    }
  | { readonly type: "answer"; readonly call: string; readonly allow: true; readonly answers?: ReadonlyArray<string> }
  | { readonly type: "answer"; readonly call: string; readonly allow: false; readonly message: string }
  | { readonly type: "interrupt"; readonly turn: string }
  | { readonly type: "end" }

export const lineOf = (told: Told): string => `${JSON.stringify(told)}\n`

export const start = ({ agent, cwd, mcp, runId }: RunSpec, resume: RunSpec["resume"]): Told => ({
  type: "start",
  version: VERSION,
  agent,
  run: runId,
  cwd,
  session: resume?.sessionId ?? null,
  fork: resume?.fork ?? false,
  mcp: Object.fromEntries(Object.entries(mcp).map(([name, { argv, env }]) => [name, { argv, env }]))
})

export const answer = (call: string, decision: Decision): Told =>
  decision.behavior === "allow"
    ? {
        type: "answer",
        call,
        allow: true,
        ...(decision.answers === undefined ? {} : { answers: decision.answers })
      }
    : { type: "answer", call, allow: false, message: decision.message }
