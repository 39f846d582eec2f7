/**
 * ConfigChange: the consequences of a change to `agentd.jsonc`, and the diff of its text. Pure.
 *
 * Guarantees: every changed field is named, the dangerous ones first. A change counts as dangerous unless it is known
 * to be harmless or stricter. So a field that a later agentd adds is never overlooked. The diff leaves out only
 * unchanged lines.
 */
import { Duration, Schema, TextDiff } from "effect"
import { isReadonlyObject as isObject } from "effect/Predicate"
import { type AgentConfig, PLAIN_WORKTREE, worktreeConfigOf } from "./AgentConfig.ts"
import type { Project } from "./ConfigFile.ts"
import { type RuleEntry, ruleOf } from "./RuleConfig.ts"

/** A single difference between two configs, as a sentence. */
export const Consequence = Schema.Struct({
  /** True if the new value allows more than before: for example another program, another key, or fewer approvals. */
  dangerous: Schema.Boolean,
  text: Schema.String
})
export type Consequence = typeof Consequence.Type

type Path = ReadonlyArray<string>

const below = (place: string, names: string): ReadonlyArray<string> =>
  names.split(" ").map((name) => `${place}.${name}`)

/** Fields whose changes are always harmless. `*` stands for any name, `**` for all fields below. */
const HARMLESS = [
  "name",
  "channels.**",
  "prices.**",
  "conversation.**",
  ...below("agents.*", "role instructions prompt mode autostart maxConsecutiveErrors maxTotalErrors"),
  ...below("agents.*", "backoff.** runTimeout interruptGrace minRunInterval maxRunsPerHour idleTimeout toolTimeout"),
  ...below("agents.*", "maxToolTimeout budget.** can labels parent output.** approvals.timeout"),
  ...below("agents.*.backend", "model resume silence startTimeout killGrace readyAfter retries price.** maxRounds"),
  "agents.*.backend.maxOutputTokens",
  ...below("agents.*.worktree", "base ports"),
  ...below("goals", "planner critic workers checkTimeout rounds target planTries maxTaskErrors maxErrors backoff.**"),
  ...below("goals", "taskTimeout blockedTimeout"),
  ...below("schedules.*", "cron timeZone catchUp send.** goal.text goal.planner goal.critic goal.rounds goal.target"),
  ...below("mail", "outageAfter digestWindow maxPerHour")
]

/** Fields whose values are ordered, from the strictest to the most permissive. */
const SCALES: ReadonlyArray<readonly [pattern: string, scale: ReadonlyArray<unknown>]> = [
  ["agents.*.worktree", [true, false]],
  ["agents.*.approvals.mode", ["read_only", "auto", "full_access"]],
  ["agents.*.approvals.inside", ["ask", "run"]],
  ["agents.*.backend.permissionMode", ["plan", "default", "acceptEdits", "bypassPermissions"]],
  ["agents.*.backend.sandbox", ["required", "ask"]],
  ["agents.*.backend.network", [false, true]],
  ["goals.autoStart", [false, true]],
  ["mail.smtp.rejectUnauthorized", [true, false]]
]

/** Fields with lists that allow more when an entry is added. */
const GROWING = ["agents.*.approvals.never", "agents.*.may", "agents.*.backend.tools"]
/** Fields with numbers that allow more when the number grows. */
const RISING = ["agents.*.limits", "goals.limits"].flatMap((place) => below(place, "memory tasks cpuWeight disk"))
const SHRINKING = ["agents.*.approvals.always"]
/** Lists of rules for calls. Their order has no meaning. */
const RULES = ["approvals.rules", "agents.*.approvals.rules"]

const matcher = (patterns: ReadonlyArray<string>): ((path: Path) => boolean) => {
  const split = patterns.map((pattern) => pattern.split("."))
  return (path) =>
    split.some((steps) => {
      const isOpen = steps.at(-1) === "**"
      const fixed = isOpen ? steps.slice(0, -1) : steps
      if (isOpen ? path.length < fixed.length : path.length !== fixed.length) return false
      return fixed.every((step, index) => step === "*" || step === path[index])
    })
}

const isHarmless = matcher(HARMLESS)
const isGrowing = matcher(GROWING)
const isShrinking = matcher(SHRINKING)
const isRising = matcher(RISING)
const isRules = matcher(RULES)
const scales = SCALES.map(([pattern, scale]) => ({ isMeant: matcher([pattern]), scale }))

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

const shown = (value: unknown): string => {
  if (Duration.isDuration(value)) return Duration.format(value)
  return value === undefined ? "nothing" : JSON.stringify(value)
}

const isFields = (value: unknown): value is { readonly [name: string]: unknown } =>
  isObject(value) && !Duration.isDuration(value)

const entriesOf = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : value === undefined ? [] : [value]

const adds = (before: unknown, after: unknown): boolean => {
  const known = new Set(entriesOf(before))
  return entriesOf(after).some((entry) => !known.has(entry))
}

/** Maps a field of a fallback to the same field of the agent's own backend. */
const asOwn = (path: Path): Path =>
  path[0] === "agents" && path[2] === "fallback" && path.length > 4
    ? ["agents", path[1]!, "backend", ...path.slice(4)]
    : path

const isDangerous = (at: Path, before: unknown, after: unknown): boolean => {
  const path = asOwn(at)
  if (isHarmless(path)) return false
  if (isGrowing(path)) return adds(before, after)
  if (isShrinking(path)) return adds(after, before)
  if (isRising(path)) return !(typeof before === "number" && typeof after === "number" && after < before)
  const scale = scales.find(({ isMeant }) => isMeant(path))?.scale
  if (scale === undefined) return true
  const [from, to] = [scale.indexOf(before), scale.indexOf(after)]
  return from === -1 || to === -1 || to > from
}

const ruleOfEntry = (entry: RuleEntry): string => {
  const { effect } = ruleOf(entry)
  return `${effect} ${shown(entry[effect])}`
}

/** The rules that are only in one of two lists. A changed rule is one removed and one added rule. */
const ofRules = (
  place: string,
  before: ReadonlyArray<RuleEntry>,
  after: ReadonlyArray<RuleEntry>
): ReadonlyArray<Consequence> => {
  const only = (rules: ReadonlyArray<RuleEntry>, others: ReadonlyArray<RuleEntry>, mark: string) => {
    const known = new Set(others.map(ruleOfEntry))
    return [...new Set(rules.map(ruleOfEntry))]
      .filter((rule) => !known.has(rule))
      .map((rule) => ({
        dangerous: rule.startsWith("allow ") === (mark === "+"),
        text: `${place}: ${mark} ${rule}`
      }))
  }
  const all = [...only(before, after, "-"), ...only(after, before, "+")]
  return all.length > 0
    ? all
    : [{ dangerous: false, text: `${place}: the same rules, in another order or with other notes` }]
}

/** The fields that differ, each with its full path. A value that exists in only one config counts as one field. */
const differences = (before: unknown, after: unknown, path: Path = []): ReadonlyArray<Consequence> => {
  if (same(before, after)) return []
  if (isFields(before) && isFields(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...names].flatMap((name) => differences(before[name], after[name], [...path, name]))
  }
  if (isRules(path)) return ofRules(path.join("."), before as [], after as [])
  const text = `${path.join(".")}: ${shown(before)} → ${shown(after)}`
  return [{ dangerous: isDangerous(path, before, after), text }]
}

/** Compares fallbacks by position: field by field if the type is the same, otherwise by the programs that they run. */
const ofFallbacks = (name: string, before: AgentConfig, after: AgentConfig): ReadonlyArray<Consequence> =>
  Array.from({ length: Math.max(before.fallback.length, after.fallback.length) }, (_, index) => {
    const [old, next] = [before.fallback[index], after.fallback[index]]
    if (old?.type === next?.type && old !== undefined)
      return differences(old, next, ["agents", name, "fallback", String(index + 1)])
    const said = (backend: AgentConfig["backend"] | undefined) => (backend === undefined ? "nothing" : runs(backend))
    return [
      { dangerous: next !== undefined, text: `agents.${name}.fallback.${index + 1}: ${said(old)} → ${said(next)}` }
    ]
  }).flat()

/** Compares the settings of work trees field by field, also if only one of them is written as an object. */
const ofWorktrees = (name: string, before: AgentConfig, after: AgentConfig): ReadonlyArray<Consequence> => {
  const path = ["agents", name, "worktree"]
  const [old, next] = [worktreeConfigOf(before), worktreeConfigOf(after)]
  return [
    ...differences(old !== undefined, next !== undefined, path),
    ...(next === undefined ? [] : differences(old ?? PLAIN_WORKTREE, next, path))
  ]
}

const ofAgent = (name: string, before: AgentConfig, after: AgentConfig): ReadonlyArray<Consequence> => [
  ...differences({ ...before, fallback: [], worktree: true }, { ...after, fallback: [], worktree: true }, [
    "agents",
    name
  ]),
  ...ofWorktrees(name, before, after),
  ...ofFallbacks(name, before, after)
]

const runs = (backend: AgentConfig["backend"]): string => {
  switch (backend.type) {
    case "command":
      return `runs ${backend.shell === undefined ? shown(backend.argv) : `sh -c ${shown(backend.shell)}`}`
    case "acp":
    case "exec":
      return `runs ${shown(backend.argv)}`
    case "claude":
      return `runs ${shown([backend.binary, ...backend.args])}, permissionMode ${backend.permissionMode}`
    case "codex": {
      const { approvalPolicy = "", argv, config, sandboxMode = "" } = backend
      const set = Object.keys(config).length === 0 ? "" : `, config ${shown(config)}`
      const leave = [approvalPolicy, sandboxMode].filter((one) => one !== "").join(", ")
      return `runs ${shown(argv)} app-server${leave === "" ? "" : ` (${leave})`}${set}`
    }
    case "model": {
      const servers = Object.entries(backend.mcp).map(
        ([name, { argv, url }]) => `, MCP server ${name} ${shown(argv ?? url)}`
      )
      const key = backend.keyFile ?? backend.keyEnv
      const to = backend.baseUrl === undefined ? "" : `, sent to ${backend.baseUrl}`
      return `asks ${backend.model}${to}${key === undefined ? "" : ` with the key of ${key}`}, tools ${shown(backend.tools)}${servers.join("")}`
    }
  }
}

/** Settings of a new agent's work tree that read files of the user or run a command. */
const ofTree = (agent: AgentConfig): string => {
  const { base: _base, ports: _ports, ...rest } = worktreeConfigOf(agent) ?? PLAIN_WORKTREE
  return Object.entries(rest)
    .filter(([field, value]) => !same(value, PLAIN_WORKTREE[field as keyof typeof rest]))
    .map(([field, value]) => `, worktree.${field} ${shown(value)}`)
    .join("")
}

const born = (name: string, agent: AgentConfig): Consequence => {
  const backends = [agent.backend, ...agent.fallback]
  const variables = [...new Set(backends.flatMap(({ env }) => Object.keys(env)))]
  const set = variables.length === 0 ? "" : `, sets ${variables.join(", ")}`
  const { inside, mode, rules } = agent.approvals
  const never = agent.approvals.never.length === 0 ? "" : `, never asks for ${shown(agent.approvals.never)}`
  const ruled = rules.map((rule) => `, ${ruleOfEntry(rule)}`).join("")
  const own = inside === "run" ? ", inside run" : ""
  const prepared = ofTree(agent)
  return {
    dangerous: true,
    text: `a new agent, ${name}: ${backends.map(runs).join("; falls back: ")}${set}; approvals ${mode}${own}${never}${ruled}${prepared}, may ${shown(agent.may)}`
  }
}

/** The project's settings in its config file, without the agents. */
const said = ({
  agents: _agents,
  files: _files,
  id: _id,
  path: _path,
  root: _root,
  $schema: _schema,
  ...rest
}: Project) => rest

/** Files that decide what agentd copies to work trees, and which scripts it runs there. */
const ofFiles = (before: Project["files"] = {}, after: Project["files"] = {}): ReadonlyArray<Consequence> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => before[name] !== after[name])
    .map((name) => ({
      dangerous: after[name] !== undefined,
      text: `${name} ${before[name] === undefined ? "is new" : after[name] === undefined ? "is removed" : "has changed"}: agentd reads it for work trees`
    }))

/** All consequences of a change, the dangerous ones first. If no config was in force before, all agents are new. */
export const consequencesOf = (before: Project | undefined, after: Project): ReadonlyArray<Consequence> => {
  const known = before?.agents ?? {}
  const names = new Set([...Object.keys(known), ...Object.keys(after.agents)])
  const ofAgents = [...names].flatMap((name): ReadonlyArray<Consequence> => {
    const old = Object.hasOwn(known, name) ? known[name] : undefined
    const next = Object.hasOwn(after.agents, name) ? after.agents[name] : undefined
    if (old === undefined) return [born(name, next!)]
    if (next === undefined) return [{ dangerous: false, text: `the agent ${name} is removed: it is stopped` }]
    return ofAgent(name, old, next)
  })
  // a project that is new has rules for all its agents, and no other setting that gives leave
  const none = { approvals: { rules: [] } }
  const rest =
    before === undefined ? differences(none, { approvals: after.approvals }) : differences(said(before), said(after))
  const all = [...ofAgents, ...rest, ...ofFiles(before?.files, after.files)]
  return [...all.filter(({ dangerous }) => dangerous), ...all.filter(({ dangerous }) => !dangerous)]
}

/** Number of unchanged lines to show before and after a change. */
const CONTEXT = 3
/**
 * Maximum number of changed lines that are compared exactly. Beyond this limit, some unchanged lines are shown as
 * removed and added.
 */
const MAX_EDITS = 4_000

/**
 * Removed (`-`) and added (`+`) lines with some unchanged lines around them. `@ N`: the next line is line N of the new
 * text. A last line without a line end is followed by a line with `\`, as in git.
 */
export const diffOf = (before: string, after: string): ReadonlyArray<string> =>
  TextDiff.unified(TextDiff.lines(before, after, { maxEdits: MAX_EDITS }), { context: CONTEXT })
    .split("\n")
    .slice(0, -1)
    .map((line) => line.replace(/^@@ -\S+ \+(\d+).*/, "@ $1"))

/** The differences between files that are trusted with a config. `@ NAME` comes before those of each file. */
export const diffOfFiles = (
  before: { readonly [name: string]: string },
  after: { readonly [name: string]: string }
): ReadonlyArray<string> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => before[name] !== after[name])
    .flatMap((name) => [`@ ${name}`, ...diffOf(before[name] ?? "", after[name] ?? "")])
