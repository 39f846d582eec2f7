import * as ProcessTable from "../../../src/runs/process/ProcessTable.ts"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { appendFileSync, cpSync, mkdirSync, utimesSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { folder } from "../rpc/World.ts"
import { PROGRAM } from "../../support/Program.ts"
import { agentd } from "./Child.ts"
import { long } from "../../support/Long.ts"

/** A world of its own; a daemon that a failing test leaves in it is killed. */
const world = Effect.gen(function* () {
  const base = yield* folder
  const args = ["--state", `${base}/s`]
  writeFileSync(
    `${base}/agentd.jsonc`,
    '{ "agents": { "calm": { "backend": { "type": "command", "shell": "exit 0" } } } }'
  )
  const run = (...verb: ReadonlyArray<string>) => agentd([...args, ...verb], { cwd: base })
  const pid = Effect.map(run("status", "--json"), ({ out }) =>
    out === "" ? undefined : (JSON.parse(out) as { daemon: { pid: number } }).daemon.pid
  )
  yield* Effect.addFinalizer(() =>
    Effect.map(pid, (left) => {
      if (left !== undefined) process.kill(left, "SIGKILL")
    })
  )
  return { base, run, pid }
})

/** Where nobody reaps, an ended process keeps its pid: it does not run. */
const alive = (pid: number): boolean => ProcessTable.isAlive(ProcessTable.identify(pid))

it.live("start launches a daemon that outlives it and takes up the project; stop returns when it is gone", () =>
  Effect.gen(function* () {
    const { pid, run } = yield* world
    const started = yield* run("start", "--json")
    expect(started).toMatchObject({ code: 0, err: "" })
    const first = JSON.parse(started.out) as { pid: number; launched: boolean }
    expect(first).toMatchObject({ launched: true, project: { agents: ["calm"] } })
    expect(alive(first.pid)).toBe(true)
    expect(JSON.parse((yield* run("start", "--json")).out)).toMatchObject({ launched: false, pid: first.pid })

    const restarted = JSON.parse((yield* run("restart", "--json", "--yes")).out) as { pid: number }
    expect(restarted.pid).not.toBe(first.pid)
    expect(alive(first.pid)).toBe(false)
    expect(yield* pid).toBe(restarted.pid)

    expect(yield* run("stop")).toMatchObject({ code: 2, err: expect.stringContaining("stop --daemon") })
    expect(yield* run("stop", "--daemon")).toMatchObject({
      code: 0,
      out: expect.stringContaining(`pid ${restarted.pid}`)
    })
    expect(alive(restarted.pid)).toBe(false)
    expect((yield* run("stop", "--daemon")).code).toBe(3)
  })
)

it.live("a config that cannot be used is told once, with the exit code of its kind, known to the daemon or not", () =>
  Effect.gen(function* () {
    const { base, run } = yield* world
    const config = `${base}/agentd.jsonc`
    writeFileSync(config, '{ "agents": { "calm": {} } }')
    const unknown = yield* run("start")
    expect(unknown).toMatchObject({ code: 78, err: expect.stringContaining("agents.calm.backend: is missing") })
    writeFileSync(config, '{ "agents": { "calm": { "backend": { "type": "command", "shell": "exit 0" } } } }')
    expect((yield* run("restart")).out).toContain("The daemon is restarted")
    writeFileSync(config, '{ "agents": { "calm": {} } }')
    const known = yield* run("start")
    expect(known).toMatchObject({ code: 78, err: expect.stringContaining(`${config} has problems.`) })
    expect(known.out.match(/The project's config cannot be used/g)).toHaveLength(1)
    expect(known.out).toContain(`\n  ${config}:1:23: agents.calm.backend: is missing\n`)
    const doctor = yield* run("doctor")
    expect(doctor.out.match(/agents\.calm\.backend: is missing/g)).toHaveLength(1)
    yield* run("stop", "--daemon")
    writeFileSync(config, '{ "agents": {} }')
    expect((yield* run("restart")).out).toContain("The daemon is started")
    yield* run("stop", "--daemon")
  })
)

it.live(
  "start in a project whose conversation is closed says how to begin a new one, and does not blame the file",
  () =>
    Effect.gen(function* () {
      const { run } = yield* world
      yield* run("start")
      yield* run("close", "--yes")
      const { code, err, out } = yield* run("start")
      expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/is closed[^]*agentd .*project new/) })
      expect(err + out).not.toMatch(/config|mend|fix/i)
      expect((yield* run("project", "new")).code).toBe(0)
      expect(yield* run("start")).toMatchObject({ code: 0, out: expect.stringContaining("calm") })
      yield* run("stop", "--daemon")
    })
)

it.live("verify reads the store of a daemon that is down, and finds what was changed in it", () =>
  Effect.gen(function* () {
    const { base, run } = yield* world
    yield* run("start")
    yield* run("stop", "--daemon")
    expect(yield* run("verify")).toMatchObject({ code: 0, out: expect.stringContaining("No problems") })
    const store = new DatabaseSync(`${base}/s/runes.db`)
    store.exec("DROP TRIGGER runes_are_immutable")
    store.exec("UPDATE runes SET payload = replace(payload, 'calm', 'evil') WHERE payload LIKE '%calm%'")
    store.close()
    const { code, out } = yield* run("verify")
    expect(code).toBe(4)
    expect(out).toMatch(/INV-HASH-VALID rune \d+ of /)
  })
)

long.live("a daemon whose program was replaced says so, until it is restarted", () =>
  Effect.gen(function* () {
    const base = yield* folder
    cpSync(dirname(PROGRAM), `${base}/program`, { recursive: true })
    const program = `${base}/program/agentd.mjs`
    const ask = (...verb: ReadonlyArray<string>) => agentd(["--state", `${base}/s`, ...verb], { cwd: base, program })
    yield* ask("start")
    yield* Effect.addFinalizer(() => ask("stop", "--yes"))
    const told = "the daemon is older than the installed agentd"
    utimesSync(program, 1, 1)
    expect((yield* ask("status")).out).not.toContain(told)
    appendFileSync(program, "// another one")
    expect((yield* ask("status")).out).toContain(`${told}. To update it: agentd --state ${base}/s restart`)
    expect((yield* ask("ps")).out).toContain("the daemon runs an older agentd")
    expect((yield* ask("doctor")).out).toMatch(/program .*older agentd/)
    expect((yield* ask("restart", "--yes")).code).toBe(0)
    const status = yield* ask("status")
    expect(status).toMatchObject({ code: 0 })
    expect(status.out).not.toContain(told)
  })
)

it.live("start says in the daemon's own words why it has ended, and waits no longer", () =>
  Effect.gen(function* () {
    const base = yield* folder
    mkdirSync(`${base}/config/agentd`, { recursive: true })
    writeFileSync(`${base}/config/agentd/config.jsonc`, '{ "alerts": ')
    const { code, err } = yield* agentd(["--state", `${base}/s`, "start"], {
      env: { XDG_CONFIG_HOME: `${base}/config` }
    })
    expect(code).toBe(78)
    expect(err).toMatch(/^agentd: .*config\.jsonc:1:/)
    expect(err).toContain(`agentd --state ${base}/s start`)
    expect(err).not.toContain("does not answer")
  })
)
