/**
 * Redact: takes known secrets out of payloads before they are appended.
 *
 * Known are the values registered when a configuration is loaded, and whatever
 * looks like a key of a well-known service. Each becomes `[redacted]`, in values
 * and in names of fields. It cannot know a secret that nobody named and that has
 * no known form.
 */
import { Context, Effect, Layer } from "effect"

export const REDACTED = "[redacted]"

/** Shorter values are words more often than secrets, and would blot out half of the log. */
const MIN_LENGTH = 8

/** More would slow down every append; the daemon's projects have a few each. */
const MAX_SECRETS = 1_000

/** OpenAI, Anthropic and others that took up the form; GitHub; GitLab; Slack; AWS; Google. */
const KEYS =
  /\bsk-[\w-]{20,}|\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_\w{22,}|\bglpat-[\w-]{20,}|\bxox[abeprs]-[A-Za-z0-9-]{10,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{35}/g

/**
 * A JSON web token, with what its first word begins with. It starts where a word starts, and looks first
 * whether two further parts follow: else text full of beginnings would be read to its end from each of them.
 */
const WEB_TOKEN =
  /(?<![\w-])(?=[\w-]+\.eyJ[\w-]{10,}\.[\w-]{10})((?:[\w-]*?-)??)eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}/g

const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----/g
const PRIVATE_KEY_END = /-----END [A-Z ]*PRIVATE KEY-----/g

/**
 * Where JSON text may hold one of the forms. An escape before it ends in a letter (`\n`), so that no word
 * begins there: this asks for no beginning, and the walk through the values decides.
 */
const SUSPICIOUS =
  /sk-[\w-]{20}|gh[pousr]_[A-Za-z0-9]{36}|github_pat_|glpat-|xox[abeprs]-|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{35}|\.eyJ[\w-]{10}|-----BEGIN /

/** The first end behind a beginning; where there is none, no later beginning has one either. */
const scrubPrivateKeys = (text: string): string => {
  let [kept, from] = ["", 0]
  for (const { index } of text.matchAll(PRIVATE_KEY)) {
    if (index < from) continue
    PRIVATE_KEY_END.lastIndex = index
    const end = PRIVATE_KEY_END.exec(text)
    if (end === null) break
    kept += text.slice(from, index) + REDACTED
    from = end.index + end[0].length
  }
  return kept + text.slice(from)
}

/** The forms, in one text. */
const scrubForms = (text: string): string =>
  scrubPrivateKeys(text).replaceAll(WEB_TOKEN, `$1${REDACTED}`).replaceAll(KEYS, REDACTED)

/** Values and names of fields, to any depth. */
const walk = (value: unknown, scrub: (text: string) => string): unknown =>
  typeof value === "string"
    ? scrub(value)
    : Array.isArray(value)
      ? value.map((item) => walk(item, scrub))
      : typeof value === "object" && value !== null
        ? Object.fromEntries(Object.entries(value).map(([name, item]) => [scrub(name), walk(item, scrub)]))
        : value

/** Names of variables whose values nobody should read in a log. */
const SECRET_NAME = /key|token|secret|passw|credential|auth/i
/** Values that only point to a secret, or are none. */
const HARMLESS = /^(\/|~|https?:|\d+$|true$|false$)/

/** The values of an environment that are secrets by their name. */
export const secretsIn = (env: { readonly [name: string]: string | undefined }): ReadonlyArray<string> =>
  Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && SECRET_NAME.test(name) && !HARMLESS.test(value) ? [value] : []
  )

export class Redact extends Context.Service<
  Redact,
  {
    /** Adds secrets to those known. Values under eight characters are left alone. */
    readonly register: (values: Iterable<string>) => Effect.Effect<void>
    /** Redacts a text. */
    readonly text: (text: string) => string
    /** JSON text in, the same JSON without known secrets out. */
    readonly json: (text: string) => string
  }
>()("agentd/runes/Redact") {
  static readonly layer: Layer.Layer<Redact> = Layer.sync(Redact, () => {
    let secrets: ReadonlyArray<{ readonly plain: string; readonly escaped: string }> = []
    const text = (text: string): string => {
      let clean = text
      for (const { plain } of secrets) if (clean.includes(plain)) clean = clean.replaceAll(plain, REDACTED)
      return scrubForms(clean)
    }
    // Replacing inside JSON text could cut an escape in two: the text only tells whether it is worth a walk.
    const suspicious = (json: string): boolean =>
      SUSPICIOUS.test(json) || secrets.some(({ escaped }) => json.includes(escaped))
    return Redact.of({
      register: (values) =>
        Effect.sync(() => {
          const known = new Set(secrets.map(({ plain }) => plain))
          for (const value of values) if (value.length >= MIN_LENGTH) known.add(value)
          secrets = [...known]
            .slice(-MAX_SECRETS)
            // The longest first, so that a secret inside another leaves no remainder of the longer one.
            .toSorted((a, b) => b.length - a.length)
            .map((plain) => ({ plain, escaped: JSON.stringify(plain).slice(1, -1) }))
        }),
      text,
      json: (json) => (suspicious(json) ? JSON.stringify(walk(JSON.parse(json), text)) : json)
    })
  })
}
