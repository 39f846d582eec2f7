/**
 * `agentd conformance -- CMD…`: checks whether a program speaks the Agent Client Protocol as agentd requires, and
 * prints each check.
 */
import { Console, Duration, Effect, Layer } from "effect"
import * as NodePath from "node:path"
import { type Outcome, PROMPTS, suite } from "../../runs/acp/Conformance.ts"
import { ProcessTree } from "../../runs/process/ProcessTree.ts"
import { Reaper } from "../../runs/process/Reaper.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Entry, Invocation } from "../parse/Invocation.ts"
import { plain } from "../render/Output.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

export interface Input {
  readonly command: ReadonlyArray<string>
  readonly asks: string | undefined
  readonly long: string | undefined
  /** Maximum duration of one check, in ms. */
  readonly timeout: number
}

const MARKS = { ok: "ok     ", failed: "FAILED ", skipped: "skipped" } as const

/** `before`: the reason that was printed last, which is not repeated. */
const lineOf = ({ check, result, why }: Outcome, before: string): string =>
  `${MARKS[result]}  ${check}${why === "" || why === before ? "" : `\n         ${plain(why)}`}`

export const run = Effect.fnUntraced(function* ({ asks, command, long, timeout }: Input) {
  const { json } = yield* Invocation
  const { env } = yield* Entry
  const [program = "", ...args] = command
  const options = {
    argv: [program, ...args] as const,
    cwd: NodePath.resolve("."),
    env,
    patience: Duration.millis(timeout),
    prompts: {
      hello: PROMPTS.hello,
      asks: asks ?? PROMPTS.asks,
      long: long ?? PROMPTS.long
    }
  }
  let before = ""
  const told = (outcome: Outcome) =>
    Effect.suspend(() => {
      const line = lineOf(outcome, before)
      before = outcome.why
      return json ? Effect.void : Console.log(line)
    })
  const outcomes = yield* suite(options, told).pipe(Effect.provide(Layer.merge(ProcessTree.layer, Reaper.layerNone)))
  const failed = outcomes.filter(({ result }) => result === "failed").length
  const skipped = outcomes.filter(({ result }) => result === "skipped").length
  if (json) yield* Console.log(jsonOf({ passed: failed === 0, checks: outcomes }))
  else yield* Console.log(`${outcomes.length - failed - skipped} ok, ${failed} failed, ${skipped} skipped.`)
  if (failed > 0)
    return yield* new VerbFailed({
      message: `The program does not speak the protocol as agentd requires: ${failed} of ${outcomes.length} checks failed.`,
      remedy: "See docs/own-agent.md for what each check expects. Fix the program, then try again.",
      exitCode: ExitCode.failed
    })
})
