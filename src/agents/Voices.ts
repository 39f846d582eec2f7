/**
 * Voices: what agents say for themselves, and the questions that their calls ask:
 * the part of the Fleet that knows an agent by its run or by a call's id.
 */
import { Clock, Effect } from "effect"
import type { CrewReport } from "../domain/Crew.ts"
import { type CallInfo, type Caller, CommandRefused, type Done } from "../domain/Messages.ts"
import type { RuneDraft } from "../domain/Rune.ts"
import type { RuneLog, StorageError } from "../runes/RuneLog.ts"
import type { AgentTree } from "./AgentTree.ts"
import type { Fleet, VoiceOf } from "./Fleet.ts"

export interface Surroundings {
  readonly log: RuneLog["Service"]
  /** All that are alive. */
  readonly trees: () => ReadonlyArray<AgentTree>
  readonly find: (of: VoiceOf) => AgentTree | undefined
  readonly report: (report: CrewReport) => Effect.Effect<void>
}

type Voices = Pick<Fleet["Service"], "calls" | "answerCall" | "voice" | "report" | "ask" | "inbox">

const asksFirst = (a: CallInfo, b: CallInfo): number =>
  Number(b.state === "awaiting_approval") - Number(a.state === "awaiting_approval") || a.since - b.since

/** The agent whose call it is, by its id or a unique beginning of it. */
const owner = (trees: ReadonlyArray<AgentTree>, name: string): readonly [AgentTree, string] | CommandRefused => {
  const exact = trees.find((tree) => tree.knows(name))
  if (exact !== undefined) return [exact, name]
  const found = trees.flatMap((tree) =>
    tree
      .calls()
      .filter(({ callId }) => name !== "" && callId.startsWith(name))
      .map(({ callId }) => [tree, callId] as const)
  )
  if (found.length === 1) return found[0]!
  return found.length === 0
    ? new CommandRefused({
        message: `There is no call "${name}".`,
        remedy: "See what waits for an answer: agentd approve"
      })
    : new CommandRefused({
        message: `"${name}" begins the ids of ${found.length} calls.`,
        remedy: `Say which: ${found.map(([, callId]) => callId).join(", ")}`
      })
}

const written = (
  log: RuneLog["Service"],
  draft: RuneDraft,
  message: string
): Effect.Effect<Done, CommandRefused | StorageError> =>
  log.append([draft]).pipe(
    Effect.map(([rune]) => ({ eventId: rune!.eventId, message })),
    Effect.catchTag(
      "RuneRefused",
      (error) => new CommandRefused({ message: error.message, remedy: "Say it shorter, or put it in a file." })
    )
  )

export const make = ({ find, log, report, trees }: Surroundings): Voices => ({
  calls: Effect.sync(() =>
    trees()
      .flatMap((tree) => tree.calls())
      .toSorted(asksFirst)
  ),
  answerCall: (name, decision, caller: Caller) =>
    Effect.suspend(() => {
      const found = owner(trees(), name)
      if (found instanceof CommandRefused) return Effect.fail(found)
      const [tree, callId] = found
      return tree.answer(callId, decision, caller)
    }),
  voice: (runId) =>
    Effect.suspend(() => {
      for (const tree of trees()) {
        const voice = tree.voice(runId)
        if (voice !== undefined) return Effect.succeed(voice)
      }
      return Effect.fail(
        new CommandRefused({
          message: "This run is over, or none of agentd's.",
          remedy: "agentd mcp is started by an agent's run; by hand use the other verbs: agentd --help"
        })
      )
    }),
  report: (of, { evidence, status, summary }) =>
    Effect.gen(function* () {
      const { agent, conversation, turnId } = of
      const done = yield* written(
        log,
        {
          stream: conversation,
          kind: "agent.reported",
          actor: `voice/${agent}`,
          trigger: "report",
          payload: { agent_id: agent, turn_id: turnId, status, summary, evidence }
        },
        "Reported."
      )
      const at = yield* Clock.currentTimeMillis
      const { eventId } = done
      yield* report({ _tag: "Reported", conversation, agent, eventId, at, turnId, status, summary, evidence })
      return done
    }),
  ask: ({ agent, conversation, turnId }, question) =>
    written(
      log,
      {
        stream: conversation,
        kind: "agent.asked",
        actor: `voice/${agent}`,
        trigger: "ask",
        payload: { agent_id: agent, turn_id: turnId, question }
      },
      "A person is asked; the answer will come as a message."
    ),
  inbox: (of) => Effect.sync(() => find(of)?.messages() ?? [])
})
