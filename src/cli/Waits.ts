/**
 * `agentd waiting`: all that waits for a person: calls and sessions that ask, and channels
 * that only a person sets going again, and configs that nobody has agreed to.
 */
import { all, declare, map, read } from "./DeclaredVerb.ts"
import { view, waitingOf } from "./Waiting.ts"

export const waiting = declare({
  path: ["waiting"],
  description:
    "List what waits for you: calls and sessions that ask, configs that changed, channels that rest or reach no agent",
  examples: [{ command: "agentd waiting", description: "Each with what to do about it" }],
  args: {},
  rpc: () =>
    map(
      all({
        calls: read("Calls", null),
        plates: read("Plates", { all: false }),
        channels: read("Channels", null),
        projects: read("Projects", null)
      }),
      ({ calls, channels, plates, projects }) => waitingOf(calls, plates, channels, projects)
    ),
  view,
  quick: true
})
