/**
 * `agentd service install|uninstall|status|reload|mail`: manages the daemon as a systemd service of the user, or as a
 * service of the system with a separate user.
 *
 * Guarantees: a unit file that agentd did not write is overwritten only after a confirmation or with --yes. After
 * install, systemd has reloaded and accepted the unit files. `status` changes nothing.
 */
import { Clock, Effect, FileSystem, Option } from "effect"
import { networkInterfaces } from "node:os"
import * as Account from "../../config/Account.ts"
import * as NodePath from "node:path"
import { Mailer } from "../../alerts/Mailer.ts"
import * as Mail from "../../alerts/Mail.ts"
import { portOf } from "../../config/Config.ts"
import * as UserFile from "../../config/UserFile.ts"
import { Redact } from "../../core/event-log/Redact.ts"
import * as StoreCopy from "../../core/event-log/StoreCopy.ts"
import { secretsIn } from "../../core/event-log/SecretValues.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import { probe } from "../../api/rpc/Endpoint.ts"
import * as Unit from "../../systemd/Unit.ts"
import * as UnitFile from "../../systemd/UnitFile.ts"
import { confirm } from "../parse/Confirm.ts"
import * as DaemonLife from "../daemon/DaemonLife.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Entry, Invocation, print } from "../parse/Invocation.ts"
import { plain } from "../render/Output.ts"

export interface Input {
  readonly action: "install" | "uninstall" | "status"
  readonly system: boolean
  /** User that a system service runs as. */
  readonly as: string
  /** Credentials for the unit, in the form NAME=FILE. */
  readonly credential: ReadonlyArray<string>
  readonly linger: boolean
  readonly yes: boolean
}

const SYSTEM_FOLDER = "/etc/systemd/system"

const failed = (message: string, remedy: string) => new VerbFailed({ message, remedy, exitCode: ExitCode.failed })

const place = Effect.fnUntraced(function* (system: boolean) {
  const { paths } = yield* Invocation
  const { env } = yield* Entry
  const manager: "user" | "system" = system ? "system" : "user"
  const config = env["XDG_CONFIG_HOME"] ?? NodePath.join(Account.home(), ".config")
  const unit = system ? "agentd" : Unit.unitName(paths.state, paths.defaultState)
  const folder = system ? SYSTEM_FOLDER : NodePath.join(config, "systemd", "user")
  return {
    manager,
    unit,
    folder,
    file: NodePath.join(folder, `${unit}.service`),
    failure: NodePath.join(folder, `${UnitFile.failureUnit(unit)}.service`),
    socketFile: NodePath.join(folder, `${unit}.socket`),
    pageFile: NodePath.join(folder, `${UnitFile.pageUnit(unit)}.socket`),
    socket: system ? NodePath.join(Unit.SYSTEM_STATE, "control.sock") : paths.socket,
    words: manager === "user" ? "systemctl --user" : "systemctl"
  }
})

const textOf = (file: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => Effect.orElseSucceed(fs.readFileString(file), () => undefined))

/** True if the unit for this user and state directory exists and was written by agentd. */
export const isInstalled = Effect.fnUntraced(function* (system: boolean) {
  const { file } = yield* place(system)
  return (yield* textOf(file))?.startsWith(UnitFile.MARK) === true
})

const credentialOf = (text: string): UnitFile.Credential | undefined => {
  const at = text.indexOf("=")
  const [name, file] = [text.slice(0, at), text.slice(at + 1)]
  return at > 0 && /^[A-Za-z0-9_][A-Za-z0-9._-]*$/.test(name) && NodePath.isAbsolute(file) ? { name, file } : undefined
}

const credentialsOf = Effect.fnUntraced(function* (given: ReadonlyArray<string>) {
  const wrong = given.find((text) => credentialOf(text) === undefined)
  if (wrong === undefined) return given.flatMap((text) => credentialOf(text) ?? [])
  return yield* new VerbFailed({
    message: `${plain(wrong)} is not a valid credential.`,
    remedy: "Use NAME=FILE with an absolute path: --credential smtp=/home/ada/.config/agentd/smtp-password",
    exitCode: ExitCode.usage
  })
})

/** Runs a tool. If the tool fails, the error contains its output. */
const ordered = Effect.fnUntraced(function* (words: ReadonlyArray<string>, remedy: string) {
  const { code, stderr } = yield* Unit.tool(words)
  if (code !== 0) return yield* failed(`${words.join(" ")} failed: ${plain(stderr) || `exit code ${code}`}`, remedy)
})

/**
 * Fails if the systemd manager cannot be used because it is not running, or because the system's manager requires root.
 */
const checkManager = Effect.fnUntraced(function* (manager: "user" | "system") {
  if (manager === "system" && process.getuid?.() !== 0) {
    return yield* failed(
      "Only root can install a unit of the system.",
      "Install it as root: sudo agentd service install --system. Or install a service of your user: agentd service install"
    )
  }
  if (yield* Unit.hasManager(manager)) return
  return yield* failed(
    manager === "user" ? "There is no systemd user session on this machine." : "systemd does not run here.",
    "Start the daemon in the background without systemd: agentd start"
  )
})

const wordsOf = Effect.fnUntraced(function* (system: boolean) {
  const { paths } = yield* Invocation
  const { command } = yield* Entry
  if (system) return [...command, "--state", Unit.SYSTEM_STATE]
  return paths.state === paths.defaultState ? command : [...command, "--state", paths.state]
})

const addUser = Effect.fnUntraced(function* (name: string) {
  const { code } = yield* Unit.tool(["id", "-u", name])
  if (code === 0) return false
  yield* ordered(
    ["useradd", "--system", "--user-group", "--home-dir", Unit.SYSTEM_STATE, "--shell", "/usr/sbin/nologin", name],
    `Add the user ${name} by your system's own tools, then try again.`
  )
  return true
})

const write = Effect.fnUntraced(function* (file: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  yield* Effect.mapError(
    Effect.andThen(
      fs.makeDirectory(NodePath.dirname(file), { recursive: true }),
      Effect.andThen(fs.writeFileString(`${file}.new`, text, { mode: 0o644 }), fs.rename(`${file}.new`, file))
    ),
    ({ message }) => failed(`${file} could not be written: ${message}`, "Check that you own the file's folder.")
  )
})

/** Asks the user before a file is overwritten that agentd did not write. */
const checkOwn = Effect.fnUntraced(function* (file: string, yes: boolean) {
  const before = yield* textOf(file)
  if (before === undefined || before.startsWith(UnitFile.MARK)) return
  yield* confirm(yes, `${file} already exists, and agentd did not write it.`, "Overwrite the file?")
})

const lingerCommand = (user: string): string => `loginctl enable-linger ${user}`

/** Loopback addresses with the web page's port, on which systemd is to listen. Empty if the config enables no port. */
const pageOf = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const { http } = yield* UserFile.inForce(paths)
  const port = portOf(http, process.getuid?.() ?? 0)
  const loopback = networkInterfaces()["lo"] ?? []
  const hosts = ["127.0.0.1", ...(loopback.some(({ family }) => family === "IPv6") ? ["[::1]"] : [])]
  return port === undefined ? [] : hosts.map((host) => `${host}:${port}`)
})

/** Socket units of an earlier installation that are no longer needed. The control socket's unit is never among them. */
const stale = Effect.fnUntraced(function* (at: { readonly pageFile: string; readonly unit: string }) {
  return (yield* textOf(at.pageFile)) === undefined ? [] : [`${UnitFile.pageUnit(at.unit)}.socket`]
})

/** Writes the unit files, and makes systemd read and enable them. */
const enable = Effect.fnUntraced(function* (
  of: UnitFile.UnitFile,
  at: Effect.Success<ReturnType<typeof place>>,
  ctl: ReadonlyArray<string>,
  remedy: string
) {
  const fs = yield* FileSystem.FileSystem
  const sockets = UnitFile.socketUnits(of)
  const left = (yield* stale(at)).filter((unit) => !sockets.includes(unit))
  if (left.length > 0) {
    yield* ordered([...ctl, "--quiet", "disable", "--now", ...left], remedy)
    yield* Effect.ignore(fs.remove(at.pageFile))
  }
  yield* write(at.file, UnitFile.serviceText(of))
  yield* write(at.socketFile, UnitFile.socketText(of))
  if (sockets.length > 1) yield* write(at.pageFile, UnitFile.pageText(of))
  yield* write(at.failure, UnitFile.failureText(of))
  yield* ordered([...ctl, "daemon-reload"], remedy)
  yield* ordered([...ctl, "--quiet", "enable", of.unit, ...sockets], remedy)
})

const install = Effect.fnUntraced(function* (input: Input) {
  const { paths } = yield* Invocation
  const { env } = yield* Entry
  const at = yield* place(input.system)
  const credentials = yield* credentialsOf(input.credential)
  yield* checkManager(at.manager)
  yield* checkOwn(at.file, input.yes)
  if (input.system && input.as === "agentd") {
    return yield* new VerbFailed({
      message: "The user of the service must not be named agentd, because agentd uses this name for itself.",
      remedy: "Choose another name: agentd service install --system --as agents",
      exitCode: ExitCode.usage
    })
  }
  if (!input.system) yield* DaemonLife.checkStart
  const added = input.system && (yield* addUser(input.as))
  const of: UnitFile.UnitFile = {
    unit: at.unit,
    manager: at.manager,
    socket: at.socket,
    command: yield* wordsOf(input.system),
    user: input.system ? input.as : undefined,
    path: input.system ? "/usr/local/bin:/usr/bin:/bin" : (env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"),
    environmentFile: input.system
      ? "/etc/agentd/environment"
      : NodePath.join(NodePath.dirname(paths.userConfig), "environment"),
    credentials,
    page: input.system ? [] : yield* pageOf
  }
  const ctl = at.words.split(" ")
  const remedy = `See why: systemd-analyze ${input.system ? "" : "--user "}verify ${at.file}`
  yield* enable(of, at, ctl, remedy)
  const before = Option.getOrUndefined(yield* Unit.status(at.unit, at.manager))
  const isOurs = before?.pid !== undefined
  const isListening = yield* Unit.listens(at.unit, at.manager)
  const isUp = isOurs || (!isListening && (yield* probe(at.socket)) === "live")
  if (!isUp)
    yield* ordered([...ctl, "start", at.unit], `See why: journalctl ${input.system ? "" : "--user "}-u ${at.unit}`)
  const user = Account.userName()
  const hadLinger = input.system || (yield* Unit.lingers(user))
  if (!hadLinger && input.linger)
    yield* ordered(["loginctl", "enable-linger", user], `Ask root: ${lingerCommand(user)}`)
  const lingers = hadLinger || input.linger
  yield* print(
    { unit: at.unit, manager: at.manager, file: at.file, started: !isUp, user: of.user ?? null, lingers },
    () => [
      `${at.file} was written and enabled${isUp ? "" : `, and ${at.unit} is running`}.`,
      ...(added ? [`The user ${input.as} was added.`] : []),
      ...(isOurs
        ? [
            `${at.unit} is already running. The new unit file applies after: ${input.system ? `systemctl restart ${at.unit}` : "agentd restart"}`
          ]
        : []),
      ...(isUp && !isOurs
        ? ["A daemon is running outside of this service. To let the service run it: agentd restart"]
        : []),
      ...(lingers
        ? []
        : [
            `The service ends with your last logout, and does not start at boot. To change this: ${lingerCommand(user)}`
          ])
    ]
  )
})

const uninstall = Effect.fnUntraced(function* ({ system, yes }: Input) {
  const fs = yield* FileSystem.FileSystem
  const at = yield* place(system)
  if ((yield* textOf(at.file)) === undefined) {
    return yield* print({ unit: at.unit, manager: at.manager, removed: false }, () => [
      `${at.file} does not exist, so nothing was done.`
    ])
  }
  yield* checkManager(at.manager)
  const before = yield* Unit.status(at.unit, at.manager)
  const runs = Option.isSome(before) && before.value.pid !== undefined
  yield* confirm(
    yes,
    runs ? `${at.unit} is running, and will be stopped.` : `${at.file} will be removed.`,
    "Remove the service?"
  )
  const ctl = at.words.split(" ")
  const units = [...(yield* stale(at)), `${at.unit}.socket`, at.unit]
  const known = (yield* textOf(at.socketFile)) === undefined ? [at.unit] : units
  yield* ordered([...ctl, "--quiet", "disable", "--now", ...known], `See why: ${at.words} status ${at.unit}`)
  for (const file of [at.file, at.failure, at.socketFile, at.pageFile]) yield* Effect.ignore(fs.remove(file))
  yield* ordered([...ctl, "daemon-reload"], `See why: ${at.words} status`)
  yield* print({ unit: at.unit, manager: at.manager, removed: true }, () => [
    `${at.file} was removed. The daemon's data stays in its state directory. To start the daemon without systemd: agentd start`
  ])
})

const status = Effect.fnUntraced(function* ({ system }: Input) {
  const at = yield* place(system)
  const isThere = (yield* textOf(at.file)) !== undefined
  const known = Option.getOrUndefined(yield* Unit.status(at.unit, at.manager))
  const enabled = (yield* Unit.answer([...at.words.split(" "), "is-enabled", at.unit])) === "enabled"
  const said = yield* Unit.answer([...at.words.split(" "), "show", at.unit, "--property=StatusText", "--value"])
  const lingers = system ? null : yield* Unit.lingers(Account.userName())
  const listens = yield* Unit.listens(at.unit, at.manager)
  const facts = {
    unit: at.unit,
    manager: at.manager,
    file: at.file,
    installed: isThere,
    enabled,
    state: known?.state ?? "absent",
    pid: known?.pid ?? null,
    restarts: known?.restarts ?? 0,
    result: known?.result ?? null,
    status: said === "" ? null : said,
    listens,
    lingers
  }
  yield* print(facts, () => [
    `${at.unit}: ${isThere ? `installed (${at.file})` : "not installed"}, ${enabled ? "enabled" : "not enabled"}, ${facts.state}${facts.pid === null ? "" : ` (pid ${facts.pid})`}`,
    ...(facts.status === null ? [] : [plain(facts.status)]),
    ...(isThere && !listens
      ? ["systemd does not listen on its socket, so a connection does not start the daemon"]
      : []),
    ...(known !== undefined && known.restarts > 0
      ? [`systemd has restarted it ${known.restarts} times; last result: ${known.result}`]
      : []),
    ...(lingers === false
      ? [`The service ends with your last logout. To change this: ${lingerCommand(Account.userName())}`]
      : []),
    ...(isThere ? [] : [`To install it: agentd service install${system ? " --system" : ""}`])
  ])
})

export const run = (input: Input) => ({ install, uninstall, status })[input.action](input)

/**
 * For ExecReload= in the unit: lets the daemon read the configs of all projects again. A change that waits for approval
 * keeps waiting.
 */
export const reload = {
  run: Effect.fnUntraced(function* () {
    const { caller, paths } = yield* Invocation
    const projects = yield* call(paths.socket, (client) => client.Projects())
    const read = yield* Effect.forEach(projects, ({ config, name }) =>
      call(paths.socket, (client) => client.Register({ config, caller: { ...caller, config } })).pipe(
        Effect.as({ name, config, problem: null }),
        Effect.catch((error) => Effect.succeed({ name, config, problem: error.message }))
      )
    )
    yield* print(read, () =>
      read.map(
        ({ config, name, problem }) => `${plain(name)}: ${problem === null ? `${config} was read` : plain(problem)}`
      )
    )
  })
}

interface MailInput {
  readonly unit: string
  /** True: do not send a second mail about the same failure. */
  readonly once: boolean
}

const MAILED = "failure-mailed.json"

/** Identifies a failure. A different failure, or a failure after another start of the daemon, has a different id. */
const failureOf = Effect.fnUntraced(function* (unit: string) {
  const { paths } = yield* Invocation
  const manager = paths.state === Unit.SYSTEM_STATE ? "system" : "user"
  const known = Option.getOrUndefined(yield* Unit.status(unit, manager))
  // each daemon appends to the log when it starts, so after that the newest eventId is different
  const head = yield* Effect.match(StoreCopy.facts(paths.store), {
    onSuccess: ({ head }) => head,
    onFailure: () => null
  })
  return JSON.stringify({ unit, result: known?.result ?? null, exitCode: known?.exitCode ?? null, head })
})

const mailed = Effect.fnUntraced(function* ({ once, unit }: MailInput) {
  const { paths } = yield* Invocation
  const note = NodePath.join(paths.state, MAILED)
  const failure = yield* failureOf(unit)
  if (once && (yield* textOf(note)) === failure) {
    return yield* print({ unit, response: null }, () => [
      `${unit} has failed again, and no daemon has started since the last mail, so no new mail was sent.`
    ])
  }
  const { env } = yield* Entry
  const mailer = yield* Mailer
  const redact = yield* Redact
  yield* redact.register(secretsIn(env))
  // use the config that was applied last, because a mistake in the current file must not prevent the mail
  const config = yield* UserFile.inForce(paths)
  if (config.mail === undefined) {
    return yield* failed(
      `${unit} has failed, but no mail was sent: ${paths.userConfig} has no mail section.`,
      "Add a mail section. See its fields: agentd schema --user"
    )
  }
  const start = `systemctl ${paths.state === Unit.SYSTEM_STATE ? "" : "--user "}start ${unit}`
  const last = redact.text(yield* Unit.lastWords(unit))
  const now = yield* Clock.currentTimeMillis
  const { response } = yield* mailer.send(
    config.mail,
    Mail.daemonFailed({ host: mailer.host(), unit, last, start }, now)
  )
  // if this note cannot be written, a second mail will be sent about the same failure
  if (once) yield* Effect.ignore(write(note, failure))
  yield* print({ unit, response }, () => [
    `${config.mail!.smtp.host} accepted the mail that ${unit} has failed: ${response}`
  ])
})

/**
 * For OnFailure= in the unit: sends a mail that the daemon has failed, because the daemon itself can no longer do so.
 */
export const mail = { run: (input: MailInput) => Effect.provide(mailed(input), Redact.layer) }
