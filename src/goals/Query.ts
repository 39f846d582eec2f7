/**
 * Query: an agent is asked something, and its answer is checked; one that cannot
 * be used is handed back with what is wrong, a limited number of times.
 *
 * Guarantees: asked again under the same key, after a crash of whoever asks, it goes
 * on where it was: no question is posed twice.
 */
import { Effect, Schema } from "effect"
import * as Monotonic from "../core/supervision/Monotonic.ts"
import type { Address, AgentPort, Fate, TurnOutcome } from "../domain/AgentPort.ts"
import type { StorageError } from "../core/event-log/EventLog.ts"
import { sendable } from "./Answer.ts"
import { tail } from "./Excerpt.ts"

/** Most characters of the last answer in the message of a failure. */
const MAX_SAID = 300

/** The agent has spent its budget before it took the question up: no answer will come. */
export class BudgetSpent extends Schema.TaggedError<BudgetSpent>()("BudgetSpent", { message: Schema.String }) {}

/** None of the answers can be used. */
export class QueryFailed extends Schema.TaggedError<QueryFailed>()("QueryFailed", { message: Schema.String }) {}

export interface Query<A> {
  readonly agents: AgentPort["Service"]
  readonly to: Address
  readonly from: string
  /** The same key for the same matter. */
  readonly key: string
  readonly text: string
  readonly tries: number
  /** ms for each try. */
  readonly timeout: number
  /** Returns when something has changed, or after a while. */
  readonly news: Effect.Effect<void>
  readonly waits: (detail: string, messageId: string) => void
  readonly howEnded: (turnId: string, outcome: TurnOutcome) => Effect.Effect<string, StorageError>
  /** Reads an answer; fails with what is wrong, in words for the answer's author. */
  readonly read: (output: string) => Effect.Effect<A, { readonly message: string }>
}

const again = (text: string, problem: string): string =>
  `${text}\n\nYour last answer could not be used:\n${problem}\n\nAnswer again, the whole of it.`

/** Poses the question and answers with the end of the turn. */
const pose = <A>(query: Query<A>, messageId: string, text: string) =>
  Effect.gen(function* () {
    const { agents, from, to } = query
    let began = yield* Monotonic.now
    let [interrupted, looked] = [false, began]
    for (;;) {
      const now = yield* Monotonic.now
      const members = yield* agents.members(to.conversation)
      const member = members.find(({ agent }) => agent === to.agent)
      if (member === undefined) {
        return yield* new QueryFailed({ message: `there is no agent ${to.agent} in this project` })
      }
      const fate: Fate = yield* Effect.catch(agents.fate(to, messageId), () =>
        Effect.succeed({ _tag: "Waiting" } as const)
      )
      // time in which it waits for a person is not its own
      if (agents.waits?.(to) === true) began += now - looked
      looked = now
      if (fate._tag === "Ended" || fate._tag === "Dropped") return fate
      if (member.spent && fate._tag !== "Carried") {
        return yield* new BudgetSpent({ message: `the budget of ${to.agent} is spent` })
      }
      query.waits(
        member.online
          ? `${to.agent} is asked`
          : `${to.agent} is offline, and is asked as soon as it is back: agentd start ${to.agent}`,
        messageId
      )
      if (fate._tag === "Unknown") {
        // refused while its conversation takes no work: asked again with the next news
        yield* Effect.ignore(agents.post(to, { messageId, from, text: sendable(text), alone: true }))
      }
      if (!interrupted && fate._tag === "Carried" && now - began > query.timeout) {
        interrupted = true
        yield* Effect.ignore(agents.interrupt(to, messageId, "it took too long"))
      }
      yield* query.news
    }
  })

export const ask = Effect.fnUntraced(function* <A>(query: Query<A>) {
  let problem = ""
  let said = ""
  for (let n = 1; n <= query.tries; n++) {
    const text = n === 1 ? query.text : again(query.text, problem)
    const fate = yield* pose(query, `${query.key}/${n}`, text)
    if (fate._tag === "Dropped") problem = "the question was taken out of the inbox"
    else if (fate.outcome !== "completed") problem = yield* query.howEnded(fate.turnId, fate.outcome)
    else {
      const read = yield* Effect.result(query.read(fate.output))
      if (read._tag === "Success") return read.success
      problem = read.failure.message
      said = tail(fate.output.trim(), MAX_SAID)
    }
  }
  const none = query.tries === 1 ? "its answer could not be used" : `none of ${query.tries} answers could be used`
  return yield* new QueryFailed({
    message: `${query.to.agent}: ${none}: ${problem}${said === "" ? "" : `; it had said: ${said}`}`
  })
})
