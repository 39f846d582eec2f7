/**
 * RefusalCode: error codes that tell a program why a command was rejected and how to react. Pure and without schemas,
 * because the fast start of the CLI loads this file.
 */

export const refusalCodes = {
  not_found: { status: 404, means: "the named object does not exist" },
  ambiguous: { status: 409, means: "the name matches several objects: use a full name" },
  invalid: { status: 400, means: "the request has a wrong form or value: correct it" },
  conflict: { status: 409, means: "the command does not fit the current state: read the state, then decide again" },
  full: { status: 409, means: "a limit on number or size is reached: remove something first" },
  paused: { status: 409, means: "the project or agent is paused: resume it" },
  closed: { status: 409, means: "the conversation, agent or channel has ended: open a new one" },
  not_now: { status: 503, means: "the problem is temporary: try again later" },
  not_allowed: { status: 403, means: "the caller is not allowed to do this" },
  too_large: { status: 413, means: "the request exceeds a size limit: send less" },
  unavailable: { status: 503, means: "a disk, git, the network, a provider or the daemon does not answer" },
  unsupported: { status: 501, means: "this machine, backend or version does not support it" }
} as const

export type RefusalCode = keyof typeof refusalCodes

export const isRefusalCode = (code: unknown): code is RefusalCode =>
  typeof code === "string" && Object.hasOwn(refusalCodes, code)

/** Codes of errors that have no field `code`, by the error's tag. */
export const codesByTag: { readonly [tag: string]: RefusalCode } = {
  ActorStopped: "not_now",
  BackupRefused: "conflict",
  ConfigError: "invalid",
  DaemonUnreachable: "unavailable",
  EndpointRefused: "not_allowed",
  EventRefused: "invalid",
  GitFailed: "unavailable",
  GitUnavailable: "unavailable",
  HttpRefused: "unavailable",
  MailboxFull: "not_now",
  MergeRefused: "conflict",
  OwnFileRefused: "not_allowed",
  PlanRefused: "invalid",
  PlanUnread: "invalid",
  Refused: "conflict",
  RuneRefused: "conflict",
  SendError: "unavailable",
  SettingsRefused: "conflict",
  StateFolderRefused: "not_allowed",
  StorageError: "unavailable",
  StoreInUse: "conflict",
  SystemdError: "unavailable",
  TokenError: "unavailable",
  WorktreeError: "unavailable"
}

/** Returns the code of an error. Undefined: the error does not reject a command, or its code is unknown here. */
export const codeOf = (error: object): RefusalCode | undefined => {
  const { _tag, code, reason } = error as { readonly [field in "_tag" | "code" | "reason"]?: unknown }
  if (_tag === "StorageError" && reason === "full") return "full"
  return isRefusalCode(code) ? code : typeof _tag === "string" ? codesByTag[_tag] : undefined
}
