/**
 * demo: shows agentd's main job with real programs, in about a minute.
 *
 * It uses a real daemon with its store in a temporary folder, a real git repository, and a real SMTP server on this
 * machine. Its seven agents are small shell scripts. At the end, a goal of five tasks is planned, worked on, reviewed
 * and merged. The demo prints what happens as it happens, checks each claim, verifies the log, and leaves no process
 * and no file behind. It exits with 0 only if every claim holds.
 */
import { execFile, execFileSync, spawn } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { styleText } from "node:util"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Fiber, Schedule, Stream } from "effect"
import { SMTPServer } from "smtp-server"
import { call } from "../src/api/rpc/ControlClient.ts"
import type { AgentInfo } from "../src/domain/Messages.ts"
import type { Rune } from "../src/core/event-log/Rune.ts"
import * as Goal from "./demo/Goal.ts"

/** Maximum time of one wait, much longer than any takes, and the time after which a wait is shown. */
const [LIMIT, LONG] = ["3 minutes", "5 seconds"] as const
const started = Date.now()
const colour = process.stdout.isTTY && process.env["NO_COLOR"] === undefined
const style = (format: Parameters<typeof styleText>[0], text: string) => (colour ? styleText(format, text) : text)

const folder = mkdtempSync(join(tmpdir(), "agentd-demo-"))
const project = join(folder, "shop")
const state = join(folder, "state")
const socket = join(state, "control.sock")
const main = join(import.meta.dirname, "../src/main.ts")

const clock = () => style("dim", `${((Date.now() - started) / 1000).toFixed(1).padStart(5)} s`)
const say = (text: string) => console.log(`${clock()}  ${text}`)
const title = (text: string) => console.log(`\n${style("bold", text)}`)
const indented = (text: string) => text.trimEnd().replaceAll(/^/gm, "         │ ")

// ── The agents: small shell scripts ──────────────────────────────────────────

const script = (text: string, more: object) => ({
  // the variable also identifies the demo's processes, see `leftovers`
  backend: { type: "command", shell: text, readyAfter: "100ms", killGrace: "1 second", passEnv: ["DEMO_FOLDER"] },
  // scaled down by 10, so that the demo ends within a minute: 0.2, 0.4, 0.8 … seconds
  backoff: { base: "200ms", cap: "6 seconds" },
  minRunInterval: "0ms",
  ...more
})

const config = (port: number) => ({
  agents: {
    builder: script(
      'cat > prompt.txt; n=$(ls | grep -c page); cp prompt.txt "page$n.txt"; git add -A\n' +
        'git -c user.name=builder -c user.email=builder@example.org commit -qm "page $n" && echo "committed page $n"; sleep 0.3',
      { role: "writes one page per message", worktree: true }
    ),
    flaky: script(
      "cat > /dev/null; n=$(cat tries 2>/dev/null || echo 0); echo $((n+1)) > tries; sleep 0.2\n" +
        'if [ $n -lt 2 ]; then echo "segfault in try $((n+1))" >&2; kill -SEGV $$; fi; echo "try $((n+1)) went well"',
      { role: "crashes twice, then recovers" }
    ),
    doomed: script('echo "cannot open the database" >&2; exit 3', {
      role: "can never work",
      mode: "loop",
      prompt: "serve"
    }),
    thinker: script(
      'p=$(cat); case "$p" in *"answer now"*) echo "the answer is 42"; sleep 0.3;; *) echo thinking; sleep 600;; esac',
      { role: "thinks until it is interrupted" }
    ),
    ...Goal.agents(script)
  },
  goals: Goal.goals,
  mail: {
    to: "you@example.org",
    from: "agentd <agentd@example.org>",
    digestWindow: "1 second",
    smtp: { host: "127.0.0.1", port, security: "none" }
  }
})

// ── What runs around it ──────────────────────────────────────────────────────

const mails: Array<string> = []

/** The mail's text, with its quoted-printable encoding removed. */
const readable = (text: string): string => {
  const plain = text.replaceAll("\r\n", "\n").replaceAll("=\n", "")
  const bytes = plain.replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, "latin1").toString("utf8")
}

const mailServer = Effect.acquireRelease(
  Effect.callback<SMTPServer>((resume) => {
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ["STARTTLS"],
      onData: (stream, _session, done) => {
        let text = ""
        stream.on("data", (chunk) => (text += chunk))
        stream.on("end", () => {
          mails.push(readable(text))
          done()
        })
      }
    })
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
)

/** The daemon; it is killed with SIGKILL when the demo ends, however it ends. */
const daemon = Effect.acquireRelease(
  Effect.sync(() => {
    const child = spawn(process.execPath, [main, "--state", state, "up"], {
      cwd: project,
      env: {
        ...process.env,
        DEMO_FOLDER: folder,
        NO_COLOR: "1",
        XDG_CONFIG_HOME: join(folder, "config"),
        CLAUDE_CONFIG_DIR: join(folder, "claude")
      },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let output = ""
    for (const pipe of [child.stdout, child.stderr]) pipe.on("data", (chunk) => (output += chunk))
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve))
    return { child, ended, output: () => output }
  }),
  ({ child, ended }) =>
    Effect.promise(() => {
      child.kill("SIGKILL")
      return ended
    })
)

/** Says what it waits for if that takes long, and fails if it takes too long. */
const bounded = <A, E>(what: string, wait: Effect.Effect<A, E>): Effect.Effect<A, E> => {
  const told = Effect.andThen(
    Effect.sleep(LONG),
    Effect.sync(() => say(style("dim", `waits for: ${what}`)))
  )
  return Effect.raceFirst(wait, Effect.andThen(Effect.repeat(told, Schedule.forever), Effect.never)).pipe(
    Effect.timeoutOrElse({
      duration: LIMIT,
      orElse: () => Effect.die(new Error(`this did not happen within ${LIMIT}: ${what}`))
    })
  )
}

/** Runs the real command and shows its output (of JSON, the beginning). A failing command ends the demo. */
const agentd = (...args: ReadonlyArray<string>) => {
  const typed = args.map((arg) => (/\s/.test(arg) ? `"${arg}"` : arg)).join(" ")
  const output = Effect.callback<string>((resume, signal) => {
    console.log(`${clock()}  ${style("cyan", `$ agentd ${typed}`)}`)
    const env = { ...process.env, ...(colour ? { FORCE_COLOR: "1" } : {}) }
    execFile(
      process.execPath,
      [main, "--state", state, ...args],
      { cwd: project, env, signal },
      (error, stdout, stderr) => {
        const printed = stdout + stderr
        console.log(indented(args.includes("--json") ? `${printed.slice(0, 100)}…` : printed))
        resume(error === null ? Effect.succeed(stdout) : Effect.die(error))
      }
    )
  })
  return bounded(`the end of: agentd ${typed}`, output)
}

const git = (...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", project, ...args], { encoding: "utf8" }).trim()

/** All runes of the log so far. */
const log: Array<Rune> = []
const logged = (actor: string, holds: (rune: Rune) => boolean) =>
  log.some((rune) => rune.actor === actor && holds(rune))

/** A line that describes a rune for a person; undefined for runes that are of no interest. */
const tell = (rune: Rune): string | undefined => {
  const who = style("bold", rune.actor.replace(/^worker\//, ""))
  const event = rune.payload["event"] as
    | { readonly outcome?: { readonly detail?: string }; readonly seq?: number }
    | undefined
  if (rune.kind === "run.output")
    return style("dim", `${who} │ ${String(rune.payload["text"]).replaceAll("\n", " ⏎ ")}`)
  if (rune.kind === "alert.sent") return style("green", "mail   the server accepted it")
  if (rune.kind !== "worker.moved" || rune.from === rune.to) return undefined
  switch (rune.to) {
    case "Running":
      return `${who} runs (run ${event?.seq})`
    case "SessionComplete":
      return style("green", `${who} is done`)
    case "CoolingDown":
      return style("yellow", `${who} failed: ${event?.outcome?.detail ?? "lost"}; cooling down`)
    case "Interrupting":
      return style("yellow", `${who} is interrupted by the urgent message`)
    case "Stopped":
      return style("red", `${who} stopped permanently: ${event?.outcome?.detail ?? "as asked"}`)
    default:
      return undefined
  }
}

// ── The demo ─────────────────────────────────────────────────────────────────

const claims: Array<readonly [claim: string, holds: boolean]> = []
const check = (claim: string, holds: boolean) => void claims.push([claim, holds])

const rows = call(socket, (client) => client.Agents())

const again = <A, E>(read: Effect.Effect<A, E>, holds: (value: A) => boolean): Effect.Effect<A, E> =>
  Effect.flatMap(read, (value) =>
    holds(value) ? Effect.succeed(value) : Effect.andThen(Effect.sleep("50 millis"), again(read, holds))
  )
/** Waits until it holds. */
const until = <A, E>(what: string, read: Effect.Effect<A, E>, holds: (value: A) => boolean) =>
  bounded(what, again(read, holds))
const agent = (name: string, what: string, holds: (row: AgentInfo) => boolean) =>
  until(`${name} ${what}`, rows, (all) => all.some((row) => row.agent === name && holds(row)))

const idle = ({ inbox, state }: AgentInfo) => inbox === 0 && state === "BuildingPrompt"

const prepare = Effect.sync(() => {
  mkdirSync(project)
  git("init", "-q", "-b", "main")
  git("-c", "user.name=you", "-c", "user.email=you@example.org", "commit", "-q", "--allow-empty", "-m", "first")
})

/** Prints the log's runes as they come, until it is interrupted. */
const narrate = call(socket, (client) =>
  client.Log({ after: 0, follow: true, caller: { by: "demo", config: null } }).pipe(
    Stream.runForEach((rune) =>
      Effect.sync(() => {
        log.push(rune)
        const text = tell(rune)
        if (text !== undefined) say(text)
      })
    )
  )
)

const work = Effect.gen(function* () {
  title("A daemon with a separate store starts seven agents (delays are divided by 10)")
  yield* agentd("send", "builder", "Write the first page.")
  yield* agentd("send", "flaky", "Do what you can.")
  yield* agentd("send", "thinker", "Think about everything.")
  yield* agent("thinker", "runs", ({ state }) => state === "Running")

  title("An urgent message interrupts a run; the next run answers it")
  yield* agentd("send", "thinker", "--urgent", "Never mind: answer now.")
  yield* agent("thinker", "is idle", idle)
  const answered = () => logged("worker/thinker", ({ payload }) => payload["text"] === "the answer is 42")
  yield* until("the thinker's answer", Effect.sync(answered), (is) => is)
  check(
    "the urgent message interrupted the thinker, and its next run answered it",
    logged("worker/thinker", ({ to }) => to === "Interrupting") && answered()
  )

  title("One agent works, one crashes twice and recovers, one fails permanently")
  // two messages that wait at the same time are one prompt
  yield* agent("builder", "is idle", idle)
  yield* agentd("send", "builder", "Write the second page.")
  yield* agent("builder", "is idle", idle)
  const pages = git("rev-list", "--count", "main..agentd/builder")
  check(`the builder committed in its own worktree (${pages} commits on agentd/builder)`, Number(pages) === 2)
  const flaky = (yield* agent("flaky", "is idle", idle)).find((row) => row.agent === "flaky")
  check("the flaky agent crashed twice and recovered", flaky?.totalErrors === 2 && flaky.consecutiveErrors === 0)
  const doomed = (yield* agent("doomed", "is stopped", ({ state }) => state === "Stopped")).find(
    (row) => row.agent === "doomed"
  )
  check("the doomed agent was stopped permanently after 5 errors in a row", doomed?.consecutiveErrors === 5)
  yield* until(
    "the mail about doomed",
    Effect.sync(() => mails),
    (all) => all.some((mail) => mail.includes("doomed"))
  )

  title("The mail that you get")
  console.log(indented(mails.find((mail) => mail.includes("doomed"))!))
  check(
    "a mail reported it: who, why, and the command to start the agent again",
    /agentd (--state \S+ )?start shop\/doomed/.test(mails.join())
  )

  yield* Goal.part({ agentd, claim: check, project, title })

  title("The board, and why")
  yield* agentd("ps")
  yield* agentd("why", "doomed")
  const verdict = yield* agentd("verify")
  check("the log verifies: every hash follows from the one before", /No problems/.test(verdict))
})

/** Every live process that the daemon or one of its runs started: all have DEMO_FOLDER in their environment. */
const leftovers = () =>
  readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "utf8").includes(`DEMO_FOLDER=${folder}\0`)
      } catch {
        return false
      }
    })

const demo = Effect.gen(function* () {
  yield* prepare
  const server = yield* mailServer
  const address = server.server.address()
  writeFileSync(
    join(project, "agentd.jsonc"),
    JSON.stringify(config(typeof address === "object" && address !== null ? address.port : 0), null, 2)
  )
  const { ended, output } = yield* daemon
  yield* Effect.gen(function* () {
    const status = Effect.option(call(socket, (client) => client.Status()))
    yield* until("the daemon answers", status, ({ _tag }) => _tag === "Some")
    const narrator = yield* Effect.forkChild(narrate)
    yield* work
    yield* Fiber.interrupt(narrator)
    title("The end")
    yield* agentd("stop", "--daemon", "--yes")
    check("the daemon stopped gracefully", (yield* Effect.promise(() => ended)) === 0)
  }).pipe(Effect.onError(() => Effect.sync(() => console.error(`\nthe daemon said:\n${output()}`))))
})

const program = demo.pipe(Effect.scoped, Effect.provide(NodeServices.layer))

const exit = await Effect.runPromiseExit(program)
const left = leftovers()
for (const pid of left) process.kill(Number(pid), "SIGKILL")
rmSync(folder, { recursive: true, force: true })
if (exit._tag === "Failure") console.error(`\n${Cause.pretty(exit.cause)}`)
check("no process is left", left.length === 0)
check("no file is left", !existsSync(folder))

title("What was shown")
for (const [claim, holds] of claims) console.log(`  ${holds ? style("green", "✓") : style("red", "✗")} ${claim}`)
const well = exit._tag === "Success" && claims.every(([, holds]) => holds)
console.log(
  `\n${well ? style("green", "Every claim was true") : style("red", "Not every claim was true")}, in ${((Date.now() - started) / 1000).toFixed(1)} s.`
)
process.exitCode = well ? 0 : 1
