/**
 * `agentd schema`: prints the JSON Schema of agentd.jsonc or of a plan, for editors; or the HTTP interface as OpenAPI.
 */
import { Console, Effect } from "effect"
import { jsonSchema } from "../../config/ConfigFile.ts"
import { Invocation } from "../parse/Invocation.ts"

const planSchema = Effect.promise(async () => (await import("../../goals/PlanFile.ts")).jsonSchema())

const openApi = Effect.promise(async () => {
  const [{ describe }, { forms }, { ourselves }] = await Promise.all([
    import("../../api/http/OpenApi.ts"),
    import("../../api/rpc/VerbForms.ts"),
    import("../../api/rpc/Version.ts")
  ])
  return describe(forms, ourselves)
})

export const run = Effect.fnUntraced(function* (input: {
  readonly of: "goal" | undefined
  readonly user: boolean
  readonly openapi: boolean
}) {
  const { json } = yield* Invocation
  const document =
    input.of === "goal"
      ? yield* planSchema
      : input.openapi
        ? yield* openApi
        : jsonSchema(input.user ? "user" : "project")
  yield* Console.log(JSON.stringify(document, null, json ? undefined : 2))
})
