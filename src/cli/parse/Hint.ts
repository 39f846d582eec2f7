/**
 * Hint: what a person is told to do next, as they must type it. In a world of its
 * own (`--state DIR`) every command that is named needs that folder, too; a hint
 * without it would lead to another daemon, or start one.
 */

/** Every verb of the command line. A test holds it against the help. */
export const VERBS =
  "access accounts alert answer approve at attach backup channel completions config conformance cost demo deny diff dismiss doctor erase focus forget gc goal hook hooks init interrupt log login logout mcp open project ps repair restart restore retry run schedule schema send service set spawn start status stop trust uninstall up verify wait waiting why".split(
    " "
  )

/** The end of a path is no command: a world may be called /var/lib/agentd. */
const COMMAND = new RegExp(`(?<![\\w/.-])agentd (?=(${VERBS.join("|")})\\b)`, "g")

export const quoted = (path: string): string =>
  /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`

/** `state`: null for the user's own world. */
export const inWorld = (text: string, state: string | null): string =>
  state === null ? text : text.replaceAll(COMMAND, () => `agentd --state ${quoted(state)} `)
