/**
 * ConfigTrust: the text of a project's config file that the user has trusted. The log contains the hash of the text.
 * The state directory contains the text, under that hash.
 *
 * Guarantees: A stored text that does not match the hash in the log counts as missing. A text is stored before the log
 * says that it is trusted. The hash covers the path of the file too, because the same text in another folder starts
 * other programs. Only the newest trusted text of a project is stored.
 */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { Effect, FileSystem, Schema } from "effect"
import * as ConfigChange from "../config/ConfigChange.ts"
import * as ConfigFile from "../config/ConfigFile.ts"
import { type CommandRefused, type ConfigChangeInfo, type ProjectInfo, refuse } from "../domain/Messages.ts"
import type { configKinds, Untrusted } from "../domain/ConfigKinds.ts"
import type { RuneOf } from "../core/event-log/EventKinds.ts"
import type { RuneDraft } from "../core/event-log/Rune.ts"
import { AgentsEnvironment } from "./AgentsEnvironment.ts"
import * as TrustedFiles from "./TrustedFiles.ts"

/** The current state of a config file that is not in force. */
export interface Noticed {
  readonly state: Untrusted
  /** Hash of the text that waits for the user's trust; null if there is none. */
  readonly hash: string | null
  readonly problem: string | null
  /** When the problem started, ms since the epoch. */
  readonly since: number
  /** True if the user was notified that the problem lasts. */
  readonly told: boolean
  /** Number of changes of the file since its text was last in force. */
  readonly changes?: number
  /** Set if a user has put the change aside. `by`: the user's name. `at`: the time, ms since the epoch. */
  readonly kept?: { readonly by: string; readonly at: number }
}

/** The trust in a config file, according to the log. */
export interface Trust {
  /** Hash of the trusted text; null in logs of older versions of agentd, which required no trust. */
  hash: string | null
  noticed: Noticed | null
}

export const apply = (trust: Trust, rune: RuneOf<typeof configKinds>): void => {
  switch (rune.kind) {
    case "config.trusted":
      trust.hash = rune.payload.hash
      trust.noticed = null
      return
    case "config.changed": {
      const { hash, problem, state } = rune.payload
      const changes = (trust.noticed?.changes ?? 0) + 1
      trust.noticed = state === "in_force" ? null : { state, hash, problem, since: rune.at, told: false, changes }
      return
    }
    case "config.kept": {
      const { by, hash } = rune.payload
      const { noticed } = trust
      if (noticed?.hash === hash) trust.noticed = { ...noticed, kept: { by, at: rune.at } }
      return
    }
    case "config.waits":
      if (trust.noticed !== null) trust.noticed = { ...trust.noticed, told: true }
  }
}

export interface Known {
  readonly conversation: string
  readonly config: string
  readonly name: string
  readonly trust: Trust
}

export const fresh = (): Trust => ({ hash: null, noticed: null })

/** The version of the file that the caller trusts: the current one, the one with this hash, or no new one. */
export type Agreed = "as it stands" | "nothing" | { readonly hash: string }

export interface Seen {
  readonly text: string
  readonly hash: string
  readonly config: ConfigFile.Project
}

/** `files`: texts of the files that are trusted with the config. */
export const hashOf = (path: string, text: string, files: ConfigFile.Project["files"] = {}): string => {
  const hash = createHash("sha256").update(`agentd.config.1\n${path}\n${text}`)
  const all = Object.entries(files)
  if (all.length > 0) hash.update(`\n${JSON.stringify(all)}`)
  return hash.digest("hex")
}

const seenOf = (text: string, config: ConfigFile.Project, files: { readonly [name: string]: string }): Seen => ({
  text,
  hash: hashOf(config.path, text, files),
  config: Object.keys(files).length === 0 ? config : { ...config, files }
})

export const look = Effect.fnUntraced(function* (path: string) {
  const { config, text } = yield* ConfigFile.read(path)
  return seenOf(text, config, yield* TrustedFiles.read(config))
})

export const agrees = (agreed: Agreed, hash: string): boolean =>
  agreed === "as it stands" || (agreed !== "nothing" && agreed.hash === hash)

const placeOf = (hash: string) => Effect.map(AgentsEnvironment, ({ configs }) => join(configs, `${hash}.jsonc`))
/** The file with the texts of the files that are trusted with a config. */
const besidesOf = (place: string) => place.replace(/\.jsonc$/, ".files.json")

const Besides = Schema.fromJsonString(Schema.Record(Schema.String, Schema.String))

/** The stored texts; undefined if there are none or they do not match their hash. */
export const kept = Effect.fnUntraced(function* (path: string, hash: string) {
  const files = yield* FileSystem.FileSystem
  const place = yield* placeOf(hash)
  const text = yield* Effect.option(files.readFileString(place))
  if (text._tag === "None") return undefined
  const besides = yield* Effect.orElseSucceed(files.readFileString(besidesOf(place)), () => "{}").pipe(
    Effect.andThen(Schema.decodeUnknownEffect(Besides)),
    Effect.orElseSucceed((): typeof Besides.Type => ({}))
  )
  return hashOf(path, text.value, besides) === hash ? { text: text.value, besides } : undefined
})

/** The trusted config, from the stored text or from an unchanged file; undefined if neither exists. */
export const inForce = Effect.fnUntraced(function* (path: string, hash: string) {
  const stored = yield* kept(path, hash)
  if (stored !== undefined) return seenOf(stored.text, yield* ConfigFile.parse(stored.text, path), stored.besides)
  const seen = yield* Effect.option(look(path))
  return seen._tag === "Some" && seen.value.hash === hash ? seen.value : undefined
})

/**
 * Stores the trusted text completely or not at all. An error is only logged, because the file itself still contains the
 * text.
 */
export const keep = ({ config, hash, text }: Seen) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const { configs } = yield* AgentsEnvironment
    const place = yield* placeOf(hash)
    yield* files.makeDirectory(configs, { recursive: true, mode: 0o700 })
    if (config.files !== undefined) {
      yield* files.writeFileString(`${place}.part`, JSON.stringify(config.files), { mode: 0o600 })
      yield* files.rename(`${place}.part`, besidesOf(place))
    }
    yield* files.writeFileString(`${place}.part`, text, { mode: 0o600 })
    yield* files.rename(`${place}.part`, place)
  }).pipe(Effect.catch((error) => Effect.logWarning(`the config that is trusted could not be kept: ${error.message}`)))

/** Deletes the text that was trusted previously. */
export const drop = Effect.fnUntraced(function* (hash: string | null) {
  if (hash === null) return
  const files = yield* FileSystem.FileSystem
  const place = yield* placeOf(hash)
  yield* Effect.ignore(files.remove(place))
  yield* Effect.ignore(files.remove(besidesOf(place)))
})

/** Fields for a project's row if its file waits for the user's trust, was put aside by the user, or cannot be used. */
export const waiting = ({ noticed }: Trust): Pick<ProjectInfo, "waits" | "kept" | "since"> => {
  if (noticed === null) return {}
  if (noticed.state !== "untrusted" || noticed.hash === null) return { since: noticed.since }
  const { changes = 1, hash, kept, since } = noticed
  return kept === undefined ? { waits: { hash, since, changes } } : { kept: { hash, ...kept } }
}

/**
 * Why the waiting change cannot be put aside; undefined if it can. `hash`: hash of the text that was shown to the user.
 */
export const unkept = (known: Known, hash: string | undefined): CommandRefused | undefined => {
  const { noticed } = known.trust
  if (noticed?.state !== "untrusted" || noticed.hash === null)
    return refuse(
      "conflict",
      `${known.config}: no change waits: there is nothing to put aside.`,
      "See what each file would do: agentd config diff"
    )
  return hash === undefined || hash === noticed.hash
    ? undefined
    : refuse(
        "conflict",
        `${known.config} has changed since it was shown. The change still waits.`,
        `Look at it again: agentd config diff ${known.name}`
      )
}

export const keptOf = ({ config, conversation, trust }: Known, by: string): RuneDraft => ({
  stream: conversation,
  kind: "config.kept",
  actor: "project",
  trigger: "keep",
  payload: { config, hash: trust.noticed?.hash ?? "", by }
})

export const changedSince = ({ config, name }: Pick<Known, "config" | "name">) =>
  refuse(
    "conflict",
    `${config} has changed since it was shown. Nothing was trusted.`,
    `Look at it again: agentd trust ${name}`
  )

/** How the file differs from the config in force. `before`: the config in force; undefined if there is none. */
export const changeOf = ({ config: path, conversation, name, trust }: Known, before: ConfigFile.Project | undefined) =>
  Effect.gen(function* () {
    const of = { conversation, project: name, config: path }
    const { config, hash, text } = yield* look(path)
    const isInForce = before !== undefined && (hash === trust.hash || JSON.stringify(config) === JSON.stringify(before))
    if (isInForce) return { ...of, hash, problems: [], waits: false, consequences: [], diff: [] }
    const old = trust.hash === null ? undefined : yield* kept(path, trust.hash)
    const { noticed } = trust
    return {
      ...of,
      hash,
      problems: [],
      waits: true,
      ...(noticed?.kept !== undefined && noticed.hash === hash ? { kept: noticed.kept } : {}),
      consequences: ConfigChange.consequencesOf(before, config),
      diff: [
        ...ConfigChange.diffOf(old?.text ?? "", text),
        ...ConfigChange.diffOfFiles(old?.besides ?? {}, config.files ?? {})
      ]
    }
  }).pipe(
    Effect.catch(({ message }) =>
      Effect.succeed<ConfigChangeInfo>({
        conversation,
        project: name,
        config: path,
        hash: null,
        problems: message.split("\n"),
        waits: false,
        consequences: [],
        diff: []
      })
    )
  )

/** The rune that records the user's trust. `how` "first": no text was trusted before. */
export const trusted = (
  stream: string,
  { config, hash }: Seen,
  by: string,
  how: "first" | "start" | "trust"
): RuneDraft => ({
  stream,
  kind: "config.trusted",
  actor: "project",
  trigger: how,
  payload: { config: config.path, hash, by, how }
})
