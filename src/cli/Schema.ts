/** `agentd schema`: the JSON Schema of agentd.jsonc, for editors. */
import { Console, Effect } from "effect"
import { jsonSchema } from "../config/ConfigFile.ts"
import { Invocation } from "./Invocation.ts"

export const run = Effect.fnUntraced(function* (input: { readonly user: boolean }) {
  const { json } = yield* Invocation
  yield* Console.log(JSON.stringify(jsonSchema(input.user ? "user" : "project"), null, json ? undefined : 2))
})
