/**
 * `agentd approve CALL` without a hash: shows the whole call and its parts, then asks on a terminal how far the approval
 * reaches. With `--for`, shows what the approval would change, too: the rule, and the diff of the config file.
 *
 * Guarantees: the approval names the shown call by its hash, and one that keeps a rule names the shown rule and file by
 * theirs. If the user cannot be asked, nothing is approved, and the exit code says so.
 */
import { Effect } from "effect"
import { Prompt } from "effect/cli"
import { call } from "../../api/rpc/ControlClient.ts"
import { type AnswerScope, scopeWords } from "../../approvals/AnswerScope.ts"
import type { AnswerPreview, AskedCall } from "../../domain/Messages.ts"
import * as ApprovalView from "./ApprovalView.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, print, printLines } from "../parse/Invocation.ts"
import { plain } from "../render/Output.ts"
import { choices } from "../daemon/Waiting.ts"

interface Given {
  readonly call: string | undefined
  readonly for: AnswerScope | "once"
  readonly rule: number | undefined
}

type Chosen = AnswerScope | "once" | "nothing"

const undecided = (message: string, remedy: string) => new VerbFailed({ message, remedy, exitCode: ExitCode.undecided })

const waits = ({ id }: Pick<AskedCall, "id">) =>
  undecided("Nothing was approved.", `The call still waits. To deny it: agentd deny ${plain(id)}`)

/** Asks how far the approval reaches. A call without offers can only be approved once. */
const scopeOf = ({ offers = [], scopes = [], tool }: AskedCall) => {
  if (offers.length === 0 || scopes.length === 0)
    return Effect.map(
      Prompt.run(Prompt.Confirm({ message: `Allow this call of ${plain(tool)}?`, initial: false })),
      (isLeave): Chosen => (isLeave ? "once" : "nothing")
    )
  return Prompt.run(
    Prompt.Select<Chosen>({
      message: `Allow this call of ${plain(tool)}?`,
      choices: [
        { value: "once", title: "once" },
        ...scopes.map((scope) => ({ value: scope, title: scopeWords[scope] })),
        { value: "nothing", title: "not now: it still waits" }
      ]
    })
  )
}

const offerOf = ({ offers = [] }: AskedCall, scope: AnswerScope) =>
  offers.length === 1
    ? Effect.succeed(1)
    : Prompt.run(
        Prompt.Select<number>({
          message: `What is allowed ${scopeWords[scope]}?`,
          choices: offers.map(({ words }, index) => ({ value: index + 1, title: ApprovalView.line(words) }))
        })
      )

const answer = Effect.fnUntraced(function* (
  { id }: Pick<AskedCall, "id">,
  hash: string,
  lasting?: { readonly scope: AnswerScope; readonly offer: number }
) {
  const { caller, paths } = yield* Invocation
  const done = yield* call(paths.socket, (client) =>
    client.Answer({
      name: id,
      decision: "allow",
      reason: "",
      hash,
      caller,
      ...(lasting === undefined ? {} : { lasting })
    })
  )
  return yield* printLines([plain(done.message)])
})

const previewOf = Effect.fnUntraced(function* ({ id }: AskedCall, scope: AnswerScope, offer: number) {
  const { caller, paths } = yield* Invocation
  return yield* call(paths.socket, (client) => client.AnswerPreview({ name: id, lasting: { scope, offer }, caller }))
})

/** Approves with a rule. A change of a file is shown first, and needs a confirmation. */
const keep = Effect.fnUntraced(function* (asked: AskedCall, scope: AnswerScope, offer: number, shown?: AnswerPreview) {
  const { colour } = yield* Invocation
  const preview = shown ?? (yield* previewOf(asked, scope, offer))
  if (shown === undefined && preview.file !== null) yield* printLines(ApprovalView.preview(preview, colour))
  const isAsked = shown !== undefined || preview.file !== null
  const message =
    preview.file === null ? `Allow it ${scopeWords[scope]}?` : `Allow it, and write ${plain(preview.file)}?`
  if (isAsked && !(yield* Prompt.run(Prompt.Confirm({ message, initial: false })))) return yield* waits(asked)
  return yield* answer(asked, preview.hash, { scope, offer })
})

export const run = Effect.fnUntraced(function* ({ call: name = "", for: scope, rule: offer = 1 }: Given) {
  const { caller, colour, columns, interactive, json, paths } = yield* Invocation
  const asked = yield* call(paths.socket, (client) => client.Asked({ name, caller }))
  const { hash, id, questions } = asked
  const preview = questions === undefined && scope !== "once" ? yield* previewOf(asked, scope, offer) : undefined
  yield* print(preview === undefined ? asked : { ...asked, preview }, () =>
    questions === undefined
      ? [
          ...ApprovalView.lines(asked, columns, colour),
          ...(preview === undefined ? ApprovalView.offers(asked) : ApprovalView.preview(preview, colour))
        ]
      : choices(questions).map((line) => `│ ${line}`)
  )
  if (questions !== undefined)
    return yield* undecided(
      `${plain(id)} is a question with options, not a call to approve.`,
      `Answer with an option's number, or a text: agentd answer ${plain(id)} 1`
    )
  if (json || !interactive)
    return yield* undecided(
      "Nothing was approved: this is not a terminal.",
      preview === undefined
        ? `To approve the call that was shown: ${ApprovalView.command(asked)}`
        : `To approve the call, and to keep the rule that was shown: ${ApprovalView.keeping(asked, preview, offer)}`
    )
  if (preview !== undefined && scope !== "once") return yield* keep(asked, scope, offer, preview)
  const chosen = yield* scopeOf(asked)
  if (chosen === "nothing") return yield* waits(asked)
  return chosen === "once" ? yield* answer(asked, hash) : yield* keep(asked, chosen, yield* offerOf(asked, chosen))
})
