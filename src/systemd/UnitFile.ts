/**
 * UnitFile: generates the contents of the daemon's unit files, which `agentd service install` writes.
 *
 * Guarantees: systemd reads each value back unchanged, whatever characters it contains. The text contains no secret. A
 * system unit runs as an unprivileged user. Agents can still work: they can write to homes and worktrees, and create
 * the namespaces that a sandbox needs.
 */
import { CONTROL, PAGE } from "./Activation.ts"
import * as DaemonNode from "./DaemonNode.ts"
import { serviceSettings, unitSettings } from "./Unit.ts"

export interface Credential {
  readonly name: string
  /** Absolute path of the file that contains the credential. */
  readonly file: string
}

export interface UnitFile {
  /** Name of the unit without the suffix `.service`. */
  readonly unit: string
  readonly manager: "user" | "system"
  /** Absolute path of the control socket. */
  readonly socket: string
  /** Command line of this program: its absolute path, then all arguments before the verb. */
  readonly command: ReadonlyArray<string>
  /** User that the service runs as; only for a unit of the system's manager. */
  readonly user?: string | undefined
  /** PATH in which the agents' programs are searched for. */
  readonly path: string
  /** File with environment variables for the daemon and agents, one per line. The file need not exist. */
  readonly environmentFile: string
  readonly credentials: ReadonlyArray<Credential>
  /** Loopback addresses with the port of the web page. If empty, systemd listens on no port. */
  readonly page?: ReadonlyArray<string>
}

/** First line of the files that this module writes, by which they are recognized. */
export const MARK = "# Written by `agentd service install`, which overwrites it. Your own settings go into a drop-in:"

/**
 * Quotes a word by the rules of systemd.service(5), in which a percent sign starts a specifier, and a dollar sign a
 * variable.
 */
const quoted = (word: string, isCommand = false): string => {
  const text = word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n").replaceAll("%", "%%")
  const plain = isCommand ? text.replaceAll("$", "$$$$") : text
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain}"`
}

const commandLine = (words: ReadonlyArray<string>): string => words.map((word) => quoted(word, true)).join(" ")

/** Limits for the daemon and all processes in its unit. They do not apply to agents that the keeper runs. */
const LIMITS = {
  MemoryHigh: "60%",
  MemoryMax: "75%",
  TasksMax: "8192",
  CPUWeight: "80"
}

/** Hardening settings that work for any process, with or without privileges. */
const PLAIN_HARDENING = {
  NoNewPrivileges: "yes",
  LockPersonality: "yes",
  RestrictRealtime: "yes",
  RestrictSUIDSGID: "yes",
  RestrictNamespaces: "user mnt pid net ipc uts cgroup",
  // netlink: programs use it to find the machine's addresses
  RestrictAddressFamilies: "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
  SystemCallArchitectures: "native",
  SystemCallFilter: "~@clock @cpu-emulation @debug @module @obsolete @raw-io @reboot @swap",
  SystemCallErrorNumber: "EPERM",
  KeyringMode: "private",
  UMask: "0077"
}

/**
 * Hardening settings that need a namespace, or privileges. `ProtectHome` and `PrivateTmp` are left out, because agents
 * work in those folders.
 */
const MOUNT_HARDENING = {
  ProtectSystem: "full",
  ProtectKernelModules: "yes",
  ProtectKernelTunables: "yes",
  ProtectControlGroups: "yes",
  ProtectClock: "yes",
  ProtectHostname: "yes",
  PrivateDevices: "yes",
  DevicePolicy: "closed",
  CapabilityBoundingSet: "",
  AmbientCapabilities: ""
}

type Settings = { readonly [setting: string]: string }

/**
 * Hardening settings for the unit. A user unit gets only those without namespaces, because for the others systemd would
 * create a user namespace. In a user namespace, the daemon can see neither its callers outside (such as a shell) nor
 * processes that an earlier daemon started. Nothing could then be approved, and no run would survive a restart.
 */
const hardening = ({ manager }: UnitFile): Settings => ({
  // a forbidden system call fails and does not kill the process: an agent's debugger then reports the error
  ...PLAIN_HARDENING,
  ...(manager === "system" ? { ...MOUNT_HARDENING, ProtectKernelLogs: "yes", RemoveIPC: "yes" } : {})
})

const lines = (settings: Settings): ReadonlyArray<string> =>
  Object.entries(settings).map(([name, value]) => `${name}=${value}`)

const credentialsOf = ({ credentials }: UnitFile): ReadonlyArray<string> =>
  credentials.map(({ file, name }) => `LoadCredential=${name}:${file.replaceAll("%", "%%")}`)

const mark = ({ manager, unit }: UnitFile): ReadonlyArray<string> => [
  MARK,
  `# systemctl ${manager === "user" ? "--user " : ""}edit ${unit}`
]

const environment = ({ environmentFile, path }: UnitFile): ReadonlyArray<string> => [
  `Environment=${quoted(`PATH=${path}`)}`,
  `EnvironmentFile=-${environmentFile.replaceAll("%", "%%")}`
]

/**
 * Text of the socket unit with which systemd listens for the daemon. The first connection starts the daemon, and
 * connections are not refused while the daemon restarts.
 */
export const socketText = (of: UnitFile): string =>
  [
    ...mark({ ...of, unit: `${of.unit}.socket` }),
    "[Unit]",
    `Description=agentd: the socket of ${of.unit}.service, which the first connection starts`,
    "",
    "[Socket]",
    `ListenStream=${of.socket.replaceAll("%", "%%")}`,
    `FileDescriptorName=${CONTROL}`,
    "SocketMode=0600",
    "DirectoryMode=0700",
    ...(of.user === undefined ? [] : [`SocketUser=${of.user}`]),
    // maximum number of connections that wait while the daemon restarts
    "Backlog=4096",
    "",
    "[Install]",
    "WantedBy=sockets.target",
    ""
  ].join("\n")

export const pageUnit = (unit: string): string => `${unit}-page`

/**
 * Text of the socket unit with which systemd occupies the web page's port, so that no other program can take the port
 * while the daemon restarts. This unit starts and stops together with the control socket's unit.
 */
export const pageText = (of: UnitFile): string =>
  [
    ...mark({ ...of, unit: `${pageUnit(of.unit)}.socket` }),
    "[Unit]",
    `Description=agentd: the port of ${of.unit}.service's page`,
    `PartOf=${of.unit}.socket`,
    "",
    "[Socket]",
    ...(of.page ?? []).map((address) => `ListenStream=${address}`),
    `FileDescriptorName=${PAGE}`,
    `Service=${of.unit}.service`,
    "Backlog=4096",
    "",
    "[Install]",
    "WantedBy=sockets.target",
    ""
  ].join("\n")

export const socketUnits = ({ page = [], unit }: Pick<UnitFile, "page" | "unit">): ReadonlyArray<string> => [
  `${unit}.socket`,
  ...(page.length > 0 ? [`${pageUnit(unit)}.socket`] : [])
]

/** Name of the unit that sends a mail when systemd gives up on the daemon. */
export const failureUnit = (unit: string): string => `${unit}-failed`

export const serviceText = (of: UnitFile): string =>
  [
    ...mark(of),
    "[Unit]",
    "Description=agentd: supervises AI coding agents",
    "Documentation=man:systemd.service(5)",
    ...(of.manager === "system" ? ["After=network-online.target", "Wants=network-online.target"] : []),
    `OnFailure=${failureUnit(of.unit)}.service`,
    `Wants=${socketUnits(of).join(" ")}`,
    `After=${socketUnits(of).join(" ")}`,
    ...lines(unitSettings),
    "",
    "[Service]",
    `ExecStart=${commandLine(DaemonNode.commandOf([...of.command, "up"]))}`,
    `ExecReload=${commandLine([...of.command, "service", "reload"])}`,
    ...(of.user === undefined ? [] : [`User=${of.user}`, `StateDirectory=${of.unit}`, "StateDirectoryMode=0700"]),
    "WorkingDirectory=/",
    ...Object.entries(DaemonNode.variablesFor({})).map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}`),
    ...environment(of),
    ...credentialsOf(of),
    ...lines({
      ...serviceSettings,
      // the service user may not start a separate unit for the keeper, so the keeper runs in this unit, and must not be
      // killed with the daemon
      ...(of.manager === "system" ? { KillMode: "process" } : {})
    }),
    ...lines(LIMITS),
    ...lines(hardening(of)),
    "",
    "[Install]",
    `WantedBy=${of.manager === "user" ? "default" : "multi-user"}.target`,
    ""
  ].join("\n")

export const failureText = (of: UnitFile): string =>
  [
    ...mark({ ...of, unit: failureUnit(of.unit) }),
    "[Unit]",
    `Description=agentd: mails that ${of.unit}.service has failed permanently`,
    "",
    "[Service]",
    "Type=oneshot",
    `ExecStart=${commandLine([...of.command, "service", "mail", "--once", of.unit])}`,
    ...(of.user === undefined ? [] : [`User=${of.user}`]),
    ...environment(of),
    ...credentialsOf(of),
    "TimeoutStartSec=120",
    ...lines(hardening(of)),
    ""
  ].join("\n")
