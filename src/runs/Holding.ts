/**
 * Holding: the machine's sandbox, as the daemon's git and the checks of goals ask for it: what
 * must execute in a folder that an agent has written is held there like a tool of that agent's.
 *
 * Guarantees: what is held sees the folder, the system's programs, and nothing of agentd's state;
 * where the machine has no sandbox, the answer is that there is none.
 */
import { Effect, Layer } from "effect"
import { GitUnavailable } from "./git/Git.ts"
import { Confine } from "./git/Store.ts"
import type { Environment } from "./process/ChildProcess.ts"
import { Sandbox } from "./sandbox/Sandbox.ts"

/** `hidden`: real paths, agentd's state among them. */
export const layer = (of: { readonly environment: Environment; readonly hidden: ReadonlyArray<string> }) =>
  Layer.effect(
    Confine,
    Effect.map(
      Sandbox,
      ({ mechanism }): Confine =>
        (workspace, { network = false, shared = [] } = {}) =>
          Effect.map(mechanism, (mechanism) =>
            mechanism.kind === "none"
              ? undefined
              : (argv, cwd = workspace) =>
                  Effect.mapError(
                    mechanism.wrap(
                      { ...of, workspace, network, shared: shared.map((source) => ({ source, target: source })) },
                      cwd,
                      argv
                    ),
                    ({ message, remedy }) => new GitUnavailable({ message, remedy })
                  )
          )
    )
  ).pipe(Layer.provide(Sandbox.layer(of.environment)))
