/**
 * `agentd host add NAME ADDRESS`: saves a host.
 *
 * Guarantees: the host is tried first. One that cannot be reached is saved only if the user agrees.
 */
import { Effect } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import * as Host from "../../config/Host.ts"
import { confirm } from "../parse/Confirm.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { print } from "../parse/Invocation.ts"
import * as SavedHosts from "./SavedHosts.ts"

const refused = (message: string, remedy: string, exitCode: number = ExitCode.usage) =>
  new VerbFailed({ message, remedy, exitCode })

export const run = Effect.fnUntraced(function* (input: {
  readonly name: string
  readonly url: string
  readonly force: boolean
  readonly yes: boolean
}) {
  const { force, name, url, yes } = input
  if (!Host.isName(name))
    return yield* refused(
      `${JSON.stringify(name)} cannot be a host's name.`,
      "Use at most 32 lower-case letters, digits and hyphens: agentd host add cellar ssh://user@machine"
    )
  const problem = Host.parse(url)
  if (typeof problem === "string")
    return yield* refused(`The address cannot be used: ${problem}.`, `Type: agentd host add ${name} ssh://user@machine`)
  const hosts = yield* SavedHosts.read
  const old = hosts.get(name)
  if (old !== undefined && old.url !== url && !force)
    return yield* refused(
      `${name} is already saved, as ${old.url}.`,
      `To replace it: agentd host add --force ${name} ${url}`,
      ExitCode.failed
    )
  const tried = yield* Effect.result(call(url, (client) => client.Status()))
  if (tried._tag === "Failure") {
    const { message, remedy = "" } = tried.failure as { readonly message: string; readonly remedy?: string }
    yield* confirm(
      yes,
      `${message}\n  → ${remedy}`,
      `Save ${name} all the same?`,
      "To save it all the same, pass --yes."
    )
  }
  yield* SavedHosts.write(new Map([...hosts, [name, { url }]]))
  const version = tried._tag === "Success" ? tried.success.daemon.version : null
  yield* print({ name, url, version }, () => [
    version === null
      ? `${name} is saved. It does not answer yet.`
      : `${name} is saved: agentd ${version} answers there. See: agentd ps --all-hosts`
  ])
})
