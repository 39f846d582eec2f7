import { assert, describe, it, layer } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Stream } from "effect"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import type { ClaudeBackend } from "../../../src/config/BackendConfig.ts"
import type { Decision, Run, RunEvent } from "../../../src/runs/Backend.ts"
import * as ClaudeCommand from "../../../src/runs/claude/ClaudeCommand.ts"
import { identify, isAlive } from "../../../src/runs/process/ProcessTable.ts"
import * as Support from "../../support/backend-run.ts"
import { begin, config, endsAfter, only, play } from "./ClaudeWorld.ts"

const SUCCESS = { _tag: "Success" }

/** Without what a result says was spent. */
const tags = (events: ReadonlyArray<RunEvent>) => Support.tags(events).filter((tag) => tag !== "Usage")

const outcomeOf = (events: ReadonlyArray<RunEvent>) => {
  const exits = only(events, "Exited")
  assert.strictEqual(exits.length, 1, "exactly one Exited")
  assert.strictEqual(events.at(-1), exits[0], "Exited is the last")
  return exits[0]!.outcome
}

const answers =
  (decision: Decision) =>
  (event: RunEvent, run: Run): Effect.Effect<void> | undefined =>
    event._tag === "ApprovalRequested" ? run.answer(event.callId, decision) : endsAfter("t1")(event, run)

const bash = { name: "Bash", input: { command: "touch x" } }

describe("argvOf", () => {
  const argv = (session: ClaudeCommand.Session) => ClaudeCommand.argvOf(config(), session, undefined).join(" ")
  it("a new session gets its id from us, a resumed one keeps its own, a forked one gets a new one", () => {
    assert.include(argv({ _tag: "New", id: "a" }), "--session-id a")
    assert.notInclude(argv({ _tag: "Resumed", id: "a" }), "--session-id")
    assert.include(argv({ _tag: "Resumed", id: "a" }), "--resume a")
    assert.include(argv({ _tag: "Forked", id: "b", from: "a" }), "--resume a --fork-session --session-id b")
  })
  it("model, permission mode and further arguments are passed on", () => {
    const all = ClaudeCommand.argvOf(
      config({ model: "opus", permissionMode: "plan", args: ["--add-dir", "/x"] }),
      { _tag: "New", id: "a" },
      "/mcp.json"
    ).join(" ")
    for (const part of ["--model opus", "--permission-mode plan", "--mcp-config /mcp.json", "--add-dir /x"])
      assert.include(all, part)
  })
  it("while a rule denies or asks, it asks about every call, unless the config names another mode", () => {
    const settings = (more: Partial<ClaudeBackend>, asksAll: boolean) => {
      const argv = ClaudeCommand.argvOf(config(more), { _tag: "New", id: "a" }, undefined, asksAll)
      return argv.flatMap((word, index) => (argv[index - 1] === "--settings" ? [word] : []))
    }
    const [given = "{}", ...more] = settings({}, true)
    assert.deepStrictEqual(more, [])
    assert.includeMembers(JSON.parse(given).permissions.ask, ["*", "Bash", "Edit", "Read", "mcp__*"])
    assert.deepStrictEqual(settings({}, false), [])
    for (const permissionMode of ["acceptEdits", "plan", "bypassPermissions"] as const)
      assert.deepStrictEqual(settings({ permissionMode }, true), [])
    assert.deepStrictEqual(settings({ args: ["--settings", "mine.json"] }, true), [given, "mine.json"])
  })
})

layer(Support.layer, { excludeTestServices: true })("ClaudeBackend", (it) => {
  it.effect("two turns in one process, each with its own events; the end is a success", () =>
    Effect.gen(function* () {
      const { events, inputs, starts } = yield* play({
        processes: [{ turns: [[{ text: "First." }], [{ text: "Second." }]] }],
        on: (event, run) =>
          event._tag === "TurnCompleted" && event.turnId === "t1"
            ? run.send({ turnId: "t2", text: "more" })
            : endsAfter("t2")(event, run)
      })
      const turn = ["TurnStarted", "Delta", "Delta", "TurnCompleted"]
      assert.deepStrictEqual(tags(events), ["Started", ...turn, ...turn, "Exited"])
      assert.deepStrictEqual(
        only(events, "TurnCompleted").map(({ output, turnId }) => [turnId, output]),
        [
          ["t1", "First."],
          ["t2", "Second."]
        ]
      )
      assert.deepStrictEqual(
        inputs.map(({ message }) => (message as { content: ReadonlyArray<{ text: string }> }).content[0]?.text),
        ["do it", "more"]
      )
      assert.deepStrictEqual(outcomeOf(events), SUCCESS)
      const [started] = only(events, "Started")
      const { args, env } = starts[0]!
      assert.match(started?.sessionId ?? "", /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      assert.strictEqual(args[args.indexOf("--session-id") + 1], started?.sessionId)
      assert.deepStrictEqual([env["AGENTD_RUN"], env["AGENTD_AGENT"]], ["run-1", "builder"])
    })
  )

  it.effect("a daemon started from within Claude Code does not make its runs a part of that session", () =>
    Effect.gen(function* () {
      const processes = [{ turns: [[{ text: "x" }]] }]
      const { starts } = yield* play({ processes, environment: { CLAUDECODE: "1" }, on: endsAfter("t1") })
      assert.isUndefined(starts[0]?.env["CLAUDECODE"])
    })
  )

  it.effect("a call that asks and is allowed runs with the input that it asked about", () =>
    Effect.gen(function* () {
      const processes = [{ turns: [[{ tool: bash }, { text: "Made it." }]] }]
      const { events } = yield* play({ processes, on: answers({ behavior: "allow" }) })
      const expected = ["Started", "TurnStarted", "ToolCall", "ApprovalRequested", "ToolResult", "Delta", "Delta"]
      assert.deepStrictEqual(tags(events), [...expected, "TurnCompleted", "Exited"])
      assert.deepStrictEqual(
        only(events, "ToolResult").map(({ output, status }) => [status, output]),
        [["success", 'did {"command":"touch x"}']]
      )
    })
  )

  it.effect("a call that is denied is told why, and the turn goes on", () =>
    Effect.gen(function* () {
      const processes = [{ turns: [[{ tool: bash }, { text: "Then not." }]] }]
      const { events } = yield* play({ processes, on: answers({ behavior: "deny", message: "not here" }) })
      assert.deepStrictEqual(
        only(events, "ToolResult").map(({ output, status }) => [status, output]),
        [["denied", "Your call was denied: not here"]]
      )
      assert.strictEqual(only(events, "TurnCompleted")[0]?.output, "Then not.")
    })
  )

  it.effect("an interrupt ends the turn and not the run, also while a person is asked", () =>
    Effect.gen(function* () {
      const { events } = yield* play({
        processes: [{ turns: [[{ tool: bash }], [{ text: "So f" }, { untilInterrupt: true }], [{ text: "Third." }]] }],
        on: (event, run) => {
          if (event._tag === "ApprovalRequested") return run.interruptTurn
          if (event._tag === "TurnInterrupted") return run.send({ turnId: `${event.turnId}+`, text: "go on" })
          if (event._tag === "Delta" && event.text === "f") return run.interruptTurn
          return event._tag === "TurnCompleted" ? run.end : undefined
        }
      })
      assert.deepStrictEqual(
        only(events, "TurnInterrupted").map(({ output, turnId }) => [turnId, output]),
        [
          ["t1", ""],
          ["t1+", "So f"]
        ]
      )
      assert.deepStrictEqual(
        only(events, "ToolResult").map(({ status }) => status),
        ["cancelled"]
      )
      assert.strictEqual(only(events, "TurnCompleted")[0]?.turnId, "t1++")
      assert.deepStrictEqual(outcomeOf(events), SUCCESS)
    })
  )

  it.effect("input is refused while a turn is active", () =>
    Effect.gen(function* () {
      let refused: Exit.Exit<void, unknown> = Exit.void
      yield* play({
        processes: [{ turns: [[{ tool: bash }]] }],
        on: (event, run) =>
          event._tag === "ApprovalRequested"
            ? Effect.andThen(
                Effect.map(Effect.exit(run.send({ turnId: "t2", text: "x" })), (exit) => (refused = exit)),
                run.answer(event.callId, { behavior: "allow" })
              )
            : endsAfter("t1")(event, run)
      })
      assert.isTrue(Exit.isFailure(refused))
    })
  )

  it.effect("an end in the midst of a turn interrupts it first", () =>
    Effect.gen(function* () {
      const { events } = yield* play({
        processes: [{ turns: [[{ text: "Half" }, { untilInterrupt: true }]] }],
        on: (event, run) => (event._tag === "Delta" ? run.end : undefined)
      })
      assert.deepStrictEqual(tags(events).slice(-2), ["TurnInterrupted", "Exited"])
      assert.deepStrictEqual(outcomeOf(events), SUCCESS)
    })
  )

  it.effect("a turn's error ends the run with the error's class", () =>
    Effect.gen(function* () {
      const error = { is_error: true, terminal_reason: "api_error", api_error_status: 401, result: "no key" }
      const { events } = yield* play({ processes: [{ turns: [[{ result: error }]], end: 1 }] })
      assert.deepStrictEqual(tags(events), ["Started", "TurnStarted", "TurnError", "Exited"])
      assert.deepInclude(outcomeOf(events), { _tag: "Uncounted", reason: "auth" })
    })
  )

  it.effect("held session: a resume refused because the session is open elsewhere is no crash", () =>
    Effect.gen(function* () {
      const said = "Error: Session abc is already open in another Claude Code process."
      const { events, starts } = yield* play({
        processes: [{ before: [{ stderr: said }, { exit: 1 }], turns: [] }],
        spec: { resume: { sessionId: "abc", fork: false } }
      })
      assert.deepStrictEqual(outcomeOf(events), { _tag: "Uncounted", reason: "held" })
      assert.strictEqual(starts.length, 1)
    })
  )

  it.effect("a session that a living process notes as its own goes on as a copy; one of a dead process as itself", () =>
    Effect.gen(function* () {
      const config = yield* Effect.acquireRelease(
        Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "agentd-config-"))),
        (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true }))
      )
      fs.mkdirSync(path.join(config, "sessions"))
      const { pid, start } = identify(process.pid)
      const note = (procStart: number, sessionId: string) =>
        fs.writeFileSync(
          path.join(config, "sessions", `${pid}.json`),
          JSON.stringify({ pid, sessionId, procStart: String(procStart), status: "idle" })
        )
      const played = play({
        processes: [{ turns: [[{ text: "Hello." }]] }],
        spec: { resume: { sessionId: "abc", fork: false } },
        environment: { CLAUDE_CONFIG_DIR: config },
        on: endsAfter("t1")
      })
      note(start, "abc")
      const held = yield* played
      assert.include(held.starts[0]?.args.join(" "), "--resume abc --fork-session")
      assert.include(only(held.events, "Notice")[0]?.text, `process ${pid}`)
      assert.deepStrictEqual(outcomeOf(held.events), SUCCESS)
      // opened while the run was idle: the next one goes on with a copy
      const refused: Array<string> = []
      note(start, "another")
      yield* play({
        processes: [{ turns: [[{ text: "Hello." }]] }],
        spec: { resume: { sessionId: "abc", fork: false } },
        environment: { CLAUDE_CONFIG_DIR: config },
        on: (event, run) =>
          event._tag !== "TurnCompleted"
            ? undefined
            : Effect.gen(function* () {
                note(start, "abc")
                const { message } = yield* Effect.flip(run.send({ turnId: "t2", text: "more" }))
                refused.push(message)
                yield* run.end
              })
      })
      assert.deepStrictEqual(refused, [`its session is open in process ${pid}, too`])
      for (const [procStart, sessionId] of [
        [start + 1, "abc"],
        [start, "another"]
      ] as const) {
        note(procStart, sessionId)
        assert.notInclude((yield* played).starts[0]?.args.join(" "), "--fork-session")
      }
    })
  )

  it.effect("a session is its own also where the program is a wrapper, whose child notes it", () =>
    Effect.gen(function* () {
      const config = yield* Effect.acquireRelease(
        Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "agentd-config-"))),
        (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true }))
      )
      fs.mkdirSync(path.join(config, "sessions"))
      const child = yield* Effect.acquireRelease(
        Effect.sync(() => spawn("sleep", ["60"], { env: { ...process.env, AGENTD_RUN: "run-1" } })),
        (sleep) => Effect.sync(() => sleep.kill("SIGKILL"))
      )
      const { pid, start } = identify(child.pid!)
      const note = { pid, sessionId: "abc", procStart: String(start), status: "idle" }
      const file = path.join(config, "sessions", `${pid}.json`)
      const { events } = yield* play({
        processes: [{ turns: [[{ text: "First." }], [{ text: "Second." }]] }],
        spec: { resume: { sessionId: "abc", fork: false } },
        environment: { CLAUDE_CONFIG_DIR: config },
        on: (event, run) =>
          event._tag === "TurnCompleted" && event.turnId === "t1"
            ? Effect.andThen(
                Effect.sync(() => fs.writeFileSync(file, JSON.stringify(note))),
                Effect.orDie(run.send({ turnId: "t2", text: "more" }))
              )
            : endsAfter("t2")(event, run)
      })
      assert.strictEqual(only(events, "TurnCompleted").length, 2)
    })
  )

  it.effect("a session that is not there any more is begun anew in the same run", () =>
    Effect.gen(function* () {
      const missing = { type: "result", is_error: true, errors: ["No conversation found with session ID: abc"] }
      const { events, starts } = yield* play({
        processes: [{ before: [{ out: missing }, { exit: 1 }], turns: [] }, { turns: [[{ text: "Hello." }]] }],
        spec: { resume: { sessionId: "abc", fork: false } },
        on: endsAfter("t1")
      })
      assert.deepStrictEqual(tags(events), [
        "MemoryLost",
        "Started",
        "TurnStarted",
        "Delta",
        "Delta",
        "TurnCompleted",
        "Exited"
      ])
      assert.include(starts[0]?.args ?? [], "abc")
      assert.notInclude(starts[1]?.args ?? ["abc"], "abc")
      assert.deepStrictEqual(outcomeOf(events), SUCCESS)
    })
  )

  it.effect("garbage, a record too long and bytes that are no text are told of and change nothing", () =>
    Effect.gen(function* () {
      const noise = [{ raw: "not a record" }, { long: 9_000_000 }, { bytes: [0xff, 0xfe, 0x0a] }, { raw: "[1,2]" }]
      const { events } = yield* play({ processes: [{ turns: [[...noise, { text: "Fine." }]] }], on: endsAfter("t1") })
      const notices = only(events, "Notice").map(({ text }) => text)
      assert.strictEqual(notices.length, 4)
      assert.include(notices[1], "longer than agentd accepts")
      for (const notice of notices) assert.isBelow(notice.length, 2000)
      assert.deepStrictEqual(outcomeOf(events), SUCCESS)
    })
  )

  it.effect("endless garbage is told of a few times only", () =>
    Effect.gen(function* () {
      const noise = Array.from({ length: 200 }, (_, index) => ({ raw: `noise ${index}` }))
      const { events } = yield* play({ processes: [{ turns: [[...noise, { text: "Fine." }]] }], on: endsAfter("t1") })
      assert.strictEqual(only(events, "Notice").length, 10)
    })
  )

  it.effect(
    "a process that dies in the midst of a turn: the run's end ends the turn, and says how the process died",
    () =>
      Effect.gen(function* () {
        const { events } = yield* play({
          processes: [{ turns: [[{ stderr: "out of luck" }, { signal: "SIGKILL" }]] }]
        })
        assert.deepStrictEqual(only(events, "TurnError"), [])
        assert.deepStrictEqual(Support.lines(events, "stderr"), ["out of luck"])
        assert.deepStrictEqual(outcomeOf(events), {
          _tag: "Error",
          detail: "claude was killed by SIGKILL: out of luck"
        })
      })
  )

  it.effect("exit code 0 in the midst of a turn is no success", () =>
    Effect.gen(function* () {
      const { events } = yield* play({ processes: [{ turns: [[{ exit: 0 }]] }] })
      assert.deepStrictEqual(tags(events), ["Started", "TurnStarted", "Exited"])
      assert.strictEqual(outcomeOf(events)._tag, "Error")
    })
  )

  it.effect("a process that dies before it is up has not started", () =>
    Effect.gen(function* () {
      const { events } = yield* play({ processes: [{ before: [{ exit: 3 }], turns: [] }] })
      assert.deepStrictEqual(tags(events), ["Exited"])
      assert.deepStrictEqual(outcomeOf(events), { _tag: "Error", detail: "claude ended with exit code 3" })
    })
  )

  it.effect("alive but dead: a process that hangs after its result is ended, as a success", () =>
    Effect.gen(function* () {
      const { events, folder } = yield* play({
        processes: [{ turns: [[{ text: "Done." }]], end: "hang" }],
        config: { killGrace: Duration.millis(300) },
        on: endsAfter("t1")
      })
      assert.deepStrictEqual(outcomeOf(events), SUCCESS)
      assert.isTrue(Support.pidsIn(folder).every((pid) => !isAlive(pid)))
    })
  )

  it.effect("alive but dead: a turn in which nothing is heard is ended for its silence", () =>
    Effect.gen(function* () {
      const { events } = yield* play({
        processes: [{ turns: [[{ text: "Then" }, { hang: true }]] }],
        config: { silence: Duration.millis(300) }
      })
      const [error] = only(events, "TurnError")
      assert.deepStrictEqual([error?.errorType, error?.retry], ["silence", true])
      assert.strictEqual(outcomeOf(events)._tag, "Error")
    })
  )

  it.effect("an open question is no silence", () =>
    Effect.gen(function* () {
      const { events } = yield* play({
        processes: [{ turns: [[{ tool: bash }, { text: "Made it." }]] }],
        config: { silence: Duration.millis(300) },
        on: (event, run) =>
          event._tag === "ApprovalRequested"
            ? Effect.andThen(Effect.sleep("600 millis"), run.answer(event.callId, { behavior: "allow" }))
            : endsAfter("t1")(event, run)
      })
      assert.strictEqual(only(events, "TurnCompleted").length, 1)
      assert.deepStrictEqual(only(events, "TurnError"), [])
    })
  )

  it.effect("one that is not ready in time is ended, whatever it writes meanwhile", () =>
    Effect.gen(function* () {
      const { events } = yield* play({
        processes: [{ before: [{ raw: "warming up" }, { hang: true }], turns: [] }],
        config: { startTimeout: Duration.millis(500) }
      })
      assert.notInclude(tags(events), "Started")
      const outcome = outcomeOf(events)
      assert.strictEqual(outcome._tag === "Error" ? outcome.detail : "", "claude was not ready within 500ms")
    })
  )

  it.effect("kill ends everything, what a tool put into a session of its own, too", () =>
    Effect.gen(function* () {
      const here = yield* Support.world
      const turns = [[{ leave: true }, { tool: bash }]]
      const run = yield* begin(here, { processes: [{ turns }] })
      const all = yield* Effect.forkScoped(Support.events(run))
      yield* Support.pids(here.folder, 2)
      yield* run.kill
      const events = yield* Fiber.join(all)
      assert.strictEqual(outcomeOf(events)._tag, "Error")
      assert.isTrue(Support.pidsIn(here.folder).every((pid) => !isAlive(pid)))
    })
  )

  it.effect("its servers are named in a private file, which is gone with the run", () =>
    Effect.gen(function* () {
      let file = ""
      const seen: Array<unknown> = []
      const { starts } = yield* play({
        processes: [{ turns: [[{ text: "x" }]] }],
        spec: { mcp: { voice: { argv: ["agentd", "mcp"], env: { TOKEN: "secret" } } } },
        on: (event, run) => {
          if (event._tag === "Started") {
            const args = fs.readFileSync(`/proc/${event.pid}/cmdline`, "utf8").split("\0")
            file = args[args.indexOf("--mcp-config") + 1] ?? ""
            seen.push(JSON.parse(fs.readFileSync(file, "utf8")), (fs.statSync(file).mode & 0o777).toString(8))
            assert.notInclude(args.join(" "), "secret")
          }
          return endsAfter("t1")(event, run)
        }
      })
      const voice = { type: "stdio", command: "agentd", args: ["mcp"], env: { TOKEN: "secret" } }
      assert.deepStrictEqual(seen, [{ mcpServers: { voice } }, "600"])
      assert.include(starts[0]?.args ?? [], file)
      assert.isFalse(fs.existsSync(file))
    })
  )

  it.effect("a missing program is fatal, and the remedy names the field", () =>
    Effect.gen(function* () {
      const here = yield* Support.world
      const exit = yield* Effect.exit(begin(here, { processes: [], config: { binary: "no-such-claude" } }))
      const error = yield* Effect.flip(exit)
      assert.isTrue(error.fatal)
      assert.include(error.remedy, "binary")
    })
  )

  it.effect("closing the scope ends the run, and whoever reads sees an end", () =>
    Effect.gen(function* () {
      const here = yield* Support.world
      const ended = yield* Effect.scoped(
        Effect.gen(function* () {
          const run = yield* begin(here, { processes: [{ turns: [[{ tool: bash }]] }] })
          yield* Support.pids(here.folder, 1)
          return yield* Effect.forkDetach(Stream.runDrain(run.events), { startImmediately: true })
        })
      )
      yield* Fiber.join(ended)
      assert.isTrue(Support.pidsIn(here.folder).every((pid) => !isAlive(pid)))
    })
  )
})
