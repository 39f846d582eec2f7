/** People read one vocabulary: no listing says a machine's state. `--json`, `log` and `tree` do. */
import { assert, describe, it } from "@effect/vitest"
import * as ChannelTable from "../../../src/cli/channels/ChannelTable.ts"
import { list as conversations, show as conversation } from "../../../src/cli/projects/Conversation.ts"
import * as GoalView from "../../../src/cli/goals/GoalView.ts"
import * as SessionTable from "../../../src/cli/sessions/SessionTable.ts"
import { status } from "../../../src/cli/daemon/Status.ts"
import type { SeatInfo } from "../../../src/domain/ChannelMessages.ts"
import type { GoalInfo } from "../../../src/domain/GoalMessages.ts"
import type { ConversationInfo, PlateInfo } from "../../../src/domain/Messages.ts"
import { TABLES, type Word, WORDS } from "../../../src/domain/StatusWords.ts"
import type { StatusReply } from "../../../src/board/DaemonMessages.ts"
import { countStates, countWords } from "../../../src/api/rpc/DaemonQueries.ts"
import * as PlatesDouble from "../../world/http/PlatesDouble.ts"
import { options } from "../../world/goals/Tasks.ts"
import { agentInfo, conversationInfo, T0 } from "../../world/rpc/World.ts"

const world = { now: T0, colour: false, columns: null, world: null }

const wordOf = (cases: ReadonlyArray<{ readonly word: Word }>): Word => cases.at(-1)!.word
/** States of the machine with a word for each, those apart that are words themselves. */
const statesOf = (machine: keyof typeof TABLES): ReadonlyArray<readonly [state: string, word: Word]> =>
  Object.entries(TABLES[machine]).map(([state, cases]) => [state, wordOf(cases)] as const)
const isWord = (state: string): boolean => WORDS.some((word) => word === state)

const says = (machine: keyof typeof TABLES, lines: (state: string, word: Word) => ReadonlyArray<string>) =>
  it(machine, () => {
    for (const [state, word] of statesOf(machine)) {
      const text = lines(state, word).join("\n")
      assert.match(text, new RegExp(`\\b${word === "failed" ? "(has )?failed" : word}\\b`), `${state} is ${word}`)
      if (!isWord(state)) assert.notMatch(text, new RegExp(`(?<![\\w-])${state}(?![\\w-])`), state)
    }
  })

const goal = (state: string, word: Word) =>
  ({
    goalId: "g1",
    conversation: "c",
    project: "web",
    goal: "ship it",
    by: "ada",
    submittedAt: 0,
    word,
    state,
    since: T0,
    restsOn: 3,
    detail: "",
    reason: null,
    total: 0,
    tasks: { pending: 0, assigned: 0, running: 0, completed: 0, failed: 0, blocked: 0, cancelled: 0 },
    rounds: 0,
    maxRounds: 3,
    estimate: null,
    options: options()
  }) as unknown as GoalInfo
const seat = (state: string, word: Word) =>
  ({ agent: "pm", word, state, since: T0, restsOn: 1, position: 1, unread: 0, until: null, detail: "" }) as SeatInfo

describe("a listing says a word for people of each state", () => {
  says("autonomy", (state, word) => [
    ...GoalView.list([goal(state, word)], T0, world),
    ...GoalView.head(goal(state, word), T0, false)
  ])
  says("seat", (state, word) => {
    const channel = { conversation: "c", project: "web", name: "r", word, topic: "", order: "manual" as const }
    const rest = { paused: false, closed: false, floor: null, posts: 0, detail: "", waits: null, restsOn: 1 }
    const whole = { ...channel, ...rest, seats: [seat(state, word)] }
    return [...ChannelTable.list([whole], T0, world), ...ChannelTable.seats(whole, T0, world)]
  })
  says("conversation", (state, word) => {
    const row: ConversationInfo = { ...conversationInfo({ state, detail: "", turns: 0 }), word }
    return [...conversations([row], T0, world), ...conversation.view(row, world).slice(0, 1)]
  })
  says("plate", (status, word) =>
    SessionTable.full([{ ...PlatesDouble.plateInfo(), status, word, detail: "" } as PlateInfo], T0, world)
  )
  says("worker", (state, word) => {
    const agents = [agentInfo({ state, word })]
    const reply = {
      uptime: 0,
      projects: [],
      accounts: [],
      states: countStates(agents),
      words: countWords(agents),
      daemon: {
        pid: 1,
        version: "1",
        startedAt: T0,
        state: "/s",
        socket: "/s/c",
        phase: "ready",
        supervision: { by: "foreground", unit: null, restsOn: "x" },
        log: { head: 1, bytes: 1 },
        outbox: { configured: false, waiting: 0, failed: 0, lastSentAt: null, lastError: null, restsOn: 0 }
      }
    } as unknown as StatusReply
    return status.view(reply, world)
  })
})
