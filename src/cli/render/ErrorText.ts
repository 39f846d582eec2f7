/**
 * ErrorText: turns an error into the text or JSON that a user or a script sees. Pure.
 *
 * Guarantees: each error has a message and a remedy in words, for standard error, and an exit code of the table in
 * ExitCode.
 */
import { codeOf, type RefusalCode } from "../../domain/RefusalCode.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { json as jsonOf } from "./TerminalDoor.ts"

export interface ErrorText {
  readonly tag: string
  /** Machine-readable code; undefined: the error is not a rejection. */
  readonly code?: RefusalCode | undefined
  readonly message: string
  readonly remedy: string
  readonly exitCode: number
}

/** Exit codes by error tag. All other errors have the exit code `failed`. */
export const exitCodes: { readonly [tag: string]: number } = {
  DaemonUnreachable: ExitCode.notRunning,
  StorageError: ExitCode.store,
  StoreInUse: ExitCode.taken,
  EndpointRefused: ExitCode.config,
  StateFolderRefused: ExitCode.config,
  ConfigError: ExitCode.config
}

/** Codes of the errors that the command line raises itself, by exit code. Other exit codes have no code. */
const codesByExit: { readonly [exitCode: number]: RefusalCode } = {
  [ExitCode.usage]: "invalid",
  [ExitCode.notRunning]: "unavailable",
  [ExitCode.config]: "invalid"
}

const field = (error: object, name: string): unknown =>
  name in error ? (error as { [key: string]: unknown })[name] : undefined

/** Explains an error of any layer. If the error has its own `message`, `remedy` or `exitCode`, these are used. */
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

/** Two lines, or one line of JSON. */
export const told = ({ code, exitCode, message, remedy, tag }: ErrorText, json: boolean): string =>
  json ? jsonOf({ error: tag, code, message, remedy, exitCode }) : `agentd: ${message}\n  → ${remedy}`
