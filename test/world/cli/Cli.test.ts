import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { meanings } from "../../../src/cli/parse/ExitCode.ts"
import { VERBS } from "../../../src/cli/parse/HintCommand.ts"
import { VERSION } from "../../../src/api/rpc/Version.ts"
import { agentInfo, draft, folder, makeWorld, moved, serve, T0 } from "../rpc/World.ts"
import { agentd, inProcess, launch } from "./Child.ts"

/** Until it holds; the test's own time limit is the deadline. */
const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep(5), eventually(holds))))

const spawned = moved(
  { _tag: "PromptReady", prompt: "p", runId: "r", messageIds: [], at: T0 },
  { from: "BuildingPrompt", to: "Spawning" }
)
const failed = moved(
  { _tag: "SessionExited", runId: "r", outcome: { _tag: "Error", detail: "exit code 3: no such file" } },
  {
    from: "Running",
    to: "CoolingDown",
    payload: {
      event: { _tag: "SessionExited", runId: "r", outcome: { _tag: "Error", detail: "exit code 3: no such file" } },
      sessionSeq: 7,
      consecutiveErrors: 2,
      totalErrors: 2
    }
  }
)

/** Verbs that only hold others. */
const groups: { readonly [verb: string]: ReadonlyArray<string> } = {
  alert: ["alert", "test"],
  channel: ["channel", "ls"],
  hooks: ["hooks", "install"],
  project: ["project", "ls"],
  schedule: ["schedule", "ls"],
  service: ["service", "install"]
}

describe("without a daemon", () => {
  it.live("--version is the version of package.json", () =>
    Effect.gen(function* () {
      const manifest = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
        version: string
      }
      expect(VERSION).toBe(manifest.version)
      expect(yield* agentd(["--version"])).toEqual({ code: 0, out: `agentd v${VERSION}\n`, err: "" })
    })
  )

  it.live("every verb explains itself with an example", () =>
    Effect.gen(function* () {
      const help = (yield* agentd(["--help"])).out
      const verbs = [...help.matchAll(/^ {2}([a-z]+) {4,}\S/gm)].map(([, verb]) => verb!)
      expect(verbs.toSorted()).toEqual(VERBS)
      for (const [code, meaning] of meanings) expect(help).toContain(`${code}  ${meaning}`)
      for (const verb of verbs) {
        const { code, out } = yield* inProcess([...(groups[verb] ?? [verb]), "--help"])
        expect(code).toBe(0)
        expect(out).toMatch(/EXAMPLES\n {2}# .+\n {2}.*agentd/)
      }
    })
  )

  it.live.each([
    [["frob"], "Unknown subcommand"],
    [["--json", "frob"], '"exitCode":2'],
    [["wait", "x", "--timeout", "soon"], "Expected a duration"],
    [["send"], "Missing required argument: agent"],
    [["ps", "--frob"], "Unrecognized flag: --frob"],
    [["log", "--since", "lunch"], '"10m"'],
    [["log", "-n", "-5"], "from 0 to 10000"],
    [["--state=", "ps"], "Expected a folder"],
    [["attach", "x", "--turns", "-1"], "from 0 to 100"],
    [["completions", "tcsh"], "tcsh"]
  ] as const)("a wrong invocation exits 2 and names what is wrong: %s", ([args, says]) =>
    Effect.gen(function* () {
      const { code, err, out } = yield* inProcess(args)
      expect(code).toBe(2)
      expect(out).toBe("")
      expect(err).toContain(says)
      expect(err).toContain("--help")
    })
  )

  it.live.each(["status", "ps", "why x", "send x y", "log", "stop", "status --tree", "alert test"])(
    "%s exits 3, says so, and what to do",
    (line) =>
      Effect.gen(function* () {
        const state = yield* folder
        const { code, err } = yield* inProcess(["--state", state, ...line.split(" ")])
        expect(code).toBe(3)
        expect(err).toBe(
          `agentd: No daemon is running: nobody answers at ${state}/control.sock.\n` +
            `  → Start it: agentd --state ${state} start. If it runs with another state directory, give the same --state DIR.\n`
        )
      })
  )

  it.live("an error is JSON on standard error with --json, and no stack trace unless asked for", () =>
    Effect.gen(function* () {
      const state = yield* folder
      const told = yield* agentd(["ps", "--json", "--state", state])
      expect(JSON.parse(told.err)).toMatchObject({ error: "DaemonUnreachable", exitCode: 3, remedy: /agentd start/ })
      expect(told.err).not.toMatch(/^ +at /m)
      const debugged = yield* agentd(["ps", "--state", state], { env: { AGENTD_DEBUG: "1" } })
      expect(debugged.err).toMatch(/\n {4}at /)
    })
  )

  it.live("a socket path that is too long is a configuration error", () =>
    Effect.gen(function* () {
      const { code, err } = yield* agentd(["--state", `/tmp/${"x".repeat(120)}`, "up"])
      expect(code).toBe(78)
      expect(err).toContain("--state DIR")
    })
  )

  it.live("the socket lies in XDG_RUNTIME_DIR, and without it in the state directory", () =>
    Effect.gen(function* () {
      const env = { XDG_STATE_HOME: "/s", XDG_RUNTIME_DIR: "/r" }
      expect((yield* inProcess(["ps"], env)).err).toContain("/r/agentd/control.sock")
      expect((yield* inProcess(["ps"], { XDG_STATE_HOME: "/s" })).err).toContain("/s/agentd/control.sock")
      expect((yield* inProcess(["ps"], { HOME: "/h", XDG_STATE_HOME: "relative" })).err).toContain(
        "/h/.local/state/agentd/control.sock"
      )
    })
  )

  it.live.each(["bash", "zsh", "fish"])("completions for %s name the verbs", (shell) =>
    Effect.gen(function* () {
      const { code, out } = yield* inProcess(["completions", shell])
      expect(code).toBe(0)
      for (const verb of ["send", "interrupt", "verify"]) expect(out).toContain(verb)
    })
  )

  it.live("init writes a sample that the config reader takes, and never overwrites", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      expect((yield* agentd(["init"], { cwd })).code).toBe(0)
      const { code, out } = yield* agentd(["--state", `${cwd}/s`, "doctor", "--json"], { cwd })
      const checks = JSON.parse(out) as ReadonlyArray<{ name: string; level: string; detail: string }>
      expect(checks.find(({ name }) => name === "config")).toMatchObject({ level: "ok" })
      expect(code).toBe(checks.some(({ level }) => level === "fail") ? 4 : 0)
      writeFileSync(`${cwd}/agentd.jsonc`, "// mine")
      expect((yield* agentd(["init"], { cwd })).code).toBe(1)
      expect(readFileSync(`${cwd}/agentd.jsonc`, "utf8")).toBe("// mine")
    })
  )

  it.live("doctor finds a broken config and a folder that others may write in, and exits 4", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      writeFileSync(`${cwd}/agentd.jsonc`, '{ "agents": { "b": {} } }')
      mkdirSync(`${cwd}/s`)
      mkdirSync(`${cwd}/open`)
      chmodSync(`${cwd}/open`, 0o777)
      const { code, out } = yield* agentd(["--state", `${cwd}/open`, "doctor"], { cwd: `${cwd}/s` })
      expect(code).toBe(4)
      expect(out).toMatch(/fail +config +.*agents\.b\.backend/)
      expect(out).toMatch(/fail +state +other users can write/)
      expect(out).toContain(`→ Run: chmod 700 '${cwd}/open'`)
    })
  )

  it.live("schema prints a JSON Schema", () =>
    Effect.gen(function* () {
      const { out } = yield* agentd(["schema"])
      expect(JSON.parse(out)).toMatchObject({ title: "agentd.jsonc", type: "object" })
      const http = yield* agentd(["schema", "--openapi"])
      expect(JSON.parse(http.out)).toMatchObject({ openapi: "3.1.0", paths: { "/v1/Send": {} } })
    })
  )

  it.live("verify without a store exits 74", () =>
    Effect.gen(function* () {
      expect((yield* agentd(["--state", yield* folder, "verify"])).code).toBe(74)
    })
  )
})

describe("with a daemon", () => {
  it.live("ps is aligned and says what each agent waits for", () =>
    Effect.gen(function* () {
      const world = makeWorld({
        agents: [
          agentInfo({
            agent: "reviewer",
            state: "CoolingDown",
            word: "retrying",
            consecutiveErrors: 2,
            totalErrors: 7,
            nextAt: Date.now() + 90_500,
            detail: "after: exit\ncode 3 \u001b[31mred",
            inbox: 12
          }),
          agentInfo({ since: Date.now() - 200_000 })
        ]
      })
      const { state } = yield* serve(world)
      const { code, err, out } = yield* agentd(["--state", state, "ps"])
      expect({ code, err }).toEqual({ code: 0, err: "" })
      const [head, group, second, first] = out.split("\n")
      expect(head).toMatch(/^NAME +STATE +FOR +RUNS +ERRORS +INBOX +BRANCH +DETAIL$/)
      expect(group).toBe("Working 2")
      expect(first).toMatch(/^● web\/builder +working +3m +7 +0\/5 · 2\/20 +1 +agent\/builder +run r7 is in progress$/)
      expect(second).toMatch(
        /^↻ web\/reviewer +retrying in 1 min +.* +2\/5 · 7\/20 +12 +agent\/builder +after: exit code 3 ·\[31mred$/
      )
      const column = head!.indexOf("DETAIL")
      expect(first!.slice(column)).toMatch(/^run r7/)
      expect(second!.slice(column)).toMatch(/^after/)
      const json = yield* agentd(["--state", state, "ps", "--json"])
      expect(JSON.parse(json.out).rows).toMatchObject([{ name: "reviewer" }, { name: "builder" }])
    })
  )

  it.live("colours come only when forced off a terminal, and NO_COLOR wins", () =>
    Effect.gen(function* () {
      const { state } = yield* serve(makeWorld())
      const ps = (env: { readonly [name: string]: string }) =>
        Effect.map(agentd(["--state", state, "ps"], { env }), ({ out }) => out.includes("\u001b["))
      expect(yield* ps({})).toBe(false)
      expect(yield* ps({ FORCE_COLOR: "1" })).toBe(true)
      expect(yield* ps({ FORCE_COLOR: "1", NO_COLOR: "1" })).toBe(false)
    })
  )

  it.live("status says what it rests on", () =>
    Effect.gen(function* () {
      const { socket, state } = yield* serve(makeWorld(), [draft()])
      const { out } = yield* agentd(["--state", state, "status"])
      expect(out).toContain(`ready, pid ${process.pid}, version ${VERSION}`)
      expect(out).toContain(socket)
      expect(out).toContain("1 working (rune 3)")
      expect(out).toContain("1 rune, 4.1 kB")
      expect(out).toContain("no INVOCATION_ID in its environment")
    })
  )

  it.live("why tells the chain in plain sentences", () =>
    Effect.gen(function* () {
      const world = makeWorld({
        agents: [agentInfo({ state: "CoolingDown", word: "retrying", nextAt: Date.now() + 4000 })]
      })
      const { state } = yield* serve(world, [spawned, failed])
      const { out } = yield* agentd(["--state", state, "why", "builder"])
      expect(out).toMatch(/^web\/builder is retrying (in \d s|now) \(rune 3\)\.\n/)
      expect(out).toMatch(
        /\n\d\d:\d\d:\d\d run 7 ended with exit code 3: no such file \(2nd error in a row of 5, 2 of 20 in total\) \(rune \d+\)\n/
      )
      expect(out).toMatch(/\n\d\d:\d\d:\d\d retrying in 4 s \(rune \d+\)\n/)
    })
  )

  it.live("log prints one rune a line; --json one value a line", () =>
    Effect.gen(function* () {
      const { state } = yield* serve(makeWorld(), [spawned, failed, draft({ actor: "worker/other" })])
      const { out } = yield* agentd(["--state", state, "log"])
      expect(out.split("\n")[1]).toMatch(
        /^\d\d:\d\d:\d\d {2}web-1a2b3c4d\/worker\/builder {2}worker\.moved {2}Running→CoolingDown {2}SessionExited {2}runId=r outcome=.*exit code 3/
      )
      const json = yield* agentd([
        "--state",
        state,
        "log",
        "--json",
        "--agent",
        "builder",
        "--kind",
        "worker.moved",
        "-n",
        "5"
      ])
      expect(
        json.out
          .trim()
          .split("\n")
          .map((line) => (JSON.parse(line) as { eventId: number }).eventId)
      ).toEqual([1, 2])
    })
  )

  it.live("log shows internal runes with --internal alone, and says where there are no others", () =>
    Effect.gen(function* () {
      const refused = draft({
        stream: "daemon",
        kind: "hook.refused",
        actor: "plates",
        payload: { field: "", message: "no" }
      })
      const { state } = yield* serve(makeWorld(), [draft(), { ...refused, visibility: "internal" }])
      const ids = (...args: ReadonlyArray<string>) =>
        Effect.map(inProcess(["--state", state, "log", "--json", ...args]), ({ err, out }) => ({
          ids: [...out.matchAll(/"eventId":(\d+)/g)].map(([, id]) => Number(id)),
          err
        }))
      expect(yield* ids()).toEqual({ ids: [1], err: "" })
      expect(yield* ids("--internal")).toEqual({ ids: [1, 2], err: "" })
      expect(yield* ids("--kind", "hook.refused")).toEqual({
        ids: [],
        err: "agentd: all matching runes are internal. To show them, add --internal.\n"
      })
      expect(yield* ids("--kind", "hook.refused", "--internal")).toEqual({ ids: [2], err: "" })
    })
  )

  it.live("a kind or a stream that nobody has is told, with the one that was meant", () =>
    Effect.gen(function* () {
      const { state } = yield* serve(makeWorld(), [draft()])
      const log = (...args: ReadonlyArray<string>) => inProcess(["--state", state, "log", ...args])
      expect(yield* log("--kind", "worker.move")).toEqual({
        code: 1,
        out: "",
        err: `agentd: there is no kind of rune "worker.move". Did you mean "worker.moved"?\nagentd: No rune has this kind.\n  → List the kinds: agentd --state ${state} docs reference/runes\n`
      })
      expect((yield* log("--kind", "tool.nonsense")).err).toContain("Similar kinds: tool.call, ")
      expect((yield* log("--stream", "web-1a2b3c4e")).err).toContain('Did you mean "web-1a2b3c4d"?')
      expect((yield* log("--stream", "web-1a2b3c4d", "--kind", "agent.ready")).err).toBe("")
    })
  )

  it.live("stop without a terminal asks for --yes while agents work", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const { state } = yield* serve(world)
      const { code, err } = yield* inProcess(["--state", state, "stop"])
      expect(code).toBe(2)
      expect(err).toContain("1 agent works")
      expect(err).toContain("→ Pass --yes")
      expect(world.shutdowns).toEqual([])
    })
  )

  it.live("log -f goes on, and ends with 130 when it is interrupted", () =>
    Effect.gen(function* () {
      const { append, state } = yield* serve(makeWorld(), [draft()])
      const { child, ended, out } = yield* launch(["--state", state, "log", "-f", "--json"])
      yield* eventually(() => out().includes('"eventId":1,'))
      yield* append(draft())
      yield* eventually(() => out().includes('"eventId":2,'))
      child.kill("SIGINT")
      expect((yield* ended).code).toBe(130)
    })
  )

  it.live("log -f into a pipe that is closed ends quietly", () =>
    Effect.gen(function* () {
      const { append, state } = yield* serve(makeWorld(), [draft()])
      const { child, ended, out } = yield* launch(["--state", state, "log", "-f"])
      yield* eventually(() => out().includes("worker.moved"))
      child.stdout.destroy()
      yield* append(draft())
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(append(draft()), Effect.sleep(20))))
      expect(yield* ended).toMatchObject({ code: 0, err: "" })
    })
  )

  it.live("send takes the text from the line, from a pipe, and from -", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const { state } = yield* serve(world)
      const told = yield* agentd(["--state", state, "send", "builder", "--urgent", "do it"])
      expect(told).toMatchObject({ code: 0, out: "send web/builder: done\n" })
      yield* agentd(["--state", state, "send", "builder"], { input: "piped\ntext" })
      yield* agentd(["--state", state, "send", "builder", "-"], { input: "dash" })
      yield* agentd(["--state", state, "send", "builder", "--", "--json"])
      expect(world.commands.map(([, , message]) => message)).toMatchObject([
        { text: "do it", how: "urgent" },
        { text: "piped\ntext", how: "queue" },
        { text: "dash" },
        { text: "--json" }
      ])
    })
  )

  it.live("a text that is too long is refused before it is read to its end", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const { state } = yield* serve(world)
      const { code, err } = yield* agentd(["--state", state, "send", "builder"], { input: "x".repeat(3_000_000) })
      expect(code).toBe(1)
      expect(err).toContain("262144 bytes")
      expect(world.commands).toEqual([])
    })
  )

  it.live("the caller is told with his name and the project he stands in", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const { state } = yield* serve(world)
      const project = yield* folder
      writeFileSync(`${project}/agentd.jsonc`, '{ "agents": {} }')
      mkdirSync(`${project}/deep/down`, { recursive: true })
      const { out } = yield* agentd(["--state", state, "start"], { cwd: `${project}/deep/down` })
      expect(world.commands).toEqual([["register", `${project}/agentd.jsonc`, null]])
      expect(out).toContain("The daemon is already running")
    })
  )

  it.live("a refused command exits 1 with the remedy", () =>
    Effect.gen(function* () {
      const { state } = yield* serve(makeWorld())
      expect(yield* agentd(["--state", state, "stop", "nobody"])).toEqual({
        code: 1,
        out: "",
        err: `agentd: No agent is called "nobody", so nothing was done.\n  → List all names: agentd --state ${state} ps --all\n`
      })
    })
  )

  it.live.each([
    ["start", "start"],
    ["stop", "stop"],
    ["restart", "restart"],
    ["interrupt", "interrupt"]
  ])("%s AGENT is passed on", ([verb]) =>
    Effect.gen(function* () {
      const world = makeWorld()
      const { state } = yield* serve(world)
      expect((yield* agentd(["--state", state, verb!, "web/builder"])).code).toBe(0)
      expect(world.commands).toEqual([[verb, "web/builder", null]])
    })
  )

  it.live("verify asks the daemon; problems exit 4", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const { state } = yield* serve(world, [draft()])
      expect(yield* agentd(["--state", state, "verify"])).toMatchObject({
        code: 0,
        out: /^No problems: 1 rune in 1 stream;/
      })
      world.problems.push({ eventId: 1, stream: "s", rule: "INV-HASH-VALID", message: "differs" })
      const bad = yield* agentd(["--state", state, "verify", "--json"])
      expect(bad.code).toBe(4)
      expect(JSON.parse(bad.out)).toMatchObject({ problems: [{ rule: "INV-HASH-VALID" }] })
    })
  )

  it.live("doctor shows what the daemon says of itself", () =>
    Effect.gen(function* () {
      const { state } = yield* serve(makeWorld())
      const { out } = yield* agentd(["--state", state, "doctor"])
      expect(out).toMatch(/ok +socket +.* answers/)
      expect(out).toMatch(/ok +version/)
      expect(out).toMatch(/ok +lock +held by this daemon/)
    })
  )

  it.live("alert test says to whom", () =>
    Effect.gen(function* () {
      const { state } = yield* serve(makeWorld())
      expect((yield* agentd(["--state", state, "alert", "test"])).out).toBe("A test mail went to ops@example.org.\n")
    })
  )

  it.live("what an agent wrote cannot speak to the terminal", () =>
    Effect.gen(function* () {
      const evil = "\u001b]0;owned\u0007\u009b31m\r\n\u001b[2J"
      const world = makeWorld({ agents: [agentInfo({ detail: evil, branch: evil, since: T0 })] })
      const { state } = yield* serve(world, [draft({ payload: { event: { _tag: "BackoffElapsed", text: evil } } })])
      for (const verb of [["ps"], ["log"], ["why", "builder"]]) {
        const { out } = yield* agentd(["--state", state, ...verb])
        expect(out.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u)
      }
    })
  )
})
