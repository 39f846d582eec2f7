/**
 * ErrorText: turns an error into text for a user, or into JSON for a script. Pure.
 *
 * Guarantees: each error has a message and a remedy, which are printed to standard error, and an exit code from the
 * table in ExitCode.
 */
import { codeOf, type RefusalCode } from "../../domain/RefusalCode.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { json as jsonOf } from "./TerminalDoor.ts"

export interface ErrorText {
  readonly tag: string
  /** Machine-readable code; undefined if the error is not a refusal. */
  readonly code?: RefusalCode | undefined
  readonly message: string
  readonly remedy: string
  readonly exitCode: number
}

/** Exit codes by error tag. Errors with other tags have the exit code `failed`. */
export const exitCodes: { readonly [tag: string]: number } = {
  DaemonUnreachable: ExitCode.notRunning,
  StorageError: ExitCode.store,
  StoreInUse: ExitCode.taken,
  EndpointRefused: ExitCode.config,
  StateFolderRefused: ExitCode.config,
  ConfigError: ExitCode.config
}

/**
 * For each exit code: the machine-readable codes for errors of the CLI itself. Errors with other exit codes have none.
 */
const codesByExit: { readonly [exitCode: number]: RefusalCode } = {
  [ExitCode.usage]: "invalid",
  [ExitCode.notRunning]: "unavailable",
  [ExitCode.config]: "invalid"
}

const field = (error: object, name: string): unknown =>
  name in error ? (error as { [key: string]: unknown })[name] : undefined

/**
 * The text for an error from any part of agentd. The error's own `message`, `remedy` and `exitCode` are used if it has
 * them.
 */
export const explain = (error: unknown): ErrorText => {
  if (typeof error !== "object" || error === null) {
    return { tag: "Unknown", message: String(error), remedy: REPORT, exitCode: ExitCode.failed }
  }
  const tag = field(error, "_tag")
  const message = field(error, "message")
  const remedy = field(error, "remedy")
  const exitCode = field(error, "exitCode")
  return {
    tag: typeof tag === "string" ? tag : "Unknown",
    code: codeOf(error) ?? (typeof exitCode === "number" ? codesByExit[exitCode] : undefined),
    message: typeof message === "string" && message !== "" ? message : "Something went wrong.",
    remedy: typeof remedy === "string" ? remedy : REPORT,
    exitCode:
      typeof exitCode === "number"
        ? exitCode
        : typeof tag === "string"
          ? (exitCodes[tag] ?? ExitCode.failed)
          : ExitCode.failed
  }
}

const REPORT = "Run the command again with AGENTD_DEBUG=1 to see the details. If the error is in agentd, report it."

/** The error as two lines of text, or as one line of JSON. */
export const told = ({ code, exitCode, message, remedy, tag }: ErrorText, json: boolean): string =>
  json ? jsonOf({ error: tag, code, message, remedy, exitCode }) : `agentd: ${message}\n  → ${remedy}`
