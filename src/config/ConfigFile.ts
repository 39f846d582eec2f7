/**
 * ConfigFile: reads `agentd.jsonc` and the user's `config.jsonc`.
 *
 * Guarantees: a file is either accepted as a whole, or refused with a list of all problems. In an accepted config all
 * defaults are filled in, and all paths are absolute. Each problem has a line, column, field, message and remedy.
 * (After broken syntax no further problems are found. A rule that concerns several fields is checked only if each of
 * them is valid.) No input makes the reader throw. A file that another user could have written is refused.
 */
import { dirname, isAbsolute, resolve } from "node:path"
import { Effect, Result, Schema } from "effect"
import type { AgentConfig } from "./AgentConfig.ts"
import { Config, type MailConfig, UserConfig } from "./Config.ts"
import { ConfigProblem, problemsOf } from "./ConfigProblem.ts"
import { GONE } from "./FileTrouble.ts"
import * as FallbackEntry from "./FallbackEntry.ts"
import * as ProjectName from "./ProjectName.ts"
import * as Jsonc from "./Jsonc.ts"
import type { ChannelConfig, NotifyConfig, SecretConfig } from "./NotifyConfig.ts"
import * as OwnFile from "./OwnFile.ts"

/** Maximum size of a config file, in bytes: far more than a user writes by hand. */
const MAX_BYTES = 1024 * 1024

/** The config cannot be used. `message` contains all problems, one per line, ready to be shown. */
export class ConfigError extends Schema.TaggedError<ConfigError>()("ConfigError", {
  path: Schema.String,
  /** `missing`: the file does not exist. `unreadable`: its text cannot be read. `invalid`: see `problems`. */
  reason: Schema.Literals(["missing", "unreadable", "invalid"]),
  problems: Schema.Array(ConfigProblem),
  message: Schema.String,
  remedy: Schema.String
}) {}

export interface Project extends Config {
  readonly name: string
  /** Id of the project's conversation. */
  readonly id: string
  /** Absolute path of the file. */
  readonly path: string
  readonly root: string
  /** Texts of the include file and the scripts that are trusted with the config, by path relative to the root. */
  readonly files?: { readonly [name: string]: string }
}

type JsonObject = { readonly [key: string]: unknown }

/**
 * The JSON Schema of a config. It is a function so that the schema is built only when an editor or an error message
 * needs it.
 */
const documentOf = (schema: Schema.Constraint): JsonObject => {
  const { schema: body, definitions } = Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" })
  return { ...body, ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions }) }
}

export const jsonSchema = (kind: "project" | "user" = "project"): JsonObject => ({
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: kind === "project" ? "agentd.jsonc" : "agentd's config.jsonc",
  ...(kind === "project" ? FallbackEntry.withParts(documentOf(Config)) : documentOf(UserConfig)),
  // Without this keyword, editors would report the trailing commas that the reader accepts.
  allowTrailingCommas: true
})

/** A problem as text, such as `agentd.jsonc:7:20: agents.builder.mode: …` */
export const renderProblem = (path: string, problem: ConfigProblem): string => {
  const field = problem.field === "" ? "" : `${problem.field}: `
  return `${path}:${problem.line}:${problem.column}: ${field}${problem.message}${problem.remedy === "" ? "" : `\n  ${problem.remedy}`}`
}

const invalid = (path: string, problems: ReadonlyArray<ConfigProblem>): ConfigError =>
  new ConfigError({
    path,
    reason: "invalid",
    problems,
    message: problems.map((problem) => renderProblem(path, problem)).join("\n"),
    remedy: `Fix ${path}. Until then, the last usable version stays in force, if there is one.`
  })

const unreadable = (path: string, message: string, remedy: string): ConfigError =>
  new ConfigError({ path, reason: "unreadable", problems: [], message: `${path}: ${message}`, remedy })

const TOO_LARGE = `is larger than ${MAX_BYTES / 1024} KiB`
const TOO_LARGE_REMEDY = "Move long texts into files of the project and name them in the prompt."

/**
 * Removes duplicate problems: a fallback that inherits an invalid field from the agent's own backend has the same
 * problem.
 */
const onceEach = (problems: ReadonlyArray<ConfigProblem>): ReadonlyArray<ConfigProblem> => {
  const said = new Set(problems.map(({ field, message }) => `${field}: ${message}`))
  return problems.filter(({ field, message }) => {
    const own = FallbackEntry.ownField(field)
    return own === field || !said.has(`${own}: ${message}`)
  })
}

const OTHERS = {
  project: () => ({ file: "your own config.jsonc, by default in ~/.config/agentd", shape: documentOf(UserConfig) }),
  user: () => ({ file: "a project's agentd.jsonc", shape: documentOf(Config) })
}

const decode = <T>(
  schema: Schema.ConstraintDecoder<T>,
  kind: "project" | "user",
  text: string,
  path: string
): Result.Result<T, ConfigError> => {
  if (Buffer.byteLength(text) > MAX_BYTES) return Result.fail(unreadable(path, TOO_LARGE, TOO_LARGE_REMEDY))
  const { root, problems } = Jsonc.read(text)
  const syntax = problems.map(({ offset, message, remedy }) => ({
    ...Jsonc.position(text, offset),
    field: "",
    message,
    remedy
  }))
  if (root === undefined) return Result.fail(invalid(path, syntax))
  const value = FallbackEntry.filled(root.value)
  const decoded = Schema.decodeUnknownResult(schema)(value, { errors: "all", onExcessProperty: "error" })
  if (Result.isFailure(decoded)) {
    const found = problemsOf(decoded.failure.issue, text, { ...root, value }, documentOf(schema), OTHERS[kind]())
    return Result.fail(invalid(path, [...syntax, ...onceEach(found)]))
  }
  return syntax.length > 0 ? Result.fail(invalid(path, syntax)) : Result.succeed(decoded.success)
}

/** Makes the paths in a mail config absolute. They are relative to the folder of the config file. */
const placedMail = (mail: MailConfig, root: string): MailConfig => {
  const { passwordFile, caFile } = mail.smtp
  return {
    ...mail,
    smtp: {
      ...mail.smtp,
      ...(passwordFile === undefined ? {} : { passwordFile: resolve(root, passwordFile) }),
      ...(caFile === undefined ? {} : { caFile: resolve(root, caFile) })
    }
  }
}

const placedSecret = (secret: SecretConfig, root: string): SecretConfig =>
  secret.file === undefined ? secret : { file: resolve(root, secret.file) }

const placedNotify = (notify: NotifyConfig, root: string): NotifyConfig => ({
  ...notify,
  channels: Object.fromEntries(
    Object.entries(notify.channels).map(([name, channel]) => [name, placedChannel(channel, root)])
  )
})

const placedChannel = (channel: ChannelConfig, root: string): ChannelConfig => {
  switch (channel.type) {
    case "slack":
    case "discord":
      return { ...channel, url: placedSecret(channel.url, root) }
    case "webhook":
    case "ntfy": {
      const url = typeof channel.url === "string" ? channel.url : placedSecret(channel.url, root)
      return channel.type === "webhook"
        ? { ...channel, url, ...(channel.secret === undefined ? {} : { secret: placedSecret(channel.secret, root) }) }
        : { ...channel, url, ...(channel.token === undefined ? {} : { token: placedSecret(channel.token, root) }) }
    }
    case "command": {
      const [program, ...rest] = channel.argv
      // a program name without a slash is searched for in PATH
      return program?.includes("/") ? { ...channel, argv: [resolve(root, program), ...rest] } : channel
    }
    default:
      return channel
  }
}

const placedKey = <K extends { readonly keyFile?: string }>(key: K, root: string): K =>
  key.keyFile === undefined ? key : { ...key, keyFile: resolve(root, key.keyFile) }

const placedBackend = (backend: AgentConfig["backend"], root: string): AgentConfig["backend"] => {
  if (backend.type === "model") return placedKey(backend, root)
  if (backend.type === "claude") return { ...backend, provider: placedKey(backend.provider, root) }
  if (backend.type === "codex") return { ...backend, provider: placedKey(backend.provider, root) }
  return backend.provider === undefined ? backend : { ...backend, provider: placedKey(backend.provider, root) }
}

const placedAgent = (agent: AgentConfig, root: string): AgentConfig => ({
  ...agent,
  backend: placedBackend(agent.backend, root),
  fallback: agent.fallback.map((backend) => placedBackend(backend, root))
})

/** Parses the text of a project's file. `path` must be absolute, because the conversation's id is derived from it. */
export const parse = (text: string, path: string): Effect.Effect<Project, ConfigError> =>
  Effect.map(Effect.fromResult(decode(Config, "project", text, path)), (config) => {
    const root = dirname(path)
    return {
      ...config,
      ...(config.mail === undefined ? {} : { mail: placedMail(config.mail, root) }),
      agents: Object.fromEntries(
        Object.entries(config.agents).map(([name, agent]) => [name, placedAgent(agent, root)])
      ),
      name: config.name ?? ProjectName.projectName(path),
      id: ProjectName.conversationId(path),
      path,
      root
    }
  })

export const parseUser = (text: string, path: string): Effect.Effect<UserConfig, ConfigError> =>
  Effect.map(Effect.fromResult(decode(UserConfig, "user", text, path)), ({ mail, notify, ...config }) => ({
    ...config,
    ...(mail === undefined ? {} : { mail: placedMail(mail, dirname(path)) }),
    ...(notify === undefined ? {} : { notify: placedNotify(notify, dirname(path)) })
  }))

const readError =
  (path: string) =>
  ({ message, reason, remedy }: OwnFile.OwnFileRefused): ConfigError => {
    switch (reason) {
      case "missing":
        return new ConfigError({
          path,
          reason,
          problems: [],
          message: `${path}: ${message}`,
          remedy:
            message === GONE
              ? `Restore ${dirname(path)}, or create the project's file again.`
              : 'Create it with { "agents": { "builder": { "backend": { "type": "command", "argv": ["…"] } } } }.'
        })
      case "noFile":
        return unreadable(path, message, "Name a text file.")
      case "tooLarge":
        return unreadable(path, message, TOO_LARGE_REMEDY)
      default:
        return unreadable(
          path,
          message,
          remedy === "" ? "Make sure that it is a file and that this user can read it." : remedy
        )
    }
  }

const textOf = (path: string) => Effect.mapError(OwnFile.readText(path, MAX_BYTES), readError(path))

/** Loads a project's config file. `path` must be absolute. */
export const load = (path: string) => Effect.map(read(path), ({ config }) => config)

export const read = Effect.fn("ConfigFile.read")(function* (path: string) {
  if (!isAbsolute(path)) return yield* unreadable(path, "is not an absolute path", "Give an absolute path: /home/….")
  const text = yield* textOf(path)
  return { text, config: yield* parse(text, path) }
})

/** Loads the user's config file. A missing file counts as empty. */
export const loadUser = (path: string) => Effect.map(readUser(path), ({ config }) => config)

export const readUser = Effect.fn("ConfigFile.readUser")(function* (path: string) {
  const text = yield* Effect.catchIf(
    textOf(path),
    (error) => error.reason === "missing",
    () => Effect.succeed("{}")
  )
  return { text, config: yield* parseUser(text, path) }
})
