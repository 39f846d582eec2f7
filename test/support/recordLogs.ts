/**
 * recordLogs: records once what the daemon writes: an existing fixture is never written again. Run it with
 * recordLogs.sh, whose namespaces hide this machine's paths. Usage: recordLogs.ts [NAME …]
 */
import { Effect } from "effect"
import { existsSync } from "node:fs"
import * as agents from "./record/agents.ts"
import * as channels from "./record/channels.ts"
import * as conversations from "./record/conversations.ts"
import * as goals from "./record/goals.ts"
import { keep } from "./record/Recorder.ts"
import * as sessions from "./record/sessions.ts"
import * as States from "./record/States.ts"
import * as worlds from "./record/worlds.ts"
import { fileOf, names } from "./Recording.ts"

const all = { ...agents, ...conversations, ...goals, ...channels, ...sessions, ...worlds }
const wanted = process.argv.slice(2)

for (const [name, record] of Object.entries(all)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  if (existsSync(fileOf(name, "runes"))) {
    console.log(`${name}: is there already, and never written again`)
    continue
  }
  await Effect.runPromise(Effect.scoped(record(keep) as Effect.Effect<void, unknown>)).catch((error: unknown) => {
    console.error(`${name}: ${error instanceof Error ? error.message.slice(0, 6000) : String(error)}`)
    process.exitCode = 1
  })
}
for (const name of names()) if (!existsSync(fileOf(name, "states"))) await Effect.runPromise(States.write(name))
process.exit()
