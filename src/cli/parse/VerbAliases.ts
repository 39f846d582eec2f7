/** VerbAliases: maps command names of other programs, such as `kill` and `top`, to verbs of agentd. Pure. */

/** The remedy for a user who wants to upgrade: install the new version with npm, then restart the daemon. */
const NEWER =
  "restart, after you have installed the newer package: npm install -g FILE.tgz (or scripts/install FILE.tgz)"

const MEANT: { readonly [word: string]: string } = {
  dashboard: "agentd, without a command: it opens the board",
  delete: "stop AGENT; to remove all of agentd: agentd uninstall",
  down: "stop",
  events: "log -f",
  exec: "send AGENT TEXT",
  halt: "stop",
  info: "status",
  inspect: "why AGENT",
  journal: "log --text",
  kill: "stop AGENT",
  list: "ps",
  ls: "ps",
  message: "send AGENT TEXT",
  monit: "agentd, without a command: it opens the board",
  monitor: "agentd, without a command: it opens the board",
  new: "init",
  quit: "stop",
  reload: "trust, to put a changed agentd.jsonc into force; agentd reads a changed file automatically",
  remove: "stop AGENT; to remove the agent, delete it from agentd.jsonc",
  rm: "stop AGENT; to remove the agent, delete it from agentd.jsonc",
  setup: "init",
  shutdown: "stop",
  show: "why AGENT",
  stats: "cost",
  tail: "log --text -f AGENT",
  top: "agentd, without a command: it opens the board",
  ui: "agentd, without a command: it opens the board",
  update: NEWER,
  upgrade: NEWER,
  usage: "cost"
}

/** The verb that was meant by a word of another program; undefined if the word is not in MEANT. */
export const meant = (word: string): string | undefined => {
  const found = Object.hasOwn(MEANT, word) ? MEANT[word]! : undefined
  if (found === undefined) return undefined
  return found.startsWith("agentd") ? `Use ${found}.` : `Use: agentd ${found}`
}

/** Number of arguments before the verb: global flags and their values. */
const before = (args: ReadonlyArray<string>): number => {
  const at = args.findIndex((arg, n) => !/^--(json$|state(=|$))/.test(arg) && args[n - 1] !== "--state")
  return at < 0 ? args.length : at
}

/** Turns `help VERB` and `version` into the flags `--help` and `--version`. Other command lines are not changed. */
export const asFlags = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const at = before(args)
  const [first, ...rest] = args.slice(at)
  const flags = args.slice(0, at)
  if (first === "version" && rest.length === 0) return [...flags, "--version"]
  return first === "help" ? [...flags, ...rest, "--help"] : args
}
