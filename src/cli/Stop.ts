/**
 * `agentd stop`: the daemon, in order, after a question on a terminal while
 * agents work; `agentd stop AGENT`: one agent, until somebody starts it again.
 */
import { Console, Effect, Option } from "effect"
import { Prompt } from "effect/cli"
import { call } from "../control/ControlClient.ts"
import { probe } from "../control/Endpoint.ts"
import * as Unit from "../systemd/Unit.ts"
import { unitName } from "../systemd/Unit.ts"
import * as DaemonLife from "./DaemonLife.ts"
import { ExitCode } from "./ExitCode.ts"
import { VerbFailed } from "./Failure.ts"
import { Invocation, print } from "./Invocation.ts"
import { plain } from "./Output.ts"

/** States in which a run is alive. */
const WORKING = new Set(["Spawning", "Running", "Interrupting"])

const stopAgent = Effect.fnUntraced(function* (name: string) {
  const { caller, paths } = yield* Invocation
  const done = yield* call(paths.socket, (client) => client.Stop({ name, caller }))
  yield* print(done, () => [plain(done.message)])
})

/** Fails unless nobody works, nobody is there to be asked, or the answer is yes. */
export const ask = Effect.fnUntraced(function* (yes: boolean, verb: "Stop" | "Restart") {
  const { interactive, paths } = yield* Invocation
  if (yes || !interactive) return
  const { states } = yield* DaemonLife.status(paths.socket)
  const working = states.filter(({ state }) => WORKING.has(state)).reduce((sum, { agents }) => sum + agents, 0)
  if (working === 0) return
  yield* Console.error(
    `${working} ${working === 1 ? "agent works" : "agents work"}; each run is ended and taken up again after the next start.`
  )
  const agreed = yield* Prompt.run(Prompt.Confirm({ message: `${verb} the daemon?`, initial: false }))
  if (agreed) return
  return yield* new VerbFailed({
    message: "Nothing was stopped.",
    remedy: `Answer yes, or give --yes.`,
    exitCode: ExitCode.failed
  })
})

/** A daemon that died a moment ago comes back by itself, unless systemd is told. */
const stopReturn = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const unit = unitName(paths.state, paths.defaultState)
  const status = yield* Unit.status(unit)
  if (Option.isNone(status) || status.value.state !== "activating") return false
  yield* Unit.stop(unit)
  yield* print({ unit }, () => [`The daemon had died; systemd does not start ${unit} again now.`])
  return true
})

const stopDaemon = Effect.fnUntraced(function* (yes: boolean) {
  const { paths } = yield* Invocation
  if ((yield* probe(paths.socket)) !== "live" && (yield* stopReturn)) return
  yield* ask(yes, "Stop")
  const stopped = yield* DaemonLife.stop("agentd stop")
  yield* print(stopped, () => [
    `The daemon has stopped (pid ${stopped.pid}). What should run runs again after: agentd start`
  ])
})

export const run = Effect.fnUntraced(function* (input: { readonly agent: string | undefined; readonly yes: boolean }) {
  if (input.agent === undefined) yield* stopDaemon(input.yes)
  else yield* stopAgent(input.agent)
})
