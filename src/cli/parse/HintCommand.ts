/**
 * HintCommand: commands in hints, as the user must type them. With another state directory (`--state DIR`), each of these
 * commands needs that flag. Without the flag, the command would reach another daemon, or start one.
 */

/** Every verb of the command line. A test compares the list with the help. */
export const VERBS =
  "access accounts alert answer approve at attach backup channel completions config conformance cost demo deny diff dismiss doctor erase focus forget gc goal hook hooks init interrupt log login logout mcp open project ps repair restart restore retry run schedule schema send service set spawn start status stop trust uninstall up verify wait waiting why".split(
    " "
  )

/** Matches `agentd VERB`, but not at the end of a path: a state directory can be /var/lib/agentd. */
const COMMAND = new RegExp(`(?<![\\w/.-])agentd (?=(${VERBS.join("|")})\\b)`, "g")

export const quoted = (path: string): string =>
  /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`

/** Adds `--state` to the commands in a text. `state`: the state directory; null for the default one. */
export const inWorld = (text: string, state: string | null): string =>
  state === null ? text : text.replaceAll(COMMAND, () => `agentd --state ${quoted(state)} `)
