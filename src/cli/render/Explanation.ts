/**
 * Explanation: what a person, or a script, is told of an error. Pure.
 *
 * Guarantees: what went wrong and what to do, in words, for standard error; an exit code of the
 * table.
 */
import { codeOf, type RefusalCode } from "../../domain/RefusalCode.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { json as jsonOf } from "./TerminalDoor.ts"

export interface Explanation {
  readonly tag: string
  /** Undefined: it is no refusal. */
  readonly code?: RefusalCode | undefined
  readonly message: string
  readonly remedy: string
  readonly exitCode: number
}

/** By tag; everything else has `failed`. */
export const exitCodes: { readonly [tag: string]: number } = {
  DaemonUnreachable: ExitCode.notRunning,
  StorageError: ExitCode.store,
  StoreInUse: ExitCode.taken,
  EndpointRefused: ExitCode.config,
  StateFolderRefused: ExitCode.config,
  ConfigError: ExitCode.config
}

/** Codes of what the command line refuses by itself; an error of another exit code has none. */
const codesByExit: { readonly [exitCode: number]: RefusalCode } = {
  [ExitCode.usage]: "invalid",
  [ExitCode.notRunning]: "unavailable",
  [ExitCode.config]: "invalid"
}

const field = (error: object, name: string): unknown =>
  name in error ? (error as { [key: string]: unknown })[name] : undefined

/** Any error of any layer; one with `message`, `remedy` and perhaps `exitCode` speaks for itself. */
export const explain = (error: unknown): Explanation => {
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

const REPORT = "Run it again with AGENTD_DEBUG=1 to see the details, and report it if it is not yours."

/** As it is printed: two lines, or one of JSON. */
export const told = ({ code, exitCode, message, remedy, tag }: Explanation, json: boolean): string =>
  json ? jsonOf({ error: tag, code, message, remedy, exitCode }) : `agentd: ${message}\n  → ${remedy}`
