/**
 * ToolSandbox: provides the machine's sandbox to the daemon's git and to the checks of goals. If a program runs in a
 * folder that an agent has written, it is confined like a tool of that agent.
 *
 * Guarantees: A confined program sees the folder, the system's programs, and nothing of agentd's state. If the machine
 * has no sandbox, the result is undefined.
 */
import { Effect, Layer } from "effect"
import { GitUnavailable } from "./git/Git.ts"
import { Confine } from "./git/GitStore.ts"
import type { Environment } from "./process/ChildProcess.ts"
import { Sandbox } from "./sandbox/Sandbox.ts"

/** Provides the sandbox. `hidden`: real paths that confined programs cannot see, including agentd's state. */
export const layer = (of: { readonly environment: Environment; readonly hidden: ReadonlyArray<string> }) =>
  Layer.effect(
    Confine,
    Effect.map(
      Sandbox,
      ({ mechanism }): Confine =>
        (workspace, { mounts = [], network = false, shared = [], ...more } = {}) =>
          Effect.map(mechanism, (mechanism) =>
            mechanism.kind === "none"
              ? undefined
              : (argv, cwd = workspace) =>
                  Effect.mapError(
                    mechanism.wrap(
                      {
                        ...of,
                        ...more,
                        workspace,
                        network,
                        shared: [...shared.map((source) => ({ source, target: source })), ...mounts]
                      },
                      cwd,
                      argv
                    ),
                    ({ message, remedy }) => new GitUnavailable({ message, remedy })
                  )
          )
    )
  ).pipe(Layer.provide(Sandbox.layer(of.environment)))
