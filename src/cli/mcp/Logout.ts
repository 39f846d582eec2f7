/** `agentd logout SERVER`: deletes the stored login of a remote MCP server of this project. */
import { Effect } from "effect"
import { join } from "node:path"
import * as McpTokens from "../../model-agent/McpTokens.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { serverOf } from "./Login.ts"
import { plain } from "../render/Output.ts"

export const run = Effect.fnUntraced(function* ({ server: name }: { readonly server: string }) {
  const { url } = yield* serverOf(name)
  const { paths } = yield* Invocation
  const forgotten = yield* McpTokens.remove(join(paths.state, "logins"), url)
  yield* print({ server: name, url, forgotten }, () => [
    plain(forgotten ? `The login for ${name} (${url}) was deleted.` : `There was no login for ${name} (${url}).`)
  ])
})
