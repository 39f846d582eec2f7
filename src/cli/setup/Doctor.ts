/** `agentd doctor`: checks everything that agentd needs, and prints a remedy for each problem. */
import { Effect } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import type { Check } from "../../board/DaemonMessages.ts"
import { Redact } from "../../core/event-log/Redact.ts"
import * as MailCheck from "../../alerts/MailCheck.ts"
import * as Readiness from "../../board/Readiness.ts"
import { VERSION } from "../../api/rpc/Version.ts"
import { load, loadUser } from "../../config/ConfigFile.ts"
import * as DoctorChecks from "./DoctorChecks.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import * as Hooks from "./Hooks.ts"
import { VerbFailed } from "../parse/Failure.ts"
import * as HintCommand from "../parse/HintCommand.ts"
import { Entry, Invocation, print } from "../parse/Invocation.ts"
import { worldOf } from "../../config/Places.ts"
import * as Security from "./Security.ts"
import { type Colour, paint, plainLines } from "../render/Output.ts"

const colours: { readonly [level in Check["level"]]: Colour } = { ok: "green", warn: "yellow", fail: "red" }

/** Checks in this process, as if it started a daemon. Used if no daemon is running. */
const fromHere = Effect.gen(function* () {
  const { caller, paths } = yield* Invocation
  const { env } = yield* Entry
  const project = caller.config === null ? null : yield* Effect.result(load(caller.config))
  const user = yield* Effect.result(loadUser(paths.userConfig))
  const own = project?._tag === "Success" ? project.success.mail : undefined
  const mail = own ?? (user._tag === "Success" ? user.success.mail : undefined)
  const mails = yield* Effect.provide(MailCheck.checks(mail === undefined ? [] : [mail]), Redact.layer)
  // if the config is invalid, another check reports that
  if (project === null || project._tag === "Failure") return mails
  const { agents, root } = project.success
  return [...(yield* Readiness.checks(agents, { root, environment: env, whose: "this" })), ...mails]
})

/** Findings of the running daemon. If it does not answer, that is a finding as well. */
const fromDaemon = (socket: string) =>
  call(socket, (client) =>
    Effect.gen(function* () {
      const { daemon } = yield* client.Status()
      const same = daemon.version === VERSION
      const version: Check = {
        name: "version",
        level: same ? "ok" : "warn",
        detail: same ? VERSION : `the daemon has version ${daemon.version}, this command has ${VERSION}`,
        remedy: same ? null : "Run: agentd restart"
      }
      return [version, ...DoctorChecks.reaped(daemon.pid), ...(yield* client.Doctor())]
    })
  ).pipe(
    Effect.catchTag("DaemonUnreachable", ({ message, pid, reason, remedy }) =>
      reason === "not-running" && pid === undefined
        ? fromHere
        : Effect.succeed<ReadonlyArray<Check>>([{ name: "daemon", level: "fail", detail: message, remedy }])
    )
  )

/** Joins the findings of this process with those of the daemon. A problem in both appears only once. */
const apart = (ours: ReadonlyArray<Check>, theirs: ReadonlyArray<Check>): ReadonlyArray<Check> => {
  const known = new Set(ours.filter(({ level }) => level === "fail").map(({ detail }) => detail))
  return [...ours, ...theirs.filter(({ detail }) => !known.has(detail))]
}

/** A finding as lines of text. All lines after the first are indented to the column of its text. */
const linesOf = ({ detail, level, name, remedy }: Check, width: number, colour: boolean): ReadonlyArray<string> => {
  const margin = " ".repeat(6 + width)
  const [first = "", ...more] = plainLines(detail)
  return [
    `${paint(colour, colours[level], level.padEnd(4))}  ${name.padEnd(width)}${first}`,
    ...more.map((line) => `${margin}${line}`),
    ...(remedy === null ? [] : [`${margin}→ ${remedy}`])
  ]
}

const checked = Effect.gen(function* () {
  const { caller, colour, paths } = yield* Invocation
  const ours = [
    ...(yield* DoctorChecks.all(paths, caller.config, caller.by)),
    DoctorChecks.zone((yield* Entry).env["TZ"]),
    ...(yield* Hooks.checks)
  ]
  const found = apart(ours, yield* fromDaemon(paths.socket))
  const checks = found.map((check) => ({
    ...check,
    remedy: check.remedy === null ? null : HintCommand.inWorld(check.remedy, worldOf(paths))
  }))
  const width = Math.max(...checks.map(({ name }) => name.length)) + 2
  yield* print(checks, () => checks.flatMap((check) => linesOf(check, width, colour)))
  const failed = checks.filter(({ level }) => level === "fail").length
  if (failed === 0) return
  return yield* new VerbFailed({
    message: `${failed} of ${checks.length} checks failed.`,
    remedy: "Do what the lines with an arrow say, then run agentd doctor again.",
    exitCode: ExitCode.problems
  })
})

export const run = Effect.fnUntraced(function* ({ security }: { readonly security: boolean }) {
  yield* security ? Security.told : checked
})
