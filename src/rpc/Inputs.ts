/**
 * Inputs: the bounds on what a caller may send, checked before anything is touched.
 *
 * Guarantees: what exceeds a bound is refused with the field's name, what it is,
 * what it may be, and a remedy.
 */
import { Effect } from "effect"
import { type Caller, CommandRefused, type Report, type SpawnRequest } from "../domain/Messages.ts"
import { Limits } from "./Procedure.ts"
import type { LogSelection } from "./Protocol.ts"

const tooLong = (field: string, is: number, may: number, unit: string, remedy: string) =>
  Effect.fail(new CommandRefused({ message: `${field} has ${is} ${unit} and may have ${may}.`, remedy }))

export const bounded = (field: string, value: string, limit: number): Effect.Effect<void, CommandRefused> =>
  value.length <= limit ? Effect.void : tooLong(field, value.length, limit, "characters", `Give a shorter ${field}.`)

export const checkCaller = (caller: Caller) =>
  Effect.andThen(
    bounded("caller.by", caller.by, Limits.nameLength),
    bounded("caller.config", caller.config ?? "", Limits.pathLength)
  )

export const checkNamed = (input: { readonly name: string; readonly caller: Caller }) =>
  Effect.andThen(bounded("name", input.name, Limits.nameLength), checkCaller(input.caller))

export const checkText = (text: string, field = "text"): Effect.Effect<void, CommandRefused> => {
  const bytes = Buffer.byteLength(text)
  if (bytes > Limits.textBytes) {
    return tooLong(
      field,
      bytes,
      Limits.textBytes,
      "bytes",
      "Put the long part in a file that the agent can read, and send its path."
    )
  }
  return text.trim() === ""
    ? Effect.fail(new CommandRefused({ message: `${field} is empty.`, remedy: `Give a ${field} that says something.` }))
    : Effect.void
}

/** A sub-agent's name is checked where names are; here only that nothing is beyond its bound. */
export const checkSpawn = Effect.fnUntraced(function* (request: SpawnRequest) {
  yield* bounded("name", request.name, Limits.nameLength)
  yield* bounded("role", request.role ?? "", Limits.reasonLength)
  if (request.instructions !== undefined) yield* checkText(request.instructions, "instructions")
  yield* checkText(request.task, "task")
})

export const checkReport = Effect.fnUntraced(function* ({ evidence, summary }: Report) {
  yield* checkText(summary, "summary")
  const { count, length } = Limits.evidence
  if (evidence.length > count) {
    return yield* tooLong("evidence", evidence.length, count, "entries", "Name the ones that prove it.")
  }
  for (const piece of evidence) yield* bounded("evidence", piece, length)
})

export const checkAnswer = Effect.fnUntraced(function* (input: {
  readonly reason: string
  readonly answers?: ReadonlyArray<string>
}) {
  yield* bounded("reason", input.reason, Limits.reasonLength)
  const { answers = [] } = input
  const { count, length } = Limits.answers
  if (answers.length > count) {
    return yield* tooLong("answers", answers.length, count, "entries", "Put the answer in quotes.")
  }
  for (const answer of answers) yield* bounded("answers", answer, length)
})

export const checkSelection = Effect.fnUntraced(function* (selection: LogSelection) {
  yield* checkCaller(selection.caller)
  yield* bounded("stream", selection.stream ?? "", Limits.nameLength)
  yield* bounded("agent", selection.agent ?? "", Limits.nameLength)
  const kinds = selection.kinds ?? []
  if (kinds.length > Limits.kinds) {
    return yield* tooLong("kinds", kinds.length, Limits.kinds, "entries", "Ask for fewer kinds, or for all of them.")
  }
  for (const kind of kinds) yield* bounded("kinds", kind, Limits.nameLength)
  const { tail } = selection
  if (tail !== undefined && (tail < 0 || tail > Limits.tail)) {
    return yield* new CommandRefused({
      message: `tail is ${tail} and must lie between 0 and ${Limits.tail}.`,
      remedy: "Ask for fewer, or leave it out to read everything."
    })
  }
})
