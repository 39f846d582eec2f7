/**
 * HintCommand: completes commands in hints, so that the user can type them as shown. If another state directory or host
 * is used (`--state DIR`, `--host HOST`), these commands need the same flag: without it, they would reach or start
 * another daemon.
 */
import { shellWord } from "../../config/ShellWord.ts"
import { OLD } from "./Renamed.ts"

/** All verbs. A test compares this list with the help. */
export const VERBS =
  "access accounts alert answer approvals approve at attach backup channel completions config conformance cost demo deny diff dismiss docs doctor erase focus forget gc goal hook hooks host init interrupt log login logout mcp open project ps repair restart restore retry run schedule schema send service set spawn start status stop trust uninstall up verify wait waiting why".split(
    " "
  )

/**
 * Matches `agentd VERB`, but not at the end of a path, because a state directory can be /var/lib/agentd. An older daemon
 * uses old names of verbs.
 */
const COMMAND = new RegExp(`(?<![\\w/.-])agentd (?=(${[...VERBS, ...OLD].join("|")})\\b)`, "g")

/** Adds the daemon to the commands in a text. `world`: a state directory, or a host; null for the default daemon. */
export const inWorld = (text: string, world: string | null): string => {
  if (world === null) return text
  const flag = world.startsWith("/") ? "--state" : "--host"
  return text.replaceAll(COMMAND, () => `agentd ${flag} ${shellWord(world)} `)
}
