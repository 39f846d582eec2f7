/**
 * HookSettings: adds, finds and removes agentd's hooks in the settings of Claude Code, and of other coding CLIs whose
 * settings have the same shape. Pure.
 *
 * Guarantees: all other settings stay unchanged, and numbers keep all their digits. In a file that a user has
 * formatted, line breaks and spaces stay, too. `remove` removes exactly the entries that `add` has added, so after
 * both, nothing has changed. Calling `add` twice has the same effect as calling it once. Settings that cannot contain
 * agentd's hooks are rejected and not changed.
 */
import { Result } from "effect"
import { applyEdits, type JSONPath, modify, parse, type ParseError } from "jsonc-parser"
import { isDeepStrictEqual } from "node:util"
import { attempt } from "../../config/Attempt.ts"
import { quoted } from "../../config/ShellWord.ts"
import * as HookCommand from "../../api/http/HookCommand.ts"
import type { SessionSource } from "../../plates/SessionSource.ts"

/** Names of the hooks that report changes of the session's state. */
export const EVENTS = [
  "UserPromptSubmit",
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "PostToolBatch",
  "PermissionRequest",
  "PermissionDenied",
  "Notification",
  "Stop",
  "StopFailure",
  "SubagentStop",
  "SessionEnd",
  "PreCompact",
  "PostCompact",
  "Elicitation",
  "ElicitationResult",
  "CwdChanged"
] as const

const START = "SessionStart"

/**
 * Hooks that can allow an action. They are always commands, because another program could answer on a port in the
 * daemon's place.
 */
const DECIDING: ReadonlySet<string> = new Set(["PreToolUse", "PermissionRequest", "Elicitation"])

export type Json = null | boolean | number | string | ReadonlyArray<Json> | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

/** The hooks of a coding CLI other than Claude Code. */
export interface SourcePlan {
  readonly source: SessionSource
  readonly reporter: HookCommand.Reporter
}

/** The hooks of Claude Code. */
export interface Plan {
  readonly source?: undefined
  /** Absolute path of the script for the SessionStart hook. */
  readonly script: string
  /** The command that all other hooks run. */
  readonly reporter: HookCommand.Reporter
  /** Port and token for those hooks that use HTTP because they decide nothing. Undefined if all hooks are commands. */
  readonly http: { readonly port: number; readonly token: string } | undefined
  /** Timeout in seconds for agentd's answer to a permission request; undefined if agentd does not answer them. */
  readonly approvals: number | undefined
}

/** A field of the settings that cannot contain hooks, because its value has another type. */
export interface Misfit {
  /** Path of the field, such as `hooks.Stop`. */
  readonly field: string
  readonly found: string
}

/**
 * Claude Code's timeout, in seconds, for a hook that decides nothing. Such a hook needs only milliseconds, and must not
 * delay the agent.
 */
const TIMEOUT_S = 2
const WATCH = "/hooks/claude"
const PERMISSION = "/hooks/claude/permission"
/** Name of the header that marks a handler as agentd's own. */
const HEADER = "x-agentd-plate"
/** Timeout in seconds that the command of such a hook sets itself; it is shorter than Claude Code's timeout. */
const PATIENCE_S = 1

const httpHandler = ({ port, token }: NonNullable<Plan["http"]>): JsonObject => ({
  type: "http",
  url: `http://127.0.0.1:${port}${WATCH}`,
  timeout: TIMEOUT_S,
  headers: { authorization: `Bearer ${token}`, [HEADER]: "$AGENTD_PLATE", "x-agentd-run": "$AGENTD_RUN" },
  allowedEnvVars: ["AGENTD_PLATE", "AGENTD_RUN"]
})

const command = (line: string, timeout: number): JsonObject => ({ type: "command", command: line, timeout })

const handlerOf = (event: string, { approvals, http, reporter }: Plan): JsonObject => {
  if (event === "PermissionRequest" && approvals !== undefined) {
    return command(HookCommand.line(reporter, PERMISSION, 0), approvals)
  }
  return http === undefined || DECIDING.has(event)
    ? command(HookCommand.line(reporter, WATCH, PATIENCE_S), TIMEOUT_S)
    : httpHandler(http)
}

type Handlers = ReadonlyArray<readonly [event: string, handler: JsonObject]>

const handlersOf = (plan: Plan | SourcePlan): Handlers => {
  const { reporter, source } = plan
  if (source === undefined) return handlersOfClaude(plan)
  const line = HookCommand.line(reporter, `/hooks/${source.id}`, PATIENCE_S)
  return Object.keys(source.hooks).map((event) => [event, command(line, TIMEOUT_S * source.timeUnit)])
}

const handlersOfClaude = (plan: Plan): Handlers => [
  // with `|| :` the hook always succeeds, so that the session starts even if the script fails
  [START, command(`${HookCommand.MARK} ${quoted(plan.script)} 2>/dev/null || :`, TIMEOUT_S)],
  ...EVENTS.map((event) => [event, handlerOf(event, plan)] as const)
]

/**
 * JSON with functions that access the source text of values. Node has them, but TypeScript's library does not declare
 * them yet.
 */
const Source = JSON as unknown as {
  readonly rawJSON: (source: string) => object
  readonly isRawJSON: (value: unknown) => boolean
  readonly parse: (
    text: string,
    revive: (key: string, value: unknown, context: { readonly source?: string }) => unknown
  ) => Json
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !Source.isRawJSON(value)

const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

const own = (object: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined

const isOurs = (handler: Json): handler is JsonObject => {
  if (!isObject(handler)) return false
  const [command, headers, type] = [own(handler, "command"), own(handler, "headers"), own(handler, "type")]
  return type === "http"
    ? isObject(headers) && own(headers, HEADER) === "$AGENTD_PLATE"
    : type === "command" && typeof command === "string" && /^AGENTD_HOOK=1[ ;]/.test(command)
}

/**
 * Matchers for agentd's hook groups. The matcher tells `remove` what existed before `add`: no `hooks` at all, `hooks`
 * without a list for this event, or a list. For Claude Code, all three mean "always".
 */
const matchers = { nothing: undefined, object: "*", list: "" } as const

const groupOf = (handler: JsonObject, before: keyof typeof matchers): JsonObject => {
  const matcher = matchers[before]
  return { ...(matcher === undefined ? {} : { matcher }), hooks: [handler] }
}

const kindOf = (value: Json): string => (value === null ? "null" : isList(value) ? "a list" : typeof value)

const misfits = (settings: JsonObject, handlers: Handlers): ReadonlyArray<Misfit> => {
  const hooks = own(settings, "hooks")
  if (hooks === undefined) return []
  if (!isObject(hooks)) return [{ field: "hooks", found: kindOf(hooks) }]
  return handlers.flatMap(([event]) => {
    const list = own(hooks, event)
    return list === undefined || isList(list) ? [] : [{ field: `hooks.${event}`, found: kindOf(list) }]
  })
}

/** The group without agentd's handlers; undefined if it contained no others. */
const cleared = (group: Json): Json | undefined => {
  if (!isObject(group)) return group
  const handlers = own(group, "hooks")
  if (!isList(handlers)) return group
  const others = handlers.filter((handler) => !isOurs(handler))
  if (others.length === handlers.length) return group
  return others.length === 0 ? undefined : { ...group, hooks: others }
}

/**
 * Removes agentd's groups. Their matchers show which lists were created by `add`. `made` in the result: true if `hooks`
 * itself was created by `add`.
 */
const removeFrom = (hooks: JsonObject): { readonly hooks: JsonObject; readonly made: boolean } => {
  let made = false
  const entries = Object.entries(hooks).flatMap(([event, list]): ReadonlyArray<readonly [string, Json]> => {
    if (!isList(list)) return [[event, list]]
    const left = list.map(cleared)
    const gone = list.filter((_, index) => left[index] === undefined).filter(isObject)
    const groups = left.filter((group) => group !== undefined)
    made ||= gone.some((group) => own(group, "matcher") === matchers.nothing)
    const wasThere = gone.length === 0 || gone.some((group) => own(group, "matcher") === matchers.list)
    return groups.length > 0 || wasThere ? [[event, groups]] : []
  })
  return { hooks: Object.fromEntries(entries), made }
}

export const remove = (settings: JsonObject): JsonObject => {
  const before = own(settings, "hooks")
  if (!isObject(before)) return settings
  const { hooks, made } = removeFrom(before)
  if (Object.keys(hooks).length > 0 || !made) return { ...settings, hooks }
  return Object.fromEntries(Object.entries(settings).filter(([key]) => key !== "hooks"))
}

/** Adds agentd's hooks, and removes those of an earlier installation. */
export const add = (settings: JsonObject, plan: Plan | SourcePlan): Result.Result<JsonObject, Misfit> => {
  const handlers = handlersOf(plan)
  const [misfit] = misfits(settings, handlers)
  if (misfit !== undefined) return Result.fail(misfit)
  const clean = remove(settings)
  const before = own(clean, "hooks")
  let hooks: JsonObject = isObject(before) ? before : {}
  for (const [event, handler] of handlers) {
    const list = own(hooks, event)
    const group = groupOf(handler, isList(list) ? "list" : before === undefined ? "nothing" : "object")
    hooks = { ...hooks, [event]: [...(isList(list) ? list : []), group] }
  }
  return Result.succeed({ ...clean, hooks })
}

export interface Installed {
  readonly events: ReadonlyArray<string>
  /** URLs to which the hooks send requests; empty if all hooks are commands. */
  readonly urls: ReadonlyArray<string>
  readonly approvals: boolean
}

interface OwnHandler {
  readonly event: string
  readonly handler: JsonObject
}

const ownIn = (settings: JsonObject): ReadonlyArray<OwnHandler> => {
  const hooks = own(settings, "hooks")
  return Object.entries(isObject(hooks) ? hooks : {}).flatMap(([event, list]) =>
    (isList(list) ? list : [])
      .filter(isObject)
      .flatMap((group) => own(group, "hooks") ?? [])
      .flatMap((handlers) => (isList(handlers) ? handlers : [handlers]))
      .filter(isOurs)
      .map((handler) => ({ event, handler }))
  )
}

/** The text in a field of a handler; "" if the value is not a text. */
const textOf = (handler: JsonObject, field: string): string => {
  const value = own(handler, field)
  return typeof value === "string" ? value : ""
}

export const find = (settings: JsonObject): Installed => {
  const found = ownIn(settings)
  const urls = found.map(({ handler }) => textOf(handler, "url")).filter((url) => url !== "")
  return {
    events: [...new Set(found.map(({ event }) => event))],
    urls: [...new Set(urls.map((url) => url.replace(PERMISSION, WATCH)))],
    approvals:
      urls.some((url) => url.endsWith(PERMISSION)) ||
      found.some(({ handler }) => textOf(handler, "command").includes(` ${PERMISSION} `))
  }
}

/** True if agentd's handlers in the settings are exactly those of the plan. */
export const isCurrent = (settings: JsonObject, plan: Plan | SourcePlan): boolean => {
  const said = ({ event, handler }: OwnHandler) => `${event} ${JSON.stringify(handler)}`
  const wanted = handlersOf(plan).map(([event, handler]) => said({ event, handler }))
  return isDeepStrictEqual(ownIn(settings).map(said).toSorted(), wanted.toSorted())
}

/**
 * True if a pattern matches a whole URL. `*` matches any text; each part in between is matched at its earliest
 * position.
 */
const covers = (pattern: string, url: string): boolean => {
  const [first = "", ...rest] = pattern.split("*")
  const last = rest.pop()
  if (last === undefined) return first === url
  let at = url.startsWith(first) ? first.length : -1
  for (const part of rest) {
    const found = at === -1 ? -1 : url.indexOf(part, at)
    at = found === -1 ? -1 : found + part.length
  }
  return at !== -1 && url.length - last.length >= at && url.endsWith(last)
}

/**
 * Settings because of which agentd's hooks would not run. `port`: port of the hooks that use HTTP; undefined if none
 * does.
 */
export const obstacles = (settings: JsonObject, port: number | undefined): ReadonlyArray<string> => {
  const allowed = own(settings, "allowedHttpHookUrls")
  const reaches = (pattern: Json) => typeof pattern === "string" && covers(pattern, `http://127.0.0.1:${port}${WATCH}`)
  return [
    ...(own(settings, "disableAllHooks") === true ? ['"disableAllHooks" is set, so no hook runs'] : []),
    ...(port !== undefined && isList(allowed) && !allowed.some(reaches)
      ? [`"allowedHttpHookUrls" does not allow http://127.0.0.1:${port}${WATCH}`]
      : [])
  ]
}

export interface Document {
  readonly settings: JsonObject
  readonly style: { readonly indent: string; readonly newline: string; readonly bom: boolean; readonly end: string }
  /** Whether the text has comments, which some CLIs accept. */
  readonly isCommented: boolean
}

/** Keeps the source text of numbers that JavaScript would round. */
const revive = (_key: string, value: unknown, context: { readonly source?: string }): unknown =>
  typeof value === "number" && context.source !== undefined && context.source !== String(value)
    ? Source.rawJSON(context.source)
    : value

export const NEW: Document = {
  settings: {},
  style: { indent: "  ", newline: "\n", bom: false, end: "\n" },
  isCommented: false
}

/** Parses JSON with comments; undefined if it has errors. */
const parseCommented = (text: string): Json | undefined => {
  const errors: Array<ParseError> = []
  const settings = parse(text, errors) as Json
  return errors.length === 0 ? settings : undefined
}

/** Parses a settings file; undefined if its text is not a JSON object. */
export const read = (text: string): Document | undefined => {
  const bom = text.startsWith("\uFEFF")
  const body = bom ? text.slice(1) : text
  if (body.trim() === "") return NEW
  const plain = attempt(() => Source.parse(body, revive))
  const settings = plain ?? parseCommented(body)
  if (!isObject(settings)) return undefined
  // the first indented line determines the indentation; a file with a single line stays on one line
  const indent = /\n([ \t]+)\S/.exec(body)?.[1]
  return {
    settings,
    style: {
      indent: indent ?? (Object.keys(settings).length > 0 ? "" : "  "),
      newline: body.includes("\r\n") ? "\r\n" : "\n",
      bom,
      end: /(?<!\s)\s*$/.exec(body)?.[0] ?? ""
    },
    isCommented: plain === undefined
  }
}

export const write = ({ settings, style }: Pick<Document, "settings" | "style">): string =>
  (style.bom ? "\uFEFF" : "") + JSON.stringify(settings, null, style.indent).replaceAll("\n", style.newline) + style.end

/** The paths at which two settings have different hooks, each with the new value; undefined: the path is removed. */
const changes = (
  before: JsonObject,
  after: JsonObject
): ReadonlyArray<readonly [path: JSONPath, value: Json | undefined]> => {
  const [from, to] = [own(before, "hooks"), own(after, "hooks")]
  const haveLists = [from, to].every((hooks) => isObject(hooks) && Object.keys(hooks).length > 0)
  if (!haveLists || !isObject(from) || !isObject(to)) return [[["hooks"], to]]
  return [...new Set([...Object.keys(from), ...Object.keys(to)])]
    .filter((event) => !isDeepStrictEqual(own(from, event), own(to, event)))
    .map((event) => [["hooks", event], own(to, event)])
}

/**
 * Changes one value in a settings text. The jsonc-parser library finds the position; the value is formatted here in the
 * style of the file.
 */
const change = (text: string, path: JSONPath, value: Json | undefined, { indent, newline }: Document["style"]) => {
  const edits = modify(text, path, value, {})
  if (value === undefined) return applyEdits(text, edits)
  const line = newline + indent.repeat(path.length)
  const plain = JSON.stringify(value).length
  const laidOut = JSON.stringify(value, null, indent).replaceAll("\n", line)
  return applyEdits(
    text,
    edits.map((edit) => ({ ...edit, content: edit.content.slice(0, -plain).replace(/^,/, `,${line}`) + laidOut }))
  )
}

/**
 * The text of a settings file with new settings. A file that a program has formatted is written again as a whole. In a
 * file that a user has formatted, only the changed lists are edited. If the edited text does not result in the new
 * settings, the whole file is written again. Undefined if that would remove comments.
 */
export const rewrite = (text: string, document: Document, settings: JsonObject): string | undefined => {
  const { bom } = document.style
  const whole = document.isCommented ? undefined : write({ settings, style: document.style })
  const isEmpty = Object.keys(document.settings).length === 0
  if (whole !== undefined && (write(document) === text || isEmpty)) return whole
  let edited = bom ? text.slice(1) : text
  for (const [path, value] of changes(document.settings, settings)) edited = change(edited, path, value, document.style)
  return isDeepStrictEqual(read(edited)?.settings, settings) ? (bom ? "\uFEFF" : "") + edited : whole
}
