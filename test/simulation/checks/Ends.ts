/**
 * Ends: in which ways runs, turns, agents, goals and conversations end. It promises nothing:
 * a way that no seed's world comes to is a gap in the workload.
 */
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import type { Check, Verdicts } from "./Check.ts"

type Json = { readonly [field: string]: any }

const OUTCOMES = ["Success", "Error", "Timeout", "Fatal"]
const UNCOUNTED = ["quota", "overflow", "held", "lost", "taken"].map((reason) => `Uncounted ${reason}`)
/** A run ends as it starts, at work, or after it was told to end. */
const STATES = ["Spawning", "Running", "Interrupting"]

/** All that there are, by the names that they are counted under. */
export const ENDS: ReadonlyArray<string> = [
  ...STATES.map((state) => `a run ends in ${state}`),
  ...[...OUTCOMES, ...UNCOUNTED].map((outcome) => `a run ends with ${outcome}`),
  "a worker stops: OperatorStop",
  "a worker stops: FatalError",
  "a worker stops: fatal outcome",
  "a worker stops: errors in a row",
  "a worker stops: errors in all",
  ...["response_done"].map((tag) => `a turn ends: ${tag}`),
  ...["a person", "worker", "agentd", "the agent"].map((by) => `a turn ends: interrupt by ${by}`),
  "a turn ends: steer",
  "a turn ends: stream_error, offered again",
  "a turn ends: stream_error",
  ...["kill", "parent_closed", "budget_exhausted", "init_error"].map((tag) => `an agent ends: ${tag}`),
  ...["critique_passed", "user_cancel", "unresolvable", "budget_exhausted"].map((tag) => `a goal ends: ${tag}`),
  ...["tokens", "wall_time", "tool_calls"].map((resource) => `a conversation is suspended: ${resource}`),
  ...["turn_completed", "agent_failed", "error_threshold"].map((tag) => `a conversation is suspended: ${tag}`),
  ...["created", "active", "paused", "suspended"].map((state) => `a conversation is closed: ${state}`),
  "a conversation is archived"
]

const AGENTD = ["worker", "agentd", "the agent"]

/** The way that the rune tells of, if it tells of one. */
const wayOf = ({ from, kind, payload, to, trigger }: Rune): ReadonlyArray<string> => {
  const event = (payload["event"] ?? {}) as Json
  switch (kind) {
    case "worker.moved":
      return [...(trigger === "SessionExited" ? runEnd(from!, event["outcome"]) : []), ...workerEnd(payload, event, to)]
    case "turn.completed":
      return [`a turn ends: ${trigger}`]
    case "turn.interrupted":
      if (trigger === "steer") return ["a turn ends: steer"]
      return [`a turn ends: interrupt by ${AGENTD.includes(event["by"]) ? event["by"] : "a person"}`]
    case "turn.error":
      return [`a turn ends: ${trigger}${event["retry"] === true ? ", offered again" : ""}`]
    case "agent.terminated":
    case "agent.failed":
      return [`an agent ends: ${endOfAgent(trigger)}`]
    case "plan.goal_met":
    case "plan.stopped":
      return [`a goal ends: ${trigger}`]
    case "session.suspended":
      return [`a conversation is suspended: ${trigger === "budget_exhausted" ? event["resource"] : trigger}`]
    case "session.closing":
      return [`a conversation is closed: ${from}`]
    case "session.archived":
      return ["a conversation is archived"]
    default:
      return []
  }
}

/** The last turn may end after the agent was told to. */
const endOfAgent = (trigger: string | null): string =>
  trigger === "turn_completed" || trigger === "turn_interrupted" || trigger === "turn_error"
    ? "budget_exhausted"
    : String(trigger)

const runEnd = (from: string, outcome: Json): ReadonlyArray<string> => {
  const { _tag, reason } = outcome
  return [`a run ends in ${from}`, `a run ends with ${_tag}${_tag === "Uncounted" ? ` ${reason}` : ""}`]
}

const workerEnd = (payload: Json, event: Json, to: string | null): ReadonlyArray<string> => {
  if (to !== "Stopped") return []
  const { _tag, outcome } = event
  if (_tag !== "SessionExited") return [`a worker stops: ${_tag}`]
  if (outcome["_tag"] === "Fatal") return ["a worker stops: fatal outcome"]
  return [`a worker stops: errors in ${/in a row/.test(payload["fatal"]?.message ?? "") ? "a row" : "all"}`]
}

export class Ends implements Check {
  private readonly verdicts: Verdicts

  constructor(verdicts: Verdicts) {
    this.verdicts = verdicts
  }

  rune(rune: Rune): void {
    for (const way of wayOf(rune)) this.verdicts.sometimes(way)
    // the worker joins its turn's end
    const { exit } = (rune.payload["event"] ?? {}) as Json
    if (rune.kind === "turn.completed" && exit !== undefined) this.verdicts.sometimes("a run ends with Success")
  }
}
