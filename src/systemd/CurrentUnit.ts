/**
 * CurrentUnit: finds the systemd unit whose main process this is, and runs programs that must outlive that unit in a
 * separate systemd scope.
 *
 * Guarantees: a process that merely inherited a service's variables (a shell, a terminal) has no unit. A scope has no
 * main process: it lives until all its processes have ended, whatever happens to the daemon's unit or to the process
 * that started the scope. `systemctl stop` ends all processes in the scope.
 */

export interface CurrentUnit {
  /** Full name of the unit, such as "agentd.service". */
  readonly unit: string
  readonly manager: "user" | "system"
}

export type Environment = { readonly [name: string]: string | undefined }

/** The service that a process belongs to, from its `/proc/PID/cgroup`; null if it belongs to none. */
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
 * Arguments to put before a program's command line so that it runs in a scope, and the environment variables that these
 * arguments need.
 */
export interface Around {
  readonly argv: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
}

/** Variables needed to reach the user's systemd manager. The system's manager needs none. */
const OF_THE_MANAGER = ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"]

/**
 * How to run a program in a scope. `what`: the readable part of the scope's name, which no other live scope may use.
 * The scope's cgroup is delegated: its programs may create cgroups below it. The daemon's limits do not apply to the
 * scope. The program does not get the variables of the systemd manager.
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
    // when the machine shuts down, the daemon must end before its runs: otherwise it would conclude that the runs ended
    // by themselves
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
