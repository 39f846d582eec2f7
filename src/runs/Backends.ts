/** Backends: creates the backend that a backend configuration describes. */
import { Context, Effect, type FileSystem, Layer } from "effect"
import type { BackendConfig } from "../config/BackendConfig.ts"
import { Gateway } from "./gateway/GatewayClient.ts"
import * as AcpBackend from "./acp/AcpBackend.ts"
import { SessionCosts } from "./acp/AcpUsage.ts"
import type { Backend } from "./Backend.ts"
import * as RetiredBackend from "./RetiredBackend.ts"
import * as ClaudeBackend from "./claude/ClaudeBackend.ts"
import * as CodexBackend from "./codex/CodexBackend.ts"
import * as CommandBackend from "./command/CommandBackend.ts"
import type { Host } from "./Host.ts"
import { LearnedSecrets } from "./LearnedSecrets.ts"
import * as ModelBackend from "./model/ModelBackend.ts"
import type { ProcessTree } from "./process/ProcessTree.ts"
import type { Reaper } from "./process/Reaper.ts"
import { giving, RunSockets } from "./RunSockets.ts"
import { Sandbox } from "./sandbox/Sandbox.ts"
import { services } from "./CapturedServices.ts"

export class Backends extends Context.Service<
  Backends,
  { readonly make: (config: BackendConfig) => Effect.Effect<Backend> }
>()("agentd/backends/Backends") {
  static readonly layer = (
    host: Host
  ): Layer.Layer<Backends, never, ProcessTree | Reaper | RunSockets | FileSystem.FileSystem> =>
    Layer.effect(
      Backends,
      Effect.gen(function* () {
        const context = yield* services<ProcessTree | Reaper | FileSystem.FileSystem | Sandbox | Gateway>()
        const sockets = yield* RunSockets
        const costs = new SessionCosts()
        const backendOf = (config: BackendConfig) => {
          switch (config.type) {
            case "command":
              return CommandBackend.make(config, host)
            case "acp":
              return AcpBackend.make(config, host, costs)
            case "exec":
              return RetiredBackend.make(config, host)
            case "claude":
              return ClaudeBackend.make(config, host)
            case "codex":
              return CodexBackend.make(config, host)
            case "model":
              return ModelBackend.make(config, host, costs)
          }
        }
        return {
          make: (config: BackendConfig) =>
            Effect.map(Effect.provideContext(backendOf(config), context), (backend) => giving(sockets, backend))
        }
      })
    ).pipe(
      Layer.provide(
        Layer.mergeAll(
          Sandbox.layer(host.environment),
          Layer.unwrap(
            Effect.map(LearnedSecrets, (learn) =>
              Gateway.layer({
                folder: host.gateway ?? "",
                via: host.via,
                path: host.environment["PATH"],
                certificates: host.environment["NODE_EXTRA_CA_CERTS"],
                learn
              })
            )
          )
        )
      )
    )
}
