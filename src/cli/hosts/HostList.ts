/** `agentd host ls`: lists the saved hosts, and whether each one answers. */
import { Effect } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { plain, table } from "../render/Output.ts"
import * as AllHosts from "./AllHosts.ts"
import { noted } from "./LastSeen.ts"
import * as SavedHosts from "./SavedHosts.ts"

const stateOf = Effect.fnUntraced(function* (name: string, url: string) {
  const { paths } = yield* Invocation
  const heard = yield* AllHosts.within(call(url, (client) => client.Status()))
  if ("value" in heard) {
    yield* noted(paths.state, name)
    return { name, url, version: heard.value.daemon.version, problem: null }
  }
  return { name, url, version: null, problem: heard.message }
})

export const run = Effect.fnUntraced(function* () {
  const { colour, columns } = yield* Invocation
  const hosts = yield* SavedHosts.read
  const rows = yield* Effect.forEach([...hosts], ([name, { url }]) => stateOf(name, url), { concurrency: "unbounded" })
  yield* print(rows, () =>
    rows.length === 0
      ? ["No host is saved. Add one: agentd host add NAME ssh://user@machine"]
      : table(
          ["HOST", "ADDRESS", "STATE"],
          rows.map(({ name, problem, url, version }) => [
            { text: name },
            { text: url },
            problem === null ? { text: `agentd ${version}` } : { text: plain(problem), colour: "red" as const }
          ]),
          { colour, columns }
        )
  )
})
