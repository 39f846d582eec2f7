/**
 * Backends: from what a config says to the backend that does it. One row per type.
 */
import { Context, Effect, type FileSystem, Layer } from "effect"
import type { BackendConfig } from "../domain/Config.ts"
import type { Backend } from "./Backend.ts"
import * as CommandBackend from "./CommandBackend.ts"
import type { ProcessTree } from "./ProcessTree.ts"
import type { Reaper } from "./Reaper.ts"

export class Backends extends Context.Service<
  Backends,
  { readonly make: (config: BackendConfig) => Effect.Effect<Backend> }
>()("agentd/backends/Backends") {
  static readonly layer = (
    host: CommandBackend.Host
  ): Layer.Layer<Backends, never, ProcessTree | Reaper | FileSystem.FileSystem> =>
    Layer.effect(
      Backends,
      Effect.gen(function* () {
        const context = yield* Effect.context<ProcessTree | Reaper | FileSystem.FileSystem>()
        return {
          make: (config: BackendConfig) => {
            switch (config.type) {
              case "command":
                return CommandBackend.make(config, host).pipe(Effect.provideContext(context))
            }
          }
        }
      })
    )
}
