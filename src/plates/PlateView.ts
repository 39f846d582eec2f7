/**
 * PlateView: builds the row that the user sees for a plate. Pure: the row depends only on the committed state of the
 * plate's machine, its facts, and the current time.
 */
import type { PlateInfo } from "../domain/Messages.ts"
import * as StatusWords from "../domain/StatusWords.ts"
import type { Request } from "./Approvals.ts"
import type { Prompt } from "./PlateState.ts"
import { SESSION_SOURCES } from "./SessionSources.ts"
import * as PlateFacts from "./PlateFacts.ts"
import type { Stand } from "./PlateActor.ts"
import type { Transcript } from "./Transcript.ts"

/** The data from which a row is built: of a plate, or of a record without an actor. */
export interface Shown {
  readonly plateId: string
  readonly stand: Stand
  readonly facts: PlateFacts.PlateFacts
  readonly transcript: Transcript | undefined
  readonly branch: string | undefined
  readonly heard: number
  readonly watchable: boolean
}

/** A running session without a sign of life for longer than this is shown as silent, ms. */
const SILENCE = 30_000

const attention = new Set(["AwaitingInput", "AwaitingApproval", "Error"])

const asks = ({ agentId, kind, tool }: Prompt): string => {
  const who = agentId === null ? "" : "a subagent "
  if (kind === "question") return `${who}asks a question`
  if (kind === "plan") return `${who}asks to approve a plan`
  return tool === "*" ? `${who}asks for permission` : `${who}asks to use ${tool}`
}

/** The CLIs of which no signal tells that a call waits for the user. */
const cannotTellAsking: ReadonlySet<string | undefined> = new Set(
  SESSION_SOURCES.filter(({ tells }) => tells.asks.startsWith("no:")).map(({ name }) => name)
)

interface Told {
  readonly data: Stand["data"]
  readonly facts: PlateFacts.PlateFacts
}

const working = ({ data, facts }: Told, lastTold: number, now: number): string => {
  const { calls, compacting } = data
  const tools = [...new Set([...calls.map(({ tool }) => tool), ...(facts.using === null ? [] : [facts.using.tool])])]
  const call = `runs ${tools.join(", ")}${cannotTellAsking.has(data.cli) ? ", or asks to" : ""}`
  const what = compacting ? "compacts its conversation" : tools.length > 0 ? call : "works"
  return now - lastTold > SILENCE ? `${what}; silent for ${Math.floor((now - lastTold) / 1_000)} s` : what
}

const detail = (stand: Stand, facts: PlateFacts.PlateFacts, lastTold: number, now: number): string => {
  const { data, state } = stand
  switch (state) {
    case "Starting":
      return "has reported nothing yet"
    case "Running":
      return working({ data, facts }, lastTold, now)
    case "Idle":
      return data.background.length > 0 ? `${data.background.length} in the background` : "waits for a prompt"
    case "AwaitingInput":
    case "AwaitingApproval": {
      const first = asks(data.prompts.find(({ kind }) => kind === "question") ?? data.prompts[0]!)
      return data.prompts.length > 1 ? `${first}, and ${data.prompts.length - 1} more` : first
    }
    case "Error":
      return data.failure ?? "its turn failed"
    case "Closed":
      return "has ended"
  }
}

/** The input of the tool that `/events` has reported, if there is one. */
const usingOf = ({ facts, stand }: Shown) =>
  stand.state === "Closed" || facts.using === null || facts.using.input === null ? {} : { arguments: facts.using.input }

export const row = (plate: Shown, request: Request | null, now: number): PlateInfo => {
  const { stand, transcript } = plate
  const { data } = stand
  const facts = PlateFacts.shown(plate.facts, transcript)
  const written = transcript?.found?._tag === "Read" ? transcript.found.mtime : 0
  const lastTold = Math.max(plate.heard, data.signal?.at ?? 0, written)
  return {
    plateId: plate.plateId,
    word: StatusWords.wordOf(StatusWords.plate, stand.state, null),
    sessionId: data.sessionId,
    status: stand.state,
    // a plate that was only registered has not changed its state yet
    since: stand.at === 0 ? (data.signal?.at ?? 0) : stand.at,
    restsOn: data.signal === null ? null : { signal: data.signal.from, at: data.signal.at },
    detail: `${data.cli === undefined ? "" : `${data.cli}: `}${detail(stand, plate.facts, lastTold, now)}`,
    cwd: data.cwd,
    branch: plate.branch ?? facts.branch ?? data.branch,
    title: facts.title,
    lastTool: facts.lastTool,
    todos: facts.todos,
    toolCalls: facts.toolCalls,
    tokens: facts.tokens,
    pid: data.processes.at(-1)?.pid ?? null,
    agent: data.agent,
    watchable: plate.watchable,
    approval: request?.id ?? null,
    ...(request === null
      ? usingOf(plate)
      : request.questions.length > 0
        ? { questions: request.questions }
        : { arguments: request.arguments })
  }
}

const rank = ({ status }: PlateInfo): number => (attention.has(status) ? 0 : status === "Closed" ? 2 : 1)

/** Sorts rows: those that need attention first, closed plates last, the newest first within each group. */
export const order = (a: PlateInfo, b: PlateInfo): number => rank(a) - rank(b) || b.since - a.since
