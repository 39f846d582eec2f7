/**
 * SecretValues: which values of an environment are secrets, and the forms in which a known value
 * is met in a text. Pure.
 *
 * A variable is a secret by its name, or by a password in the address that it holds. A value
 * is met as it stands, escaped in JSON, escaped in an address, in hex, and in base64 wherever
 * in a longer text it begins.
 */

/** A shorter value is a word more often than a secret. */
export const MIN_VALUE = 6
/** A value shorter than this counts only as a whole word, and is sought in no other form. */
const MIN_ANYWHERE = 8
/** Longer values are documents; their lines are known. */
const MAX_VALUE = 16 * 1024
/** A line of a longer value that is a secret by itself. */
const MIN_LINE = 20

export interface Form {
  readonly text: string
  /** Counts only where the characters beside it belong to no word. */
  readonly whole: boolean
}

/** Names of what every log speaks of. */
const HARMLESS_NAME =
  /^(?:PATH|HOME|PWD|OLDPWD|SHELL|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TERM\w*|COLORTERM|TZ|HOSTNAME|HOST|EDITOR|VISUAL|PAGER|SHLVL|_|DISPLAY|MAIL|TMPDIR|NODE_ENV|NODE_VERSION|XDG_\w+|npm_(?!config__auth)\w+|GOPATH|JAVA_HOME|LS_COLORS|MANPATH|INFOPATH|SSH_(?:AUTH_SOCK|AGENT_PID|TTY|CLIENT|CONNECTION)|SYSTEMD_\w+|INVOCATION_ID|JOURNAL_STREAM|DBUS_\w+|WAYLAND_\w+)$/
const SECRET_NAME =
  /KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH(?!OR)|(?:^|_)P(?:AT|IN|W|WD)(?:_|$)|COOKIE|SIGNATURE|WEBHOOK|DSN|(?:DATABASE|DB|MONGO\w*|REDIS|AMQP|PG|POSTGRES\w*|MYSQL|SMTP)_(?:URL|URI)|CONNECTION_STRING/i
/** Names of what only speaks of a secret: where it lies, how many there are, how long it lasts. */
const ABOUT =
  /(?:_(?:FILE|PATH|DIR|SOCK|SOCKET|NAME|USER|TYPE|MODE|VERSION|TIMEOUT|TTL|LIMIT|SIZE|LENGTH|COUNT|PORT|ID_FILE)|TOKENS)$|^MAX_/i
/** Values that no secret has. */
const HARMLESS_VALUE = /^(?:true|false|yes|no|on|off|none|null|undefined|\d{1,5})$/i

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The password of an address, as it stands there and as it is meant. */
const passwordsIn = (value: string): ReadonlyArray<string> => {
  const password = /^[a-z][a-z0-9+.-]{0,32}:\/\/[^/\s:@]{0,256}:([^/\s@]{1,1024})@/i.exec(value)?.[1]
  return password === undefined ? [] : [password, decoded(password)]
}

/** The words behind an address's host: all of it, and its words, as they stand there and as they are meant. */
export const wordsOfAddress = (address: string): ReadonlyArray<string> => {
  const path = /^https?:\/\/[^/?#\s]{1,256}[/?#](\S{1,1024})$/.exec(address)?.[1]
  if (path === undefined) return []
  const words = [path, ...path.split(/[/?&=#]/)]
  return [...new Set([...words, ...words.map(decoded)])].filter((word) => word !== "")
}

/** A word of a path that has a digit and this length is seldom one of a language. */
const MIN_WORD = 12
/** The same, of letters alone. */
const MIN_LONG_WORD = 16

/** The parts of an address that is a secret, as a webhook's is, that must not be written down either. */
export const secretsOfAddress = (address: string): ReadonlyArray<string> =>
  wordsOfAddress(address).filter((word) => word.length >= MIN_LONG_WORD || (word.length >= MIN_WORD && /\d/.test(word)))

/** The values of an environment that must not be written down. */
export const secretsIn = (environment: { readonly [name: string]: string | undefined }): ReadonlyArray<string> =>
  Object.entries(environment).flatMap(([name, value]) => {
    if (value === undefined || value.length > MAX_VALUE * 8 || HARMLESS_NAME.test(name)) return []
    const passwords = passwordsIn(value)
    const isSecret = SECRET_NAME.test(name) && !ABOUT.test(name) && !HARMLESS_VALUE.test(value)
    if (isSecret) return [value, ...passwords, ...secretsOfAddress(value)]
    return passwords.length === 0 ? [] : [value, ...passwords]
  })

/** The texts that a registered value makes known: itself, and each line that is a secret by itself. */
export const partsOf = (value: string): ReadonlyArray<string> => {
  const lines = value.includes("\n")
    ? value
        .split("\n")
        .map((line) => line.trim())
        .filter((line) => line.length >= MIN_LINE && /\d/.test(line) && /^[\w+/=.-]+$/.test(line))
    : []
  return [value, ...lines].filter((part) => part.length >= MIN_VALUE && part.length <= MAX_VALUE)
}

/** Base64 at the three offsets that a place in a longer text may have, without what depends on its neighbours. */
const base64Of = (value: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(value)
  return [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString("base64")
      .replaceAll("=", "")
    return text.slice(shift === 0 ? 0 : shift + 1, (bytes.length + shift) % 3 === 0 ? undefined : -1)
  })
}

export const formsOf = (value: string): ReadonlyArray<Form> => {
  if (value.length < MIN_ANYWHERE) return [{ text: value, whole: true }]
  // half a character has no address and no bytes of its own
  const proper = value.toWellFormed()
  const hex = Buffer.from(value).toString("hex")
  const base64 = base64Of(value)
  const inAddress = encodeURIComponent(proper)
  const texts = [
    value,
    JSON.stringify(value).slice(1, -1),
    inAddress,
    inAddress.replaceAll("%20", "+"),
    inAddress.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    encodeURI(proper),
    hex,
    hex.toUpperCase(),
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"))
  ]
  return [...new Set(texts)].filter((text) => text.length >= MIN_ANYWHERE).map((text) => ({ text, whole: false }))
}
