/**
 * Renamed: replaces old names of verbs by the new ones, and finds flags that turn a verb into another verb. Pure.
 *
 * Guarantees: an old name runs the verb with the new name, with the same output and exit code, and the new name is
 * printed to standard error. Both entry points of the program pass their command line through this module.
 */

/**
 * Modes of verbs: flags that select what a verb lists. Each mode has its own flags, so `log --text` is a separate verb
 * besides `log`.
 */
const MODES: { readonly [verb: string]: ReadonlyArray<string> } = {
  log: ["--text", "--messages", "--runs", "--channel"],
  ps: ["--plates"],
  status: ["--tree"]
}

/** The new name of each renamed verb, by the old name. */
const NEW: { readonly [old: string]: string } = {
  alerts: "alert ls",
  archive: "project archive",
  "channel log": "log --channel",
  close: "project close",
  "conversation ls": "project ls --conversations",
  "conversation new": "project new",
  "conversation show": "project show",
  "goal schema": "schema goal",
  history: "log --messages",
  logs: "log --text",
  "notify ls": "alert channels",
  "notify test": "alert test",
  pause: "project pause",
  plates: "ps --plates",
  resume: "project resume",
  runs: "log --runs",
  tree: "status --tree",
  watch: "ps --watch"
}

/** First words of the old names, some of which are verbs today. */
export const OLD: ReadonlyArray<string> = Object.keys(NEW).map((name) => name.split(" ")[0]!)

/** Old verbs that only contained subcommands, with their new names. */
const GROUPS: ReadonlyMap<string, string> = new Map([
  ["conversation", "project"],
  ["notify", "alert"]
])

/** True if the name is that of a verb with a mode, such as `log --text`. */
export const isMode = (name: string): boolean => name.includes(" --")

/** The modes of a verb as names: for `log`, these are `log --text` and so on. Empty if the verb has no modes. */
export const modesOf = (verb: string): ReadonlyArray<string> => (MODES[verb] ?? []).map((mode) => `${verb} ${mode}`)

export interface Present {
  /** The command line with current names, in which a mode directly follows its verb. */
  readonly args: ReadonlyArray<string>
  /** A note that names the new verb; undefined if the command line contains no old name. */
  readonly note: string | undefined
}

/** Indexes of the first two arguments that are not global flags, and so can be the words of the verb. */
const wordsIn = (args: ReadonlyArray<string>): ReadonlyArray<number> => {
  const found: Array<number> = []
  for (let at = 0; at < args.length && found.length < 2; at++) {
    const arg = args[at]!
    if (arg === "--state") at++
    else if (arg !== "--json" && !arg.startsWith("--state=")) found.push(at)
  }
  return found
}

/** Moves a mode from anywhere in the command line to the position directly after its verb. */
const withMode = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [at = 0] = wordsIn(args)
  const modes = MODES[args[at] ?? ""] ?? []
  const end = args.indexOf("--")
  const where = args.findIndex(
    (arg, n) => n > at && (end < 0 || n < end) && modes.some((mode) => arg === mode || arg.startsWith(`${mode}=`))
  )
  if (where < 0) return args
  const [mode, ...value] = args[where]!.split("=")
  const given = value.length === 0 ? [] : [value.join("=")]
  return [...args.slice(0, at + 1), mode!, ...args.slice(at + 1, where), ...given, ...args.slice(where + 1)]
}

const noteOf = (old: string, name: string): string =>
  `agentd: "agentd ${old}" is now "agentd ${name}"; a later version will remove the old name.`

export const present = (args: ReadonlyArray<string>): Present => {
  const [first, second] = wordsIn(args)
  if (first === undefined) return { args, note: undefined }
  const one = args[first]!
  const two = second === undefined ? one : `${one} ${args[second]!}`
  const old = [two, one].find((name) => Object.hasOwn(NEW, name))
  // an old group without a subcommand prints the new group's help
  const isGroup = GROUPS.has(one) && (second === undefined || args[second]!.startsWith("-"))
  if (isGroup)
    return { args: args.map((arg, at) => (at === first ? GROUPS.get(one)! : arg)), note: noteOf(one, GROUPS.get(one)!) }
  // `notify test` without a channel was a usage error, so do not translate it to `alert test`, which would send a mail
  const isAlone = old === "notify test" && !args.slice(second! + 1).some((arg) => !arg.startsWith("-"))
  if (old === undefined || isAlone) return { args: withMode(args), note: undefined }
  const name = NEW[old]!
  const rest = args.filter((_, at) => at !== first && !(old === two && at === second))
  const line = [...rest.slice(0, first), ...name.split(" "), ...rest.slice(first)]
  return { args: withMode(line), note: noteOf(old, name) }
}

/** Joins a verb and its mode to one argument, because that is the name of the mode's command. */
export const asOneWord = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [at = 0] = wordsIn(args)
  const [verb, mode] = [args[at] ?? "", args[at + 1] ?? ""]
  return (MODES[verb] ?? []).includes(mode) ? [...args.slice(0, at), `${verb} ${mode}`, ...args.slice(at + 2)] : args
}
