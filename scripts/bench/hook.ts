/**
 * Bench of one hook, as it costs the agent: from the moment in which it sends the
 * hook until it may go on. Ours is a command that writes to the daemon's unix socket, by
 * each program that it can be; beside it an empty `sh -c :`, the least that any command
 * costs. Behind the socket stands the daemon's own board, whose plates append to the log
 * on the disk.
 *
 * The daemon's share of it alone is an HTTP request over loopback TCP, on a connection of
 * its own as after a pause, with its token and the checks of the body; once more beside 16
 * scopes that append without a pause: what commits do to the thread that answers hooks.
 *
 * Beside it what other tools do: a command that runs `curl` to the same server, a
 * shell script that drops a file (ours for SessionStart), and a bare `node -e 0`,
 * which is the least that a handler written in JavaScript costs.
 */
import type { CommitScope } from "../../src/core/event-actor/CommitScope.ts"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, ManagedRuntime } from "effect"
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { claim } from "../../src/api/rpc/Endpoint.ts"
import * as HookCommand from "../../src/api/http/HookCommand.ts"
import * as ListenerStatus from "../../src/api/http/ListenerStatus.ts"
import * as Server from "../../src/api/http/Server.ts"
import * as Spool from "../../src/api/http/Spool.ts"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import * as ActorSystem from "../../src/core/event-actor/ActorSystem.ts"
import * as DeadLetters from "../../src/core/event-actor/DeadLetters.ts"
import * as EventLoop from "../../src/core/event-actor/EventLoop.ts"
import { Log } from "../../src/core/event-log/Log.ts"
import { Redact } from "../../src/core/event-log/Redact.ts"
import * as Plates from "../../src/plates/Plates.ts"
import * as DynamicSupervisor from "../../src/core/supervision/DynamicSupervisor.ts"
import * as Supervisor from "../../src/core/supervision/Supervisor.ts"
import {
  type Aim,
  type Bench,
  type Figures,
  interleave,
  isOnPath,
  type Measure,
  perSecond,
  quantile,
  type Subject
} from "./Bench.ts"
import { counter } from "./Counter.ts"
import { spawner } from "./Scopes.ts"

const ROUNDS = 7
const REQUESTS = 300
const COMMANDS = 20
const HOT = 16
/** Messages that wait at each hot actor. */
const BUSY = 50

const measures: ReadonlyArray<Measure> = [
  { what: "one hook p50", unit: "ms", better: "less" },
  { what: "one hook p99", unit: "ms", better: "less" },
  { what: "runes appended meanwhile", unit: "/s", better: "more" }
]

const OURS = "agentd, a new connection"
const EMPTY = "sh -c :, an empty command"
const commandBy = (way: HookCommand.Way): string => `agentd's command, by ${way}`
const BUSY_LOG = "agentd, a new connection, beside 16 that append"

const aims: ReadonlyArray<Aim> = [
  { what: "one hook p50", of: BUSY_LOG, atMost: 1 },
  // perl is what nearly every machine has: as much again as starting nothing, at most
  { what: "one hook p50", of: commandBy("perl"), to: { subject: EMPTY }, atMost: 2 }
]

/** The hook of a tool's end, with an answer of some length. */
const hook = JSON.stringify({
  session_id: "b7ecec84-4aed-491b-953b-2afdd6920a79",
  transcript_path: "/home/user/.claude/projects/-home-user-project/b7ecec84.jsonl",
  cwd: "/home/user/project",
  permission_mode: "default",
  hook_event_name: "PostToolUse",
  tool_name: "Bash",
  tool_input: { command: "npm test" },
  tool_response: { stdout: "ok\n".repeat(1000), stderr: "" },
  tool_use_id: "toolu_f736095628747970ee6f"
})

/** The board with its plates, over the log on the disk. */
const board = (folder: string) => {
  const supervisor = DynamicSupervisor.make({
    name: "plates",
    strategy: "one_for_one",
    intensity: 10,
    period: "30 seconds"
  })
  const log = DaemonLog.layer({ file: join(folder, "runes.db") })
  const system = Layer.unwrap(Effect.map(Log, (log) => ActorSystem.layer({ log, capacity: 1_000_000 }))).pipe(
    Layer.provide([DeadLetters.layerMemory(), EventLoop.layer])
  )
  return Layer.effectDiscard(Supervisor.make({ name: "root", children: [supervisor.child] })).pipe(
    Layer.provideMerge(Plates.layer({ supervisor, watch: false })),
    Layer.provideMerge(system),
    Layer.provideMerge(log),
    Layer.provide(Redact.layer)
  )
}

/** Scopes that append without a pause while something is measured. */
const besideWriters = Effect.fnUntraced(function* (measured: Effect.Effect<Figures>) {
  const spawn = yield* spawner
  const hot = yield* Effect.replicateEffect(spawn(counter), HOT)
  for (const actor of hot) for (let n = 0; n < BUSY; n++) actor.tellNow({ _tag: "Busy" })
  const log = yield* Log
  const before = log.durable
  const since = performance.now()
  const figures = yield* measured
  const appended = perSecond(log.durable - before, since)
  for (const { scope } of hot) (scope as CommitScope).close()
  return { ...figures, "runes appended meanwhile": appended }
}, Effect.scoped)

const timed = async (times: number, once: () => Promise<void>) => {
  const all: Array<number> = []
  for (let n = 0; n < times; n++) {
    const since = performance.now()
    await once()
    all.push(performance.now() - since)
  }
  return { "one hook p50": quantile(all, 0.5), "one hook p99": quantile(all, 0.99) }
}

const command = (name: string, args: ReadonlyArray<string>) =>
  new Promise<void>((resolve, reject) => {
    const child = spawn(name, args, { stdio: ["pipe", "ignore", "ignore"] })
    child.on("error", reject)
    child.on("close", (code) => (code === 0 ? resolve() : reject(new Error(`${name}: exit code ${code}`))))
    child.stdin.on("error", () => {})
    child.stdin.end(hook)
  })

const post = (port: number, token: string, agent: Agent | false) =>
  new Promise<void>((resolve, reject) => {
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(hook),
      authorization: `Bearer ${token}`,
      "x-agentd-plate": "",
      "x-agentd-run": ""
    }
    const to = { host: Server.HOST, port, path: "/hooks/claude", method: "POST", headers, agent }
    const outgoing = request(to, (response) => {
      if (response.statusCode !== 202) reject(new Error(`status ${response.statusCode}`))
      response.resume().on("end", resolve)
    })
    outgoing.on("error", reject)
    outgoing.end(hook)
  })

type Beside = (measured: Effect.Effect<Figures>) => Promise<Figures>

const measure = async (folder: string, port: number, token: string, beside: Beside) => {
  const { hooks, script } = await Effect.runPromise(Effect.provide(Spool.prepare(folder), NodeServices.layer))
  const config = join(folder, "curl")
  writeFileSync(config, `header = "Authorization: Bearer ${token}"\nheader = "Content-Type: application/json"\n`)
  const kept = new Agent({ keepAlive: true, maxSockets: 1 })
  const curl = ["-sS", "-f", "-K", config, "-m", "2", "--data-binary", "@-", `http://127.0.0.1:${port}/hooks/claude`]
  const subjects: ReadonlyArray<Subject> = [
    { subject: OURS, round: () => timed(REQUESTS, () => post(port, token, false)) },
    {
      subject: BUSY_LOG,
      round: () => beside(Effect.promise(() => timed(REQUESTS, () => post(port, token, false))))
    },
    { subject: "agentd, a kept connection", round: () => timed(REQUESTS, () => post(port, token, kept)) },
    {
      subject: "agentd's script (SessionStart)",
      round: () => timed(COMMANDS, () => command("sh", ["-c", `'${script}'`]))
    },
    { subject: EMPTY, round: () => timed(COMMANDS, () => command("sh", ["-c", "cat >/dev/null"])) },
    ...HookCommand.WAYS.filter((way) => way === "node" || isOnPath(way)).map((way) => {
      const reporter = HookCommand.reporterBy(way, { folder: hooks, socket: join(folder, "http.sock") })
      const line = HookCommand.line(reporter, "/hooks/claude", 1)
      return { subject: commandBy(way), round: () => timed(COMMANDS, () => command("sh", ["-c", line])) }
    }),
    ...(isOnPath("curl")
      ? [{ subject: "curl as a command hook", round: () => timed(COMMANDS, () => command("curl", curl)) }]
      : []),
    { subject: "a bare node -e 0", round: () => timed(COMMANDS, () => command(process.execPath, ["-e", "0"])) }
  ]
  const rows = await interleave(measures, subjects, ROUNDS)
  kept.destroy()
  return rows
}

export const bench: Bench = {
  name: "hook",
  aims,
  run: async () => {
    const folder = mkdtempSync(join(tmpdir(), "agentd-bench-"))
    const server = Server.layer({
      state: folder,
      socket: join(folder, "http.sock"),
      claim,
      port: 0,
      about: { status: Effect.void, metrics: Effect.succeed(""), hook: () => {} },
      taken: () => Effect.void
    })
    const runtime = ManagedRuntime.make(
      server.pipe(
        Layer.provideMerge(ListenerStatus.layer),
        Layer.provideMerge(board(folder)),
        Layer.provide(NodeServices.layer)
      )
    )
    try {
      const { port } = await runtime.runPromise(Effect.flatMap(ListenerStatus.ListenerStatus, ({ report }) => report))
      return await measure(
        folder,
        port ?? 0,
        readFileSync(join(folder, "http-hooks.token"), "utf8").trim(),
        (measured) => runtime.runPromise(besideWriters(measured))
      )
    } finally {
      await runtime.dispose()
      rmSync(folder, { recursive: true })
    }
  }
}
