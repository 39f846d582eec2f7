/** Work trees in which the project runs: set-up, tear-down, ports and caches, under a real daemon. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { createServer } from "node:net"
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as Sandbox from "../../support/Sandbox.ts"

/** A project with one commit of these files. */
const project = Effect.fnUntraced(function* (files: { readonly [name: string]: string } = {}) {
  const box = yield* Sandbox.make()
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["-C", box.project, ...args], { encoding: "utf8" })
  git("init", "-q", "-b", "main")
  const all = { ".gitignore": "agentd.jsonc\nmade/\nbuild/\n", "a.txt": "a\n", ...files }
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(box.file(name)), { recursive: true })
    writeFileSync(box.file(name), text, { mode: name.endsWith(".sh") ? 0o755 : 0o644 })
  }
  git("add", "-A")
  git("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "first")
  const configure = (worktree: object | true, shell = "cat", backend: object = {}) =>
    box.configure({
      agents: {
        builder: {
          backend: { type: "command", shell, readyAfter: "50ms", killGrace: "1 second", ...backend },
          minRunInterval: "0ms",
          interruptGrace: "2 seconds",
          worktree
        }
      }
    })
  const done = box.untilAgent("builder", "has done it", ({ inbox, state }) => inbox === 0 && state === "BuildingPrompt")
  const send = (text: string) =>
    Effect.gen(function* () {
      assert.strictEqual((yield* box.cli("send", "builder", text)).code, 0)
      return yield* done
    })
  const told = Effect.map(box.runes("run.notice"), (runes) => runes.map(({ payload }) => String(payload["text"])))
  return { box, git, configure, send, told, done }
})

const HELD = { sandbox: "on", network: false }

/** A program that listens on a port of the loopback interface; ends with the scope. */
const listening = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer()
      server.listen(port, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  )

describe("the set-up of a work tree", () => {
  it.live("runs once in a new tree before the first run, with its ports; again when it changes", () =>
    Effect.gen(function* () {
      const { box, configure, send, told } = yield* project()
      const setup = 'mkdir -p made && echo "$PORT_0 $PORT_1 $PORT" >> made/ports && echo prepared'
      configure({ setup, ports: 2 }, 'cat >/dev/null; echo "$PORT_0 $PORT_1 $PORT" >> made/runs')
      yield* box.up()
      const { cwd } = yield* send("one")
      yield* send("two")
      const [first = ""] = readFileSync(join(cwd!, "made/ports"), "utf8").trim().split("\n")
      const [one = 0, two = 0, port = 0] = first.split(" ").map(Number)
      assert.deepStrictEqual([two, port], [one + 1, one])
      assert.strictEqual(readFileSync(join(cwd!, "made/ports"), "utf8"), `${first}\n`, "it has run once")
      assert.strictEqual(readFileSync(join(cwd!, "made/runs"), "utf8"), `${first}\n${first}\n`)
      assert.match((yield* told).join("\n"), /its set-up succeeded in \d+ s:\nprepared/)
      assert.match((yield* box.cli("why", "builder")).stdout, new RegExp(`with the ports ${one} to ${two}`))
      configure({ setup: `${setup} again`, ports: 2 }, "cat")
      yield* box.agree
      yield* send("three")
      assert.strictEqual(readFileSync(join(cwd!, "made/ports"), "utf8"), `${first}\n${first}\n`)
      // a restarted daemon knows the ports and that the set-up is done
      yield* box.kill9
      yield* box.up()
      yield* send("four")
      assert.strictEqual(readFileSync(join(cwd!, "made/ports"), "utf8"), `${first}\n${first}\n`)
    })
  )

  it.live("that fails stops the agent with its exit code and last line; it runs again at the next start", () =>
    Effect.gen(function* () {
      const { box, configure, send } = yield* project()
      configure(
        { setup: "echo half > half; mkdir -p made; echo x >> made/tries; echo no registry >&2; exit 3" },
        "cat > ran"
      )
      yield* box.up()
      const row = yield* box.untilAgent("builder", "stops", ({ state }) => state === "Stopped")
      assert.strictEqual(row.detail, "its set-up failed with exit code 3: no registry")
      const why = yield* box.cli("why", "builder")
      assert.match(
        why.stdout,
        /Correct worktree\.setup in agentd\.jsonc[^]*agentd .*log --agent builder[^]*agentd .*start shop\/builder/
      )
      assert.match((yield* box.cli("log", "--agent", "builder")).stdout, /its set-up failed after \d+ s/)
      configure({ setup: "test -e half && echo whole > made/whole" }, "cat > made/ran")
      yield* box.agree
      assert.strictEqual((yield* box.cli("start", "builder")).code, 0)
      const { cwd } = yield* send("go")
      assert.isTrue(existsSync(join(cwd!, "made/whole")) && existsSync(join(cwd!, "made/ran")))
    })
  )

  it.live("that hangs is shown on the row, and ended with its processes at its time limit", () =>
    Effect.gen(function* () {
      const { box, configure } = yield* project()
      configure({ setup: "sleep 301 & sleep 302", timeout: "3 seconds" })
      yield* box.up()
      yield* box.untilAgent("builder", "is set up", ({ detail }) =>
        /^setting up: sleep 301 & sleep 302, \d+ s$/.test(detail)
      )
      const row = yield* box.untilAgent("builder", "stops", ({ state }) => state === "Stopped")
      assert.strictEqual(row.detail, "its set-up took longer than 3 s and was ended")
      assert.deepStrictEqual(yield* box.processes, [])
    })
  )

  it.live.each([
    ["unconfined", {}],
    ["confined", HELD]
  ] as const)("%s: changes of tracked files and processes that it leaves are told with their names", ([, backend]) =>
    Effect.gen(function* () {
      const { box, configure, send } = yield* project()
      // until the shell's child has become sleep, its command line is the shell's
      const sleeping = "until grep -aqs ^sleep /proc/$!/cmdline; do :; done"
      configure({ setup: `echo b >> a.txt; nohup sleep 303 >/dev/null 2>&1 & ${sleeping}` }, "cat", backend)
      yield* box.up()
      yield* send("one")
      const bounds = (yield* box.runes("agent.bound_reached")).map(({ payload }) => JSON.stringify(payload))
      assert.match(bounds.join("\n"), /left processes running, which were ended: sleep 303/)
      assert.match(bounds.join("\n"), /changed files that git tracks: a\.txt/)
      assert.deepStrictEqual(yield* box.processes, [])
    })
  )

  it.live(
    "an agent that is started twice is set up once; one that is removed meanwhile leaves no process and no tree",
    () =>
      Effect.gen(function* () {
        const { box, configure } = yield* project()
        configure({ setup: `echo x >> ${box.folder}/tries; exec sleep 304` })
        yield* box.up()
        yield* box.untilAgent("builder", "is set up", ({ detail }) => detail.startsWith("setting up:"))
        const answers = yield* Effect.all([box.cli("start", "builder"), box.cli("start", "builder")], {
          concurrency: 2
        })
        assert.deepStrictEqual(
          answers.map(({ code }) => code),
          [0, 0]
        )
        yield* box.until(
          "it has begun",
          Effect.sync(() => existsSync(`${box.folder}/tries`)),
          (is) => is
        )
        assert.strictEqual(readFileSync(`${box.folder}/tries`, "utf8"), "x\n")
        box.configure({ agents: {} })
        assert.strictEqual((yield* box.cli("start")).code, 0)
        yield* box.until("the tree is removed", box.runes("worktree.removed"), (all) => all.length === 1)
        assert.deepStrictEqual(yield* box.processes, [])
        assert.isFalse(existsSync(join(box.state, "setups")), "nothing says that it is set up")
      })
  )

  it.live("that a killed daemon or a stop has cut off leaves no process, and runs again from its beginning", () =>
    Effect.gen(function* () {
      const { box, configure, done } = yield* project()
      const gate = join(box.folder, "gate")
      const tries = join(box.folder, "tries")
      const count = Effect.sync(() => (existsSync(tries) ? readFileSync(tries, "utf8").length / 2 : 0))
      configure({ setup: `echo x >> ${tries}; [ -e ${gate} ] || exec sleep 305` })
      yield* box.up()
      yield* box.until("it is set up", count, (tries) => tries === 1)
      yield* box.kill9
      yield* box.until("no process is left", box.processes, (pids) => pids.length === 0)
      yield* box.up()
      yield* box.until("it is set up again", count, (tries) => tries === 2)
      assert.strictEqual((yield* box.cli("stop", "builder")).code, 0)
      assert.deepStrictEqual(yield* box.processes, [])
      yield* box.untilAgent("builder", "stops", ({ state }) => state === "Stopped")
      writeFileSync(gate, "")
      assert.strictEqual((yield* box.cli("start", "builder")).code, 0)
      yield* done
      assert.strictEqual(yield* count, 3)
    })
  )

  it.live("ports on which another program listens by now are replaced before the next run, and that is told", () =>
    Effect.gen(function* () {
      const { box, configure, send, told } = yield* project()
      configure({ ports: 3 }, "cat >/dev/null; mkdir -p made; echo $PORT >> made/runs")
      yield* box.up()
      const { cwd } = yield* send("one")
      const [first = 0] = readFileSync(join(cwd!, "made/runs"), "utf8").split("\n").map(Number)
      yield* listening(first + 1)
      yield* send("two")
      const second = Number(readFileSync(join(cwd!, "made/runs"), "utf8").trim().split("\n")[1])
      assert.isTrue(second > first + 1 || second + 2 < first + 1, `${second}`)
      assert.include(
        (yield* told).join("\n"),
        `another program listens on its port ${first + 1}: its ports are now ${second}`
      )
    })
  )
})

describe("caches and the tear-down", () => {
  it.live.each([
    ["unconfined", {}],
    ["confined", HELD]
  ] as const)(
    "%s: a cache outlives its tree, is no change of it, and the tear-down's failure keeps no tree",
    ([, backend]) =>
      Effect.gen(function* () {
        const { box, configure, send } = yield* project()
        const run =
          'cat >/dev/null; echo kept >> build/objects; test -z "$(git status --porcelain)" && echo clean >> build/objects'
        const worktree = {
          cache: ["build"],
          setup: "echo set > build/setup",
          teardown: "echo gone > build/teardown; exit 4"
        }
        configure(worktree, run, backend)
        yield* box.up()
        const { cwd } = yield* send("one")
        const [conversation = ""] = readdirSync(join(box.state, "caches"))
        const cache = join(box.state, "caches", conversation, "builder", "build")
        assert.strictEqual(readFileSync(join(cache, "objects"), "utf8"), "kept\nclean\n")
        assert.strictEqual(lstatSync(join(cwd!, "build")).isSymbolicLink(), backend !== HELD)
        box.configure({ agents: {} })
        assert.strictEqual((yield* box.cli("start")).code, 0)
        const [removed] = yield* box.until("it is removed", box.runes("worktree.removed"), (all) => all.length === 1)
        assert.strictEqual(removed?.payload["teardown"], "its tear-down failed with exit code 4")
        assert.isFalse(existsSync(cwd!))
        assert.deepStrictEqual(readdirSync(cache).toSorted(), ["objects", "setup", "teardown"])
        configure(worktree, run, backend)
        yield* box.agree
        yield* send("two")
        assert.strictEqual(readFileSync(join(cache, "objects"), "utf8"), "kept\nclean\nkept\nclean\n")
      })
  )
})

describe("a cache", () => {
  it.live("is not led elsewhere by a link that the agent has left in another cache", () =>
    Effect.gen(function* () {
      const { box, configure, send } = yield* project()
      const outside = join(box.folder, "outside")
      mkdirSync(outside)
      configure({ cache: ["build"] }, `cat >/dev/null; ln -s ${outside} build/inner`, HELD)
      yield* box.up()
      yield* send("one")
      configure({ cache: ["build/inner"] }, "cat > build/inner/written", HELD)
      yield* box.agree
      assert.strictEqual((yield* box.cli("send", "builder", "two")).code, 0)
      const row = yield* box.untilAgent("builder", "stops", ({ state }) => state === "Stopped")
      assert.match(row.detail, /^the cache build\/inner leads through the link .*\/builder\/build\/inner$/)
      assert.deepStrictEqual(readdirSync(outside), [])
    })
  )
})

describe("a tear-down", () => {
  it.live("that takes long does not keep other agents from being added, nor the agent itself, which waits for it", () =>
    Effect.gen(function* () {
      const { box, configure, send } = yield* project()
      const gate = join(box.folder, "gate")
      const agent = { backend: { type: "command", shell: "cat" }, worktree: false }
      configure({ teardown: `until [ -e ${gate} ]; do sleep 0.1; done` })
      yield* box.up()
      yield* send("one")
      box.configure({ agents: { other: agent } })
      yield* box.agree
      yield* box.untilAgent("other", "is there", ({ state }) => state === "BuildingPrompt")
      assert.deepStrictEqual(yield* box.runes("worktree.removed"), [])
      configure(true, "cat > made.txt")
      yield* box.agree
      yield* box.untilAgent("builder", "is there again", () => true)
      assert.deepStrictEqual(yield* box.runes("worktree.removed"), [])
      writeFileSync(gate, "")
      yield* box.until("the tree is removed", box.runes("worktree.removed"), (runes) => runes.length === 1)
      const { cwd } = yield* send("two")
      assert.isTrue(existsSync(join(cwd!, "made.txt")))
    })
  )
})
