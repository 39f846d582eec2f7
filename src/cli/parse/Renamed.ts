/**
 * Renamed: verbs that go by another name now, and the flags that make another verb of one. Pure.
 *
 * Guarantees: an old name does what it did, with the same output and exit code, and says the new one on standard
 * error. Both entries of the program read a line through it.
 */

/** Flags that choose what a verb lists. Each has flags of its own: `log --text` is a verb beside `log`. */
const MODES: { readonly [verb: string]: ReadonlyArray<string> } = {
  log: ["--text", "--messages", "--runs", "--channel"],
  ps: ["--plates"],
  status: ["--tree"]
}

/** The old name, and the new one. */
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

/** Old verbs that only hold others. */
const GROUPS: ReadonlyMap<string, string> = new Map([
  ["conversation", "project"],
  ["notify", "alert"]
])

/** Whether the command is a verb with one of its modes. */
export const isMode = (name: string): boolean => name.includes(" --")

/** `log --text` and the like, of `log`. */
export const modesOf = (verb: string): ReadonlyArray<string> => (MODES[verb] ?? []).map((mode) => `${verb} ${mode}`)

export interface Present {
  /** The line by today's names, a mode right behind its verb. */
  readonly args: ReadonlyArray<string>
  /** Says the new name, where an old one was given. */
  readonly note: string | undefined
}

/** Where the words that name the verb stand: the first two that are no flag of the whole program. */
const wordsIn = (args: ReadonlyArray<string>): ReadonlyArray<number> => {
  const found: Array<number> = []
  for (let at = 0; at < args.length && found.length < 2; at++) {
    const arg = args[at]!
    if (arg === "--state") at++
    else if (arg !== "--json" && !arg.startsWith("--state=")) found.push(at)
  }
  return found
}

/** The verb's mode behind it, wherever in the line it stands. */
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
  `agentd: "agentd ${old}" is now "agentd ${name}"; a later version drops the old name.`

export const present = (args: ReadonlyArray<string>): Present => {
  const [first, second] = wordsIn(args)
  if (first === undefined) return { args, note: undefined }
  const one = args[first]!
  const two = second === undefined ? one : `${one} ${args[second]!}`
  const old = [two, one].find((name) => Object.hasOwn(NEW, name))
  // these groups alone, or with a flag, print their help
  const isGroup = GROUPS.has(one) && (second === undefined || args[second]!.startsWith("-"))
  if (isGroup)
    return { args: args.map((arg, at) => (at === first ? GROUPS.get(one)! : arg)), note: noteOf(one, GROUPS.get(one)!) }
  // without a channel it was wrong use, and sends no mail now
  const isAlone = old === "notify test" && !args.slice(second! + 1).some((arg) => !arg.startsWith("-"))
  if (old === undefined || isAlone) return { args: withMode(args), note: undefined }
  const name = NEW[old]!
  const rest = args.filter((_, at) => at !== first && !(old === two && at === second))
  const line = [...rest.slice(0, first), ...name.split(" "), ...rest.slice(first)]
  return { args: withMode(line), note: noteOf(old, name) }
}

/** The words of a verb with a mode as one word, which names its command. */
export const asOneWord = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [at = 0] = wordsIn(args)
  const [verb, mode] = [args[at] ?? "", args[at + 1] ?? ""]
  return (MODES[verb] ?? []).includes(mode) ? [...args.slice(0, at), `${verb} ${mode}`, ...args.slice(at + 2)] : args
}
