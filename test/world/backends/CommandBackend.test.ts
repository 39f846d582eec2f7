import { assert, describe, it, layer } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Scope, Stream } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import type { RunEvent } from "../../../src/runs/Backend.ts"
import type { Argv } from "../../../src/runs/Host.ts"
import * as CommandBackend from "../../../src/runs/command/CommandBackend.ts"
import { CONTINUED } from "../../../src/config/LineSplitter.ts"
import { isAlive } from "../../../src/runs/process/ProcessTable.ts"
import { given } from "../../../src/runs/process/ChildEnvironment.ts"
import * as Support from "../../support/backend-run.ts"

const { command, events, lines, start, tags, world } = Support

const exitOf = (all: ReadonlyArray<RunEvent>) => {
  const exits = all.filter((event) => event._tag === "Exited")
  assert.strictEqual(exits.length, 1, "exactly one Exited")
  assert.strictEqual(all.at(-1)?._tag, "Exited", "Exited is the last")
  return exits[0]!.outcome
}

/** Runs it to its end. */
const whole = (config: CommandBackend.CommandConfig, spec?: Parameters<typeof start>[2]) =>
  Effect.gen(function* () {
    return yield* events(yield* start(yield* world, config, spec))
  })

/** Long enough that nothing becomes ready by time in a test that is about something else. */
const never = Duration.hours(1)

describe("outcomeOf", () => {
  const exit = (code: number) => ({ code, signal: null })
  it("0 is a success, any other code an error with the last line on standard error", () => {
    assert.deepStrictEqual(CommandBackend.outcomeOf(exit(0), "noise"), { _tag: "Success" })
    assert.deepStrictEqual(CommandBackend.outcomeOf(exit(3), "no\tluck\u001b[0m"), {
      _tag: "Error",
      detail: "exit code 3: no luck [0m"
    })
    assert.deepStrictEqual(CommandBackend.outcomeOf(exit(3), ""), { _tag: "Error", detail: "exit code 3" })
  })
  it("a code that the configuration knows is what it says", () => {
    const codes = { "75": "quota", "76": "auth", "77": "held", "78": "overflow" } as const
    assert.deepStrictEqual(CommandBackend.outcomeOf(exit(75), "", codes), { _tag: "Uncounted", reason: "quota" })
    assert.deepStrictEqual(CommandBackend.outcomeOf(exit(77), "", codes), { _tag: "Uncounted", reason: "held" })
    assert.deepStrictEqual(CommandBackend.outcomeOf(exit(78), "", codes), { _tag: "Uncounted", reason: "overflow" })
    assert.strictEqual(CommandBackend.outcomeOf(exit(76), "", codes)._tag, "Fatal")
    assert.strictEqual(CommandBackend.outcomeOf(exit(1), "", codes)._tag, "Error")
  })
})

describe("the environment", () => {
  it("nothing that a service manager told the daemon, and no mark of an outer run, is passed on", () => {
    const env = { PATH: "/bin", NOTIFY_SOCKET: "/x", LISTEN_FDS: "1", WATCHDOG_USEC: "1", AGENTD_RUN: "outer" }
    assert.deepStrictEqual(given(env), { PATH: "/bin" })
  })
})

layer(Support.layer, { excludeTestServices: true })("CommandBackend", (it) => {
  it.effect("Started comes after readyAfter while the program lives, with its pid", () =>
    Effect.gen(function* () {
      const here = yield* world
      const run = yield* start(here, command({ shell: "echo $$; until [ -e go ]; do sleep 0.02; done; echo bye" }))
      const all: Array<RunEvent> = []
      yield* Stream.runForEach(run.events, (event) =>
        Effect.sync(() => {
          all.push(event)
          if (event._tag === "Started") fs.writeFileSync(path.join(here.folder, "go"), "")
        })
      )
      // its first line comes before or after: only the second waits for it
      assert.deepStrictEqual(
        tags(all).filter((tag) => tag !== "Delta"),
        ["Started", "Exited"]
      )
      assert.deepStrictEqual(tags(all).slice(-2), ["Delta", "Exited"])
      assert.deepStrictEqual(exitOf(all), { _tag: "Success" })
      const started = all.find((event) => event._tag === "Started")
      assert.deepStrictEqual([String(started?.pid), "bye"], lines(all))
    })
  )

  it.effect("a quick success is Started, then Exited", () =>
    Effect.gen(function* () {
      const all = yield* whole(command({ argv: ["true"], readyAfter: never }))
      assert.deepStrictEqual(tags(all), ["Started", "Exited"])
      assert.deepStrictEqual(exitOf(all), { _tag: "Success" })
    })
  )

  it.effect("a program that fails before readyAfter has not started", () =>
    Effect.gen(function* () {
      const all = yield* whole(command({ shell: "echo starting; echo no key >&2; exit 3", readyAfter: never }))
      assert.notInclude(tags(all), "Started")
      assert.deepStrictEqual(lines(all), ["starting"])
      assert.deepStrictEqual(exitOf(all), { _tag: "Error", detail: "exit code 3: no key" })
    })
  )

  it.effect("death by a signal says which", () =>
    Effect.gen(function* () {
      const all = yield* whole(command({ shell: "kill -SEGV $$", readyAfter: never }))
      assert.deepStrictEqual(exitOf(all), { _tag: "Error", detail: "killed by SIGSEGV" })
    })
  )

  it.effect("the prompt reaches it on its standard input", () =>
    Effect.gen(function* () {
      const all = yield* whole(command({ argv: ["cat"], readyAfter: never }), { prompt: "do\nthis €" })
      assert.deepStrictEqual(lines(all), ["do", "this €"])
    })
  )

  it.effect("the prompt reaches it as its last argument, also through a shell, untouched by it", () =>
    Effect.gen(function* () {
      const prompt = "$(touch /nowhere) 'a' \"b\""
      const argv = command({ argv: ["printf", "%s\\n", "x"], promptBy: "argument", readyAfter: never })
      assert.deepStrictEqual(lines(yield* whole(argv, { prompt })), ["x", prompt])
      const shell = command({ shell: 'printf "%s\\n" "$1"', promptBy: "argument", readyAfter: never })
      assert.deepStrictEqual(lines(yield* whole(shell, { prompt })), [prompt])
    })
  )

  it.effect("a prompt that no argument can be reaches it all the same: in a file, and without its NUL bytes", () =>
    Effect.gen(function* () {
      const shell = command({
        shell: 'echo "$1"; [ -z "$AGENTD_PROMPT_FILE" ] || wc -c <"$AGENTD_PROMPT_FILE"',
        promptBy: "argument",
        readyAfter: never
      })
      const most = "x".repeat(128 * 1024 - 1)
      const sized = command({ shell: "echo ${#1}", promptBy: "argument", readyAfter: never })
      assert.deepStrictEqual(lines(yield* whole(sized, { prompt: most })), [`${most.length}`])
      const [said, size] = lines(yield* whole(shell, { prompt: `${most}y` }))
      assert.match(said ?? "", /^The prompt is too long for an argument: read all of it in the file \//)
      assert.strictEqual(size, "131072")
      assert.deepStrictEqual(lines(yield* whole(shell, { prompt: "a\0b\uD800c" })), ["a\uFFFDb\uFFFDc"])
    })
  )

  it.effect("the prompt's file is private, named by the last argument, and gone with the scope", () =>
    Effect.gen(function* () {
      const shell = 'echo "$1"; echo "$AGENTD_PROMPT_FILE"; stat -c "%a" "$1"; stat -c "%a" "$(dirname "$1")"; cat "$1"'
      const all = yield* Effect.scoped(
        whole(command({ shell, promptBy: "file", readyAfter: never }), { prompt: "secret" })
      )
      const [argument, variable, file, folder, text] = lines(all)
      assert.strictEqual(argument, variable)
      assert.deepStrictEqual([file, folder, text], ["600", "700", "secret"])
      assert.isFalse(fs.existsSync(argument!))
    })
  )

  it.effect("a program that never reads its standard input, or dies, breaks nothing", () =>
    Effect.gen(function* () {
      const prompt = "x".repeat(1_000_000)
      const reads = yield* whole(command({ argv: ["true"], readyAfter: never }), { prompt })
      assert.deepStrictEqual(exitOf(reads), { _tag: "Success" })
      const closes = yield* whole(command({ shell: "exec <&-; sleep 0.1; exit 4", readyAfter: never }), { prompt })
      assert.deepStrictEqual(exitOf(closes), { _tag: "Error", detail: "exit code 4" })
    })
  )

  it.effect("it sees its run, store and agent, what the config sets, and the folder it runs in", () =>
    Effect.gen(function* () {
      const here = yield* world
      fs.mkdirSync(path.join(here.folder, "sub"))
      const shell = 'echo "$AGENTD_RUN $AGENTD_STORE $AGENTD_AGENT $FLAVOUR ${PATH:+path}"; pwd; echo "$PWD"'
      const run = yield* start(here, command({ shell, env: { FLAVOUR: "plum" }, cwd: "sub", readyAfter: never }))
      const sub = path.join(here.folder, "sub")
      assert.deepStrictEqual(lines(yield* events(run)), [`run-1 ${here.store} builder plum path`, sub, sub])
    })
  )

  it.effect("it can be wrapped into something of its own", () =>
    Effect.gen(function* () {
      const wrap = (argv: Argv): Argv => ["env", "WRAPPED=yes", ...argv]
      const all = yield* whole(command({ shell: "echo $WRAPPED", wrap, readyAfter: never }))
      assert.deepStrictEqual(lines(all), ["yes"])
    })
  )

  for (const [what, options, cwd, text] of [
    ["a program that is not there", { argv: ["no-such-program"] }, undefined, /no program "no-such-program"/],
    ["a file that may not be executed", { argv: ["/etc/passwd"] }, undefined, /cannot be executed/],
    ["a folder that is not there", { argv: ["true"] }, "/no/such/folder", /\/no\/such\/folder does not exist/],
    ["a folder that is a file", { argv: ["true"] }, "/etc/passwd", /is not a folder/]
  ] as const) {
    it.effect(`${what} is fatal, with a remedy`, () =>
      Effect.gen(function* () {
        const here = yield* world
        const error = yield* Effect.flip(
          start(here, command(options), { prompt: "x".repeat(200_000), ...(cwd === undefined ? {} : { cwd }) })
        )
        assert.isTrue(error.fatal)
        assert.match(error.message, text)
        assert.notStrictEqual(error.remedy, "")
      })
    )
  }

  it.effect("a line without an end is handed out in bounded pieces", () =>
    Effect.gen(function* () {
      const shell = "head -c 25000 /dev/zero | tr '\\0' x; echo; echo end"
      const all = yield* whole(command({ shell, maxLine: 10_000, readyAfter: never }))
      const cut = "x".repeat(10_000) + CONTINUED
      assert.deepStrictEqual(lines(all), [cut, cut, "x".repeat(5000), "end"])
    })
  )

  it.effect("a flood of output arrives whole and in order, however slowly it is read", () =>
    Effect.gen(function* () {
      const run = yield* start(yield* world, command({ shell: "seq 1 20000", readyAfter: never }))
      let next = 1
      yield* Stream.runForEach(run.events, (event) =>
        Effect.gen(function* () {
          if (event._tag !== "Delta") return
          assert.strictEqual(event.text, String(next++))
          if (next % 500 === 0) yield* Effect.yieldNow
        })
      )
      assert.strictEqual(next, 20_001)
    })
  )

  it.effect("orphans: what it leaves behind is gone before Exited", () =>
    Effect.gen(function* () {
      const here = yield* world
      const shell = "setsid sleep 300 & echo $! >> pids; sleep 300 & echo $! >> pids; echo done"
      const run = yield* start(here, command({ shell, readyAfter: never }))
      const all = yield* events(run)
      assert.deepStrictEqual(exitOf(all), { _tag: "Success" })
      assert.strictEqual(Support.pidsIn(here.folder).filter(isAlive).length, 0)
    })
  )

  it.effect("alive but dead: closing the scope ends a program at 100 % CPU that ignores SIGTERM", () =>
    Effect.gen(function* () {
      const here = yield* world
      const scope = yield* Scope.make()
      const shell = "trap '' TERM INT HUP; echo $$ >> pids; while :; do :; done"
      yield* start(here, command({ shell, killGrace: Duration.millis(200) })).pipe(Scope.provide(scope))
      const known = yield* Support.pids(here.folder, 1)
      assert.strictEqual(known.filter(isAlive).length, 1)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(known.filter(isAlive).length, 0)
    })
  )

  it.effect("alive but dead: one that hangs after its result is ended by an interrupt", () =>
    Effect.gen(function* () {
      const here = yield* world
      const run = yield* start(here, command({ shell: "echo result; echo $$ >> pids; sleep 300" }))
      yield* Support.pids(here.folder, 1)
      yield* run.end
      const all = yield* events(run)
      assert.deepStrictEqual(lines(all), ["result"])
      assert.deepStrictEqual(exitOf(all), { _tag: "Error", detail: "killed by SIGTERM" })
    })
  )

  it.effect("interrupt lets a program end in order; twice is once", () =>
    Effect.gen(function* () {
      const here = yield* world
      const shell = "trap 'echo asked' TERM; echo $$ >> pids; until [ -e go ]; do sleep 0.02; done; exit 0"
      const run = yield* start(here, command({ shell, readyAfter: never, killGrace: Duration.minutes(1) }))
      yield* Support.pids(here.folder, 1)
      yield* run.end
      yield* run.end
      const all: Array<RunEvent> = []
      yield* Stream.runForEach(run.events, (event) =>
        Effect.sync(() => {
          all.push(event)
          if (event._tag === "Delta") fs.writeFileSync(path.join(here.folder, "go"), "")
        })
      )
      assert.deepStrictEqual(lines(all), ["asked"])
      assert.notInclude(tags(all), "Started")
      assert.deepStrictEqual(exitOf(all), { _tag: "Success" })
    })
  )

  it.effect("kill ends all at once, in the middle of a long grace", () =>
    Effect.gen(function* () {
      const here = yield* world
      const shell = "trap '' TERM; setsid sleep 300 & echo $! >> pids; echo $$ >> pids; while :; do sleep 0.05; done"
      const run = yield* start(here, command({ shell, killGrace: Duration.hours(1) }))
      const known = yield* Support.pids(here.folder, 2)
      yield* run.end
      yield* run.kill
      const all = yield* events(run)
      assert.deepStrictEqual(exitOf(all), { _tag: "Error", detail: "killed by SIGKILL" })
      assert.strictEqual(known.filter(isAlive).length, 0)
    })
  )

  it.effect("who still reads when the scope is closed sees an end", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const run = yield* start(yield* world, command({ shell: "sleep 300" })).pipe(Scope.provide(scope))
      const reader = yield* Effect.forkChild(events(run))
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.join(reader)
    })
  )

  it.effect("a run that nobody reads is ended by its scope all the same", () =>
    Effect.gen(function* () {
      const here = yield* world
      const scope = yield* Scope.make()
      yield* start(here, command({ shell: "echo $$ >> pids; exec yes" })).pipe(Scope.provide(scope))
      const known = yield* Support.pids(here.folder, 1)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(known.filter(isAlive).length, 0)
    })
  )

  it.effect("a program that writes much while it ends is not held up because nobody reads", () =>
    Effect.gen(function* () {
      const here = yield* world
      const scope = yield* Scope.make()
      const shell = `
        talk() { i=0; while [ $i -lt 20000 ]; do echo "a line of some length, number $i"; i=$((i + 1)); done; }
        trap 'talk; echo $$ > orderly; exit' TERM
        echo $$ >> pids; while :; do sleep 0.02; done`
      yield* start(here, command({ shell, killGrace: Duration.minutes(1) })).pipe(Scope.provide(scope))
      yield* Support.pids(here.folder, 1)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(yield* Support.exists(here.folder, "orderly"))
    })
  )

  it.effect("input is refused, and the refusal says what to do", () =>
    Effect.gen(function* () {
      const run = yield* start(yield* world, command({ shell: "sleep 300" }))
      const error = yield* Effect.flip(run.send({ turnId: "turn-2", text: "more" }))
      assert.isFalse(error.fatal)
      assert.match(error.remedy, /message/)
    })
  )
})
