/**
 * `agentd doctor --security`: shows which files, networks and secrets each agent could access. If the daemon is
 * running, the configs in force are used. Otherwise, this folder's config is used in the way in which a daemon started
 * here would use it.
 *
 * Guarantees: no agent is started. The names of secrets and variables are shown, but not their values. No line is wider
 * than the terminal, or than 80 columns without a terminal.
 */
import * as ByteCount from "../../config/ByteCount.ts"
import { Duration, Effect } from "effect"
import { call } from "../../api/rpc/ControlClient.ts"
import type { AgentReach } from "../../board/ReachMessages.ts"
import * as ReachReport from "../../board/ReachReport.ts"
import { load } from "../../config/ConfigFile.ts"
import { ExitCode } from "../parse/ExitCode.ts"
import { VerbFailed } from "../parse/Failure.ts"
import { Entry, Invocation, print } from "../parse/Invocation.ts"
import { type Cell, count, cut, paint, plain, table } from "../render/Output.ts"
import { displayWidth } from "../render/Width.ts"

/** The access that agents would have if a daemon were started here. */
const fromHere = Effect.gen(function* () {
  const { caller, paths } = yield* Invocation
  const { command, env } = yield* Entry
  if (caller.config === null) {
    return yield* new VerbFailed({
      message: "The daemon is not running, and there is no agentd.jsonc in this folder or above it.",
      remedy: "Go to a project's folder, or start the daemon: agentd start",
      exitCode: ExitCode.config
    })
  }
  const { socket, state } = paths
  return yield* ReachReport.of([yield* load(caller.config)], { command, environment: env, state, socket })
})

const found = Effect.gen(function* () {
  const { paths } = yield* Invocation
  const told = yield* Effect.result(call(paths.socket, (client) => client.Reach()))
  if (told._tag === "Success") return told.success
  const { failure } = told
  const isAbsent = failure._tag === "DaemonUnreachable" && failure.reason === "not-running" && failure.pid === undefined
  return isAbsent ? yield* fromHere : yield* failure
})

const COLUMNS = 80
const LABEL = 13
const NAME = 24

/** Joins words to lines of at most `columns` cells. A word that is longer than a line is cut. */
const wrapped = (words: ReadonlyArray<string>, columns: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const word of words.map((one) => cut(one, columns))) {
    const last = lines.at(-1)
    if (last !== undefined && displayWidth(last) + 1 + displayWidth(word) <= columns) {
      lines[lines.length - 1] = `${last} ${word}`
    } else lines.push(word)
  }
  return lines
}

const field = (label: string, words: ReadonlyArray<string>, columns: number): ReadonlyArray<string> =>
  wrapped(words.length === 0 ? ["nothing"] : words, columns - 2 - LABEL).map(
    (line, index) => `  ${(index === 0 ? label : "").padEnd(LABEL)}${line}`
  )

const split = (text: string): ReadonlyArray<string> => plain(text).split(" ")

const listed = (items: ReadonlyArray<string>): ReadonlyArray<string> =>
  items.map((item, index) => plain(item) + (index === items.length - 1 ? "" : ","))

const paths = (items: ReadonlyArray<string>): ReadonlyArray<string> =>
  items.includes("/") ? split("everything that you can") : listed(items)

const span = (millis: number) => Duration.format(Duration.millis(millis))

const heldBy = ({ by, confined, refused }: AgentReach): string =>
  refused !== null ? "does not run" : confined ? (by ?? "its tools") : "nothing"

const keysOf = ({ keys }: AgentReach): string =>
  keys.held.length > 0 ? keys.held.join(", ") : keys.putInBy === null ? "none" : `none (${keys.putInBy} has it)`

/** Warnings that must be visible for every agent to which they apply. */
const honest = ({ confined, control, refused, sharedCaches = [], unheld }: AgentReach): ReadonlyArray<string> =>
  refused !== null
    ? [`would not run: ${refused}`]
    : [
        ...(!confined && unheld.length === 0
          ? ["not confined: this agent has your rights; the log of its actions is no proof"]
          : []),
        ...(unheld.length > 0 ? [`not confined: ${unheld.join(", ")}; such a server runs with your rights`] : []),
        ...(sharedCaches.length > 0
          ? [`it shares ${sharedCaches.join(", ")} with its project's agents: each can change what another one runs`]
          : []),
        ...(control
          ? ["it can call agentd as if it were you; only marks on its processes show that it is the agent"]
          : [])
      ]

const isSize = (name: string): boolean => name === "memory" || name === "disk"

const turnOf = ({ toolCalls, usd, wallTime }: NonNullable<AgentReach["limits"]["turn"]>): ReadonlyArray<string> => {
  const all = [
    ...(wallTime === null ? [] : [span(wallTime)]),
    ...(toolCalls === null ? [] : [count(toolCalls, "tool call")]),
    ...(usd === null ? [] : [`${usd} USD where known`])
  ]
  return all.length === 0 ? [] : [`a turn ${all.join(", ")}, not counting waits for you`]
}

const limitsOf = ({ limits }: AgentReach): string =>
  [
    ...(limits.run === null ? [] : [`a run ${span(limits.run)}`]),
    ...(limits.turn === undefined ? [] : turnOf(limits.turn)),
    `a tool call ${span(limits.tool)}`,
    ...(limits.runsPerHour === null ? [] : [`${limits.runsPerHour} runs an hour`]),
    ...(limits.tokens === null ? [] : [count(limits.tokens, "token")]),
    ...(limits.toolCalls === null ? [] : [count(limits.toolCalls, "tool call")]),
    ...(limits.usd === null ? [] : [`${limits.usd} USD`]),
    ...(limits.wallTime === null ? [] : [`${span(limits.wallTime)} in turns`]),
    `of the machine ${Object.entries(limits.machine)
      .map(([name, most]) => `${name} ${isSize(name) && typeof most === "number" ? ByteCount.shown(most) : most}`)
      .join(", ")}`
  ].join("; ")

const insideOf = (inside: boolean | undefined): ReadonlyArray<string> => {
  if (inside === undefined) return []
  return inside
    ? ["what stays in its sandbox runs unasked"]
    : ['inside "run" has no effect: it needs "sandbox": "required" and no network']
}

const approvalsOf = ({ approvals: { always, bind, inside, mode, never, timeout } }: AgentReach): string =>
  [
    timeout === null ? mode : `${mode}, for ${span(timeout)}`,
    ...(always.length === 0 ? [] : [`always ask: ${always.join(", ")}`]),
    ...(never.length === 0 ? [] : [`never ask: ${never.join(", ")}`]),
    ...insideOf(inside),
    `they bind ${bind}`
  ].join("; ")

const networkOf = ({ network, provider }: AgentReach): string => {
  switch (network) {
    case "host":
      return "the whole network of this machine, including loopback"
    case "gateway":
      return `its model at ${provider}, through the gateway; nothing else`
    case "none":
      return provider === null ? "none" : `none; agentd calls its model at ${provider}`
  }
}

const keyWords = (one: AgentReach): string =>
  [
    one.keys.held.length === 0 ? "none in its environment" : `in its environment: ${one.keys.held.join(", ")}`,
    ...(one.keys.putInBy === null ? [] : [`the key of its model is added by the ${one.keys.putInBy}`]),
    ...(one.reads.includes("/") ? ["and every key that you can read"] : [])
  ].join("; ")

const details = (one: AgentReach, columns: number, colour: boolean): ReadonlyArray<string> => [
  paint(colour, "bold", cut(plain(`${one.project}/${one.agent} (${one.backend})`), columns)),
  ...honest(one).flatMap((text) =>
    wrapped(split(text), columns - 4).map((line, index) =>
      paint(colour, "yellow", `  ${index === 0 ? "!" : " "} ${line}`)
    )
  ),
  ...(one.refused === null
    ? [
        ...field("held by", split(`${heldBy(one)}: ${one.note}`), columns),
        ...field("reads", paths(one.reads), columns),
        ...field("writes", paths(one.writes), columns),
        ...field("runs", split(one.runs), columns),
        ...field("network", split(networkOf(one)), columns),
        ...field("keys", split(keyWords(one)), columns),
        ...field("environment", listed(one.environment), columns)
      ]
    : []),
  ...field("approvals", split(approvalsOf(one)), columns),
  ...field("limits", split(limitsOf(one)), columns),
  ...field("agentd's own", listed(one.may), columns)
]

const HEAD = ["AGENT", "HELD BY", "NETWORK", "CONTROL", "KEYS"]

const row = (one: AgentReach): ReadonlyArray<Cell> => [
  { text: cut(`${one.project}/${one.agent}`, NAME) },
  { text: heldBy(one), colour: one.refused !== null ? "red" : one.confined ? "green" : "yellow" },
  { text: one.network },
  { text: one.control ? "yes" : "no" },
  { text: keysOf(one) }
]

export const told = Effect.gen(function* () {
  const agents = yield* found
  const { colour, columns } = yield* Invocation
  const width = Math.max(40, columns ?? COLUMNS)
  yield* print(agents, () =>
    agents.length === 0
      ? ["There are no agents."]
      : [
          ...table(HEAD, agents.map(row), { colour, columns: width }),
          ...agents.flatMap((one) => ["", ...details(one, width, colour)]),
          "",
          ...wrapped(
            split("A sub-agent has the same access as its parent. For the meaning of these words: docs/security.md"),
            width
          )
        ]
  )
  const refused = agents.filter((one) => one.refused !== null).length
  if (refused === 0) return
  return yield* new VerbFailed({
    message: `${refused} of ${count(agents.length, "agent")} would not run.`,
    remedy: "Fix these agents as described, then run agentd doctor --security again.",
    exitCode: ExitCode.problems
  })
})
