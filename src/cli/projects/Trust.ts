/**
 * `agentd trust`: shows what a changed agentd.jsonc would do, and puts the change into force if the user agrees.
 * `agentd trust HASH` puts exactly the text with this hash into force.
 *
 * Guarantees: only text that was shown is applied. Without a terminal, the command needs the hash, which is printed
 * together with the change. An agent's run cannot approve a change.
 */
import { Config, Effect, Option } from "effect"
import { Prompt } from "effect/cli"
import { call } from "../../api/rpc/ControlClient.ts"
import type { ConfigChangeInfo, ProjectInfo } from "../../domain/Messages.ts"
import * as ConfigRows from "./ConfigRows.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { plain, plainLines } from "../render/Output.ts"

/** True if the caller is an agent's run. A run can hide this by unsetting AGENTD_RUN. */
export const isRun = Effect.map(
  Effect.orElseSucceed(Config.option(Config.String("AGENTD_RUN")), () => Option.none<string>()),
  Option.exists((run) => run !== "")
)

const failed = (message: string, remedy: string, exitCode: number = ExitCode.failed) =>
  new VerbFailed({ message, remedy, exitCode })

/**
 * The change from the applied config to the current config file of a project. `waits` is true if the change waits for
 * approval.
 */
export const pending = Effect.fnUntraced(function* (name: string) {
  const { caller, paths } = yield* Invocation
  return yield* call(paths.socket, (client) => client.ConfigChange({ name, caller }))
})

/** Applies the config text with this hash. Fails if the file has changed since. */
export const agree = Effect.fnUntraced(function* (config: string, hash: string) {
  const { caller, paths } = yield* Invocation
  return yield* call(paths.socket, (client) => client.Register({ config, trust: hash, caller }))
})

const HASH = /^[0-9a-f]{64}$/

const said = ({ agents, config, name }: ProjectInfo): ReadonlyArray<string> => [
  plain(`${config} is trusted and in force. Project ${name}: ${agents.length === 0 ? "no agents" : agents.join(", ")}`)
]

const byHash = Effect.fnUntraced(function* (hash: string) {
  const { paths } = yield* Invocation
  const projects = yield* call(paths.socket, (client) => client.Projects())
  const found = projects.find(({ kept, waits }) => (waits ?? kept)?.hash === hash)
  if (found === undefined) {
    return yield* failed(
      "No config with this hash waits: the file has changed since, or it is already in force.",
      "Show the current change: agentd trust"
    )
  }
  const project = yield* agree(found.config, hash)
  yield* print(project, () => said(project))
})

const decide = Effect.fnUntraced(function* (change: ConfigChangeInfo, hash: string) {
  const { colour, interactive, json } = yield* Invocation
  yield* print(change, () => ConfigRows.change(change, colour))
  if (json) return
  if (!interactive) {
    return yield* failed(
      "This is not a terminal, so nothing was put into force.",
      `To put exactly this text into force: agentd trust ${hash}`,
      ExitCode.usage
    )
  }
  if (!(yield* Prompt.run(Prompt.Confirm({ message: "Put this change into force?", initial: false })))) {
    return yield* failed(
      "The change was not put into force: the last usable version stays in force.",
      "Fix the file, or answer yes."
    )
  }
  const project = yield* agree(change.config, hash)
  yield* print(project, () => said(project))
})

export const run = Effect.fnUntraced(function* ({ what }: { readonly what: string | undefined }) {
  if (yield* isRun) {
    return yield* failed(
      "This command runs inside an agent (AGENTD_RUN is set), which may not trust a config.",
      "Run this in your own terminal, outside of the agent: agentd trust"
    )
  }
  if (what !== undefined && HASH.test(what)) return yield* byHash(what)
  const change = yield* pending(what ?? "")
  if (change.hash === null) {
    return yield* failed(
      ["The config file cannot be used:", ...change.problems.flatMap(plainLines)].join("\n"),
      `Fix ${change.config}. Until then, the last usable version stays in force.`,
      ExitCode.config
    )
  }
  if (change.waits) return yield* decide(change, change.hash)
  yield* print(change, () => [plain(`${change.config} is already in force: no change waits for approval.`)])
})
