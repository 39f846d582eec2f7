/**
 * HintCommand: completes commands in hints, so that the user can type them as shown. If another state directory is used
 * (`--state DIR`), these commands need the same flag. Without it, they would reach or start another daemon.
 */
import { shellWord } from "../../config/ShellWord.ts"
import { OLD } from "./Renamed.ts"

/** All verbs. A test compares this list with the help. */
export const VERBS =
  "access accounts alert answer approvals approve at attach backup channel completions config conformance cost demo deny diff dismiss docs doctor erase focus forget gc goal hook hooks init interrupt log login logout mcp open project ps repair restart restore retry run schedule schema send service set spawn start status stop trust uninstall up verify wait waiting why".split(
    " "
  )

/**
 * Matches `agentd VERB`, but not at the end of a path, because a state directory can be /var/lib/agentd. An older daemon
 * uses old names of verbs.
 */
const COMMAND = new RegExp(`(?<![\\w/.-])agentd (?=(${[...VERBS, ...OLD].join("|")})\\b)`, "g")

/** Adds `--state` to the commands in a text. `state`: the state directory; null for the default one. */
export const inWorld = (text: string, state: string | null): string =>
  state === null ? text : text.replaceAll(COMMAND, () => `agentd --state ${shellWord(state)} `)
