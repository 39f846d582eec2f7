/**
 * Bench of one hook, as it costs the agent: from the moment in which it sends the
 * hook until it may go on. Ours is an HTTP request to the daemon's server over
 * loopback TCP, on a connection of its own as after a pause, with its token and
 * the checks of the body; behind it stands a board that only takes note.
 *
 * Beside it what other tools do: a command that runs `curl` to the same server, a
 * shell script that drops a file (ours for SessionStart), and a bare `node -e 0`,
 * which is the least that a handler written in JavaScript costs.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, ManagedRuntime } from "effect"
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { claim } from "../../src/rpc/Endpoint.ts"
import * as Listening from "../../src/http/Listening.ts"
import * as Server from "../../src/http/Server.ts"
import * as Spool from "../../src/http/Spool.ts"
import { Plates } from "../../src/plates/Plates.ts"
import { type Bench, interleave, isOnPath, type Measure, quantile, type Subject } from "./Bench.ts"

const ROUNDS = 7
const REQUESTS = 300
const COMMANDS = 20

const measures: ReadonlyArray<Measure> = [
  { what: "one hook p50", unit: "ms", better: "less" },
  { what: "one hook p99", unit: "ms", better: "less" }
]

/** What a tool's end looks like, with an answer of some length. */
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

/** Takes note and does nothing: the server is measured, and not the board. */
const plates = Layer.succeed(Plates)({
  hook: () => Effect.void,
  event: () => Effect.void,
  register: () => Effect.succeed({ plateId: "" }),
  stopped: () => Effect.void,
  forget: () => Effect.die("not asked"),
  list: () => Effect.succeed([]),
  find: () => Effect.die("not asked"),
  permission: () => Effect.as(Effect.void, undefined),
  answer: () => Effect.die("not asked"),
  run: () => Effect.void,
  health: Effect.succeed({ ready: true, open: 0, checkedAt: null })
})

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

const measure = async (folder: string, port: number, token: string) => {
  const { script } = await Effect.runPromise(Effect.provide(Spool.prepare(folder), NodeServices.layer))
  const config = join(folder, "curl")
  writeFileSync(config, `header = "Authorization: Bearer ${token}"\nheader = "Content-Type: application/json"\n`)
  const kept = new Agent({ keepAlive: true, maxSockets: 1 })
  const curl = ["-sS", "-f", "-K", config, "-m", "2", "--data-binary", "@-", `http://127.0.0.1:${port}/hooks/claude`]
  const subjects: ReadonlyArray<Subject> = [
    { subject: "agentd, a new connection", round: () => timed(REQUESTS, () => post(port, token, false)) },
    { subject: "agentd, a kept connection", round: () => timed(REQUESTS, () => post(port, token, kept)) },
    {
      subject: "agentd's script (SessionStart)",
      round: () => timed(COMMANDS, () => command("sh", ["-c", `'${script}'`]))
    },
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
  run: async () => {
    const folder = mkdtempSync(join(tmpdir(), "agentd-bench-"))
    const server = Server.layer({
      state: folder,
      socket: join(folder, "http.sock"),
      claim,
      port: 0,
      status: Effect.void
    })
    const runtime = ManagedRuntime.make(
      server.pipe(Layer.provideMerge(Listening.layer), Layer.provide(Layer.merge(plates, NodeServices.layer)))
    )
    try {
      const { port } = await runtime.runPromise(Effect.flatMap(Listening.Listening, ({ report }) => report))
      return await measure(folder, port ?? 0, readFileSync(join(folder, "http-hooks.token"), "utf8").trim())
    } finally {
      await runtime.dispose()
      rmSync(folder, { recursive: true })
    }
  }
}
