/**
 * Bench of questions: how many of an agent's calls a person is asked about, with the rules that he gives on the way.
 * Nothing is run: each call is decided as the daemon decides it, and a person who follows a written policy answers.
 *
 * Subjects: `before` asks about each call. `usual` approves all that he is asked, for the whole project, with the second
 * offer (`any plain npm run …`), or with the only one. `careful` takes the narrowest offer. Without an offer, both approve
 * once. `inside`: as usual, with an agent in a sandbox without network, and `approvals.inside: "run"`.
 *
 * Calls: the scripts of 200 packages of the npm registry, drawn with seed 40 among all that have scripts, as commands
 * that nobody here wrote (`data/npm-scripts.jsonl`: name, version, and each script's command line; a line that names a
 * registry's host is left out). An agent looks at the package, runs each script by its name and by its text, and then
 * three times looks, tests and commits. The table of programs was made with the first half in view. The unseen half was
 * replayed with the code frozen; a figure after a later change of the table says less. With `careful` each commit is asked
 * about, because its message is another one, and each script twice: by its name, and by its text.
 *
 * Recordings: the calls in the recorded sessions of real CLIs in `test/fixtures`, each answered by a scripted model. They
 * are a few kinds of calls, and nobody's day of work: the figure is of the CLIs' forms of calls alone.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { subjectOf } from "../../src/agents/run/CallSubject.ts"
import { type CallSubject, decide } from "../../src/approvals/Decision.ts"
import type { Rule } from "../../src/approvals/Rule.ts"
import type { Aim, Bench, Row } from "./Bench.ts"

const ROOT = "/home/user/project"

/** The calls of one task, for one agent. */
type Task = ReadonlyArray<CallSubject>

const shell = (text: string): CallSubject => ({ _tag: "Shell", tool: "Bash", text, folders: [""] })

/** Scripts that an agent runs again after each change. */
const LOOP = /^(test|lint|build|check|typecheck|tsc|compile|format|unit|dev:test)/

const taskOf = (scripts: { readonly [name: string]: string }): Task => {
  const names = Object.keys(scripts)
  const run = (name: string) => `${name === "test" ? "npm test" : `npm run ${name}`} 2>&1 | tail -40`
  const round = (n: number) => [
    "rg -n TODO src | head -20",
    "sed -n 1,60p src/index.js",
    ...names.filter((name) => LOOP.test(name)).map(run),
    "git diff --stat",
    `git add -A && git commit -m "change ${n}"`
  ]
  const looks = ["ls -la", "cat package.json", "git status --short", "git log --oneline -5"]
  return [...looks, ...names.map(run), ...Object.values(scripts), ...[0, 1, 2].flatMap(round)].map(shell)
}

const packages = (): ReadonlyArray<Task> =>
  readFileSync(join(import.meta.dirname, "data/npm-scripts.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => taskOf((JSON.parse(line) as [string, { [name: string]: string }])[1]))

interface Fields {
  readonly [name: string]: unknown
}

/** The call that a record describes; undefined if it describes none, or not yet with its input. */
const callOf = (one: Fields): CallSubject | undefined => {
  const of = (tool: unknown, input: unknown) =>
    typeof tool === "string" && typeof input === "object" && input !== null && Object.keys(input).length > 0
      ? subjectOf({ tool, arguments: input, readOnly: false }, ROOT)
      : undefined
  if (one["type"] === "tool_use") return of(one["name"], one["input"])
  if (one["type"] === "commandExecution") return of("shell", { command: one["command"] })
  if (one["type"] === "fileChange") return of("apply_patch", { changes: one["changes"] })
  const { command } = { ...(one["rawInput"] as Fields | undefined) }
  return one["toolCallId"] === undefined || command === undefined ? undefined : of("execute", { command })
}

/** Each call of a recorded session once: a CLI tells of a call several times. */
const callsIn = (file: string): Task => {
  const calls = new Map<string, CallSubject>()
  const walk = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return
    const one = value as Fields
    const call = callOf(one)
    if (call !== undefined) calls.set(String(one["toolCallId"] ?? one["id"]), call)
    Object.values(one).forEach(walk)
  }
  for (const line of readFileSync(file, "utf8").trimEnd().split("\n")) walk(JSON.parse(line))
  return [...calls.values()]
}

const recordings = (): ReadonlyArray<Task> => {
  const folder = join(import.meta.dirname, "../../test/fixtures")
  const files = ["acp", "claude", "codex"].flatMap((cli) =>
    readdirSync(join(folder, cli)).map((name) => join(cli, name))
  )
  const tasks = files.filter((file) => file.endsWith(".jsonl")).map((file) => callsIn(join(folder, file)))
  return tasks.filter((task) => task.length > 0)
}

type Policy = "usual" | "careful" | "inside"

interface Asked {
  readonly questions: number
  /** The questions by their reason. */
  readonly reasons: ReadonlyMap<string, number>
}

/** The text of a call as a reason names it, so that reasons of different calls are one. */
const reasonOf = (reason: string): string => reason.replace(/^.*: (?=[a-z])/, "").replaceAll(/"[^"]*"|`[^`]*`/g, "…")

const replay = (tasks: ReadonlyArray<Task>, policy: Policy): Asked => {
  const reasons = new Map<string, number>()
  const confined = policy === "inside" ? ({ inside: "run", confined: true } as const) : {}
  for (const task of tasks) {
    const rules: Array<Rule> = []
    for (const call of task) {
      const { offers, reason, verdict } = decide(call, { mode: "auto", rules: [...rules], root: ROOT, ...confined })
      if (verdict === "run") continue
      const key = `${offers.length === 0 ? "once" : "rule"}: ${reasonOf(reason)}`
      reasons.set(key, (reasons.get(key) ?? 0) + 1)
      const offer = policy === "careful" ? offers[0] : (offers[1] ?? offers[0])
      for (const { effect, subject } of offer?.rules ?? [])
        rules.push({ effect, subject, place: { scope: "user project", at: null } })
    }
  }
  return { questions: [...reasons.values()].reduce((sum, count) => sum + count, 0), reasons }
}

const POLICIES = ["usual", "careful", "inside"] as const

const measured = (name: string, tasks: ReadonlyArray<Task>): ReadonlyArray<Row> => {
  const calls = tasks.reduce((sum, task) => sum + task.length, 0)
  const asked = POLICIES.map((policy) => ({ policy, ...replay(tasks, policy) }))
  const row = (what: string, subject: string, unit: string, figure: number): Row => ({
    what: `${name}: ${what}`,
    subject,
    unit,
    median: figure,
    samples: [figure],
    ratios: [1]
  })
  console.log(`\n${name}: ${tasks.length} tasks. What careful is asked about (rule: he keeps one; once: he cannot):`)
  const reasons = [...(asked[1]?.reasons ?? [])].toSorted(([, a], [, b]) => b - a)
  for (const [reason, count] of reasons.slice(0, 10)) console.log(`  ${String(count).padStart(5)}  ${reason}`)
  return [
    row("questions", "before", "of calls", calls),
    ...asked.map(({ policy, questions }) => row("questions", policy, "of calls", questions)),
    ...asked.map(({ policy, questions }) => row("share", policy, "of all calls", questions / calls))
  ]
}

const UNSEEN = "scripts, unseen half"

const aims: ReadonlyArray<Aim> = [
  { what: `${UNSEEN}: share`, of: "usual", atMost: 1 / 3 },
  { what: `${UNSEEN}: share`, of: "careful", atMost: 1 / 3 }
]

export const bench: Bench = {
  name: "questions",
  isLong: true,
  run: () => {
    const tasks = packages()
    return Promise.resolve([
      ...measured("scripts, first half", tasks.slice(0, 100)),
      ...measured(UNSEEN, tasks.slice(100)),
      ...measured("recordings", recordings())
    ])
  },
  aims
}
