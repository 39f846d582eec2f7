/**
 * AgentQuery: asks an agent a question and checks the answer. If the answer is unusable, the agent is told why and
 * asked again, a limited number of times.
 *
 * Guarantees: a caller that repeats the query with the same key after a crash continues where it stopped, so no
 * question is asked twice.
 */
import { Effect, Schema } from "effect"
import * as Monotonic from "../core/supervision/Monotonic.ts"
import type { Address, AgentPort, Fate, TurnOutcome } from "../domain/AgentPort.ts"
import type { StorageError } from "../core/event-log/EventLog.ts"
import { sendable } from "./AnswerJson.ts"
import { tail } from "./Ellipsis.ts"

/** Maximum length, in characters, of the agent's last answer in an error message. */
const MAX_SAID = 300

/** The agent's budget was exceeded before a turn began with the question. No answer will come. */
export class BudgetSpent extends Schema.TaggedError<BudgetSpent>()("BudgetSpent", { message: Schema.String }) {}

/** No answer was usable. */
export class QueryFailed extends Schema.TaggedError<QueryFailed>()("QueryFailed", { message: Schema.String }) {}

export interface AgentQuery<A> {
  readonly agents: AgentPort["Service"]
  readonly to: Address
  readonly from: string
  /** Identifies the query. If the same query is repeated, it must have the same key. */
  readonly key: string
  readonly text: string
  readonly tries: number
  /** Timeout of each attempt, ms. */
  readonly timeout: number
  /** Completes when the goal or its agents have changed, or after a timeout. */
  readonly news: Effect.Effect<void>
  readonly waits: (detail: string, messageId: string) => void
  readonly howEnded: (turnId: string, outcome: TurnOutcome) => Effect.Effect<string, StorageError>
  /** Reads an answer. Fails with a description of the problem, which is sent to the agent. */
  readonly read: (output: string) => Effect.Effect<A, { readonly message: string }>
}

const again = (text: string, problem: string): string =>
  `${text}\n\nYour last answer could not be used:\n${problem}\n\nAnswer again, with the complete answer.`

/** Posts the question. Returns how the agent's turn ended, or that the question was dropped. */
const pose = <A>(query: AgentQuery<A>, messageId: string, text: string) =>
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
      // time in which the agent waits for the user does not count towards the timeout
      if (agents.waits?.(to) === true) began += now - looked
      looked = now
      if (fate._tag === "Ended" || fate._tag === "Dropped") return fate
      if (member.spent && fate._tag !== "Carried") {
        return yield* new BudgetSpent({ message: `the budget of ${to.agent} is spent` })
      }
      query.waits(
        member.online
          ? `${to.agent} is asked`
          : `${to.agent} is offline, and will be asked when it is back: agentd start ${to.agent}`,
        messageId
      )
      if (fate._tag === "Unknown") {
        // rejected while the conversation takes no work: retried after the next change
        yield* Effect.ignore(agents.post(to, { messageId, from, text: sendable(text), alone: true }))
      }
      if (!interrupted && fate._tag === "Carried" && now - began > query.timeout) {
        interrupted = true
        yield* Effect.ignore(agents.interrupt(to, messageId, "it took too long"))
      }
      yield* query.news
    }
  })

export const ask = Effect.fnUntraced(function* <A>(query: AgentQuery<A>) {
  let problem = ""
  let said = ""
  for (let n = 1; n <= query.tries; n++) {
    const text = n === 1 ? query.text : again(query.text, problem)
    const fate = yield* pose(query, `${query.key}/${n}`, text)
    if (fate._tag === "Dropped") problem = "the question was removed from the inbox"
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
