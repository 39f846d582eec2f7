/**
 * `agentd send AGENT TEXT --file PATH`: sends a message with attached files. All files are read before anything is
 * sent.
 */
import { Effect } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import * as FilesToSend from "./FilesToSend.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Invocation, printLines } from "../parse/Invocation.ts"
import { type Input, isOne, said } from "../parse/DeclaredVerb.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"
import { howOf, send as sent, wrong } from "./Send.ts"
import { agreed, each } from "../parse/BatchVerb.ts"
import { textOf } from "../parse/StandardInput.ts"

export const run = Effect.fnUntraced(function* (input: Input<typeof sent.args>) {
  const { caller, json, paths } = yield* Invocation
  const refusal = wrong(input)
  if (refusal !== undefined) return yield* new VerbFailed(refusal)
  const several = isOne(input) ? undefined : (yield* agreed(sent.several!, input)).map(({ called }) => called)
  const read = yield* FilesToSend.read(input.file)
  const text = yield* textOf(input.text, "send AGENT")
  const files = yield* call(paths.socket, (client) => FilesToSend.give(client, read, caller))
  const send = (name: string) =>
    call(paths.socket, (client) => client.Send({ name, text, how: howOf(input), files, caller }))
  if (several !== undefined) return yield* each(several, send, said)
  const done = yield* send(input.name)
  return yield* printLines([json ? jsonOf(done) : done.message])
})
