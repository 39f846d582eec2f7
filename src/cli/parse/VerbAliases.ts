/** VerbAliases: maps words and flags of other programs, such as `kill` and `top`, to commands of agentd. Pure. */
import { shellWord } from "../../config/ShellWord.ts"
import { VERBS } from "./HintCommand.ts"
import { OLD, present } from "./Renamed.ts"

/** The remedy for a user who wants to upgrade: install the new version with npm, then restart the daemon. */
const NEWER =
  "restart, after you have installed the newer package: npm install -g FILE.tgz (or scripts/install FILE.tgz)"

/** Words of other programs, by what to use in place of them. */
const BY_REMEDY: { readonly [remedy: string]: string } = {
  "access ls": "whoami tokens",
  "agentd, without a command: it opens the board": "board dash dashboard htop monit monitor top tui ui",
  "alert ls": "notice notices notifications",
  "alert channels, or alert test": "notify",
  "approve CALL": "accept allow yes",
  "approvals ls": "permissions policy rules",
  "at TIME send AGENT TEXT, with a time such as 9:00 or 'in 20m'": "after in later",
  "attach AGENT": "chat connect console shell ssh talk",
  "backup FILE": "dump export save",
  "channel ls": "room rooms",
  "channel post CHANNEL TEXT": "post",
  "config diff": "test validate",
  "config diff, after you have changed agentd.jsonc": "apply edit",
  cost: "billing budget spend stats usage",
  "deny CALL": "no refuse reject",
  "diff AGENT": "blame branch changes checkout commit fetch merge patch pull push rebase stash worktree",
  "docs, or --help": "doc guide man manual",
  "doctor, or verify to check the log": "check diagnose health ping",
  "erase RUNE, which asks first; or gc --dry-run": "purge",
  "gc --dry-run": "clean cleanup clear flush prune",
  "goal ls": "task tasks",
  "goal TEXT": "plan",
  "init; further agents are added in agentd.jsonc": "add clone create fork new scale setup",
  "interrupt AGENT": "abort cancel",
  "log -f": "events follow",
  "log --text": "cat journal journalctl output",
  "log --text -f AGENT": "tail",
  open: "browse browser page web",
  ps: "agents get list list-units ls",
  "ps --plates": "sessions",
  "restore FILE": "import resurrect",
  "schedule ls": "cron crontab every",
  "send AGENT TEXT": "ask command exec inject message msg prompt query say tell write",
  "service install": "startup unit",
  "service status": "systemctl systemd",
  "start AGENT": "enable unmask unpause continue",
  "start '*/*'": "start-all",
  status: "info is-active metrics",
  stop: "down halt quit shutdown",
  "stop AGENT": "disable drain freeze kill mask suspend terminate",
  "stop AGENT; to remove the agent, delete it from agentd.jsonc": "delete remove rm",
  "restart AGENT": "reboot reset try-restart",
  "trust, to put a changed agentd.jsonc into force; agentd reads a changed file automatically":
    "daemon-reload reload untrust",
  "wait AGENT": "wait-for",
  waiting: "inbox",
  "why AGENT": "debug describe explain inspect show",
  [NEWER]: "update upgrade"
}

const MEANT: { readonly [word: string]: string } = Object.fromEntries(
  Object.entries(BY_REMEDY).flatMap(([found, words]) => words.split(" ").map((word) => [word, found]))
)

/** Words and flags of other programs after a verb of agentd: what to use in place of each. */
export const AFTER: { readonly [words: string]: string } = {
  "accounts login":
    "Log in with the provider's own program, such as claude or codex. agentd login SERVER logs in to an MCP server.",
  "alert add":
    "Add the channel under notify.channels in your own config.jsonc (by default in ~/.config/agentd). Test it: agentd alert test",
  "approvals add":
    "Answer a waiting call for later calls, too: agentd approve CALL --for project. Or add a rule under approvals in agentd.jsonc",
  "backup --output": "backup FILE",
  "backup -o": "backup FILE",
  "channel delete": "channel close CHANNEL",
  "channel log": "log --channel CHANNEL",
  "channel rm": "channel close CHANNEL",
  "config check": "config diff",
  "config edit": "Edit agentd.jsonc. Show what a change does: agentd config diff",
  "config get": "Read agentd.jsonc. Describe its fields: agentd schema",
  "config set": "Edit agentd.jsonc. Describe its fields: agentd schema",
  "config list": "Read agentd.jsonc. Describe its fields: agentd schema",
  "config path": "project ls",
  "config show": "Read agentd.jsonc. Show what a change does: agentd config diff",
  "doctor --fix": "doctor",
  "goal add": "goal TEXT",
  "goal create": "goal TEXT",
  "goal delete": "goal cancel GOAL",
  "goal new": "goal TEXT",
  "goal pause": "goal cancel GOAL; to stop only its agents: agentd project pause",
  "goal remove": "goal cancel GOAL",
  "goal rm": "goal cancel GOAL",
  "goal start": "goal TEXT",
  "goal stop": "goal cancel GOAL",
  "init --force": "Delete or rename agentd.jsonc, then run agentd init",
  "log --csv": "log --json",
  "log --run": "log --text AGENT --run RUN",
  "log --messages --by": "log --messages --grep NAME",
  "log --runs --run": "log --text AGENT --run RUN",
  "notify add":
    "Add the channel under notify.channels in your own config.jsonc (by default in ~/.config/agentd). Test it: agentd alert test",
  "open --port": "Set http.port in your own config.jsonc (by default in ~/.config/agentd), then run agentd restart",
  "project add": "Run agentd init in the project's folder, then agentd start",
  "project create": "Run agentd init in the project's folder, then agentd start",
  "project status": "ps PROJECT",
  "project trust": "trust PROJECT",
  "ps --failed": "ps --is failed",
  "ps --format": "ps --json, or ps --csv",
  "ps --output": "ps --json, or ps --csv",
  "ps --filter": "ps --is STATUS",
  "ps --status": "ps --is STATUS",
  "ps -f": "ps --watch",
  "ps -o": "ps --json, or ps --csv",
  "restart --force": "restart AGENT",
  "restart -f": "restart AGENT",
  "restart --all": "restart '*/*'",
  "schedule add":
    "For one time: agentd at TIME send AGENT TEXT. For repeated times, add it under schedules in agentd.jsonc",
  "schedule create":
    "For one time: agentd at TIME send AGENT TEXT. For repeated times, add it under schedules in agentd.jsonc",
  "schedule edit": "Change it under schedules in agentd.jsonc. List all: agentd schedule ls",
  "schedule new":
    "For one time: agentd at TIME send AGENT TEXT. For repeated times, add it under schedules in agentd.jsonc",
  "send --message": 'send AGENT "TEXT"',
  "send -m": 'send AGENT "TEXT"',
  "service disable": "service uninstall",
  "service enable": "service install",
  "service logs": "log --stream daemon",
  "service restart": "restart",
  "service start": "service install",
  "service stop": "stop --daemon",
  "set --budget": "Change budget in agentd.jsonc, then run agentd config diff",
  "set --effort": "Change it under backend in agentd.jsonc, then run agentd config diff",
  "start --model": "set AGENT --model MODEL",
  "start --all": "start '*/*'",
  "status --all": "ps --all",
  "status --watch": "ps --watch",
  "stop --all": "stop --daemon",
  "stop --force": "stop AGENT",
  "stop -f": "stop AGENT",
  "stop --timeout": "stop AGENT",
  "trust --yes": "Show the change with agentd trust, then pass the hash that it shows: agentd trust HASH",
  "access grant": "access new NAME",
  "accounts add":
    "Log in with the provider's own program, such as claude or codex, or set its key where the daemon is started",
  "alert ack": "waiting",
  "alert mute":
    "Remove the channel under notify.channels in your own config.jsonc. List all channels: agentd alert channels",
  "alert send": "alert test",
  "approve -y": "approve --all",
  "approve --yes": "approve --all",
  "backup --to": "backup FILE",
  "channel add": "channel assign CHANNEL AGENT",
  "channel leave": "channel remove CHANNEL AGENT, to take an agent out; to leave it yourself, press ctrl+c",
  "cost --project": "cost --by project",
  "deny --all": "Deny each call by itself. List them: agentd waiting",
  "hooks list": "hooks status",
  "gc --all": "gc --days 0",
  "gc --older-than": "gc --days 14",
  "goal status": "goal ls",
  "goal wait": "wait GOAL",
  "log --project": "log --text PROJECT",
  "ps --agent": "ps AGENT",
  "send --wait": 'send AGENT "TEXT" && agentd wait AGENT',
  "service log": "log --stream daemon"
}

/** Verbs whose further words can only be one text that was not quoted, or one name too many. */
const EXTRA: { readonly [verb: string]: (words: string) => string } = {
  cost: () => "cost --by agent",
  doctor: () => "doctor; to ask about one agent: agentd why AGENT",
  init: () => "init, in the project's folder",
  goal: () => 'goal "TEXT", with the text in quotes',
  deny: (words) => `deny CALL --reason "${words}"`,
  mcp: () => "mcp; add a server under mcp of a model backend in agentd.jsonc",
  open: () => "open",
  send: () => "send AGENT TEXT",
  status: (words) => `ps ${words}`,
  waiting: (words) => `ps ${words}`
}

/** Words with one meaning for subcommands: of each group, the first subcommand with the meaning of an unknown word. */
const WORDS: ReadonlyArray<ReadonlyArray<string>> = [
  ["ls", "list", "all", "get", "ps"],
  ["remove", "rm", "delete", "del", "destroy", "drop", "revoke", "cancel", "close"],
  ["new", "add", "create", "make", "install", "enable"],
  ["show", "status", "describe", "info", "inspect", "view", "get", "log", "logs", "history", "cat", "ls"],
  ["pause", "disable", "suspend", "hold", "stop"],
  ["resume", "enable", "unpause", "continue", "start"],
  ["approve", "accept", "allow"],
  ["reject", "deny", "decline"],
  ["run", "trigger", "fire"],
  ["test", "send", "try", "check", "ping"],
  ["post", "send", "say", "write", "message"],
  ["join", "open", "attach", "enter"],
  ["rename", "mv", "move"],
  ["diff", "validate", "check", "lint", "verify"],
  ["restart", "reload"],
  ["uninstall", "remove", "rm", "delete", "disable"]
]

/** Flags with one meaning: an unknown flag of a verb means the first flag beside it that the verb has. */
const FLAGS: ReadonlyArray<ReadonlyArray<string>> = [
  ["--lines", "--tail", "--limit", "--count", "--last", "--max", "--number", "-n"],
  ["--since", "--since-time", "--after", "--from", "--start", "--today"],
  ["--until", "--before", "--to", "--end"],
  ["--grep", "--search", "--filter", "--pattern", "--match", "-g"],
  ["--priority", "--level", "--severity", "--log-level", "-l"],
  ["--is", "--status", "--filter", "--only"],
  ["--for", "--until", "--condition"],
  ["--follow", "--watch", "--tail", "-f", "-w"],
  ["--watch", "--follow", "-f"],
  ["--all", "--everything", "-A"],
  ["--reason", "--message", "--comment", "--because", "-m"],
  ["--dry-run", "--check", "--simulate", "-n"],
  ["--label", "--selector", "--tag", "-l"],
  ["--kind", "--type", "--event"],
  ["--file", "--attach", "-f"],
  ["--yes", "--force", "--assume-yes", "--no-confirm", "-f"],
  ["--print", "--no-browser", "--url"],
  ["--version", "-V"],
  ["--csv", "--json", "--format", "--output", "--quiet", "--no-headers", "--oneline", "-q", "-o"],
  ["--json", "--format", "--output", "--csv", "--quiet", "--no-headers", "--oneline", "-q", "-o"]
]

/** The words that stand for an argument in the remedies, and those that stand for the value of a flag. */
const ARGUMENT = /\b(?:AGENT|CALL|CHANNEL|FILE|GOAL|PROJECT|SCHEDULE|SERVER)\b(?!\.)/g
const VALUE = /\b(?:MODEL|RUN|STATUS)\b/g

/** Fills the command of a remedy with the words that the user typed, as far as there are any. */
const filled = (text: string, words: ReadonlyArray<string>): string => {
  const left = [...words]
  // docker writes status=failed
  const valued = text.replace(VALUE, (place) => (left.length === 0 ? place : shellWord(left.pop()!.split("=").at(-1)!)))
  const named = valued.replace(ARGUMENT, (place) => (left.length === 0 ? place : shellWord(left.shift()!)))
  return left.length === 0 ? named : named.replace(/"?TEXT"?/, () => shellWord(left.join(" ")))
}

const remedy = (found: string | undefined, words: ReadonlyArray<string>): string | undefined => {
  if (found === undefined || /^[A-Z]/.test(found)) return found
  const text = filled(found, words)
  return text.startsWith("agentd") ? `Use ${text}.` : `Use: agentd ${text}`
}

/** The command line after a wrong word, and what the command knows at that place. */
export interface Context {
  /** The words after the wrong one; the value of a wrong flag comes last. */
  readonly words: ReadonlyArray<string>
  readonly flags: ReadonlyArray<string>
  readonly subcommands: ReadonlyArray<string>
}

const alike = (sets: ReadonlyArray<ReadonlyArray<string>>, word: string, known: ReadonlyArray<string>) =>
  sets.filter((set) => set.includes(word)).flatMap((set) => set.filter((one) => known.includes(one)))[0]

const rest = (words: ReadonlyArray<string>): string => words.map((one) => ` ${shellWord(one)}`).join("")

/** Other programs, and words for agents, after which people type a verb. */
const BEFORE = /^(agents?|agentd|compose|containers?|daemon|docker|git|kubectl|pm2|systemctl)$/

/** The remedy for the name of a thing where a verb is expected, such as `goals` or `get projects`. */
const thing = (word: string, { subcommands, words }: Context): string | undefined => {
  const [next, ...others] = words
  if (BEFORE.test(word) && next !== undefined) {
    if (word === "daemon" && next === "stop") return "Use: agentd stop --daemon"
    const now = present(words).args
    return subcommands.includes(now[0]!) ? `Use: agentd${rest(now)}` : remedy(own(MEANT, next), others)
  }
  const group = word.replace(/s$/, "")
  if (GROUPS.includes(group) && group !== word)
    return `Use: agentd ${group}${rest(words.length === 0 ? ["ls"] : words)}`
  const kind = next?.replace(/s$/, "")
  if (kind === undefined || !/^(get|list|ls|describe|delete|create|show|rm|new|add)$/.test(word)) return undefined
  if (kind === "agent")
    return /^(create|new|add)$/.test(word)
      ? "Add it under agents in agentd.jsonc, then run agentd start. For a new file: agentd init"
      : remedy(own(MEANT, word), others)
  if (!GROUPS.includes(kind)) return undefined
  const inner = own(AFTER, `${kind} ${word}`)
  return inner === undefined
    ? `Use: agentd ${kind} ${/^(get|list)$/.test(word) ? "ls" : word}${rest(others)}`
    : remedy(inner, others)
}

/** The remedy for a word that is no verb and like none: often the name of an agent or a project. */
export const named = (word: string, { subcommands, words: [next, ...others] }: Context): string => {
  const said = next === undefined ? [] : present([next]).args
  return subcommands.includes(said[0] ?? "")
    ? `Names come after the verb. Use: agentd${rest([...said, word, ...others])}`
    : `Names come after the verb, such as: agentd why ${shellWord(word)}. List all verbs: agentd --help`
}

const GROUPS: ReadonlyArray<string> = ["alert", "channel", "goal", "project", "schedule"]

const NOTHING: Context = { words: [], flags: [], subcommands: [] }

/** The remedy for an unknown word or flag after the verb `path`; undefined if none is known. */
export const meant = (path: ReadonlyArray<string>, word: string, context: Context = NOTHING): string | undefined => {
  const { flags, subcommands, words } = context
  if (path.length === 0) {
    const two = own(AFTER, `${word} ${words[0] ?? ""}`)
    return thing(word, context) ?? (two === undefined ? remedy(own(MEANT, word), words) : remedy(two, words.slice(1)))
  }
  const found = own(AFTER, `${path.join(" ")} ${word}`)
  if (found !== undefined) return remedy(found, words)
  const same = alike(word.startsWith("-") ? FLAGS : WORDS, word, word.startsWith("-") ? flags : subcommands)
  if (same === undefined) return undefined
  return word.startsWith("-")
    ? `Use ${same} instead of ${word}. See agentd ${path.join(" ")} --help`
    : `Use: agentd ${path.join(" ")} ${same}${same === "ls" ? "" : rest(words)}`
}

/** The remedy for more words than the verb `path` takes. `flags`: the flags of the verb. */
export const extra = (
  path: ReadonlyArray<string>,
  extras: ReadonlyArray<string>,
  { flags, words }: Pick<Context, "flags" | "words">
): string => {
  const [first = ""] = extras
  const verb = path.join(" ")
  const found =
    own(AFTER, `${verb} ${first}`) ??
    own(EXTRA, verb)?.(extras.join(" ")) ??
    (flags.includes(`--${first}`) ? `${verb} --${first}` : undefined)
  return (
    remedy(found, words) ??
    `Leave out ${extras.map((one) => shellWord(one)).join(" ")}. For the arguments: agentd ${verb} --help`
  )
}

const own = <A>(table: { readonly [key: string]: A }, key: string): A | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined

/** Number of arguments before the verb: global flags and their values. */
const before = (args: ReadonlyArray<string>): number => {
  const at = args.findIndex((arg, n) => !/^--(json$|state(=|$))/.test(arg) && args[n - 1] !== "--state")
  return at < 0 ? args.length : at
}

/** Turns `help VERB` and `version` into the flags `--help` and `--version`; the word after help that is no verb is one. */
export const asFlags = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const at = before(args)
  const [first, ...rest] = args.slice(at)
  const flags = args.slice(0, at)
  if (first === "version") return [...flags, "--version"]
  if (first !== "help") return args
  const [verb] = rest
  const isVerb = verb === undefined || verb.startsWith("-") || [...VERBS, ...OLD].includes(verb)
  return [...flags, ...rest, ...(isVerb ? ["--help"] : [])]
}
