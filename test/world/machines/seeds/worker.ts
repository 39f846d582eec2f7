/** The worker's transition table: eleven rows, two events for any state. */
import type { Seed } from "./Seed.ts"

const states = [
  "Initializing",
  "BuildingPrompt",
  "Spawning",
  "Running",
  "Interrupting",
  "SessionComplete",
  "CoolingDown",
  "Stopped"
]
const live = ["Running", "Interrupting"]

export const worker: Seed = {
  states,
  rows: [
    { from: "Initializing", event: "WorktreeReady", to: "BuildingPrompt", act: [] },
    { from: "BuildingPrompt", event: "PromptReady", to: "Spawning", act: ["StorePrompt"] },
    { from: "Spawning", event: "SessionStarted", to: "Running", act: [] },
    { from: "Spawning", event: "SessionExited", to: "CoolingDown", act: [] },
    { from: "Spawning", event: "SessionExited", to: "Stopped", act: ["LogFatal"] },
    { from: "Running", event: "SessionExited", to: "SessionComplete", act: [] },
    { from: "Running", event: "SessionExited", to: "CoolingDown", act: [] },
    { from: "Running", event: "SessionExited", to: "Stopped", act: ["LogFatal"] },
    { from: "Running", event: "UrgentMessage", to: "Interrupting", act: ["CancelSession"] },
    { from: "Interrupting", event: "SessionExited", to: "BuildingPrompt", act: [] },
    { from: "Interrupting", event: "GraceExceeded", to: "BuildingPrompt", act: ["ForceStopSession"] },
    { from: "SessionComplete", event: "WorktreeReady", to: "BuildingPrompt", act: ["IncrementSession"] },
    { from: "CoolingDown", event: "BackoffElapsed", to: "BuildingPrompt", act: [] },
    ...states.map((from) => ({
      from,
      event: "OperatorStop",
      to: "Stopped",
      act: live.includes(from) ? ["CancelSession"] : []
    })),
    ...states.map((from) => ({ from, event: "FatalError", to: "Stopped", act: ["LogFatal"] }))
  ],
  added: [
    {
      from: ["Spawning"],
      event: ["SessionExited"],
      to: "SessionComplete",
      because: "a run that ends well before it said that it started has ended well"
    },
    {
      from: ["BuildingPrompt"],
      event: ["WorkArrived"],
      to: "BuildingPrompt",
      because: "a worker that has nothing to do waits there, and is woken"
    },
    {
      from: ["Spawning"],
      event: ["PortsGiven"],
      to: "Spawning",
      because:
        "a program may listen on the agent's ports since its worktree was prepared, and the log keeps the new ones"
    },
    {
      from: ["Spawning"],
      event: ["OperatorStop"],
      to: "Stopped",
      act: ["CancelSession"],
      because: "a process may be there already"
    },
    {
      from: ["Spawning", "Running", "Interrupting"],
      event: ["FatalError"],
      to: "Stopped",
      act: ["LogFatal", "CancelSession"],
      because: "no process outlives its worker"
    }
  ],
  dropped: [
    {
      from: ["Spawning"],
      event: ["OperatorStop"],
      to: "Stopped",
      act: [],
      because: "a process may be there already"
    },
    {
      from: ["Spawning", "Running", "Interrupting"],
      event: ["FatalError"],
      to: "Stopped",
      act: ["LogFatal"],
      because: "no process outlives its worker"
    },
    {
      from: ["Stopped"],
      event: ["OperatorStop", "FatalError"],
      to: "Stopped",
      because: "a final state absorbs: one rune and one mail per entry"
    }
  ]
}
