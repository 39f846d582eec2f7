/** `agentd schedule ls|rm|run|pause|resume`: lists and controls messages and goals that are due at certain times. */
import { act, declare, off, read, send, word } from "../parse/DeclaredVerb.ts"
import * as ScheduleTable from "./ScheduleTable.ts"

const name = word("The schedule: its name in this project, or project/name", { name: "schedule" })

export const ls = declare({
  path: ["schedule", "ls"],
  description: "List the schedules of this project, with the next due time and the last outcome",
  examples: [
    { command: "agentd schedule ls --all", description: "List the schedules of all projects, the next one first" }
  ],
  args: { all: off("List the schedules of all projects") },
  rpc: ({ all }, caller) => read("Schedules", { all, caller }),
  view: (schedules, { colour, columns, now }) => ScheduleTable.list(schedules, now, { colour, columns })
})

export const rm = act({
  path: ["schedule", "rm"],
  description: "Cancel a schedule that agentd at made; to remove another schedule, edit agentd.jsonc",
  examples: [{ command: "agentd schedule rm at-1", description: "Cancel at-1, so that nothing is sent" }],
  args: { name },
  rpc: ({ name }, caller) => send("ScheduleRemove", { name, caller })
})

export const run = act({
  path: ["schedule", "run"],
  description: "Run a schedule now; fails if its last run is still in progress",
  examples: [{ command: "agentd schedule run nightly", description: "Run nightly now, to test the schedule" }],
  args: { name },
  rpc: ({ name }, caller) => send("ScheduleRun", { name, caller })
})

export const pause = act({
  path: ["schedule", "pause"],
  description: "Pause a schedule; its times are skipped until you resume it",
  examples: [
    {
      command: "agentd schedule pause nightly",
      description: "Pause nightly; it stays paused after a restart of the daemon"
    }
  ],
  args: { name },
  rpc: ({ name }, caller) => send("SchedulePause", { name, caller })
})

export const resume = act({
  path: ["schedule", "resume"],
  description: "Resume a paused schedule",
  examples: [
    { command: "agentd schedule resume nightly", description: "Resume nightly, which runs again at its next time" }
  ],
  args: { name },
  rpc: ({ name }, caller) => send("ScheduleResume", { name, caller })
})
