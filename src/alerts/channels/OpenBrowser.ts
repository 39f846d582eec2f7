/**
 * OpenBrowser: opens agentd's page in the browser of the user's session, as `agentd open` does.
 *
 * Guarantees: the program gets only the environment variables that identify a session; a failure is logged.
 */
import { Effect } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

export interface Options {
  readonly command: readonly [string, ...ReadonlyArray<string>]
  readonly state: string
  readonly environment: { readonly [name: string]: string | undefined }
}

const OF_SESSION =
  /^(PATH|HOME|USER|LANG|BROWSER|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DBUS_SESSION_BUS_ADDRESS|(LC|XDG|DESKTOP)_\w+)$/u

const WITHIN = "1 minute"

export const make = ({ command, environment, state }: Options) =>
  Effect.map(ChildProcessSpawner.ChildProcessSpawner, (spawner) => {
    const [program, ...args] = command
    const env = Object.fromEntries(
      Object.entries(environment).filter(([name, value]) => OF_SESSION.test(name) && value !== undefined)
    )
    return spawner
      .exitCode(
        ChildProcess.make(program, [...args, "--state", state, "open"], {
          env,
          extendEnv: false,
          stdin: "ignore",
          stdout: "ignore",
          stderr: "ignore",
          forceKillAfter: "2 seconds"
        })
      )
      .pipe(
        Effect.timeout(WITHIN),
        Effect.catch((error) => Effect.logWarning(`the page could not be opened: ${error.message}`)),
        Effect.asVoid
      )
  })
