/**
 * The rules that the code keeps and no compiler knows: which folder may import
 * which, which calls are banned and what replaces them, what lies where.
 *
 * Each rule has its reason, which is what a failure prints. Each exception names
 * one file and its reason, and fails here as soon as nothing needs it any more.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, posix } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { cycles } from "./support/ImportCycles.ts"
import { layers, roomOf } from "./support/Layers.ts"
import { parse, type SourceFile } from "./support/SourceFile.ts"

const root = join(import.meta.dirname, "..")

/** Libraries: each imports these folders of ours and no other, so that it can be used without agentd. */
const libraries: { readonly [folder: string]: ReadonlyArray<string> } = {
  "core/supervision": [],
  "core/event-log": ["core/supervision"],
  "core/event-actor": ["core/event-log", "core/supervision"],
  runs: ["config", "core/supervision", "runs/gateway", "runs/git", "runs/keeper"],
  "runs/gateway": ["config", "core/supervision"],
  "runs/keeper": ["config", "core/supervision"],
  "runs/git": ["config", "core/supervision"],
  config: ["approvals"]
}

/** Packages that a library may import, where it names them: others would have to be installed with it. */
const needs: { readonly [folder: string]: RegExp } = { "core/supervision": /^effect(\/|$)/ }

/** Packages that one place wraps; everybody else asks that place. */
const homes: ReadonlyArray<{ readonly package: RegExp; readonly home: RegExp; readonly because: string }> = [
  {
    package: /^effect\/cli\b/,
    home: /^src\/(cli\/|main\.ts)/,
    because: "only verbs know that there is a command line"
  },
  {
    package: /^effect\/rpc\b/,
    home: /^src\/(api\/rpc|cluster|client)\//,
    because: "one protocol is the whole command surface"
  },
  { package: /^effect\/sql\b/, home: /^src\/cluster\//, because: "the rune log is the only store" },
  {
    package: /^node:sqlite$/,
    home: /^src\/core\/event-log\//,
    because: "the rune log is the only store"
  },
  { package: /^effect\/cluster\b/, home: /^src\/cluster\//, because: "it is for placement only, and unstable" },
  { package: /^nodemailer\b/, home: /^src\/alerts\//, because: "mail leaves by the outbox, or it is lost at a crash" },
  {
    package: /^node:child_process$/,
    home: /^src\/runs\/(?!gateway|git|keeper)/,
    because: "a process that nobody owns outlives us: use effect/process, or a Backend"
  },
  {
    package: /^@effect\/platform-node$/,
    home: /^$/,
    because: "the barrel costs 400 ms of start time: import @effect/platform-node/NodeX"
  },
  { package: /^vitest$|^@effect\/vitest$/, home: /^$/, because: "tests are not shipped" }
]

/** Names that are banned in src. */
const bans: ReadonlyArray<{ readonly name: string; readonly instead: string; readonly because: string }> = [
  { name: "Date.now", instead: "Clock", because: "a test cannot turn this clock" },
  { name: "new Date()", instead: "Clock", because: "a test cannot turn this clock" },
  { name: "performance.now", instead: "Clock", because: "a test cannot turn this clock" },
  { name: "Math.random", instead: "Random", because: "a failing seed could not be replayed" },
  { name: "crypto.randomUUID", instead: "Random", because: "a failing seed could not be replayed" },
  {
    name: "setTimeout()",
    instead: "Effect.sleep or a machine's timeout",
    because: "it outlives its scope and the test's clock"
  },
  {
    name: "PubSub.unbounded",
    instead: "PubSub.bounded, or PubSub.sliding where the oldest may be missed",
    because: "a listener that hangs would cost all memory"
  },
  { name: "setInterval()", instead: "Schedule", because: "it outlives its scope and the test's clock" },
  {
    name: "Schedule.exponential",
    instead: "Backoff.waits, with a policy",
    because: "one value drives every wait-and-try-again, with a cap"
  },
  { name: "process.env", instead: "Config", because: "a setting that no schema read is a setting that nobody checked" },
  { name: "process.exit", instead: "a typed failure", because: "it skips every finalizer; only main ends the process" },
  { name: "process.on", instead: "a scope's finalizer", because: "only main hears signals" },
  {
    name: "console.log",
    instead: "cli/render/Output, or Effect.log",
    because: "stdout belongs to the verb that prints data"
  },
  { name: "console.error", instead: "Effect.logError", because: "the log's level and place are settings" },
  { name: "console.warn", instead: "Effect.logWarning", because: "the log's level and place are settings" }
]

/** Folders that live in any world: what lies outside of them comes as a service, so that a simulation can play it. */
const inner = /^src\/(agents|projects|channels|plates|goals|alerts(?!\/channels)|domain|config|core)\//
/** Imports and names that reach the machine past the services. */
const outside = {
  imports: /^node:(fs|fs\/promises|child_process|net|http|https|os|stream|stream\/promises|timers|worker_threads)$/,
  names: ["Effect.promise", "Effect.tryPromise", "setImmediate", "queueMicrotask"]
}

/** The machine itself, behind a service or a reference that a simulation replaces; and what it cannot play yet. */
const edges: { readonly [path: string]: string } = {
  "src/alerts/Mailer.ts": "the default of the reference",
  "src/alerts/Smtp.ts": "behind Mailer",
  "src/config/Account.ts": "who runs the command line and the clients, which no simulated world plays",
  "src/config/HostsFile.ts": "the hosts that the command line has saved, which no simulated world plays",
  "src/config/OwnFile.ts": "the default of the reference",
  "src/core/event-actor/EventLoop.ts": "the live form of the service",
  "src/core/event-log/OldArchives.ts":
    "files of the store's owner that an older agentd has left: no simulated log has them",
  "src/core/event-log/CopyThread.ts": "the thread that copies a store: files of the store's owner",
  "src/core/event-log/StoreCopy.ts": "that thread, and what a copy tells of itself",
  "src/core/event-log/LogThread.ts": "the log's thread: a simulation has the inline form",
  "src/core/event-log/LogWorker.ts": "that thread, as the threaded form has it",
  "src/core/event-log/WalMark.ts": "looks at the store's file, beside SQLite",
  "src/core/event-log/Room.ts": "the default of the reference",
  "src/core/event-log/SegmentFile.ts": "files of the store's owner, as SQLite's are: no simulated log is so long",
  "src/core/event-log/SyncFolder.ts": "of those two: makes durable that a folder has a file, or has it no more",
  "src/core/event-log/NextTick.ts": "the default of the reference",
  "src/core/event-log/SqlEventLog.ts": "makes the store's file, synchronously",
  "src/core/event-log/Sqlite.ts": "the default of the seam: the storage simulation has a disk of its own",
  "src/core/event-log/SqliteLog.ts": "the threaded form; a simulation has the inline one",
  "src/core/event-log/StateFolder.ts": "behind Platform.lock",
  "src/core/event-log/StoreOwner.ts": "behind Platform.lock",
  "src/core/event-log/StoreLock.ts": "behind Platform.lock",
  "src/core/event-log/StorePlace.ts": "a file of the store's owner, as SQLite's are; a simulated disk has none",
  "src/core/event-log/HeadFile.ts": "a file of the store's owner, as SQLite's are; a simulated disk has none",
  "src/core/event-log/Repair.ts": "files of the store's owner, while no daemon runs",
  "src/core/event-log/TableCheck.ts": "the head of the store's file, which no query names; a simulated disk has none",
  "src/core/event-log/Verify.ts": "the thread that verifies; a simulation verifies here",
  "src/core/event-log/VerifyThread.ts": "that thread",
  "src/goals/PlanFile.ts": "the default of the reference"
}

/** Where a payload is opaque: any machine's event, what is said in place of a payload, and a page, which has no schemas: it reads what may be there or not. */
const opaque = /^src\/(core\/event-actor\/StateMachine|core\/event-log\/EventKinds|web\/\w+)\.ts$/

/** Exceptions: a file, a rule, a reason. */
const exceptions: ReadonlyArray<{ readonly path: string; readonly rule: string; readonly because: string }> = [
  {
    path: "src/app/Quick.ts",
    rule: "Date.now",
    because: "the quick entry holds nothing of Effect, so it has no Clock: it hands the time to pure views"
  },
  {
    path: "src/client/Promises.ts",
    rule: "process.env",
    because: "the client for programs without Effect has no Config: it reads where the user's own socket is"
  },
  {
    path: "src/core/event-log/LogThread.ts",
    rule: "performance.now",
    because: "the log's thread holds nothing of Effect, so it has no Clock: a store takes the time as a function"
  },
  {
    path: "src/cli/log/LogSource.ts",
    rule: "src/app/DaemonLog.ts",
    because: "`agentd log --text` and `history` read a stopped daemon's log by themselves"
  },
  {
    path: "src/cli/daemon/Verify.ts",
    rule: "src/app/DaemonLog.ts",
    because: "`agentd verify` reads a stopped daemon's log by itself, with the daemon's own kinds and invariants"
  },
  {
    path: "src/cli/daemon/Restore.ts",
    rule: "src/app/DaemonLog.ts",
    because: "`agentd restore` revokes the tokens of a backup before it takes the store's place"
  },
  {
    path: "src/cli/daemon/Repair.ts",
    rule: "src/app/DaemonLog.ts",
    because: "`agentd repair` mends a stopped daemon's log by itself, with the daemon's own kinds"
  },
  {
    path: "src/cli/daemon/Repair.ts",
    rule: "src/app/FeatureFolds.ts",
    because: "`agentd repair CONVERSATION` looks where what the daemon makes of the log does not fold"
  },
  {
    path: "src/systemd/JournalEntry.ts",
    rule: "node:child_process",
    because: "a logger writes as it is called, in no scope; its few processes are bounded, and nobody waits for them"
  },
  {
    path: "src/systemd/DaemonLauncher.ts",
    rule: "node:child_process",
    because: "the daemon is the one child that must outlive the scope that started it"
  },
  {
    path: "src/runs/gateway/GatewayClient.ts",
    rule: "node:child_process",
    because: "the gateway must outlive the daemon, as runs do"
  },
  {
    path: "src/runs/keeper/Keeper.ts",
    rule: "node:child_process",
    because: "the keeper must outlive the daemon: it holds the runs"
  },
  {
    path: "src/runs/gateway/Gateway.ts",
    rule: "Date.now",
    because: "the gateway's process holds nothing of Effect, so it has no Clock"
  },
  {
    path: "src/runs/gateway/Counted.ts",
    rule: "setTimeout()",
    because: "the gateway's process holds nothing of Effect, so it has no fibers that wait"
  },
  {
    path: "src/runs/gateway/RemoteLogin.ts",
    rule: "Date.now",
    because: "the gateway's process holds nothing of Effect, so it has no Clock"
  },
  {
    path: "src/runs/gateway/main.ts",
    rule: "process.on",
    because: "the gateway's process is a program of its own, with its own signals"
  },
  {
    path: "src/runs/gateway/main.ts",
    rule: "setTimeout()",
    because: "the gateway's process holds nothing of Effect: it is small, and outlives every scope"
  },
  {
    path: "src/app/Foreground.ts",
    rule: "node:child_process",
    because: "it stands between a shell and a program: effect/process tells only in words which signal ended it"
  },
  {
    path: "src/systemd/Notify.ts",
    rule: "environment",
    because: "systemd-notify is systemd's own program, found by the daemon's PATH; it starts nothing"
  },
  {
    path: "src/runs/git/UserGit.ts",
    rule: "environment",
    because: "it is the person's own git, in their terminal: their settings and their helpers are what is wanted"
  },
  {
    path: "src/cli/daemon/DaemonLife.ts",
    rule: "environment",
    because: "the daemon has the environment of whoever starts it, of which it hands parts on"
  },
  {
    path: "src/cli/tui/BoardScreen.ts",
    rule: "environment",
    because: "notify-send finds the person's desktop by their variables"
  },
  {
    path: "src/cli/daemon/Open.ts",
    rule: "environment",
    because: "xdg-open finds the person's desktop and browser by their variables"
  },
  {
    path: "src/cli/agents/Run.ts",
    rule: "environment",
    because: "it runs a person's program in their terminal, as their shell would"
  },
  {
    path: "src/core/supervision/Backoff.ts",
    rule: "Schedule.exponential",
    because: "it is the one value that all others are made of"
  },
  {
    path: "src/systemd/Notify.ts",
    rule: "process.env",
    because: "it deletes the notify socket from the environment that agents inherit; Config can only read"
  }
]

/** Files and folders that may lie in the project's root. */
const entries = new Set([
  "src",
  "test",
  "scripts",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "vitest.config.ts",
  "flake.nix",
  "flake.lock",
  "docs",
  "findings",
  "README.md",
  "LICENSE"
])
/** Never tracked: made by tools. */
const made = new Set(["node_modules", "dist", "coverage", ".git"])

interface Problem {
  readonly path: string
  readonly rule: string
  readonly message: string
}

/** The parts of the bin: it alone is one process, with its signals, its environment and its end. */
const isBin = (path: string): boolean =>
  /^src\/(main|model-agent\/main|app\/(Bin|DaemonBin|DaemonInfo|Foreground|Quick|Signals))\.ts$/.test(path)
const rankOf = (folder: string): number => layers.findIndex(({ folders }) => folders.includes(folder))

const importProblems = ({ imports, path }: SourceFile): ReadonlyArray<Problem> =>
  imports.flatMap(({ from, lazy }) => [
    ...layerProblem(path, from),
    ...homes
      .filter((rule) => rule.package.test(from) && !rule.home.test(path))
      .map(({ because }) => ({ path, rule: from, message: `imports ${from}: ${because}` })),
    ...(lazy && !isBin(path) && !path.startsWith("src/cli/")
      ? [
          {
            path,
            rule: "lazy import",
            message: `imports ${from} lazily: a daemon must hold all of its code, for its files may be replaced by an upgrade`
          }
        ]
      : [])
  ])

/** Problems of an inner folder that reaches past the services. */
const outsideProblems = (file: SourceFile): ReadonlyArray<Problem> =>
  inner.test(file.path) && !(file.path in edges) ? reaches(file) : []

const reaches = ({ imports, names, path }: SourceFile): ReadonlyArray<Problem> => {
  const reached = [
    ...imports.flatMap(({ from }) => (outside.imports.test(from) ? [from] : [])),
    ...outside.names.filter((name) => names.has(name) || names.has(`${name}()`))
  ]
  return [...new Set(reached)].map((rule) => ({
    path,
    rule,
    message: `reaches ${rule}: a simulated world cannot play it; ask a service, or a reference with a default`
  }))
}

const layerProblem = (path: string, from: string): ReadonlyArray<Problem> => {
  if (!from.startsWith(".")) return needProblem(path, from)
  const target = posix.join(posix.dirname(path), from)
  const [own, other] = [roomOf(path), roomOf(target)]
  if (own === other) return []
  const problem = (message: string) => [{ path, rule: target, message: `imports ${target}: ${message}` }]
  if (!target.startsWith("src/")) return problem("what is shipped imports nothing outside src")
  if (own === undefined) return []
  if (other === undefined) return problem("only main is above every layer")
  const layer = layers[rankOf(other)]
  const allowed = libraries[own]
  if (allowed !== undefined && !allowed.includes(other))
    return problem(`${own} is a library, and may import ${allowed.join(", ") || "nothing of ours"}`)
  return rankOf(own) < rankOf(other) ? [] : problem(layer?.because ?? `${other} has no place among the layers`)
}

const needProblem = (path: string, from: string): ReadonlyArray<Problem> => {
  const folder = roomOf(path) ?? ""
  if (needs[folder]?.test(from) !== false) return []
  return [{ path, rule: from, message: `imports ${from}: ${folder} is a library that needs effect and nothing else` }]
}

const codeProblems = (file: SourceFile): ReadonlyArray<Problem> => {
  const { path } = file
  const banned = bans
    // the page is a program of its own in a browser, without Effect
    .filter(() => roomOf(path) !== "web")
    .filter(({ name }) => file.names.has(name) && !(isBin(path) && name.startsWith("process.")))
    .map(({ because, instead, name }) => ({
      path,
      rule: name,
      message: `uses ${name}: ${because}. Instead: ${instead}`
    }))
  const found: ReadonlyArray<readonly [boolean, string, string]> = [
    [
      file.indexesPayload && !opaque.test(path),
      "untyped payload",
      "reads a payload by a name that no schema knows: read the rune by its kind's declaration, core/event-log/EventKinds.reader"
    ],
    [
      file.startsGit && !path.startsWith("src/runs/git/"),
      "git",
      "starts git: a repository that an agent writes can make git run anything. Instead: runs/git/Git.ts, in a verb runs/git/UserGit.ts"
    ],
    [
      file.inheritsEnvironment && path !== "src/runs/process/ChildEnvironment.ts",
      "environment",
      "hands all variables of its own on, keys too. Instead: what ChildEnvironment.given allows"
    ],
    [file.castsToAny, "as any", "casts to any: the compiler then checks nothing from here on"],
    [file.assumesField, "assumed field", "has a field that is not set by the constructor: make what it needs first"],
    [
      file.comments.some((text) => /@ts-(ignore|nocheck|expect-error)/.test(text)),
      "ts-ignore",
      "silences the compiler"
    ],
    [file.comments.some((text) => /\b(TODO|FIXME|XXX)\b/.test(text)), "TODO", "promises work: do it, or open an issue"],
    [
      // a page is one to its document
      file.moduleVariables.length > 0 && !isBin(path) && roomOf(path) !== "web",
      "module variable",
      "holds state outside every scope: two daemons in one process would share it"
    ],
    [
      file.opening === undefined,
      "opening",
      "does not open with a doc comment that says what it is and what it guarantees"
    ],
    [file.lines > 700, "length", `has ${file.lines} lines: over 700 it wants to be two files`],
    [path.endsWith("/index.ts"), "barrel", "is a barrel: import the module itself"],
    [path.split("/").length > 4, "depth", "lies deeper than two folders under src"],
    [!/\/([A-Z][A-Za-z0-9]*|main)\.ts$/.test(path), "name", "is not named after its main export, in PascalCase"]
  ]
  return [...banned, ...found.filter(([is]) => is).map(([, rule, message]) => ({ path, rule, message }))]
}

/** Every file with the files that it imports, types too. */
const importsOf = (files: ReadonlyArray<SourceFile>): ReadonlyMap<string, ReadonlyArray<string>> =>
  new Map(
    files.map(({ imports, path }) => [path, imports.map(({ from }) => posix.join(posix.dirname(path), from))] as const)
  )

const problemsOf = (file: SourceFile): ReadonlyArray<Problem> => [
  ...importProblems(file),
  ...outsideProblems(file),
  ...codeProblems(file)
]

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => posix.join(entry.parentPath.slice(root.length + 1).replaceAll("\\", "/"), entry.name))

const sources = filesBelow("src")
  .filter((path) => path.endsWith(".ts"))
  .map((path) => parse(path, readFileSync(join(root, path), "utf8")))
const problems = sources.flatMap(problemsOf)

const isException = (problem: Problem) =>
  exceptions.some(({ path, rule }) => path === problem.path && rule === problem.rule)
const shown = (found: ReadonlyArray<Problem>) => found.map(({ message, path }) => `${path} ${message}`)

describe("src", () => {
  it("keeps every rule", () => {
    assert.deepStrictEqual(shown(problems.filter((problem) => !isException(problem))), [])
  })

  it("needs every exception it is granted", () => {
    const unused = exceptions.filter(
      ({ path, rule }) => !problems.some((problem) => problem.path === path && problem.rule === rule)
    )
    assert.deepStrictEqual(
      unused.map(
        ({ path, rule }) => `${path} ${existsSync(join(root, path)) ? `no longer breaks "${rule}"` : "does not exist"}`
      ),
      []
    )
  })

  it("has no edge to the machine that is not named, and none that is named for nothing", () => {
    const idle = Object.keys(edges).filter((path) => {
      const file = sources.find((source) => source.path === path)
      return file === undefined || reaches(file).length === 0
    })
    assert.deepStrictEqual(idle, [])
  })

  it("has no files that import each other in a circle, types included", () => {
    assert.deepStrictEqual(cycles(importsOf(sources)), [])
  })

  it("has no flat folder of more than forty files but the log's, which is divided when it is slim", () => {
    const counts = Map.groupBy(filesBelow("src"), (path) => posix.dirname(path))
    const long = [...counts].filter(([folder, files]) => files.length > 40 && folder !== "src/core/event-log")
    assert.deepStrictEqual(
      long.map(([folder]) => folder),
      []
    )
  })

  it("has a place among the layers for each of its folders", () => {
    const folders = new Set(sources.flatMap(({ path }) => roomOf(path) ?? []))
    assert.deepStrictEqual(
      [...folders].filter((folder) => rankOf(folder) < 0),
      []
    )
  })
})

describe("the rules see a break", () => {
  const rulesBroken = (path: string, code: string) =>
    problemsOf(parse(path, `/** Says what it is. */\n${code}\n`)).map(({ rule }) => rule)

  const cases: ReadonlyArray<readonly [what: string, path: string, code: string, broken: ReadonlyArray<string>]> = [
    ["a promise inside", "src/agents/A.ts", "export const a = Effect.promise(() => b)", ["Effect.promise"]],
    ["a file inside", "src/channels/A.ts", 'import { a } from "node:fs"', ["node:fs"]],
    ["the event loop inside", "src/plates/A.ts", "queueMicrotask(() => {})", ["queueMicrotask"]],
    ["an import downward", "src/agents/A.ts", 'import { a } from "../domain/Ids.ts"', []],
    ["an import upward", "src/domain/A.ts", 'import { a } from "../agents/B.ts"', ["src/agents/B.ts"]],
    [
      "a type imported upward",
      "src/core/event-log/A.ts",
      'import type { a } from "../event-actor/B.ts"',
      ["src/core/event-actor/B.ts"]
    ],
    [
      "a type query upward",
      "src/core/event-log/A.ts",
      'export type A = import("../event-actor/B.ts").B',
      ["src/core/event-actor/B.ts"]
    ],
    [
      "a re-export upward",
      "src/core/event-log/A.ts",
      'export { b } from "../event-actor/B.ts"',
      ["src/core/event-actor/B.ts"]
    ],
    ["a library's import downward", "src/core/event-actor/A.ts", 'import { a } from "../event-log/B.ts"', []],
    [
      "a library's import of another",
      "src/core/event-log/A.ts",
      'import { a } from "../../config/B.ts"',
      ["src/config/B.ts"]
    ],
    ["a library's own package", "src/core/supervision/A.ts", 'import { Effect } from "effect"', []],
    ["another package in it", "src/core/supervision/A.ts", 'import { join } from "node:path"', ["node:path"]],
    ["an import of a sibling", "src/goals/A.ts", 'import { a } from "../channels/B.ts"', ["src/channels/B.ts"]],
    ["an import of main", "src/cli/A.ts", 'import { a } from "../main.ts"', ["src/main.ts"]],
    ["an import of a test", "src/cli/A.ts", 'import { a } from "../../test/A.ts"', ["test/A.ts"]],
    ["main importing a layer", "src/main.ts", 'import { a } from "./agents/B.ts"', []],
    ["a wrapped package elsewhere", "src/agents/A.ts", 'import n from "nodemailer"', ["nodemailer"]],
    ["the barrel", "src/cli/A.ts", 'import { NodeRuntime } from "@effect/platform-node"', ["@effect/platform-node"]],
    ["one module of it", "src/cli/A.ts", 'import * as N from "@effect/platform-node/NodeRuntime"', []],
    ["a lazy import in the daemon", "src/agents/A.ts", 'export const a = () => import("./B.ts")', ["lazy import"]],
    ["a lazy import of a verb", "src/cli/A.ts", 'export const a = () => import("./B.ts")', []],
    ["a banned call", "src/agents/A.ts", "export const a = () => Date.now()", ["Date.now"]],
    ["a banned value", "src/agents/A.ts", "export const now = Date.now", ["Date.now"]],
    ["its name in words only", "src/agents/A.ts", 'export const a = "Date.now()" // not Date.now()', []],
    ["a date from a number", "src/agents/A.ts", "export const a = (at: number) => new Date(at)", []],
    ["the date of now", "src/agents/A.ts", "export const a = () => new Date()", ["new Date()"]],
    ["a timer", "src/agents/A.ts", "export const a = () => setTimeout(() => {}, 1)", ["setTimeout()"]],
    ["an exit in main", "src/main.ts", "process.exit(1)", []],
    ["an exit in the daemon", "src/app/Daemon.ts", "export const a = () => process.exit(1)", ["process.exit"]],
    ["a start of git", "src/agents/A.ts", 'spawn("git", ["status"])', ["git"]],
    ["git as a command's first word", "src/cli/A.ts", 'export const a = ["git", "status"]', ["git"]],
    ["git where it is run", "src/runs/git/A.ts", 'export const a = ["git", "status"]', []],
    [
      "an environment that is extended",
      "src/agents/A.ts",
      "make(a, [], { env: {}, extendEnv: true })",
      ["environment"]
    ],
    ["an environment that is not", "src/agents/A.ts", "make(a, [], { env: {}, extendEnv: false })", []],
    ["a whole environment", "src/goals/A.ts", "export const a = { env: options.environment }", ["environment"]],
    ["a spread of it", "src/goals/A.ts", "export const a = { ...host.environment, B: c }", ["environment"]],
    ["a spread of a process's own", "src/main.ts", "export const a = { ...process.env }", ["environment"]],
    ["a start that does not say which", "src/runs/A.ts", 'spawn("ss", [], { timeout: 1 })', ["environment"]],
    ["a part of it", "src/goals/A.ts", "export const a = { env: { ...ChildEnvironment.given(environment) } }", []],
    ["the whole where the parts are picked", "src/runs/process/ChildEnvironment.ts", "a({ ...environment })", []],
    ["a cast to any", "src/agents/A.ts", "export const a = (b: unknown) => b as any", ["as any"]],
    ["a field that is set later", "src/agents/A.ts", "export class A { b!: string }", ["assumed field"]],
    ["a silenced compiler", "src/agents/A.ts", "// @ts-ignore\nexport const a = 1", ["ts-ignore"]],
    [
      "an untyped payload",
      "src/agents/A.ts",
      'export const a = (rune: Rune) => Number(rune.payload["n"])',
      ["untyped payload"]
    ],
    ["a payload by its kind", "src/agents/A.ts", "export const a = (rune: Rune) => read(rune)?.payload.n", []],
    ["a promise", "src/agents/A.ts", "// TODO later\nexport const a = 1", ["TODO"]],
    ["a module's variable", "src/agents/A.ts", "export let a = 1", ["module variable"]],
    ["a function's variable", "src/agents/A.ts", "export const a = () => { let b = 1; return ++b }", []],
    ["a barrel", "src/agents/index.ts", "export const a = 1", ["barrel", "name"]],
    ["a folder in a folder", "src/agents/more/deeper/A.ts", "export const a = 1", ["depth"]],
    ["a long file", "src/agents/A.ts", "\n".repeat(700), ["length"]]
  ]
  for (const [what, path, code, broken] of cases) {
    it(`${what}: ${broken.length === 0 ? "allowed" : "refused"}`, () =>
      assert.deepStrictEqual(rulesBroken(path, code), broken))
  }

  it("a circle of imports, of types too", () => {
    const file = (path: string, code: string) => parse(path, `/** Says what it is. */\n${code}\n`)
    const files = [
      file("src/agents/A.ts", 'import { b } from "./B.ts"\nimport { d } from "./D.ts"'),
      file("src/agents/B.ts", 'export { c } from "./C.ts"'),
      file("src/agents/C.ts", 'import type { A } from "./A.ts"'),
      file("src/agents/D.ts", 'import { e } from "effect"')
    ]
    assert.deepStrictEqual(cycles(importsOf(files)), [["src/agents/A.ts", "src/agents/B.ts", "src/agents/C.ts"]])
  })

  it("a file without a doc comment: refused", () => {
    assert.deepStrictEqual(
      problemsOf(parse("src/agents/A.ts", "// no\nexport const a = 1\n")).map(({ rule }) => rule),
      ["opening"]
    )
  })
})

describe("the project", () => {
  const json = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8"))
  const kinds = ["dependencies", "optionalDependencies", "devDependencies"] as const

  it("has nothing in its root that does not belong there", () => {
    // the documents tell a user to run `npm pack`, which writes its package here
    const isMade = (name: string) => made.has(name) || /^agentd-[\d.]+\.tgz$/.test(name)
    const unexpected = readdirSync(root).filter((name) => !entries.has(name) && !isMade(name) && !name.startsWith("."))
    assert.deepStrictEqual(unexpected, [])
  })

  it("pins every dependency exactly", () => {
    const versions = kinds.flatMap((kind) => Object.entries<string>(json("package.json")[kind] ?? {}))
    assert.isAbove(versions.length, 0)
    assert.deepStrictEqual(
      versions.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)),
      []
    )
  })

  it("has a lock file that fits its manifest and names no registry", () => {
    const [manifest, lock] = [json("package.json"), json("package-lock.json")]
    for (const kind of kinds) assert.deepStrictEqual(lock.packages[""][kind], manifest[kind])
    assert.deepStrictEqual(
      Object.entries<{ readonly resolved?: string }>(lock.packages).filter(
        ([, { resolved }]) => resolved !== undefined
      ),
      []
    )
  })

  it("has a checker for each system that its compiler's package names, and a hash of all else that is installed", () => {
    const lock: { readonly [path: string]: { readonly version: string; readonly integrity?: string } } =
      json("package-lock.json").packages
    const { optionalDependencies } = json("package-lock.json").packages["node_modules/@effect/tsgo"]
    for (const [name, version] of Object.entries(optionalDependencies))
      assert.strictEqual(lock[`node_modules/${name}`]?.version, version, name)
    // the registry behind this lock file has no programs of the checker for other systems, so nobody knows their hash
    assert.deepStrictEqual(
      Object.entries(lock).filter(
        ([path, { integrity }]) =>
          integrity === undefined && path !== "" && !path.startsWith("node_modules/@effect/tsgo-")
      ),
      []
    )
  })

  it("reads Linux's /proc in few places, each of them a port to the system", () => {
    const ports: { readonly [path: string]: string } = {
      "src/app/DaemonInfo.ts": "the daemon's own control group",
      "src/app/Platform.ts": "the port of the whole daemon",
      "src/runs/ConfinedCommand.ts": "what a command leaves running, which its own shell alone can see",
      "src/runs/ListeningPorts.ts": "which ports programs listen on",
      "src/runs/process/PeerProcess.ts": "who is at the other end of a socket",
      "src/runs/process/ProcessTable.ts": "the table of processes",
      "src/runs/process/ProcessUse.ts": "what processes use",
      "src/runs/sandbox/Confinement.ts": "the sandbox",
      "src/runs/sandbox/NamespaceScript.ts": "the sandbox",
      "src/runs/sandbox/PathContainment.ts": "paths by descriptors",
      "src/runs/sandbox/SetIds.ts": "paths by descriptors",
      "src/core/event-log/StoreOwner.ts": "the holder of a store; the log knows nothing above it",
      "src/api/http/PortOwner.ts": "who has a port",
      "src/runs/keeper/Keeper.ts": "the keeper, a program of its own",
      "src/runs/keeper/EndedPrograms.ts": "the keeper, a program of its own",
      "src/plates/ShellWatch.ts": "shells of a session, in a world that a simulation makes, too",
      "src/systemd/Activation.ts": "the service manager",
      "src/systemd/DaemonLauncher.ts": "the descriptors that a daemon would be given",
      "src/systemd/CurrentUnit.ts": "the service manager"
    }
    const reads = filesBelow("src").filter((path) => /["'`]\/proc\b/.test(readFileSync(join(root, path), "utf8")))
    const code = reads.filter((path) => path.endsWith(".ts"))
    assert.deepStrictEqual(
      code.filter((path) => ports[path] === undefined),
      [],
      "take it from src/runs/process/ProcessTable.ts"
    )
    assert.deepStrictEqual(
      Object.keys(ports).filter((path) => !code.includes(path)),
      [],
      "reads it no longer"
    )
  })

  it("names no place that only one machine has", () => {
    // Taken apart, so that this file does not name them either.
    const places = [
      ["", "work", ""],
      ["..", "shared"],
      ["", "Users", ""]
    ].map((parts) => parts.join("/"))
    const files = [
      ...["src", "test", "scripts", "findings", ".ci"].flatMap(filesBelow),
      ...[...entries].filter((name) => name.includes(".") && existsSync(join(root, name)))
    ]
    const named = files.flatMap((path) => {
      const text = readFileSync(join(root, path), "utf8")
      return places.filter((place) => text.includes(place)).map((place) => `${path} names ${place}`)
    })
    assert.deepStrictEqual(named, [])
  })
})
