/**
 * Habits: maps words that people know from other programs to the verbs of agentd. Pure.
 */

/** npm replaces the package; after the restart, the daemon is the new one. */
const NEWER = "restart, after npm install -g FILE.tgz (or scripts/install FILE.tgz) has installed the newer package"

const MEANT: { readonly [word: string]: string } = {
  dashboard: "agentd, alone: the board",
  delete: "stop AGENT; uninstall removes all of agentd",
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
  monit: "agentd, alone: the board",
  monitor: "agentd, alone: the board",
  new: "init",
  quit: "stop",
  reload: "trust, once you have changed agentd.jsonc: it is read by itself",
  remove: "stop AGENT; take it out of agentd.jsonc, and it is gone",
  rm: "stop AGENT; take it out of agentd.jsonc, and it is gone",
  setup: "init",
  shutdown: "stop",
  show: "why AGENT",
  stats: "cost",
  tail: "log --text -f AGENT",
  top: "agentd, alone: the board",
  ui: "agentd, alone: the board",
  update: NEWER,
  upgrade: NEWER,
  usage: "cost"
}

/** The remedy for an unknown verb; undefined if the word is not in MEANT. */
export const meant = (word: string): string | undefined => {
  const found = Object.hasOwn(MEANT, word) ? MEANT[word]! : undefined
  if (found === undefined) return undefined
  return found.startsWith("agentd") ? `That is ${found}.` : `That is: agentd ${found}`
}

/** Number of arguments before the verb: the global flags. */
const before = (args: ReadonlyArray<string>): number => {
  const at = args.findIndex((arg, n) => !/^--(json$|state(=|$))/.test(arg) && args[n - 1] !== "--state")
  return at < 0 ? args.length : at
}

/** Turns `help VERB` and `version` into flags; other lines are unchanged. */
export const asFlags = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const at = before(args)
  const [first, ...rest] = args.slice(at)
  const flags = args.slice(0, at)
  if (first === "version" && rest.length === 0) return [...flags, "--version"]
  return first === "help" ? [...flags, ...rest, "--help"] : args
}
