/** repairer: repairs a store. Usage: node --import crashAt.ts repairer.ts FILE up (with "up", crashAt can kill it) */
import { Effect } from "effect"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import * as Repair from "../../src/core/event-log/Repair.ts"

await Effect.runPromise(Repair.run({ file: process.argv[2]!, rules: DaemonLog.rules, onLost: () => {} }, 1_000_000))
