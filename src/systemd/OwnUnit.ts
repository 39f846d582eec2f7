/**
 * OwnUnit: the unit of systemd that this process is the main process of, and how what must outlive that unit is put
 * into a scope of its own.
 *
 * Guarantees: a process that merely inherited the variables of a service (a shell, a terminal) is of no unit. A scope
 * has no main process: it lives until all that is in it has ended, whatever becomes of the daemon's unit or of the
 * process that began it; `systemctl stop` of the scope ends it all.
 */

export interface OwnUnit {
  /** With its ending: "agentd.service". */
  readonly unit: string
  readonly manager: "user" | "system"
}

export type Environment = { readonly [name: string]: string | undefined }

/** The service that a process is in, by its `/proc/PID/cgroup`; null where it is in none. */
export const unitIn = (cgroups: string): string | null => /\/([^/\n]+\.service)\s*$/m.exec(cgroups)?.[1] ?? null

/** Undefined: systemd did not start this process. */
export const ownUnit = (environment: Environment, cgroups: string, pid: number): OwnUnit | undefined => {
  const unit = unitIn(cgroups)
  const { INVOCATION_ID, NOTIFY_SOCKET, SYSTEMD_EXEC_PID } = environment
  const isMain = SYSTEMD_EXEC_PID === `${pid}` || (SYSTEMD_EXEC_PID === undefined && NOTIFY_SOCKET !== undefined)
  if (unit === null || INVOCATION_ID === undefined || !isMain) return undefined
  return { unit, manager: /\/user@\d+\.service\//.test(cgroups) ? "user" : "system" }
}

/** Puts a program into a scope: the words before its own, and the variables that they need. */
export interface Around {
  readonly argv: ReadonlyArray<string>
  readonly env: { readonly [name: string]: string }
}

/** Of the user's manager; the system's needs none. */
const OF_THE_MANAGER = ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"]

/**
 * `what`: names it for a person, and no other scope that lives may have its name. Its cgroup is delegated: what is
 * in it may make cgroups below. No limit of the daemon's is one of what its agents start, and the program is not
 * given the manager's variables.
 */
export const scopeOf = ({ manager, unit }: OwnUnit, environment: Environment, what: string): Around => ({
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
    // a machine that goes down ends the daemon first: it would take the end of the runs for their own
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
