/** McpGateway: a run's route in a gateway within the test's process, and the model agent's client for its remote servers. */
import { Effect } from "effect"
import { join } from "node:path"
import * as GatewayLink from "../../src/model-agent/GatewayLink.ts"
import { ModelHttp } from "../../src/model-agent/ModelHttp.ts"
import * as Gateway from "../../src/runs/gateway/Gateway.ts"
import { RemoteLogins } from "../../src/runs/gateway/RemoteLogin.ts"
import { pathOf, type RemoteServers } from "../../src/runs/gateway/Remotes.ts"

/** Opens the route; it is closed with the scope. `told`: the tokens that the gateway has told the daemon. */
export const open = Effect.fnUntraced(function* (folder: string, remotes: RemoteServers) {
  const socket = join(folder, "model.sock")
  const told: Array<string> = []
  const logins = new RemoteLogins((secrets) => void told.push(...secrets))
  const route = { socket, baseUrl: "http://127.0.0.1:9", key: { "x-api-key": "the-key" }, remotes }
  const { count } = yield* Effect.acquireRelease(
    Effect.promise(() => Gateway.open(route, undefined, logins)),
    ({ close }) => Effect.sync(close)
  )
  const urlOf = (name: string) => `http://127.0.0.1${pathOf(name)}`
  return { socket, told, count, urlOf }
})

/** Provides the client of a model agent, which reaches every address by the socket. */
export const through = (socket: string) => {
  const client = GatewayLink.open(socket)
  return <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(client, (http) => Effect.provideService(effect, ModelHttp, http))
}
