/** `agentd why AGENT`: what led it to where it stands, in plain sentences. */
import type { WhyReply } from "../rpc/DaemonMessages.ts"
import { declare, read, word, type World } from "./DeclaredVerb.ts"
import { LOOKS, predicate } from "../domain/Words.ts"
import { age, clock, lookColour, paint, plain } from "./Output.ts"

export const view = ({ advice, agent, lines }: WhyReply, { colour, now }: World): ReadonlyArray<string> => {
  const name = paint(colour, "bold", `${agent.project}/${agent.agent}`)
  const state = paint(colour, lookColour[LOOKS[agent.word].colour], predicate({ ...agent, until: agent.nextAt }, now))
  // a word with a time says when it goes on: since when it waits is in the story
  const since = agent.since === 0 || agent.nextAt !== null ? "" : ` for ${age(now - agent.since)}`
  return [
    `${name} ${state}${since} (rune ${agent.restsOn}).`,
    ...(lines.length === 0 ? ["It has not moved yet."] : []),
    ...lines.map(({ at, eventId, text }) => {
      const restsOn = eventId === 0 ? "" : ` ${paint(colour, "dim", `(rune ${eventId})`)}`
      return `${paint(colour, "dim", clock(at, now))} ${plain(text)}${restsOn}`
    }),
    ...(advice === null ? [] : [plain(advice)])
  ]
}

export const why = declare({
  path: ["why"],
  description: "Say in plain words what led an agent to where it stands",
  examples: [{ command: "agentd why builder", description: "Why did it stop?" }],
  args: { agent: word("Its name in this project, or project/agent") },
  rpc: ({ agent }, caller) => read("Why", { name: agent, caller }),
  view,
  quick: true
})
