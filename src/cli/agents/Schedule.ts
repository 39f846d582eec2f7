/** `agentd schedule ls|rm|run|pause|resume`: messages and goals that are due at set times. */
import { act, declare, off, read, send, word } from "../parse/DeclaredVerb.ts"
import * as ScheduleTable from "./ScheduleTable.ts"

const name = word("Its name in this project, or project/name", { name: "schedule" })

export const ls = declare({
  path: ["schedule", "ls"],
  description: "List the schedules of this project: when each is due next, and its last outcome",
  examples: [{ command: "agentd schedule ls --all", description: "Of all projects; the next one first" }],
  args: { all: off("Those of all projects") },
  rpc: ({ all }, caller) => read("Schedules", { all, caller }),
  view: (schedules, { colour, columns, now }) => ScheduleTable.list(schedules, now, { colour, columns })
})

export const rm = act({
  path: ["schedule", "rm"],
  description: "Cancel what agentd at scheduled; to remove any other, edit agentd.jsonc",
  examples: [{ command: "agentd schedule rm at-1", description: "Nothing is sent" }],
  args: { name },
  rpc: ({ name }, caller) => send("ScheduleRemove", { name, caller })
})

export const run = act({
  path: ["schedule", "run"],
  description: "Run a schedule now; refused while its last run is in progress",
  examples: [{ command: "agentd schedule run nightly", description: "To see what it does" }],
  args: { name },
  rpc: ({ name }, caller) => send("ScheduleRun", { name, caller })
})

export const pause = act({
  path: ["schedule", "pause"],
  description: "Pause a schedule: skip its times until it is resumed",
  examples: [{ command: "agentd schedule pause nightly", description: "It stays paused when the daemon restarts" }],
  args: { name },
  rpc: ({ name }, caller) => send("SchedulePause", { name, caller })
})

export const resume = act({
  path: ["schedule", "resume"],
  description: "Resume a paused schedule",
  examples: [{ command: "agentd schedule resume nightly", description: "It runs again at its next time" }],
  args: { name },
  rpc: ({ name }, caller) => send("ScheduleResume", { name, caller })
})
