/** Suggestion: adds "Did you mean …?" to the refusal of an unknown name. */
import { Effect } from "effect"
import type { Agents } from "../../projects/service/Agents.ts"
import { didYouMean } from "../../config/DidYouMean.ts"
import { type Caller, CommandRefused } from "../../domain/Messages.ts"

const added = (refused: CommandRefused, meant: string | undefined): CommandRefused =>
  meant === undefined || refused.remedy.includes("Did you mean")
    ? refused
    : new CommandRefused({
        code: refused.code,
        message: refused.message,
        remedy: `Did you mean "${meant}"? ${refused.remedy}`
      })

/** The most similar known name, in the form in which the caller would write it. */
const nearest = (name: string, spellings: ReadonlyMap<string, string>): string | undefined => {
  const found = didYouMean(name, [...spellings.keys()])
  return found === undefined ? undefined : spellings.get(found)
}

export const ofAgent = Effect.fnUntraced(function* (
  agents: Agents["Service"],
  name: string,
  caller: Caller,
  refused: CommandRefused
) {
  if ((yield* Effect.result(agents.agent(name, caller)))._tag === "Success") return refused
  const here = (yield* agents.projects).find(({ config }) => config === caller.config)?.conversation
  const spellings = new Map<string, string>()
  for (const { agent, conversation, project } of yield* agents.all) {
    const full = `${project}/${agent}`
    spellings.set(full, full)
    if (conversation === here || !spellings.has(agent)) spellings.set(agent, conversation === here ? agent : full)
  }
  return added(refused, nearest(name, spellings))
})

export const ofConversation = Effect.fnUntraced(function* (
  agents: Agents["Service"],
  name: string,
  caller: Caller,
  refused: CommandRefused
) {
  if (name === "" || (yield* Effect.result(agents.conversation(name, caller)))._tag === "Success") return refused
  const spellings = new Map<string, string>()
  for (const { conversation, project } of yield* agents.conversations) {
    spellings.set(conversation, conversation)
    spellings.set(project, project)
  }
  return added(refused, nearest(name, spellings))
})
