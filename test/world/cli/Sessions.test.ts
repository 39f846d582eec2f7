/** The verbs about sessions, in real processes, against a daemon's real sockets. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Layer } from "effect"
import { execFileSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { paneOf, parsePanes } from "../../../src/cli/sessions/Focus.ts"
import * as HookSettings from "../../../src/cli/setup/HookSettings.ts"
import { startedToWait } from "../../../src/cli/tui/BoardScreen.ts"
import type { PlateInfo } from "../../../src/domain/Messages.ts"
import { claim } from "../../../src/api/rpc/Endpoint.ts"
import * as ListenerStatus from "../../../src/api/http/ListenerStatus.ts"
import * as Server from "../../../src/api/http/Server.ts"
import { agentInfo, boardOf, callInfo, makeWorld, serve, type World } from "../rpc/World.ts"
import * as PlatesDouble from "../http/PlatesDouble.ts"
import { plateInfo } from "../http/PlatesDouble.ts"
import { PROGRAM } from "../../support/Program.ts"
import { agentd, inProcess, launch } from "./Child.ts"

const eventually = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep(5), eventually(holds))))

/** Both of the daemon's sockets. */
const daemon = Effect.fnUntraced(function* (world: World) {
  const { state } = yield* serve(world)
  yield* Layer.build(
    Server.layer({
      state,
      socket: join(state, "http.sock"),
      claim,
      port: undefined,
      about: { status: Effect.void, metrics: Effect.succeed(""), hook: () => {} },
      taken: () => Effect.void
    }).pipe(
      Layer.provide(ListenerStatus.layer),
      Layer.provide(PlatesDouble.layer(world.board)),
      Layer.provide(NodeServices.layer)
    )
  )
  return state
})

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "agentd-sessions-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

describe("run -- claude", () => {
  it.live("tells of the program's beginning and end, and ends as it did", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const state = yield* daemon(world)
      const { code, out } = yield* agentd([
        "--state",
        state,
        "run",
        "--",
        "sh",
        "-c",
        "echo $AGENTD_PLATE $0 $$; exit 7",
        "-x"
      ])
      expect(code).toBe(7)
      const [plate_id, flag, pid] = out.trim().split(" ")
      expect(flag).toBe("-x")
      expect(world.board.got).toEqual([
        ["register", { plate_id, cwd: "/", pid: Number(pid) }],
        ["stopped", { plate_id, pid: Number(pid) }]
      ])
    })
  )

  it.live.each([
    ["exit 0", 0],
    ["kill -TERM $$", 143],
    ["kill -KILL $$", 137]
  ] as const)("without a daemon the program runs all the same: %s", ([script, status]) =>
    Effect.gen(function* () {
      const state = yield* folder
      const { code, err, out } = yield* agentd(["--state", state, "run", "sh", "-c", `cat; ${script}`], { input: "in" })
      expect([code, out, err]).toEqual([status, "in", ""])
    })
  )

  it.live.each(["SIGTERM", "SIGHUP", "SIGINT"] as const)(
    "%s goes on to the program, whose end counts and is told",
    (signal) =>
      Effect.gen(function* () {
        const world = makeWorld()
        const state = yield* daemon(world)
        const script = `trap 'echo told; exit 5' ${signal.slice(3)}; echo up; while :; do sleep 0.05; done`
        const run = yield* launch(["--state", state, "run", "--", "sh", "-c", script])
        yield* eventually(() => run.out().includes("up"))
        run.child.kill(signal)
        const { code, out } = yield* run.ended
        expect([code, out]).toEqual([5, "up\ntold\n"])
        expect(world.board.got.map(([what]) => what)).toEqual(["register", "stopped"])
      }).pipe(Effect.scoped)
  )

  it.live("stops when the program stops itself, so that a shell takes the terminal back, and wakes with it", () =>
    Effect.gen(function* () {
      const state = yield* folder
      const run = yield* launch(["--state", state, "run", "--", "sh", "-c", "echo up; kill -STOP $$; echo woken"])
      const status = () => /\) (\S)/.exec(readFileSync(`/proc/${run.child.pid}/stat`, "utf8"))?.[1]
      yield* eventually(() => run.out().includes("up") && status() === "T")
      run.child.kill("SIGCONT")
      expect((yield* run.ended).out).toBe("up\nwoken\n")
    }).pipe(Effect.scoped)
  )

  it.live("a program that is not there is a 127 with a remedy", () =>
    Effect.gen(function* () {
      const { code, err } = yield* agentd(["--state", yield* folder, "run", "--", "no-such-program"])
      expect(code).toBe(127)
      expect(err).toContain("PATH")
    })
  )
})

describe("agentd hook", () => {
  const body = { session_id: "s1", cwd: "/srv", transcript_path: "/t.jsonl", tool_name: "Bash", tool_input: { a: 1 } }

  it.live.each([
    ["session-start", { event_type: "session_start", transcript_path: "/t.jsonl" }],
    ["prompt-submit", { event_type: "prompt_submit" }],
    ["pre-tool-use", { event_type: "tool_start", tool_name: "Bash", tool_input: { a: 1 } }],
    ["post-tool-use", { event_type: "tool_call", tool_name: "Bash" }],
    ["permission-request", { event_type: "permission_request", tool_name: "Bash" }],
    ["permission-answered", { event_type: "permission_answered", tool_name: "Bash" }],
    ["stop", { event_type: "stop", error: "boom" }]
  ] as const)("%s becomes its event", ([hook, event]) =>
    Effect.gen(function* () {
      const world = makeWorld()
      const state = yield* daemon(world)
      const input = JSON.stringify(hook === "stop" ? { ...body, error: "boom" } : body)
      expect(yield* agentd(["--state", state, "hook", hook], { input })).toEqual({ code: 0, out: "", err: "" })
      const timestamp = expect.any(Number)
      expect(world.board.got).toEqual([["event", { session_id: "s1", cwd: "/srv", timestamp, ...event }]])
    })
  )

  it.live.each([
    ["stop", "{}"],
    ["stop", "{"],
    ["stop", ""],
    ["no-such-hook", '{"session_id":"s"}'],
    ["stop", `{"x":"${"x".repeat(2_000_000)}"}`]
  ])("%s with %.20s and no daemon: exit code 0 and silence", ([hook, input]) =>
    Effect.gen(function* () {
      const state = yield* folder
      expect(yield* agentd(["--state", state, "hook", hook!], { input: input! })).toEqual({ code: 0, out: "", err: "" })
      expect(existsSync(join(state, "hooks"))).toBe(false)
    })
  )

  it.live("whose input never ends is given up", () =>
    Effect.gen(function* () {
      const child = yield* launch(["--state", yield* folder, "hook", "stop"], { input: null })
      expect((yield* child.ended).code).toBe(0)
    }).pipe(Effect.scoped)
  )

  it.live("sends what is whole while its input stays open, and the beginning of what is too long", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const state = yield* daemon(world)
      const open = yield* launch(["--state", state, "hook", "prompt-submit"], { input: null })
      open.child.stdin.write(JSON.stringify(body))
      expect((yield* open.ended).code).toBe(0)
      const input = JSON.stringify({ ...body, more: "x".repeat(2_000_000) })
      expect(yield* agentd(["--state", state, "hook", "stop"], { input })).toEqual({ code: 0, out: "", err: "" })
      expect(world.board.got.map(([, got]) => got)).toMatchObject([
        { session_id: "s1", event_type: "prompt_submit" },
        { session_id: "s1", cwd: "/srv", event_type: "stop", agentd_cut: true }
      ])
    }).pipe(Effect.scoped)
  )

  it.live("a start that finds no daemon is left for it, with the branch", () =>
    Effect.gen(function* () {
      const state = yield* folder
      const repository = yield* folder
      execFileSync("git", ["init", "-q", "-b", "trunk", repository])
      mkdirSync(join(repository, "below"))
      const input = JSON.stringify({ session_id: "s1", cwd: join(repository, "below") })
      expect((yield* agentd(["--state", state, "hook", "session-start"], { input })).code).toBe(0)
      const [name] = readdirSync(join(state, "hooks", "spool"))
      const text = readFileSync(join(state, "hooks", "spool", name!), "utf8")
      expect(text.startsWith("as=event\n\n")).toBe(true)
      expect(JSON.parse(text.slice(10))).toMatchObject({
        event_type: "session_start",
        session_id: "s1",
        git_branch: "trunk"
      })
    })
  )
})

describe("agentd hooks", () => {
  const installed = (file: string) => HookSettings.find(HookSettings.read(readFileSync(file, "utf8"))!.settings)

  /** A home with settings in it, as a person formats them. */
  const home = Effect.gen(function* () {
    const base = yield* folder
    const claude = join(base, "claude")
    mkdirSync(claude)
    const env = { CLAUDE_CONFIG_DIR: claude, XDG_CONFIG_HOME: join(base, "config") }
    const at = (...args: ReadonlyArray<string>) =>
      agentd(["--state", join(base, "s"), "hooks", ...args, ...(args[0] === "install" ? ["--yes"] : [])], {
        env,
        cwd: base
      })
    return { base, file: join(claude, "settings.json"), at }
  })

  const TEXT =
    '{ "model": "opus",\n  "hooks": {"Stop": [ {"hooks": [{"type": "command", "command": "say done"}]} ]},\n  "n": 1.0 }'

  it.live("install merges, closes the file to others and keeps a copy; uninstall gives back the very same bytes", () =>
    Effect.gen(function* () {
      const { at, base, file } = yield* home
      writeFileSync(file, TEXT, { mode: 0o644 })
      const first = yield* at("install")
      expect([first.code, first.err]).toEqual([0, ""])
      expect(installed(file)).toMatchObject({ urls: [], approvals: false })
      expect(installed(file).events).toEqual(expect.arrayContaining(["SessionStart", ...HookSettings.EVENTS]))
      expect(JSON.parse(readFileSync(file, "utf8")).hooks.Stop[0].hooks[0].command).toBe("say done")
      expect(statSync(file).mode & 0o777).toBe(0o600)
      const text = readFileSync(file, "utf8")
      expect(text).toContain(join(base, "s", "http.sock"))
      expect(existsSync(join(base, "s", "http-hooks.token"))).toBe(false)
      expect(JSON.parse((yield* at("install", "--json")).out)).toMatchObject({ changed: false })
      expect(readFileSync(file, "utf8")).toBe(text)
      expect((yield* at("uninstall")).code).toBe(0)
      expect(readFileSync(file, "utf8")).toBe(TEXT)
      expect(statSync(file).mode & 0o777).toBe(0o644)
      expect(readdirSync(join(file, ".."))).toEqual(["settings.json"])
    })
  )

  it.live("those of other CLIs are added where each reads them, and go again without a trace", () =>
    Effect.gen(function* () {
      const base = yield* folder
      const env = { HOME: base, XDG_CONFIG_HOME: join(base, "config"), CODEX_HOME: join(base, "codex") }
      const at = (...args: ReadonlyArray<string>) =>
        agentd(["--state", join(base, "s"), "hooks", ...args], { env, cwd: base })
      const gemini = join(base, ".gemini", "settings.json")
      mkdirSync(join(base, ".gemini"))
      mkdirSync(env.CODEX_HOME)
      writeFileSync(gemini, TEXT)
      expect((yield* at("install", "--agent", "gemini")).code).toBe(2)
      expect((yield* at("install", "--agent", "gemini", "--yes")).out).toContain(gemini)
      const { hooks } = JSON.parse(readFileSync(gemini, "utf8"))
      expect(hooks.BeforeAgent[0].hooks[0]).toMatchObject({ type: "command", timeout: 2000 })
      expect(hooks.BeforeAgent[0].hooks[0].command).toContain(" /hooks/gemini ")
      expect(hooks.Stop[0].hooks[0].command).toBe("say done")
      expect(existsSync(join(base, ".claude"))).toBe(false)
      // Droid and Qwen Code were never started here
      const all = JSON.parse((yield* at("install", "--agent", "all", "--json", "--yes")).out)
      expect(all.map(({ agent = "claude", changed }: any) => [agent, changed])).toEqual([
        ["claude", true],
        ["codex", true],
        ["gemini", false]
      ])
      expect(JSON.parse(readFileSync(join(env.CODEX_HOME, "hooks.json"), "utf8")).hooks.Interrupt).toHaveLength(1)
      const told = JSON.parse((yield* at("status", "--json")).out)
      expect(told.others.map(({ agent, installed, problem }: any) => [agent, installed, problem])).toEqual([
        ["cline", false, null],
        ["codex", true, null],
        ["droid", false, null],
        ["gemini", true, null],
        ["kilo", false, null],
        ["opencode", false, null],
        ["qwen", false, null]
      ])
      expect((yield* at("status")).out).toContain("no: after a failed request")
      expect((yield* at("uninstall", "--agent", "all")).code).toBe(0)
      expect(readFileSync(gemini, "utf8")).toBe(TEXT)
      expect(existsSync(join(env.CODEX_HOME, "hooks.json"))).toBe(false)
    })
  )

  it.live(
    "Cline's are files beside the person's; a line of the person's stays, and nothing of theirs is overwritten",
    () =>
      Effect.gen(function* () {
        const base = yield* folder
        const [env, hooks] = [{ HOME: base, XDG_CONFIG_HOME: join(base, "config") }, join(base, ".cline", "hooks")]
        const at = (...args: ReadonlyArray<string>) =>
          agentd(["--state", join(base, "s"), "hooks", ...args, "--agent", "cline"], { env, cwd: base })
        const status = Effect.map(
          agentd(["--state", join(base, "s"), "hooks", "status", "--json"], { env, cwd: base }),
          ({ out }) => JSON.parse(out).others.find(({ agent }: any) => agent === "cline")
        )
        mkdirSync(hooks, { recursive: true })
        const mine = "#!/bin/sh\necho mine\n"
        writeFileSync(join(hooks, "TaskStart.sh"), mine, { mode: 0o755 })
        const refused = yield* at("install", "--yes")
        expect(refused.code).not.toBe(0)
        expect(refused.err).toContain(join(hooks, "TaskStart.sh"))
        expect(refused.err).toContain("Rename it to TaskStart,")
        expect(readdirSync(hooks)).toEqual(["TaskStart.sh"])
        renameSync(join(hooks, "TaskStart.sh"), join(hooks, "TaskStart"))
        expect((yield* at("install")).code).toBe(2)
        expect((yield* at("install", "--yes")).out).toContain(`The hooks were added to ${hooks}.`)
        expect(readFileSync(join(hooks, "TaskStart"), "utf8")).toBe(mine)
        const text = readFileSync(join(hooks, "TaskStart.sh"), "utf8")
        expect(text).toContain(" /hooks/cline ")
        expect(statSync(join(hooks, "TaskStart.sh")).mode & 0o777).toBe(0o700)
        expect(JSON.parse((yield* at("install", "--yes", "--json")).out)).toMatchObject({ changed: false })
        expect(yield* status).toMatchObject({ installed: true, problem: null })
        writeFileSync(join(hooks, "PreToolUse.sh"), `${text}echo more\n`)
        expect((yield* status).problem).toContain("agentd hooks install --agent cline")
        expect((yield* at("install", "--yes")).err).toContain("PreToolUse.sh has lines of yours")
        expect((yield* at("uninstall")).out).toContain("PreToolUse.sh has lines of yours")
        expect(readdirSync(hooks)).toEqual(["PreToolUse.sh", "TaskStart"])
        expect(readFileSync(join(hooks, "PreToolUse.sh"), "utf8")).toBe("#!/bin/sh\necho more\n")
      })
  )

  it.live("the plugin of opencode: shown before it is written, beside other plugins, and gone after uninstall", () =>
    Effect.gen(function* () {
      const base = yield* folder
      const env = { HOME: base, XDG_CONFIG_HOME: join(base, "config") }
      const at = (...args: ReadonlyArray<string>) =>
        agentd(["--state", join(base, "s"), "hooks", ...args, "--agent", "opencode"], { env, cwd: base })
      const plugins = join(base, "config", "opencode", "plugin")
      const file = join(plugins, "agentd.js")
      mkdirSync(plugins, { recursive: true })
      writeFileSync(join(plugins, "mine.js"), "export const mine = async () => ({})\n")
      const asked = yield* at("install")
      expect(asked.code).not.toBe(0)
      expect(asked.out).toContain(`const SOCKET = "${join(base, "s", "http.sock")}"`)
      expect(readdirSync(plugins)).toEqual(["mine.js"])
      expect((yield* at("install", "--yes")).code).toBe(0)
      expect(statSync(file).mode & 0o777).toBe(0o600)
      expect(JSON.parse((yield* at("install", "--json", "--yes")).out).changed).toBe(false)
      const told = () =>
        Effect.map(agentd(["--state", join(base, "s"), "hooks", "status", "--json"], { env, cwd: base }), ({ out }) =>
          JSON.parse(out).others.find(({ agent }: any) => agent === "opencode")
        )
      expect(yield* told()).toMatchObject({ installed: true, problem: null })
      writeFileSync(file, readFileSync(file, "utf8") + "// of an older agentd\n")
      expect((yield* told()).problem).toContain("agentd hooks install --agent opencode")
      expect((yield* at("uninstall")).code).toBe(0)
      expect(readdirSync(plugins)).toEqual(["mine.js"])
      expect(JSON.parse((yield* at("uninstall", "--json")).out).changed).toBe(false)
    })
  )

  it.live("a plugin that is not agentd's is not changed, and a folder that cannot be written is named", () =>
    Effect.gen(function* () {
      const base = yield* folder
      const config = join(base, "config")
      const install = (agent: string) =>
        agentd(["--state", join(base, "s"), "hooks", "install", "--agent", agent, "--yes"], {
          env: { HOME: base, XDG_CONFIG_HOME: config },
          cwd: base
        })
      const file = join(config, "kilo", "plugin", "agentd.js")
      mkdirSync(join(file, ".."), { recursive: true })
      writeFileSync(file, "export const mine = 1\n")
      const foreign = yield* install("kilo")
      expect([foreign.code, foreign.err.includes(`${file} is not a plugin of agentd`)]).toEqual([1, true])
      expect(readFileSync(file, "utf8")).toBe("export const mine = 1\n")
      // in the place of the folder
      writeFileSync(join(config, "opencode"), "")
      const closed = yield* install("opencode")
      expect(closed.code).toBe(1)
      expect(closed.err).toContain(join(config, "opencode", "plugin", "agentd.js"))
    })
  )

  it.live("a file that cannot be changed keeps nobody from the others, and no key in a file is printed", () =>
    Effect.gen(function* () {
      const base = yield* folder
      const env = { HOME: base, XDG_CONFIG_HOME: join(base, "config") }
      for (const name of [".gemini", ".qwen"]) mkdirSync(join(base, name))
      writeFileSync(join(base, ".gemini", "settings.json"), "{ broken\n}\n")
      const qwen = join(base, ".qwen", "settings.json")
      writeFileSync(qwen, '{\n  // mine\n  "theme": "dark",\n  "apiKey": "sk-SECRET-123"\n}\n')
      const { code, err, out } = yield* agentd(
        ["--state", join(base, "s"), "hooks", "install", "--agent", "all", "--yes"],
        { env, cwd: base }
      )
      expect(code).not.toBe(0)
      expect(err).toContain(join(".gemini", "settings.json"))
      expect(out).toContain(`The hooks were added to ${qwen}.`)
      expect(out + err).not.toContain("SECRET")
      expect(readFileSync(qwen, "utf8")).toMatch(/\/\/ mine[^]*sk-SECRET-123/)
    })
  )

  it.live("a slow reader gets all the output of a command that fails", () =>
    Effect.gen(function* () {
      const base = yield* folder
      for (const name of [".cline/hooks", ".codex", ".factory", ".gemini", ".qwen"])
        mkdirSync(join(base, name), { recursive: true })
      writeFileSync(join(base, ".gemini", "settings.json"), "{ broken\n}\n")
      // its path is in each hook
      const state = join(base, "s".repeat(200), "s".repeat(200), "s".repeat(200))
      const program = `"${process.execPath}" "${PROGRAM}" --state "${state}" hooks install --agent all --yes`
      const out = execFileSync("sh", ["-c", `${program} | (sleep 2; cat)`], {
        env: { HOME: base, XDG_CONFIG_HOME: join(base, "config"), PATH: process.env["PATH"] },
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
        maxBuffer: 1e8
      })
      // more than a pipe holds
      expect(out.length).toBeGreaterThan(65_536)
      expect(out).toContain(`The hooks were added to ${join(base, ".qwen", "settings.json")}.`)
    })
  )

  it.live("an unknown CLI, and a project for another one, are usage errors", () =>
    Effect.gen(function* () {
      const { at, file } = yield* home
      const unknown = yield* at("install", "--agent", "gemni")
      expect(unknown.code).toBe(2)
      expect(unknown.err).toContain("claude, cline, codex, droid, gemini, kilo, opencode, qwen, all")
      expect((yield* at("install", "--agent", "all", "--project")).code).toBe(2)
      expect(existsSync(file)).toBe(false)
    })
  )

  it.live("with --http those that decide nothing go to the port that the config asks for, with the hooks' token", () =>
    Effect.gen(function* () {
      const { at, base, file } = yield* home
      const refused = yield* at("install", "--http")
      expect(refused.code).not.toBe(0)
      expect(refused.err).toContain("without --http")
      expect(existsSync(file)).toBe(false)
      mkdirSync(join(base, "config", "agentd"), { recursive: true })
      writeFileSync(join(base, "config", "agentd", "config.jsonc"), '{"http": {"port": 21999}}')
      expect((yield* at("install", "--http")).out).toContain("port 21999")
      expect(installed(file).urls).toEqual(["http://127.0.0.1:21999/hooks/claude"])
      expect(readFileSync(file, "utf8")).toContain(readFileSync(join(base, "s", "http-hooks.token"), "utf8").trim())
      expect((yield* at("status")).out).not.toContain("differ from")
      yield* at("install")
      expect(installed(file).urls).toEqual([])
    })
  )

  it.live(
    "those of an older agentd, which went to a port, are said to be old, and install makes commands of them",
    () =>
      Effect.gen(function* () {
        const { at, base, file } = yield* home
        const hooks = HookSettings.EVENTS.map((event) => [
          event,
          [
            {
              hooks: [
                {
                  type: "http",
                  url: "http://127.0.0.1:7433/hooks/claude",
                  timeout: 2,
                  headers: {
                    authorization: "Bearer t",
                    "x-agentd-plate": "$AGENTD_PLATE",
                    "x-agentd-run": "$AGENTD_RUN"
                  },
                  allowedEnvVars: ["AGENTD_PLATE", "AGENTD_RUN"]
                }
              ]
            }
          ]
        ])
        writeFileSync(file, JSON.stringify({ hooks: Object.fromEntries(hooks) }))
        expect((yield* at("status")).out).toContain("use a port that any program")
        const env = { CLAUDE_CONFIG_DIR: join(file, ".."), XDG_CONFIG_HOME: join(base, "config") }
        const doctor = yield* agentd(["--state", join(base, "s"), "--json", "doctor"], { env, cwd: base })
        expect(JSON.parse(doctor.out)).toContainEqual(expect.objectContaining({ name: "hooks", level: "warn" }))
        yield* at("install")
        expect(installed(file).urls).toEqual([])
        expect(readFileSync(file, "utf8")).not.toContain("7433")
        expect((yield* at("status")).out).not.toContain("differ from")
      })
  )

  it.live("what a person changed in between stays, and the copy too", () =>
    Effect.gen(function* () {
      const { at, file } = yield* home
      writeFileSync(file, TEXT)
      yield* at("install", "--approvals")
      expect(installed(file).approvals).toBe(true)
      writeFileSync(file, readFileSync(file, "utf8").replace('"opus"', '"sonnet"'))
      expect(JSON.parse((yield* at("uninstall", "--json")).out).backup).toBe(`${file}.before-agentd`)
      expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ ...JSON.parse(TEXT), model: "sonnet" })
      expect(readFileSync(file, "utf8")).toContain('"n": 1.0')
    })
  )

  it.live("approvals stay as they are until they are turned on or off, and are told in words", () =>
    Effect.gen(function* () {
      const { at, file } = yield* home
      expect((yield* at("install")).out).toContain("only in the sessions' own terminals")
      expect((yield* at("status")).out).toMatch(/user +installed, approvals off, in/)
      yield* at("install", "--approvals")
      expect((yield* at("install")).out).toContain("approve and deny (to turn this off")
      expect(installed(file).approvals).toBe(true)
      expect((yield* at("status")).out).toMatch(/user +installed, approvals on, in/)
      expect(JSON.parse((yield* at("install", "--no-approvals", "--json")).out)).toMatchObject({ approvals: false })
      expect(installed(file).approvals).toBe(false)
    })
  )

  it.live("where there was no file there is none afterwards; a link stays a link", () =>
    Effect.gen(function* () {
      const { at, base, file } = yield* home
      yield* at("install")
      expect(statSync(file).mode & 0o777).toBe(0o600)
      yield* at("uninstall")
      expect(existsSync(file)).toBe(false)
      const dotfiles = join(base, "dotfiles.json")
      writeFileSync(dotfiles, "{}")
      symlinkSync(dotfiles, file)
      yield* at("install")
      expect(installed(dotfiles).events).not.toEqual([])
      yield* at("uninstall")
      expect(readFileSync(file, "utf8")).toBe("{}")
      expect(readFileSync(dotfiles, "utf8")).toBe("{}")
    })
  )

  it.live.each(['{"a": 1,}', '{"a": 1} // mine', "[]", '{"hooks": 5}', '{"hooks": {"Stop": {}}}'])(
    "%s is left as it is, and said so with a remedy",
    (text) =>
      Effect.gen(function* () {
        const { at, file } = yield* home
        writeFileSync(file, text)
        const { code, err } = yield* at("install")
        expect(code).toBe(1)
        expect(err).toMatch(/not changed\.\n {2}→ /)
        expect(readFileSync(file, "utf8")).toBe(text)
        expect(readdirSync(join(file, ".."))).toEqual(["settings.json"])
      })
  )

  it.live("--project writes settings.local.json, and only where git does not take it up", () =>
    Effect.gen(function* () {
      const { at, base } = yield* home
      const file = join(base, ".claude", "settings.local.json")
      execFileSync("git", ["init", "-q", base])
      const refused = yield* at("install", "--project")
      expect(refused.code).toBe(1)
      expect(refused.err).toContain("info/exclude")
      expect(existsSync(file)).toBe(false)
      writeFileSync(join(base, ".git", "info", "exclude"), ".claude/settings.local.json\n")
      expect((yield* at("install", "--project")).code).toBe(0)
      expect(installed(file).events).toContain("Stop")
      const { out } = yield* at("status")
      expect(out).toMatch(/user +not installed/)
      expect(out).toMatch(/project +installed/)
    })
  )

  it.live("status says which sessions were heard from, and when, besides what is written", () =>
    Effect.gen(function* () {
      const world = makeWorld({
        board: PlatesDouble.makeBoard({ plates: [plateInfo({ restsOn: { signal: "hook", at: Date.now() - 90_000 } })] })
      })
      const state = yield* daemon(world)
      const { code, out } = yield* agentd(["--state", state, "hooks", "status"])
      expect(code).toBe(0)
      expect(out).toMatch(/01plate +Running +1m ago +hook/)
    })
  )
})

describe("the board", () => {
  const asking = plateInfo({
    plateId: "02asking",
    status: "AwaitingApproval",
    detail: "wants to run Bash",
    approval: "r1"
  })

  it.live("ps shows sessions beside agents; approve, deny, forget and plates act on them", () =>
    Effect.gen(function* () {
      const board = PlatesDouble.makeBoard({
        plates: [asking, plateInfo(), plateInfo({ plateId: "03", status: "Closed" })]
      })
      const world = makeWorld({ board })
      const state = yield* daemon(world)
      const at = (...args: ReadonlyArray<string>) => agentd(["--state", state, ...args])
      const { out } = yield* at("ps")
      const lines = out.split("\n")
      expect(lines[1]).toBe("Needs you 1")
      expect(lines[2]).toMatch(/^◆ shop\/.* needs you .*wants to run Bash.* → agentd --state \S+ approve 02asking$/)
      expect(out).toMatch(/^● web\/builder +working/m)
      expect(out).not.toContain("closed")
      expect(JSON.parse((yield* at("ps", "--plates", "--all", "--json")).out)).toHaveLength(3)
      for (const answer of ["approve", "deny"] as const) {
        const waiting = yield* Deferred.make<{ readonly behavior: string } | undefined>()
        board.waiting.push(waiting as (typeof board.waiting)[number])
        expect((yield* at(answer, "r1", ...(answer === "deny" ? ["--reason", "no"] : ["0".repeat(64)]))).code).toBe(0)
        expect(yield* Deferred.await(waiting)).toEqual(
          answer === "approve" ? { behavior: "allow", hash: "0".repeat(64) } : { behavior: "deny", message: "no" }
        )
      }
      const nothing = yield* at("approve", "r1", "0".repeat(64))
      expect([nothing.code, nothing.err]).toEqual([1, expect.stringContaining("→")])
      expect((yield* at("forget", "01plate")).out).toContain("forgotten")
      expect(board.plates.map(({ plateId }) => plateId)).toEqual(["02asking", "03"])
    })
  )

  it.live("watch refuses where it cannot draw", () =>
    Effect.gen(function* () {
      const { code, err } = yield* agentd(["--state", yield* folder, "ps", "--watch"])
      expect(code).toBe(2)
      expect(err).toContain("ps --json")
    })
  )

  it.live("watch takes no filter that its board would not keep to", () =>
    Effect.gen(function* () {
      for (const given of ["builder", "--csv", "--all", "--project=web", "--is=failed", "--sort=age", "--by=project"]) {
        const { code, err } = yield* inProcess(["--state", yield* folder, "ps", "--watch", given])
        expect(code).toBe(2)
        expect(err).toContain(`${given.startsWith("--") ? given.split("=")[0] : "A name"} cannot be used with --watch`)
      }
    })
  )

  it("the bell is for those that start to wait, each time anew", () => {
    const rowOf = (plate: PlateInfo) => boardOf({ plates: [plate] }).rows
    expect(startedToWait([], rowOf(asking))).toHaveLength(1)
    expect(startedToWait(rowOf(plateInfo()), rowOf(asking))).toHaveLength(1)
    expect(startedToWait(rowOf(asking), rowOf(asking))).toEqual([])
    expect(startedToWait(rowOf(asking), rowOf({ ...asking, since: asking.since + 1 }))).toHaveLength(1)
    expect(
      startedToWait(rowOf({ ...asking, status: "Running", word: "working", approval: null }), rowOf(asking))
    ).toHaveLength(1)
    const ofAgent = (since: number, ...calls: ReadonlyArray<string>) =>
      boardOf({
        agents: [agentInfo({ word: "needs you", since })],
        calls: calls.map((callId) => callInfo({ callId, since }))
      }).rows
    expect(startedToWait(ofAgent(1, "a"), ofAgent(1, "a", "b")), "a further call rings").toHaveLength(1)
    expect(startedToWait(ofAgent(1, "a", "b"), ofAgent(2, "b")), "an answered one does not").toEqual([])
  })

  it("a pane is found by descent, and a pid that is its own ancestor ends the search", () => {
    const panes = parsePanes("10 %1 work\n20 %2 my session\nrubbish\n")
    const table = [
      { pid: 30, parent: 20 },
      { pid: 40, parent: 30 },
      { pid: 50, parent: 1 },
      { pid: 1, parent: 1 }
    ]
    expect(paneOf(40, table, panes)).toEqual({ pid: 20, id: "%2", session: "my session" })
    expect(paneOf(10, table, panes)?.id).toBe("%1")
    expect(paneOf(50, table, panes)).toBeUndefined()
  })

  it.live("focus says why it cannot jump", () =>
    Effect.gen(function* () {
      const plates = [plateInfo({ plateId: "nopid" }), plateInfo({ plateId: "outside", pid: process.pid })]
      const state = yield* daemon(makeWorld({ board: PlatesDouble.makeBoard({ plates }) }))
      for (const [plate, says] of [
        ["nopid", "run -- claude"],
        ["missing", "plates --all"]
      ] as const) {
        const { code, err } = yield* agentd(["--state", state, "focus", plate])
        expect([code, err]).toEqual([1, expect.stringContaining(says)])
      }
    })
  )
})
