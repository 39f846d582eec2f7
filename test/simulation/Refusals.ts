/**
 * Refusals: in which ways a command is refused, each known by how its message reads. What is
 * said that is none of them is counted under its own words, so that a new one is seen.
 */

/** A refusal, and why no seed's world comes to it, where none does. */
interface Refusal {
  readonly says: RegExp
  readonly never?: string
}

const SIZE = "a bound on what one caller sends: test/world/rpc holds each of them"
const BROKEN = "a log that cannot be read: the disk of these worlds keeps what it has taken"

export const refusals: { readonly [name: string]: Refusal } = {
  "no such agent": { says: /^There is no agent "/ },
  "several agents of a name": { says: /names \d+ agents\.$/, never: "there is one project" },
  "the agent does not live": { says: /is not available:/ },
  "the agent takes no messages": { says: /accepts no messages:/ },
  "a full inbox": {
    says: /already has \d+ waiting messages\.$/,
    never: "ten thousand messages: test/unit/agents/Inbox.test.ts"
  },
  "nothing to interrupt": { says: /has nothing to interrupt: no turn/ },
  "its turn has just ended": { says: /has nothing to interrupt: its turn has just ended/ },
  "a text that is empty": { says: /^\w+ is empty\.$/ },
  "a text that is too long": {
    says: /has \d+ (?:bytes|characters|entries) and may have|bytes in the log, and the maximum is/
  },
  "a sub-agent's name is taken": { says: /^name: an agent "/ },
  "a sub-agent's name is none": { says: /is not a valid agent name/ },
  "a sub-agent of an agent that does not run": { says: /is not running: only a running agent can have sub-agents/ },
  "too many sub-agents": { says: /cannot have another sub-agent/, never: "two names are used" },
  "no such call": { says: /^There is no call "/ },
  "nothing waits for an answer of that name": { says: /^Nothing waits for an answer under/ },
  "nobody is mailed": { says: /^Nobody is mailed/ },
  "the mail server refuses": { says: /^(?:451 later|550 no such box|the line dropped)/ },
  "a call that asks no more": {
    says: /^Call .* (?:no longer waits for an answer|is already running|does not wait for an answer)/
  },
  "no such conversation": { says: /^There is no conversation "/ },
  "which conversation": { says: /^Which conversation\?/ },
  "the project is not known yet": { says: /is not known yet\.$/ },
  "the project's file is not there": { says: /there is no such file/ },
  "the project's file is no config": { says: /agentd\.jsonc:\d*/ },
  "a config that has changed since it was shown": { says: /has changed since it was shown/ },
  "a config that nobody has agreed to, and none that somebody has": {
    says: /is not the trusted text, and the trusted text is no longer stored/,
    never: "files of the state folder are not lost"
  },
  "the conversation is closed": { says: /^The conversation .* is closed\.$/ },
  "the conversation is paused": { says: /^The conversation \S+ is paused/ },
  "the conversation is suspended": { says: /^The conversation \S+ is suspended/ },
  "the conversation is being closed": { says: /^The conversation \S+ is (?:being closed|closing)/ },
  "the conversation is open: one at a time": { says: /is open: a project has only one at a time/ },
  "the conversation is open: not archived": { says: /is open: only a closed one can be archived/ },
  "the conversation goes on": {
    says: /^The conversation \S+ (?:is active|goes on|has not started|is (?:created|at work))/
  },
  "the conversation cannot be archived": { says: /cannot be archived:/, never: BROKEN },
  "the log cannot be read": { says: /cannot be read(?: from the log)?[.:]/, never: BROKEN },
  "the disk is in trouble": { says: /the disk is|Could not write|cannot write|The log/ },
  "agentd is ending": { says: /is (?:stopping|ending|shutting down)|does not run any more|has stopped|is stopped/ },
  "a mailbox is full": { says: /mailbox|calls are already in progress/, never: SIZE },
  "its stream is sealed": { says: /its stream is sealed/ },
  "an agent that does not answer: it has stopped": { says: /does not answer: stopped/ },
  "a machine refuses": { says: /refuses \w+(?: in|:)/ },
  "no such channel": { says: /^There is no channel "/ },
  "a channel of that name": { says: /^The channel #\S+ already exists/ },
  "too many channels": { says: /^There are \d+ channels already/, never: "two names are used" },
  "no name of a channel": { says: /cannot be a channel's name/ },
  "the channel is of the file": { says: /is in the project's agentd\.jsonc/ },
  "the channel is closed": { says: /^#\S+ is closed/ },
  "in the channel already": { says: /is in #\S+ already/ },
  "not in the channel": { says: /is not in #/ },
  "not in the cycle": { says: /is not in the cycle of #/ },
  "at work on something else": { says: /is at work on something else/ },
  "who is alive is not settled": { says: /^It is not known yet which agents are running/ },
  "neither waits nor has the floor": { says: /neither waits in #\S+ nor has its floor/ },
  "nobody has the floor": { says: /^Nobody has the floor/ },
  "a project that the daemon does not keep": { says: /^The daemon does not keep this project/ },
  "no project here": {
    says: /^There is no (?:project|agentd\.jsonc) here|^The project of .* is not known: there is no agentd/
  },
  "no such goal": { says: /^There is no goal "/ },
  "several goals of a name": { says: /names \d+ goals/, never: "there is one project" },
  "the goal has ended": { says: /^\S+ has ended: / },
  "the goal's conversation is closed": { says: /^The conversation of \S+ is closed/ },
  "nobody plans the goal": { says: /^planner: no agent makes a plan/ },
  "no such branch": { says: /there is no branch "/i },
  "no such agent for a goal": { says: /^\w+: there is no agent/ },
  "too many goals": { says: /goals are open in this project/, never: "as many as nobody states in minutes" },
  "a plan that is none": { says: /^(?:plan|tasks|\w+(?:\.\w+|\[\d+\])*): / },
  "there is nothing to do for the goal": { says: /: there is nothing to \w+/ },
  "the plan is not complete yet": {
    says: /is not complete yet/,
    never: "the pieces of a plan of more than 1,000 tasks: test/world/goals/Limits.test.ts"
  },
  "no failed task of that name": { says: /^There is no failed task/ },
  "the goal waits for no plan": { says: /does not wait for a plan/ },
  "the goal is in the archive": {
    says: /is archived with its conversation/,
    never: "no archive of an older agentd is there: test/world/goals/Recovery.test.ts"
  },
  "a merge of a goal that is not met": { says: /is not met: it is/ },
  "nothing to merge": { says: /^There is nothing to merge/ },
  "a merge with work of others": { says: / holds .*commit|holds commits|holds \d+/ },
  "a merge into a branch with changes": { says: /which has changes that are not committed/ },
  "a merge into a branch that has moved": { says: /has changed in the meantime/ },
  "no branch is checked out": { says: /^No branch is checked out/ },
  "git fails": { says: /^git |^Git / }
}

/** The refusal that reads so. */
export const refusalOf = (message: string): string => {
  const line = message.split("\n", 1)[0]!
  for (const [name, { says }] of Object.entries(refusals)) if (says.test(line)) return name
  const pattern = line
    .replace(/[0-9a-hjkmnp-tv-z]{26}/g, "#")
    .replace(/"[^"]*"/g, '"…"')
    .replace(/\d+/g, "#")
  return `other: ${pattern.slice(0, 80)}`
}

export const names = Object.keys(refusals).filter((name) => refusals[name]!.never === undefined)
