/** The seat's transition table; the triggers are the source's words, by our events' names. */
import type { Seed } from "./Seed.ts"

/** The source says why an agent leaves (stops, disconnects, crashes); ours is one event that says it in a field. */
export const triggers = {
  "Agent starts": "AgentStarted",
  "Assigned to channel": "Assigned",
  "Agent stops": "AgentLeft",
  "Turn granted": "TurnGranted",
  "Removed from channel": "Removed",
  "Agent disconnects": "AgentLeft",
  TURN_COMPLETE: "TURN_COMPLETE",
  Timeout: "TurnTimedOut",
  "Wait requested": "WaitRequested",
  "Agent crashes": "AgentLeft",
  "Wait resolved": "WaitResolved",
  "Wait timeout": "WaitTimedOut"
} as const

const row = (from: string, to: string, trigger: keyof typeof triggers) => ({ from, event: triggers[trigger], to })

export const seat: Seed = {
  states: ["OFFLINE", "IDLE", "QUEUED", "ACTIVE", "WAITING"],
  rows: [
    row("OFFLINE", "IDLE", "Agent starts"),
    row("IDLE", "QUEUED", "Assigned to channel"),
    row("IDLE", "OFFLINE", "Agent stops"),
    row("QUEUED", "ACTIVE", "Turn granted"),
    row("QUEUED", "IDLE", "Removed from channel"),
    row("QUEUED", "OFFLINE", "Agent disconnects"),
    row("ACTIVE", "QUEUED", "TURN_COMPLETE"),
    row("ACTIVE", "QUEUED", "Timeout"),
    row("ACTIVE", "WAITING", "Wait requested"),
    row("ACTIVE", "OFFLINE", "Agent crashes"),
    row("WAITING", "ACTIVE", "Wait resolved"),
    row("WAITING", "QUEUED", "Wait timeout"),
    row("WAITING", "OFFLINE", "Agent disconnects")
  ],
  added: [
    {
      from: ["ACTIVE", "WAITING"],
      event: ["Removed"],
      to: "IDLE",
      because: "the source's prose: who is removed loses the turn"
    },
    {
      from: ["ACTIVE"],
      event: ["TURN_COMPLETE"],
      to: "IDLE",
      because: "the source's prose: a solo agent rests after its turn"
    },
    {
      from: ["IDLE"],
      event: ["MessageArrived"],
      to: "QUEUED",
      because: "what wakes a solo agent is a message: it never spins"
    },
    {
      from: ["IDLE"],
      event: ["Removed"],
      to: "IDLE",
      because: "a solo agent at rest can be removed, too"
    },
    {
      from: ["WAITING"],
      event: ["HumanOverride"],
      to: "QUEUED",
      because: "the source's prose: a person may end the wait"
    },
    {
      from: ["WAITING"],
      event: ["HumanOverride"],
      to: "ACTIVE",
      because: "the source's prose: a person may end the wait"
    },
    {
      from: ["ACTIVE"],
      event: ["HumanOverride"],
      to: "QUEUED",
      because: "a person may skip who has the floor, or give it to another"
    },
    {
      from: ["ACTIVE"],
      event: ["HumanOverride"],
      to: "ACTIVE",
      because: "a person may give who has the floor more time"
    },
    {
      from: ["ACTIVE"],
      event: ["TurnFailed"],
      to: "QUEUED",
      because: "a turn that ended with an error, or by a person's interrupt, keeps the floor from nobody"
    },
    {
      from: ["ACTIVE"],
      event: ["SignOfLife"],
      to: "ACTIVE",
      because: "the time limit is on silence, not on work"
    },
    {
      from: ["WAITING"],
      event: ["WaitResolved"],
      to: "WAITING",
      because: "the floor has passed to the next meanwhile: it waits on, resolved, without a deadline"
    },
    {
      from: ["WAITING"],
      event: ["TurnGranted"],
      to: "ACTIVE",
      because: "a wait that is resolved is granted the floor next"
    }
  ]
}
