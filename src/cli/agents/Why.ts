/** `agentd why AGENT|GOAL`: explains in sentences how an agent or a goal got its current status. */
import type { GoalInfo } from "../../domain/GoalMessages.ts"
import type { ExplainReply, WhyReply } from "../../board/DaemonMessages.ts"
import { type Ask, declare, read, word, type World } from "../parse/DeclaredVerb.ts"
import { LOOKS, predicate } from "../../domain/StatusWords.ts"
import { age, clock, lookColour, paint, plain } from "../render/Output.ts"

type Subject = Pick<WhyReply["agent"], "nextAt" | "reason" | "restsOn" | "since" | "word"> & { readonly name: string }

const ofGoal = ({ goalId, project, restsOn, since, word }: GoalInfo): Subject => ({
  name: `${project}/${goalId}`,
  word,
  reason: null,
  nextAt: null,
  since,
  restsOn
})

export const view = ({ advice, agent, goal, lines }: ExplainReply, { colour, now }: World): ReadonlyArray<string> => {
  const of = goal === undefined ? { ...agent!, name: `${agent!.project}/${agent!.agent}` } : ofGoal(goal)
  const state = paint(colour, lookColour[LOOKS[of.word].colour], predicate({ ...of, until: of.nextAt }, now))
  // if nextAt is set, the status already says when the agent continues, so the time since which it has waited is left
  // out here
  const since = of.since === 0 || of.nextAt !== null ? "" : ` for ${age(now - of.since)}`
  return [
    `${paint(colour, "bold", plain(of.name))} ${state}${since} (rune ${of.restsOn}).`,
    ...(lines.length === 0 ? ["Its status has not changed yet."] : []),
    ...lines.map(({ at, eventId, text }) => {
      const restsOn = eventId === 0 ? "" : ` ${paint(colour, "dim", `(rune ${eventId})`)}`
      return `${paint(colour, "dim", clock(at, now))} ${plain(text)}${restsOn}`
    }),
    ...(advice === null ? [] : [plain(advice)])
  ]
}

/** Matches names of goals. If an agent has such a name, the daemon explains the agent instead. */
const GOAL = /(^|\/)g\d{1,9}$/

export const why = declare({
  path: ["why"],
  description: "Explain how an agent or a goal got its current status",
  examples: [
    { command: "agentd why builder", description: "Explain the status of builder, for example why it stopped" },
    { command: "agentd why g3", description: "Explain why the goal g3 makes no progress" }
  ],
  args: { name: word("The agent or goal: its name in this project (builder, g3), or project/name") },
  rpc: ({ name }, caller): Ask<ExplainReply> =>
    // for an agent, call the older procedure "Why", because an older daemon does not know "Explain"
    GOAL.test(name) ? read("Explain", { name, caller }) : read("Why", { name, caller }),
  view
})
