/** `agentd send AGENT TEXT --file PATH`: a message with files, which are read before anything is sent. */
import { Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import * as FilesToSend from "./FilesToSend.ts"
import { VerbFailed } from "./Failure.ts"
import { Invocation, printLines } from "./Invocation.ts"
import { type Input, isOne, said } from "./DeclaredVerb.ts"
import { json as jsonOf } from "./TerminalDoor.ts"
import { howOf, send as sent, wrong } from "./Send.ts"
import { agreed, each } from "./Several.ts"
import { textOf } from "./StandardInput.ts"

export const run = Effect.fnUntraced(function* (input: Input<typeof sent.args>) {
  const { caller, json, paths } = yield* Invocation
  const refusal = wrong(input)
  if (refusal !== undefined) return yield* new VerbFailed(refusal)
  const several = isOne(input) ? undefined : (yield* agreed(sent.several!, input)).map(({ called }) => called)
  const read = yield* FilesToSend.read(input.file)
  const text = yield* textOf(input.text)
  const files = yield* call(paths.socket, (client) => FilesToSend.give(client, read, caller))
  const send = (name: string) =>
    call(paths.socket, (client) => client.Send({ name, text, how: howOf(input), files, caller }))
  if (several !== undefined) return yield* each(several, send, said)
  const done = yield* send(input.name)
  return yield* printLines([json ? jsonOf(done) : done.message])
})
