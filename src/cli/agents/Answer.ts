/**
 * `agentd approve|deny|answer [CALL]`: answers a tool call of an agent, or a permission request of a session. Without a
 * CALL, lists all items that wait for an answer. An approval names the shown call by its hash. If the hash is missing,
 * `Approve` first shows the whole call and asks for confirmation. An approval that keeps a rule (`--for`) names the hash
 * of its preview.
 */
import { ANSWER_SCOPES, type AnswerScope, MAX_OFFERS } from "../../approvals/AnswerScope.ts"
import type { Caller, Done } from "../../domain/Messages.ts"
import type { WaitingReply } from "../../board/WaitingMessages.ts"
import {
  type Ask,
  choice,
  declare,
  map,
  maybeCount,
  maybeWord,
  off,
  option,
  read,
  said,
  send,
  words,
  type World
} from "../parse/DeclaredVerb.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { asking, view as waiting } from "../daemon/Waiting.ts"

const call = maybeWord(
  "Id of a tool call, request or plate (or its beginning), or an agent's name; default: list all that wait for an answer"
)

interface Given {
  readonly call: string | undefined
  readonly decision: "allow" | "deny"
  readonly hash?: string | undefined
  readonly reason?: string | undefined
  readonly for?: AnswerScope | "once"
  readonly rule?: number | undefined
  /** Answers to the call's questions, in the order of the questions. */
  readonly answers?: ReadonlyArray<string>
}

const rpc = (
  { answers, call: name, decision, for: scope = "once", hash, reason, rule: offer = 1 }: Given,
  caller: Caller
): Ask<Done | WaitingReply> =>
  name === undefined
    ? map(read("Waiting", null), asking)
    : send("Answer", {
        name,
        decision,
        reason: reason ?? "",
        ...(answers === undefined ? {} : { answers }),
        ...(hash === undefined ? {} : { hash }),
        ...(scope === "once" ? {} : { lasting: { scope, offer } }),
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
    },
    { command: "agentd approve --all", description: "Show the calls that wait by kind, and approve all of a kind" },
    {
      command: "agentd approve 01k9 --for project --rule 2",
      description: "Show what the second offered rule would change in your own config; then approve, and keep it"
    }
  ],
  args: {
    call,
    all: off("Show the calls that wait by kind, and approve all of a kind; with a batch's hash, exactly these"),
    hash: maybeWord("Hash of the call, or of the rule with the call, as agentd approve showed it", "hash"),
    for: choice(
      ["once", ...ANSWER_SCOPES],
      "once",
      "How far the approval reaches: this call, its run, its agent, its project (these two in your own config), or everyone in the project (in agentd.jsonc)"
    ),
    rule: maybeCount("Number of the offered rule that is kept; default: 1, the narrowest", {
      least: 1,
      most: MAX_OFFERS
    })
  },
  wrong: ({ all, call, for: scope, hash, rule }) =>
    all && (scope !== "once" || rule !== undefined || hash !== undefined)
      ? {
          message: "--all approves each call once, so it cannot be used with --for, --rule or a call.",
          remedy: "A rule that is kept for one call is tried on all that wait: agentd approve CALL --for run",
          exitCode: ExitCode.usage
        }
      : scope === "once" && rule !== undefined
        ? {
            message: "--rule keeps a rule, and without --for nothing is kept.",
            remedy: `Say for how long: agentd approve ${call ?? "CALL"} --for run --rule ${rule}`,
            exitCode: ExitCode.usage
          }
        : scope !== "once" && call === undefined
          ? {
              message: `--for ${scope} is about one call, and none is named.`,
              remedy: "See what waits for an answer: agentd approve",
              exitCode: ExitCode.usage
            }
          : undefined,
  rpc: (input, caller) => rpc({ ...input, decision: "allow" }, caller),
  view,
  quick: ({ all, call, hash }) => !all && (call === undefined || hash !== undefined)
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
