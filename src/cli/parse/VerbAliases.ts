/** VerbAliases: maps words and flags of other programs, such as `kill` and `top`, to commands of agentd. Pure. */

/** The remedy for a user who wants to upgrade: install the new version with npm, then restart the daemon. */
const NEWER =
  "restart, after you have installed the newer package: npm install -g FILE.tgz (or scripts/install FILE.tgz)"

const MEANT: { readonly [word: string]: string } = {
  dash: "agentd, without a command: it opens the board",
  dashboard: "agentd, without a command: it opens the board",
  delete: "stop AGENT; to remove all of agentd: agentd uninstall",
  down: "stop",
  describe: "why AGENT",
  disable: "stop AGENT",
  enable: "start AGENT",
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
  notify: "alert channels, or alert test",
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

/** Words and flags of other programs after a verb of agentd: what to use in place of each. */
export const AFTER: { readonly [words: string]: string } = {
  "accounts login":
    "Log in with the provider's own program, such as claude or codex. agentd login SERVER logs in to an MCP server.",
  "alert add":
    "Add the channel under notify.channels in your own config.jsonc (by default in ~/.config/agentd). Test it: agentd alert test",
  "approve --all": "Approve each call by itself. List them: agentd approve",
  "config edit": "Edit agentd.jsonc. Show what a change does: agentd config diff",
  "config get": "Read agentd.jsonc. Describe its fields: agentd schema",
  "config set": "Edit agentd.jsonc. Describe its fields: agentd schema",
  "config show": "Read agentd.jsonc. Show what a change does: agentd config diff",
  "goal delete": "goal cancel GOAL",
  "goal list": "goal ls",
  "goal remove": "goal cancel GOAL",
  "goal rm": "goal cancel GOAL",
  "goal stop": "goal cancel GOAL",
  "log --messages --by": "log --messages --grep NAME",
  "log --runs --run": "log --text AGENT --run RUN",
  "open --port": "Set http.port in your own config.jsonc (by default in ~/.config/agentd), then run agentd restart",
  "project delete": "project remove PROJECT",
  "project list": "project ls",
  "project rm": "project remove PROJECT",
  "ps --failed": "ps --is failed",
  "ps --format": "ps --json, or ps --csv",
  "ps --output": "ps --json, or ps --csv",
  "ps --status": "ps --is STATUS",
  "ps -f": "ps --watch",
  "ps -o": "ps --json, or ps --csv",
  "restart --all": "restart '*/*'",
  "schedule add": "at TIME send AGENT TEXT; for repeated times, add it under schedules in agentd.jsonc",
  "schedule create": "at TIME send AGENT TEXT; for repeated times, add it under schedules in agentd.jsonc",
  "schedule delete": "schedule rm SCHEDULE",
  "schedule list": "schedule ls",
  "schedule new": "at TIME send AGENT TEXT; for repeated times, add it under schedules in agentd.jsonc",
  "send --message": 'send AGENT "TEXT"',
  "send -m": 'send AGENT "TEXT"',
  "service disable": "service uninstall",
  "service enable": "service install",
  "service restart": "restart",
  "service start": "service install",
  "service stop": "stop --daemon",
  "stop --all": "stop --daemon"
}

/** Verbs whose further words can only be one text that was not quoted, or one name too many. */
const EXTRA: { readonly [verb: string]: (words: string) => string } = {
  cost: () => "cost --by agent",
  goal: () => 'goal "TEXT", with the text in quotes',
  deny: (words) => `deny CALL --reason "${words}"`,
  send: () => 'send AGENT "TEXT"'
}

const remedy = (found: string | undefined): string | undefined => {
  if (found === undefined || /^[A-Z]/.test(found)) return found
  return found.startsWith("agentd") ? `Use ${found}.` : `Use: agentd ${found}`
}

/** The remedy for an unknown word or flag after the verb `path`; undefined if it is in no table. */
export const meant = (path: ReadonlyArray<string>, word: string): string | undefined =>
  remedy(path.length === 0 ? own(MEANT, word) : own(AFTER, `${path.join(" ")} ${word}`))

/** The remedy for more words than the verb `path` takes; undefined if it is in no table. */
export const extra = (path: ReadonlyArray<string>, words: string): string | undefined =>
  remedy(own(EXTRA, path.join(" "))?.(words))

const own = <A>(table: { readonly [key: string]: A }, key: string): A | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined

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
