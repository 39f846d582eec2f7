/**
 * SecretValues: decides which values of an environment are secrets, and in which forms a secret can occur in a text.
 * Pure.
 *
 * A variable is a secret because of its name, or because its value is an address with a password. A secret is found in
 * these forms: unchanged, escaped in JSON, URL-encoded, in hex, and in base64, where it can begin at any offset of the
 * encoded text.
 */

/** Minimum length in characters of a secret value. A shorter value is usually just a word. */
export const MIN_VALUE = 6
/**
 * Minimum length (characters) of a value that is found everywhere and in all forms. A shorter value is found only as a
 * whole word.
 */
const MIN_ANYWHERE = 8
/** Maximum length in characters. A longer value is a document, in which only single lines are secrets. */
const MAX_VALUE = 16 * 1024
/** Minimum length of a line in a multi-line value so that the line is a secret by itself. */
const MIN_LINE = 20

export interface Form {
  readonly text: string
  /** True: the text is a secret only as a whole word, with no word character directly before or after it. */
  readonly whole: boolean
}

/** Names of variables whose values are harmless and occur often in logs. */
const HARMLESS_NAME =
  /^(?:PATH|HOME|PWD|OLDPWD|SHELL|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TERM\w*|COLORTERM|TZ|HOSTNAME|HOST|EDITOR|VISUAL|PAGER|SHLVL|_|DISPLAY|MAIL|TMPDIR|NODE_ENV|NODE_VERSION|XDG_\w+|npm_(?!config__auth)\w+|GOPATH|JAVA_HOME|LS_COLORS|MANPATH|INFOPATH|SSH_(?:AUTH_SOCK|AGENT_PID|TTY|CLIENT|CONNECTION)|SYSTEMD_\w+|INVOCATION_ID|JOURNAL_STREAM|DBUS_\w+|WAYLAND_\w+)$/
const SECRET_NAME =
  /KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH(?!OR)|(?:^|_)P(?:AT|IN|W|WD)(?:_|$)|COOKIE|SIGNATURE|WEBHOOK|DSN|(?:DATABASE|DB|MONGO\w*|REDIS|AMQP|PG|POSTGRES\w*|MYSQL|SMTP)_(?:URL|URI)|CONNECTION_STRING/i
/** Names of variables that only describe a secret: where it is stored, how many there are, or how long it is valid. */
const ABOUT =
  /(?:_(?:FILE|PATH|DIR|SOCK|SOCKET|NAME|USER|TYPE|MODE|VERSION|TIMEOUT|TTL|LIMIT|SIZE|LENGTH|COUNT|PORT|ID_FILE)|TOKENS)$|^MAX_/i
const HARMLESS_VALUE = /^(?:true|false|yes|no|on|off|none|null|undefined|\d{1,5})$/i

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Returns the password in an address, as written and URL-decoded. */
const passwordsIn = (value: string): ReadonlyArray<string> => {
  const password = /^[a-z][a-z0-9+.-]{0,32}:\/\/[^/\s:@]{0,256}:([^/\s@]{1,1024})@/i.exec(value)?.[1]
  return password === undefined ? [] : [password, decoded(password)]
}

/** Returns everything after the host of an address, as a whole and word by word, each as written and URL-decoded. */
export const wordsOfAddress = (address: string): ReadonlyArray<string> => {
  const path = /^https?:\/\/[^/?#\s]{1,256}[/?#](\S{1,1024})$/.exec(address)?.[1]
  if (path === undefined) return []
  const words = [path, ...path.split(/[/?&=#]/)]
  return [...new Set([...words, ...words.map(decoded)])].filter((word) => word !== "")
}

/**
 * Minimum length (characters) of a word with a digit that is redacted in a secret address. Shorter words are often
 * ordinary words.
 */
const MIN_WORD = 12
/** Minimum length (characters) of a word without a digit that is redacted in a secret address. */
const MIN_LONG_WORD = 16

/** Parts of a secret address, such as a webhook, that must be redacted, too. */
export const secretsOfAddress = (address: string): ReadonlyArray<string> =>
  wordsOfAddress(address).filter((word) => word.length >= MIN_LONG_WORD || (word.length >= MIN_WORD && /\d/.test(word)))

export const secretsIn = (environment: { readonly [name: string]: string | undefined }): ReadonlyArray<string> =>
  Object.entries(environment).flatMap(([name, value]) => {
    if (value === undefined || value.length > MAX_VALUE * 8 || HARMLESS_NAME.test(name)) return []
    const passwords = passwordsIn(value)
    const isSecret = SECRET_NAME.test(name) && !ABOUT.test(name) && !HARMLESS_VALUE.test(value)
    if (isSecret) return [value, ...passwords, ...secretsOfAddress(value)]
    return passwords.length === 0 ? [] : [value, ...passwords]
  })

/** Strings to redact for a registered value: the value, and each of its lines that is a secret by itself. */
export const partsOf = (value: string): ReadonlyArray<string> => {
  const lines = value.includes("\n")
    ? value
        .split("\n")
        .map((line) => line.trim())
        .filter((line) => line.length >= MIN_LINE && /\d/.test(line) && /^[\w+/=.-]+$/.test(line))
    : []
  return [value, ...lines].filter((part) => part.length >= MIN_VALUE && part.length <= MAX_VALUE)
}

/** Base64 of the value at the three possible offsets, without the characters that depend on neighbouring bytes. */
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
  // replace lone surrogates, which cannot be URL-encoded and have no bytes
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
