/** Incidents that others had with sessions, by their names. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync, spawn } from "node:child_process"
import { mkdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { Clock, Effect, FileSystem, Layer, Scheduler } from "effect"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { TestClock } from "effect/testing"
import * as Scratch from "../../support/Scratch.ts"
import { caller, child, interrupt, payload, restart, run, until, user } from "../plates/World.ts"

const bash = { tool_name: "Bash", tool_input: { command: "sleep 3" }, tool_use_id: "c1" }
const fetchOf = (id: string) => ({ tool_name: "WebFetch", tool_input: { url: id }, tool_use_id: id })
const question = { tool_name: "AskUserQuestion", tool_input: { questions: [] }, tool_use_id: "q1" }
const asked = { tool_name: "AskUserQuestion", tool_input: { questions: [] } }

describe("the dead rise", () => {
  it.effect("a late hook reopens no closed session, a resumption does", () =>
    run((world) =>
      Effect.gen(function* () {
        const { board } = world
        yield* board.hook("UserPromptSubmit", "s1")
        yield* board.settled("s1")
        yield* board.plates.stopped({ session_id: "s1" })
        for (const [name, more] of [
          ["PostToolUse", bash],
          ["UserPromptSubmit", {}],
          ["Stop", { background_tasks: [] }],
          ["SessionEnd", { reason: "other" }]
        ] as const) {
          yield* board.hook(name, "s1", more)
          assert.strictEqual((yield* board.settled("s1")).status, "Closed", name)
        }
        yield* board.plates.event({ event_type: "tool_call", session_id: "s1", cwd: "/" })
        assert.strictEqual((yield* board.settled("s1")).status, "Closed")
        const again = yield* restart(world)
        yield* again.hook("PostToolUse", "s1", bash)
        assert.strictEqual((yield* again.settled("s1")).status, "Closed")
        assert.strictEqual((yield* again.rows).length, 1)
        yield* again.hook("SessionStart", "s1", { source: "resume" })
        yield* again.status("s1", "Idle")
      })
    )
  )

  it.effect("a start that was kept while we were down opens no session that has ended since", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook("UserPromptSubmit", "s1")
        yield* board.settled("s1")
        yield* TestClock.adjust("1 second")
        yield* board.plates.stopped({ session_id: "s1" })
        const { since } = yield* board.plates.find("s1")
        yield* board.hook("SessionStart", "s1", { source: "startup" }, { at: since - 500 })
        assert.strictEqual((yield* board.settled("s1")).status, "Closed")
        // One whose process is not there any more is told of, and closed.
        yield* board.hook("SessionStart", "s2", { source: "startup" }, { at: since, pid: 0x3ffffff })
        assert.strictEqual((yield* board.settled("s2")).status, "Closed")
      })
    )
  )

  it.effect("a start that was kept while we were down opens a session whose former process we saw go later", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook("UserPromptSubmit", "s1")
        yield* board.settled("s1")
        yield* TestClock.adjust("1 second")
        yield* board.plates.stopped({ session_id: "s1" })
        const { since } = yield* board.plates.find("s1")
        yield* board.hook("SessionStart", "s1", { source: "resume" }, { at: since - 500, pid: yield* child })
        const { restsOn, status } = yield* board.settled("s1")
        assert.deepStrictEqual([status, restsOn], ["Idle", { signal: "hook", at: since - 500 }])
      })
    )
  )

  it.effect("one session that several tell of at once has one plate", () =>
    run(
      ({ board }) =>
        Effect.gen(function* () {
          const told = [
            board.hook("SessionStart", "s1", { source: "startup" }),
            board.hook("UserPromptSubmit", "s1", { prompt: "go" }),
            board.hook("PreToolUse", "s1", bash)
          ]
          yield* Effect.all(told, { concurrency: "unbounded" })
          yield* board.settled("s1")
          assert.lengthOf(yield* board.rows, 1)
        })
      // each of them gives way to the others wherever it can
    ).pipe(Effect.provideService(Scheduler.MaxOpsBeforeYield, 4))
  )

  it.effect("what was kept on a disk until we were up is in the log when that is answered", () =>
    run(({ board, log }) =>
      Effect.gen(function* () {
        const kept = (body: unknown, as: "event" | "hook") =>
          board.plates.keep({ body, origin: { plate: undefined, run: undefined, pid: undefined }, as })
        const before = yield* log.head
        yield* kept(payload("SessionStart", "s1", { source: "startup" }), "hook")
        assert.strictEqual(yield* log.head, before + 1)
        yield* kept({ event_type: "session_start", session_id: "s2", cwd: "/" }, "event")
        assert.strictEqual(yield* log.head, before + 2)
        // what is of the past is answered, too
        yield* board.plates.stopped({ session_id: "s2" })
        yield* kept({ event_type: "stop", session_id: "s2", cwd: "/" }, "event")
        assert.strictEqual((yield* Effect.flip(kept({}, "hook")))._tag, "EventRefused")
      })
    )
  )

  it.effect("a start that was kept on a disk does not bring back what a person has forgotten since", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        yield* board.hook("UserPromptSubmit", "s1", { prompt: "work" })
        const { plateId } = yield* board.settled("s1")
        yield* board.plates.forget(plateId, caller)
        const kept = (at: number) =>
          board.plates.keep({
            body: payload("SessionStart", "s1", { source: "startup" }),
            origin: { plate: undefined, run: undefined, pid: undefined, at },
            as: "hook"
          })
        yield* kept(now - 1_000)
        assert.deepStrictEqual(yield* board.rows, [])
        yield* kept(now + 1_000)
        assert.lengthOf(yield* board.rows, 1)
      })
    )
  )

  it.effect("one stop closes no other session of its folder", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        for (const id of ["s1", "s2"]) yield* board.hook("SessionStart", id, { source: "startup" })
        yield* board.hook("SessionEnd", "s1", { reason: "other" })
        yield* board.settled("s2")
        yield* board.plates.stopped({ session_id: "s1" })
        assert.strictEqual((yield* board.plates.find("s2")).status, "Idle")
      })
    )
  )
})

describe("waiting hidden", () => {
  it.effect("no parallel tool's event, of whatever tool, overwrites an open question", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook("UserPromptSubmit", "s1")
        for (const call of [bash, question, fetchOf("a"), fetchOf("b")]) yield* board.hook("PreToolUse", "s1", call)
        yield* board.hook("PermissionRequest", "s1", asked)
        yield* board.hook("PostToolUse", "s1", bash)
        yield* board.hook("PermissionRequest", "s1", { ...fetchOf("b"), tool_use_id: undefined })
        yield* board.hook("PostToolUse", "s1", fetchOf("a"))
        yield* board.hook("PostToolUse", "s1", { ...bash, tool_use_id: "c7", agent_id: "a1" })
        yield* board.hook("SubagentStop", "s1", { agent_id: "a1" })
        assert.strictEqual((yield* board.settled("s1")).status, "AwaitingInput")
        yield* board.hook("PostToolUse", "s1", question)
        assert.strictEqual((yield* board.settled("s1")).status, "AwaitingApproval")
        yield* board.hook("PostToolUse", "s1", fetchOf("b"))
        assert.strictEqual((yield* board.settled("s1")).status, "Running")
      })
    )
  )

  it.effect("background work that writes while a question is open hides it at no check", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook("UserPromptSubmit", "s1")
        yield* board.hook("PreToolUse", "s1", question)
        for (let round = 0; round < 100; round++) {
          yield* board.write(
            "s1",
            { type: "queue-operation", operation: "enqueue" },
            { ...user("x"), isSidechain: true }
          )
          yield* board.hook("PostToolUse", "s1", { ...bash, tool_use_id: `b${round}`, agent_id: "a1" })
          yield* board.check()
        }
        assert.strictEqual((yield* board.settled("s1")).status, "AwaitingInput")
      })
    )
  )

  it.effect("what was answered does not wait for hours: the answer's own hook is not needed", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook("UserPromptSubmit", "s1")
        yield* board.hook("PreToolUse", "s1", question)
        yield* board.settled("s1")
        yield* TestClock.adjust("1 hour")
        yield* board.write("s1", user("go"), interrupt())
        yield* board.check()
        assert.strictEqual((yield* board.settled("s1")).status, "Idle")
      })
    )
  )
})

describe("false death", () => {
  it.live("an idle session whose process lives is closed at no cycle; one whose process is gone is, within one", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        const [lives, dies] = [yield* child, yield* child]
        yield* board.hook("SessionStart", "s1", { source: "startup" }, { pid: lives })
        yield* board.hook("SessionStart", "s2", { source: "startup" }, { pid: dies })
        yield* board.hook("SessionStart", "s3", { source: "startup" })
        yield* board.settled("s3")
        for (let round = 0; round < 100; round++) yield* board.check()
        for (const id of ["s1", "s2", "s3"]) assert.strictEqual((yield* board.settled(id)).status, "Idle", id)
        process.kill(dies, "SIGKILL")
        const row = yield* until(
          "it is seen",
          Effect.andThen(TestClock.adjust("1 second"), board.plates.find("s2")),
          ({ status }) => status === "Closed"
        )
        assert.strictEqual(row.restsOn?.signal, "process")
        assert.strictEqual((yield* board.settled("s1")).status, "Idle")
      })
    ).pipe(Effect.provide(TestClock.layer()))
  )

  it.effect("a pid that another process has by now is not the session's", () =>
    run((world) =>
      Effect.gen(function* () {
        const { board } = world
        const pid = yield* child
        // As a log of another boot would have it: the same pid, another start.
        yield* world.log.append([
          {
            stream: "old",
            kind: "plate.moved",
            actor: "plate/old",
            from: "Starting",
            to: "Idle",
            trigger: "HookSessionStart",
            payload: {
              event: { _tag: "HookSessionStart", at: 1, sessionId: "s9", source: "startup", pid, pidStart: 1 }
            }
          }
        ])
        yield* board.settled("nobody").pipe(Effect.ignore)
        const again = yield* restart(world)
        yield* TestClock.adjust("2 seconds")
        yield* again.status("s9", "Closed")
      })
    )
  )

  it.effect("a session that says that it ends is closed when its process is gone, or when nobody knows of one", () =>
    run(({ board }) =>
      Effect.gen(function* () {
        yield* board.hook("SessionStart", "s1", { source: "startup" })
        yield* board.hook("SessionEnd", "s1", { reason: "prompt_input_exit" })
        yield* board.status("s1", "Idle")
        yield* TestClock.adjust("6 seconds")
        yield* board.status("s1", "Closed")
        yield* board.hook("SessionStart", "s2", { source: "startup" }, { pid: yield* child })
        yield* board.hook("SessionEnd", "s2", { reason: "prompt_input_exit" })
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* board.settled("s2")).status, "Idle")
      })
    )
  )
})

describe("wedged reconciler", () => {
  it.effect(
    "a transcript that can never be read holds up no other plate, and the check says when it last was through",
    () =>
      Effect.gen(function* () {
        const stuck = Layer.effect(
          FileSystem.FileSystem,
          Effect.map(FileSystem.FileSystem, (fs) => ({
            ...fs,
            stat: (path: string) => (path.includes("stuck") ? Effect.never : fs.stat(path))
          }))
        ).pipe(Layer.provide(NodeServices.layer))
        yield* run(
          ({ board }) =>
            Effect.gen(function* () {
              yield* board.hook("UserPromptSubmit", "stuck")
              yield* board.hook("UserPromptSubmit", "s1")
              yield* board.settled("s1")
              yield* TestClock.adjust("1 second")
              yield* board.write("s1", user("go"), interrupt())
              yield* TestClock.adjust("10 seconds")
              yield* board.status("s1", "Idle")
              const { checkedAt } = yield* board.plates.health
              yield* TestClock.adjust("10 seconds")
              yield* until("it goes on", board.plates.health, (health) => health.checkedAt !== checkedAt)
              assert.strictEqual((yield* board.plates.find("stuck")).status, "Running")
            }),
          { fileSystem: stuck }
        )
      })
  )

  it.effect(
    "a pipe in the place of a session's file is opened by nobody: it would hold up all files of the daemon",
    () =>
      Effect.gen(function* () {
        const folder = yield* Scratch.folder("agentd-pipes-")
        const [transcript, note, git] = ["projects/p/s1.jsonl", "sessions/123.json", "work/.git"].map((name) =>
          join(folder, name)
        ) as [string, string, string]
        for (const path of [transcript, note, git]) {
          mkdirSync(dirname(path), { recursive: true })
          execFileSync("mkfifo", [path])
        }
        const looked = new Set<string>()
        const opened: Array<string> = []
        const watched = Layer.effect(
          FileSystem.FileSystem,
          Effect.map(FileSystem.FileSystem, (fs) => {
            const opens = <A, E, R>(path: string, open: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
              path.startsWith(folder) ? Effect.suspend(() => (opened.push(path), Effect.never)) : open
            return {
              ...fs,
              stat: (path: string) => Effect.tap(fs.stat(path), () => Effect.sync(() => looked.add(path))),
              open: (...[path, options]: Parameters<typeof fs.open>) => opens(path, fs.open(path, options)),
              readFileString: (path: string) => opens(path, fs.readFileString(path))
            }
          })
        ).pipe(Layer.provide(NodeServices.layer))
        yield* run(
          ({ board }) =>
            Effect.gen(function* () {
              const more = { cwd: join(folder, "work"), transcript_path: transcript }
              yield* board.hook("SessionStart", "s1", { ...more, source: "startup" })
              yield* board.hook("UserPromptSubmit", "s1", { ...more, prompt: "go" })
              yield* board.check()
            }),
          { fileSystem: watched, claudeFolder: folder }
        )
        assert.deepStrictEqual(
          [...looked].filter((path) => path.startsWith(folder)).toSorted(),
          [transcript, note, git].toSorted()
        )
        assert.deepStrictEqual(opened, [])
      }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})

describe("a command that was allowed in the terminal", () => {
  /** A session's process that starts such a shell when it is told to, and what else a session starts. */
  const session = Effect.map(
    Effect.acquireRelease(
      Effect.sync(() =>
        spawn("sh", ["-c", 'read -r a; sh -c "sleep 300; : $a" & wait'], {
          stdio: ["pipe", "ignore", "ignore"],
          detached: true
        })
      ),
      (process_) => Effect.sync(() => process.kill(-process_.pid!, "SIGKILL"))
    ),
    (process_) => ({
      pid: process_.pid!,
      starts: (line: string) => Effect.sync(() => process_.stdin.write(`${line}\n`))
    })
  )
  const ask = { tool_name: "Bash", tool_input: bash.tool_input }

  const story = (line: string, calls: number, shows: string) =>
    run(({ board }) =>
      Effect.gen(function* () {
        const { pid, starts } = yield* session
        yield* board.hook("SessionStart", "s1", { source: "startup" }, { pid })
        for (let call = 1; call <= calls; call++) {
          yield* board.hook("PreToolUse", "s1", { ...bash, tool_use_id: `c${call}` })
        }
        yield* board.hook("PermissionRequest", "s1", ask)
        yield* board.status("s1", "AwaitingApproval")
        yield* starts(line)
        let last = yield* board.plates.find("s1")
        for (let beat = 0; beat < 100 && last.status === "AwaitingApproval"; beat++) {
          yield* TestClock.adjust("1 second")
          last = yield* board.settled("s1")
        }
        assert.strictEqual(last.status, shows)
        return last
      })
    )

  it.effect("runs once its shell does", () =>
    Effect.map(story("/home/user/.claude/shell-snapshots/snapshot-bash-1.sh", 1, "Running"), (row) =>
      assert.strictEqual(row.restsOn?.signal, "process")
    )
  )
  it.effect("is not told from a hook's program", () => story("/home/user/hook.sh", 1, "AwaitingApproval"))
  it.effect("is not told from another command beside it", () =>
    story("/home/user/.claude/shell-snapshots/snapshot-bash-1.sh", 2, "AwaitingApproval")
  )
})
