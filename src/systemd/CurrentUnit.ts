/**
 * CurrentUnit: finds the systemd unit whose main process this is, and puts programs that must outlive the unit into a scope
 * of their own.
 *
 * Guarantees: a process that merely inherited a service's variables (a shell, a terminal) has no unit. A scope has no
 * main process: it lives until everything in it has ended, whatever happens to the daemon's unit or to the process that
 * started it. `systemctl stop` of the scope ends everything in it.
 */

export interface CurrentUnit {
  /** Full name of the unit: "agentd.service". */
  readonly unit: string
  readonly manager: "user" | "system"
}

export type Environment = { readonly [name: string]: string | undefined }

/** The service of a process, from its `/proc/PID/cgroup`; null if it is in none. */
export const unitIn = (cgroups: string): string | null => /\/([^/\n]+\.service)\s*$/m.exec(cgroups)?.[1] ?? null

/** The unit of this process; undefined if systemd did not start it. */
export const ownUnit = (environment: Environment, cgroups: string, pid: number): CurrentUnit | undefined => {
  const unit = unitIn(cgroups)
  const { INVOCATION_ID, NOTIFY_SOCKET, SYSTEMD_EXEC_PID } = environment
  const isMain = SYSTEMD_EXEC_PID === `${pid}` || (SYSTEMD_EXEC_PID === undefined && NOTIFY_SOCKET !== undefined)
  if (unit === null || INVOCATION_ID === undefined || !isMain) return undefined
  return { unit, manager: /\/user@\d+\.service\//.test(cgroups) ? "user" : "system" }
}

/**
 * Arguments to put before a program's own command line, and the variables that they need, to run the program in a
 * scope.
 */
export interface Around {
  readonly argv: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
}

/** Variables that the user's manager needs. The system's manager needs none. */
const OF_THE_MANAGER = ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"]

/**
 * `what`: the readable part of the scope's name; no other live scope may have that name. Its cgroup is delegated:
 * programs in it may create cgroups below. The daemon's limits do not apply to the scope. The program does not get the
 * manager's variables.
 */
export const scopeOf = ({ manager, unit }: CurrentUnit, environment: Environment, what: string): Around => ({
  argv: [
    "systemd-run",
    `--${manager}`,
    "--scope",
    "--quiet",
    "--collect",
    `--unit=${unit.slice(0, -".service".length)}-${what}`,
    `--description=agentd: ${what.replace(/-.*/, "")} of ${unit}; outlives it`,
    "--property=Delegate=yes",
    "--property=TasksMax=infinity",
    "--property=TimeoutStopSec=15",
    // when the machine shuts down, the daemon must end first: otherwise it would conclude that its runs ended by
    // themselves
    `--property=Before=${unit}`,
    "--",
    "env",
    ...OF_THE_MANAGER.map((name) => `--unset=${name}`)
  ],
  env: Object.fromEntries(
    OF_THE_MANAGER.flatMap((name) => {
      const value = environment[name]
      return value === undefined ? [] : [[name, value]]
    })
  )
})
