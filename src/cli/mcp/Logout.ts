/** `agentd logout SERVER`: deletes the stored login of a remote MCP server of this project. */
import { Effect } from "effect"
import * as RemoteLogin from "../../runs/gateway/RemoteLogin.ts"
import { print } from "../parse/Invocation.ts"
import { serverOf, stored } from "./Login.ts"
import { plain } from "../render/Output.ts"

export const run = Effect.fnUntraced(function* ({ server: name }: { readonly server: string }) {
  const { url } = yield* serverOf(name)
  const forgotten = yield* stored((folder) => RemoteLogin.remove(folder, url))
  yield* print({ server: name, url, forgotten }, () => [
    plain(forgotten ? `The login for ${name} (${url}) was deleted.` : `There was no login for ${name} (${url}).`)
  ])
})
