/** `agentd send AGENT TEXT --file PATH`: a message with files, which are read before anything is sent. */
import { Effect } from "effect"
import { call } from "../rpc/ControlClient.ts"
import * as FilesToSend from "./FilesToSend.ts"
import { VerbFailed } from "./Failure.ts"
import { Invocation, printLines } from "./Invocation.ts"
import type { Input } from "./DeclaredVerb.ts"
import { json as jsonOf } from "./TerminalDoor.ts"
import { howOf, send, wrong } from "./Send.ts"
import { textOf } from "./StandardInput.ts"

export const run = Effect.fnUntraced(function* (input: Input<typeof send.args>) {
  const { caller, json, paths } = yield* Invocation
  const refusal = wrong(input)
  if (refusal !== undefined) return yield* new VerbFailed(refusal)
  const read = yield* FilesToSend.read(input.file)
  const text = yield* textOf(input.text)
  const done = yield* call(paths.socket, (client) =>
    Effect.flatMap(FilesToSend.give(client, read, caller), (files) =>
      client.Send({ name: input.agent, text, how: howOf(input), files, caller })
    )
  )
  return yield* printLines([json ? jsonOf(done) : done.message])
})
