/** The README's example. */
import { Effect, Layer, Schema, Stream } from "effect"
import * as EventKinds from "../../../src/core/event-log/EventKinds.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { type Checker, InvariantGuard } from "../../../src/core/event-log/InvariantGuard.ts"
import { LogRules } from "../../../src/core/event-log/LogRules.ts"
import { ownKinds } from "../../../src/core/event-log/OwnKinds.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"
import * as SqlEventLog from "../../../src/core/event-log/SqlEventLog.ts"
import type { StreamFold } from "../../../src/core/event-log/StreamFold.ts"

// The facts of this program, each with the shape of its payload, and the log's own.
const Cents = Schema.Struct({ cents: Schema.Int })
const kinds = { "cash.in": EventKinds.kind(Cents), "cash.out": EventKinds.kind(Cents) }
const read = EventKinds.reader(kinds)

const balance: StreamFold<number> = {
  name: "balance",
  version: 1,
  initial: 0,
  apply: (sum, rune) => {
    const fact = read(rune)
    return fact === undefined ? sum : fact.kind === "cash.in" ? sum + fact.payload.cents : sum - fact.payload.cents
  }
}

// A rune that would break it is refused before it is written.
const NEVER_EMPTY = "INV-NEVER-BELOW-ZERO"
const covered: Checker<number> = {
  kinds: Object.keys(kinds),
  initial: 0,
  apply: (sum, { kind, payload }) => sum + Number(payload["cents"]) * (kind === "cash.in" ? 1 : -1),
  check: (sum, { kind, payload }) =>
    kind === "cash.out" && Number(payload["cents"]) > sum
      ? { rule: NEVER_EMPTY, message: `there are ${sum} cents` }
      : undefined
}

const rules = Layer.succeed(LogRules, {
  kinds: EventKinds.make({ ...ownKinds, ...kinds }),
  guard: new InvariantGuard([covered]),
  folds: [balance],
  home: "program",
  severityOf: (rule) => (rule === NEVER_EMPTY ? "ERROR" : undefined),
  archives: { kind: "none", streamOf: ({ actor }) => actor }
})

const cash = (kind: keyof typeof kinds, cents: number): RuneDraft => ({
  stream: "till",
  kind,
  actor: "cashier",
  payload: { cents }
})

const program = Effect.gen(function* () {
  const log = yield* EventLog
  // One call is one append: both are on disk when it returns, or none.
  yield* log.append([cash("cash.in", 500), cash("cash.out", 150)])
  const refused = yield* Effect.flip(log.append([cash("cash.in", 100), cash("cash.out", 900)]))
  const written = yield* Stream.runCollect(log.read({ stream: "till", kinds: Object.keys(kinds) }))
  const recovered = yield* log.recover("till", { balance })
  const { problems } = yield* log.verify
  return {
    kinds: written.map(({ kind }) => kind),
    balance: recovered.balance.state,
    refused: refused._tag === "RuneRefused" ? refused.rule : refused.reason,
    problems: problems.length
  }
})

/** With the log in this file: made where it is not there, and gone on with where it is. */
export const till = (file: string) =>
  Effect.provide(program, SqlEventLog.layer({ file }).pipe(Layer.provide([Redact.layer, rules])))
