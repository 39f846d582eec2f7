/**
 * `agentd approve|deny|answer [CALL]`: answers a tool call of an agent, or a permission request
 * of a session; without a CALL: lists what waits for an answer. An approval names the shown
 * call by its hash; without a hash, `Approve` shows the whole call.
 */
import type { Caller, Done } from "../../domain/Messages.ts"
import type { WaitingReply } from "../../board/WaitingMessages.ts"
import {
  type Ask,
  declare,
  map,
  maybeWord,
  option,
  read,
  said,
  send,
  words,
  type World
} from "../parse/DeclaredVerb.ts"
import { asking, view as waiting } from "../daemon/Waiting.ts"

const call = maybeWord("Id of a tool call, request or plate, or its beginning; an agent's name; none: list what waits")

interface Given {
  readonly call: string | undefined
  readonly decision: "allow" | "deny"
  readonly hash?: string | undefined
  readonly reason?: string | undefined
  /** Answers to the questions of the call, in their order. */
  readonly answers?: ReadonlyArray<string>
}

const rpc = ({ answers, call: name, decision, hash, reason }: Given, caller: Caller): Ask<Done | WaitingReply> =>
  name === undefined
    ? map(read("Waiting", null), asking)
    : send("Answer", {
        name,
        decision,
        reason: reason ?? "",
        ...(answers === undefined ? {} : { answers }),
        ...(hash === undefined ? {} : { hash }),
        caller
      })

const view = (reply: Done | WaitingReply, world: World): ReadonlyArray<string> =>
  "message" in reply ? said(reply) : waiting(reply, world)

export const answer = declare({
  path: ["answer"],
  description: "Answer an agent's question by choosing an option",
  examples: [
    { command: "agentd answer", description: "List open questions with their options" },
    { command: "agentd answer 01k9 2", description: "The second option" },
    { command: 'agentd answer 01k9 1 "1,3" "neither"', description: "Three questions: an answer for each" }
  ],
  args: {
    call,
    answers: words("An option's number or label, or a text; commas between several; one per question", "answer")
  },
  rpc: (input, caller) => rpc({ ...input, decision: "allow" }, caller),
  view
})

export const approve = declare({
  path: ["approve"],
  description: "Approve a tool call, or what a session asks for; the first answer counts",
  examples: [
    { command: "agentd approve", description: "List what waits, with what each call would do" },
    { command: "agentd approve 01k9", description: "Shows the whole call, and asks on a terminal" },
    {
      command: "agentd approve 01k9 HASH",
      description: "Approve the call that was shown; if it has changed, it is refused"
    }
  ],
  args: { call, hash: maybeWord("The hash that was shown with the call", "hash") },
  rpc: (input, caller) => rpc({ ...input, decision: "allow" }, caller),
  view,
  quick: ({ call, hash }) => call === undefined || hash !== undefined
})

export const deny = declare({
  path: ["deny"],
  description: "Deny a tool call, or what a session asks for",
  examples: [
    { command: 'agentd deny 01k9 --reason "not on main"', description: "The agent continues without the call" }
  ],
  args: { call, reason: option("TEXT", "Reason that the agent or the session sees") },
  rpc: (input, caller) => rpc({ ...input, decision: "deny" }, caller),
  view
})
