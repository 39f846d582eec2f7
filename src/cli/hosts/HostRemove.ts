/** `agentd host rm NAME`: removes a saved host. */
import { Effect } from "effect"
import { print } from "../parse/Invocation.ts"
import * as SavedHosts from "./SavedHosts.ts"

export const run = Effect.fnUntraced(function* ({ name }: { readonly name: string }) {
  const hosts = yield* SavedHosts.read
  const host = hosts.get(name)
  if (host === undefined) return yield* SavedHosts.absent(name, hosts)
  yield* SavedHosts.write(new Map([...hosts].filter(([one]) => one !== name)))
  yield* print({ name, url: host.url }, () => [`${name} is removed. Nothing has changed on ${host.url}.`])
})
