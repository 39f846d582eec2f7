/**
 * `agentd approve CALL` without a hash: shows the whole call, then asks for confirmation on a terminal.
 *
 * Guarantees: the approval names the shown call by its hash. If the user cannot be asked, nothing is approved, and the
 * exit code says so.
 */
import { Effect } from "effect"
import { Prompt } from "effect/cli"
import { call } from "../../api/rpc/ControlClient.ts"
import * as ApprovalView from "./ApprovalView.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print, printLines } from "../parse/Invocation.ts"
import { plain } from "../render/Output.ts"
import { choices } from "../daemon/Waiting.ts"

const undecided = (message: string, remedy: string) => new VerbFailed({ message, remedy, exitCode: ExitCode.undecided })

export const run = Effect.fnUntraced(function* ({ call: name = "" }: { readonly call: string | undefined }) {
  const { caller, columns, interactive, json, paths } = yield* Invocation
  const asked = yield* call(paths.socket, (client) => client.Asked({ name, caller }))
  const { hash, id, questions, tool } = asked
  yield* print(asked, () =>
    questions === undefined ? ApprovalView.lines(asked, columns) : choices(questions).map((line) => `│ ${line}`)
  )
  if (questions !== undefined)
    return yield* undecided(
      `${plain(id)} is a question with options, not a call to approve.`,
      `Answer with an option's number, or a text: agentd answer ${plain(id)} 1`
    )
  if (json || !interactive)
    return yield* undecided(
      "Nothing was approved: this is not a terminal.",
      `To approve the call that was shown: ${ApprovalView.command(asked)}`
    )
  if (!(yield* Prompt.run(Prompt.Confirm({ message: `Allow this call of ${plain(tool)}?`, initial: false }))))
    return yield* undecided("Nothing was approved.", `The call still waits. To deny it: agentd deny ${plain(id)}`)
  const done = yield* call(paths.socket, (client) =>
    client.Answer({ name: id, decision: "allow", reason: "", hash, caller })
  )
  return yield* printLines([plain(done.message)])
})
