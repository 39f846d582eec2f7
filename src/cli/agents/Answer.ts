/**
 * `agentd approve|deny|answer [CALL]`: answers a tool call of an agent, or a permission request of a session. Without a
 * CALL, lists all items that wait for an answer. An approval names the shown call by its hash. If the hash is missing,
 * `Approve` first shows the whole call and asks for confirmation.
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

const call = maybeWord(
  "Id of a tool call, request or plate (or its beginning), or an agent's name; default: list all that wait for an answer"
)

interface Given {
  readonly call: string | undefined
  readonly decision: "allow" | "deny"
  readonly hash?: string | undefined
  readonly reason?: string | undefined
  /** Answers to the call's questions, in the order of the questions. */
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
  description: "Answer questions of an agent: choose options, or write a text",
  examples: [
    { command: "agentd answer", description: "List all open questions with their options" },
    { command: "agentd answer 01k9 2", description: "Answer the question with its second option" },
    {
      command: 'agentd answer 01k9 1 "1,3" "neither"',
      description: "Answer three questions at once, one value per question"
    }
  ],
  args: {
    call,
    answers: words(
      "One answer per question: an option's number or label, or a text; separate several options by commas",
      "answer"
    )
  },
  rpc: (input, caller) => rpc({ ...input, decision: "allow" }, caller),
  view
})

export const approve = declare({
  path: ["approve"],
  description: "Approve a tool call, or a request from a session; the first answer counts",
  examples: [
    { command: "agentd approve", description: "List the calls that wait for an answer, and what each would do" },
    { command: "agentd approve 01k9", description: "Show the whole call; on a terminal, ask whether to approve it" },
    {
      command: "agentd approve 01k9 HASH",
      description: "Approve exactly the call that was shown; if the call has changed, the approval is rejected"
    }
  ],
  args: { call, hash: maybeWord("Hash of the call, as agentd approve showed it", "hash") },
  rpc: (input, caller) => rpc({ ...input, decision: "allow" }, caller),
  view,
  quick: ({ call, hash }) => call === undefined || hash !== undefined
})

export const deny = declare({
  path: ["deny"],
  description: "Deny a tool call, or a request from a session",
  examples: [
    {
      command: 'agentd deny 01k9 --reason "not on main"',
      description: "Deny the call with a reason; the agent continues without the call"
    }
  ],
  args: { call, reason: option("TEXT", "Reason for the denial, which the agent or session sees") },
  rpc: (input, caller) => rpc({ ...input, decision: "deny" }, caller),
  view
})
