/**
 * UnitFile: the texts of the daemon's unit files, as `agentd service install` writes them.
 *
 * Guarantees: a value is what systemd reads back, whatever characters it has; no secret stands in a text; a unit of
 * the system runs as an unprivileged user. Agents can still work: homes and worktrees can be written, and namespaces
 * be made, which a sandbox needs.
 */
import { CONTROL, PAGE } from "./Activation.ts"
import * as DaemonNode from "./DaemonNode.ts"
import { serviceSettings, unitSettings } from "./Unit.ts"

export interface Credential {
  readonly name: string
  /** Absolute. */
  readonly file: string
}

export interface UnitFile {
  /** Without its ending. */
  readonly unit: string
  readonly manager: "user" | "system"
  /** Absolute: where the daemon answers. */
  readonly socket: string
  /** How this program is called: absolute program first, then what comes before the verb. */
  readonly command: ReadonlyArray<string>
  /** The service user; of the system's manager only. */
  readonly user?: string | undefined
  /** Where agents' programs are found. */
  readonly path: string
  /** Variables for daemon and agents, one a line; need not be there. */
  readonly environmentFile: string
  readonly credentials: ReadonlyArray<Credential>
  /** Where the page answers: loopback addresses with the port. None: systemd holds no port. */
  readonly page?: ReadonlyArray<string>
}

/** The first line of what is written by this, and by nobody else. */
export const MARK = "# Written by `agentd service install`, which overwrites it. Your own settings go into a drop-in:"

/** systemd.service(5), quoting: a percent sign begins a specifier, a dollar sign a variable. */
const quoted = (word: string, isCommand = false): string => {
  const text = word.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n").replaceAll("%", "%%")
  const plain = isCommand ? text.replaceAll("$", "$$$$") : text
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain}"`
}

const commandLine = (words: ReadonlyArray<string>): string => words.map((word) => quoted(word, true)).join(" ")

/** Bounds of the daemon itself, and of all that is in its unit with it: agents that the keeper holds are not. */
const LIMITS = {
  MemoryHigh: "60%",
  MemoryMax: "75%",
  TasksMax: "8192",
  CPUWeight: "80"
}

/** For any process, with and without privileges. */
const PLAIN_HARDENING = {
  NoNewPrivileges: "yes",
  LockPersonality: "yes",
  RestrictRealtime: "yes",
  RestrictSUIDSGID: "yes",
  RestrictNamespaces: "user mnt pid net ipc uts cgroup",
  // netlink: by it programs learn the machine's addresses
  RestrictAddressFamilies: "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
  SystemCallArchitectures: "native",
  SystemCallFilter: "~@clock @cpu-emulation @debug @module @obsolete @raw-io @reboot @swap",
  SystemCallErrorNumber: "EPERM",
  KeyringMode: "private",
  UMask: "0077"
}

/** Needs a namespace, or privileges. `ProtectHome` and a private `/tmp` are left out: that is where agents work. */
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
 * A unit of the user's closes off what needs no namespace. systemd makes the others of these in a user namespace, and
 * from within one the daemon sees neither who calls (a shell outside) nor what a daemon before it has begun (in that
 * one's namespace): nothing could be approved, and no run would outlive a restart.
 */
const hardening = ({ manager }: UnitFile): Settings => ({
  // a system call that is forbidden is refused: an agent's debugger says so, and is not killed
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

/** systemd listens in the daemon's place: a client's first word starts it, and no client is refused while it restarts. */
export const socketText = (of: UnitFile): string =>
  [
    ...mark({ ...of, unit: `${of.unit}.socket` }),
    "[Unit]",
    `Description=agentd: the socket of ${of.unit}.service, which whoever connects starts`,
    "",
    "[Socket]",
    `ListenStream=${of.socket.replaceAll("%", "%%")}`,
    `FileDescriptorName=${CONTROL}`,
    "SocketMode=0600",
    "DirectoryMode=0700",
    ...(of.user === undefined ? [] : [`SocketUser=${of.user}`]),
    // who connects while the daemon restarts waits
    "Backlog=4096",
    "",
    "[Install]",
    "WantedBy=sockets.target",
    ""
  ].join("\n")

/** The unit that holds the page's port. */
export const pageUnit = (unit: string): string => `${unit}-page`

/** No other program can take the page's port while the daemon restarts; it comes and goes with the control socket. */
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

/** The units of its sockets. */
export const socketUnits = ({ page = [], unit }: Pick<UnitFile, "page" | "unit">): ReadonlyArray<string> => [
  `${unit}.socket`,
  ...(page.length > 0 ? [`${pageUnit(unit)}.socket`] : [])
]

/** The unit that mails when systemd gives the daemon up. */
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
      // the service user may start no unit for the keeper, which is in this one then, and must be left alone
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
    `Description=agentd: mails that ${of.unit}.service has failed for good`,
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
