/**
 * The two entries of the program say the same: each declared verb by both, with what reaches the
 * daemon; and what the quick one does not know for sure, the whole one answers.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { displayWidth as original } from "effect/cli/CliOutput"
import { spawn, spawnSync } from "node:child_process"
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { declared } from "../../../src/cli/parse/DeclaredVerbs.ts"
import { parse } from "../../../src/cli/parse/QuickArgs.ts"
import { displayWidth } from "../../../src/cli/render/Width.ts"
import { mismatch, OLDEST_PROTOCOL, ourselves, PROTOCOL } from "../../../src/api/rpc/Version.ts"
import type { Channels } from "../../../src/channels/Channels.ts"
import type { ChannelInfo } from "../../../src/domain/ChannelMessages.ts"
import type { GoalInfo } from "../../../src/domain/GoalMessages.ts"
import type { Goals } from "../../../src/goals/Goals.ts"
import type { Schedules } from "../../../src/schedules/Schedules.ts"
import type { ScheduleInfo } from "../../../src/domain/ScheduleMessages.ts"
import { options } from "../goals/Tasks.ts"
import * as PlatesDouble from "../http/PlatesDouble.ts"
import {
  agentInfo,
  callInfo,
  draft,
  folder,
  layer,
  makeWorld,
  serve as serveLog,
  T0,
  type World
} from "../rpc/World.ts"
import { PROGRAM, QUICK } from "../../support/Program.ts"
import { type Ended, inProcess } from "./Child.ts"
import { lines } from "./QuickLines.ts"
import { long, sample } from "../../support/Long.ts"

/** Where there is no project, they are wrong; a reply that has another form on the wire. */
const left = ["channel show", "project new"]

const channel: ChannelInfo = {
  conversation: "web-1a2b3c4d",
  project: "web",
  name: "reviews",
  word: "needs you",
  topic: "",
  order: "manual",
  paused: false,
  closed: false,
  floor: null,
  seats: [],
  posts: 3,
  detail: "nobody has the floor",
  waits: "rests after 3 posts: agentd channel resume reviews",
  restsOn: 4
}
const goal: GoalInfo = {
  goalId: "g1",
  conversation: "web-1a2b3c4d",
  project: "web",
  goal: "Port the parser · 文字",
  by: "ada",
  submittedAt: T0,
  word: "working",
  state: "executing",
  since: T0,
  restsOn: 5,
  detail: "",
  reason: null,
  total: 0,
  tasks: { pending: 0, assigned: 0, running: 0, completed: 0, failed: 0, blocked: 0, cancelled: 0 },
  rounds: 0,
  maxRounds: 3,
  estimate: null,
  options: options()
}

const schedule: ScheduleInfo = {
  name: "nightly",
  conversation: "web-1",
  project: "web",
  cron: "30 2 * * *",
  timeZone: "Europe/Berlin",
  work: { send: { agent: "builder", text: "good night · 文字" } },
  catchUp: "once",
  state: "waits",
  next: 4_102_444_800_000,
  by: null,
  pausedBy: null,
  last: { due: 0, at: 1, eventId: 1, asked: false, messageId: "m", goalId: null, underWay: true },
  skipped: { due: 1, count: 100, reason: "the previous run is still in progress", at: 1 }
}

/** Commands on a channel, a goal or a schedule, as they reach them. */
const siblings = (world: World) => {
  const doing = (verb: string) =>
    [
      verb,
      (name: string, ...rest: ReadonlyArray<unknown>) =>
        Effect.sync(() => {
          world.commands.push([verb, name, rest])
          return { eventId: 1, message: `${verb} ${name}: done` }
        })
    ] as const
  const done = (...verbs: ReadonlyArray<string>) => Object.fromEntries(verbs.map(doing))
  return {
    channels: {
      ...done("create", "close", "assign", "remove", "post", "order", "grant", "skip", "requeue", "pause"),
      list: Effect.succeed([channel]),
      show: () => Effect.succeed({ channel }),
      isConfigured: () => Effect.succeed(true),
      furnished: () => Effect.void
    } as unknown as Channels["Service"],
    goals: {
      ...done("plan", "approve", "reject", "cancel", "retry"),
      submit: (request: unknown) =>
        Effect.sync(() => {
          world.commands.push(["submit", "g2", request])
          return { eventId: 1, message: "g2 is submitted", goalId: "g2" }
        }),
      list: () => Effect.succeed([goal]),
      page: () => Effect.succeed({ goal, tasks: [], named: [], findings: [], next: null }),
      stopAll: () => Effect.void
    } as unknown as Goals["Service"],
    schedules: {
      ...done("remove", "run", "pause", "resume"),
      add: ({ catchUp, work }: { readonly catchUp: string; readonly work: object }) =>
        Effect.sync(() => {
          world.commands.push(["add", "at-1", [catchUp, work]])
          return { eventId: 1, message: "at-1 sends to builder.", name: "at-1" }
        }),
      list: () => Effect.succeed([schedule])
    } as unknown as Schedules["Service"]
  }
}

const worldOf = () =>
  makeWorld({
    agents: [agentInfo(), agentInfo({ agent: "tester", state: "Stopped", detail: "stopped by ada: 文字" })],
    calls: [callInfo()],
    board: PlatesDouble.makeBoard({ plates: [PlatesDouble.plateInfo()] })
  })

/** A daemon's inside at a socket of this folder. */
const serve = Effect.fnUntraced(function* (state: string, world: World) {
  yield* Layer.build(
    Layer.effectDiscard(Effect.void).pipe(Layer.provideMerge(layer(world, `${state}/control.sock`, siblings(world))))
  )
})

interface Given {
  readonly env?: { readonly [name: string]: string }
  readonly input?: string
}

const entry = (file: string, args: ReadonlyArray<string>, { env = {}, input = "" }: Given = {}) =>
  Effect.promise(
    () =>
      new Promise<Ended>((resolve) => {
        const child = spawn(process.execPath, [file, ...args], {
          env: { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent", ...env },
          stdio: ["pipe", "pipe", "pipe"]
        })
        let [out, err] = ["", ""]
        child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text))
        child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text))
        child.stdin.on("error", () => {})
        child.stdin.end(input)
        child.on("close", (code) => resolve({ code, out, err }))
      })
  )

/** Clocks go on between the two. */
const masked = ({ code, err, out }: Ended) => ({
  code,
  err,
  out: out.replaceAll(/\b\d+[smhd]\b|"uptime":\d+/gu, "#")
})

/** The quick entry far from the whole program: what it cannot answer itself, it cannot hand over. */
const away = mkdtempSync(join(tmpdir(), "agentd-quick-"))
const quick = join(away, "quick.cjs")
beforeAll(() => {
  copyFileSync(QUICK, quick)
  const isOfIt = (file: string) => !file.endsWith(".mjs")
  cpSync(join(QUICK, "..", "chunks"), join(away, "chunks"), { recursive: true, filter: isOfIt })
})
afterAll(() => rmSync(away, { recursive: true }))

describe("every declared verb", () => {
  it("is held against the other entry here", () => {
    const known = [...Object.keys(lines), ...left].toSorted()
    expect(known).toEqual([...declared.keys()].toSorted())
    for (const [verb, forms] of Object.entries(lines)) {
      for (const form of forms) expect(parse(form.split(" "), declared)?.verb.path.join(" "), form).toBe(verb)
    }
  })

  const forms = Object.values(lines).flatMap((all) =>
    all.map((form, at) => ({ form, live: at === 0 ? it.live : long.live }))
  )
  for (const { form, live } of forms) {
    live(`${form}: the same output, errors, exit code and command, with and without --json`, () =>
      Effect.gen(function* () {
        // all of a goal's tasks are read by the whole program
        for (const json of form === "goal show g1" ? [[]] : [[], ["--json"]]) {
          const state = yield* folder
          const answered = (run: (args: ReadonlyArray<string>) => Effect.Effect<Ended>) =>
            Effect.scoped(
              Effect.gen(function* () {
                const world = worldOf()
                yield* serve(state, world)
                const ended = yield* run(["--state", state, ...form.split(" "), ...json])
                return { ...masked(ended), commands: world.commands }
              })
            )
          const whole = yield* answered((args) => Effect.orDie(inProcess(args)))
          expect(yield* answered((args) => entry(quick, args))).toEqual(whole)
        }
      })
    )
  }
})

describe("the quick entry", () => {
  const both = (state: string, args: ReadonlyArray<string>, given?: Given) =>
    Effect.gen(function* () {
      const line = ["--state", state, ...args]
      const [quick, whole] = [yield* entry(QUICK, line, given), yield* entry(PROGRAM, line, given)]
      expect(masked(quick), args.join(" ")).toEqual(masked(whole))
      return quick
    })

  for (const line of ["ps", "why builder", "approve", "goal ls"])
    (line === "ps" ? it.live : long.live)(`${line} is coloured by the same rules`, () =>
      Effect.gen(function* () {
        const state = yield* folder
        yield* serve(state, worldOf())
        const args = line.split(" ")
        expect((yield* both(state, args, { env: { FORCE_COLOR: "1" } })).out).toContain("\u001b[")
        for (const env of [
          { FORCE_COLOR: "1", NO_COLOR: "1" },
          { FORCE_COLOR: "false" },
          { FORCE_COLOR: "1", TERM: "dumb" }
        ]) {
          expect((yield* both(state, args, { env })).out).not.toContain("\u001b[")
        }
      })
    )

  /** A terminal is what `script` of util-linux makes. */
  const drawn = (file: string, state: string, verb: string, columns: number) =>
    Effect.promise(
      () =>
        new Promise<string>((resolve) => {
          const line = `stty cols ${columns}; '${process.execPath}' '${file}' --state '${state}' ${verb}`
          const child = spawn("script", ["-qec", line, "/dev/null"], { stdio: ["ignore", "pipe", "ignore"] })
          let out = ""
          child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text))
          child.on("close", () => resolve(out))
        })
    )
  for (const columns of [40, 80, 133]) {
    const live = spawnSync("script", ["--version"]).status !== 0 ? it.live.skip : columns === 80 ? it.live : long.live
    live(`fills a terminal of ${columns} columns alike`, () =>
      Effect.gen(function* () {
        const state = yield* folder
        yield* serve(state, worldOf())
        for (const verb of ["ps", "ps --plates", "waiting"]) {
          const quick = yield* drawn(QUICK, state, verb, columns)
          expect(quick).toBe(yield* drawn(PROGRAM, state, verb, columns))
          expect(quick).not.toBe("")
        }
        expect(yield* drawn(QUICK, state, "ps", columns)).toContain("\u001b[")
      })
    )
  }

  it.live.each([
    "ps --help",
    "goal",
    "goal aprove",
    "goal watch",
    "stop --frob",
    "ps extra",
    "ps --json --json",
    "--version",
    "nonsense",
    "send",
    "send builder -",
    "log --since lunch",
    "log -n 99999",
    "goal show g1 --json",
    ...sample(
      [
        "ps -w extra",
        "goal schema",
        "close web",
        "send builder --steer --urgent hello",
        "send builder -- -dash",
        "log --kind worker.mvoed",
        "log --stream nothing",
        "channel",
        "channel show reviews --frob"
      ],
      []
    )
  ])("%s is answered by the whole program", (line) =>
    Effect.gen(function* () {
      const state = yield* folder
      yield* serve(state, worldOf())
      yield* both(state, line.split(" "), { input: "from a pipe" })
    })
  )

  for (const line of ["ps", "send x y", "why x", "log", "ps --json"])
    (["ps", "send x y"].includes(line) ? it.live : long.live)(
      `${line} without a daemon is told by the whole program`,
      () =>
        Effect.gen(function* () {
          const { code } = yield* both(yield* folder, line.split(" "))
          expect(code).toBe(3)
        })
    )

  long.live("finds the daemon by the same variables", () =>
    Effect.gen(function* () {
      const home = yield* folder
      for (const env of [
        { HOME: home },
        { HOME: home, XDG_STATE_HOME: `${home}/s`, XDG_RUNTIME_DIR: `${home}/r` },
        { HOME: home, XDG_STATE_HOME: "", XDG_RUNTIME_DIR: "relative" },
        { HOME: "" }
      ] as ReadonlyArray<{ readonly [name: string]: string }>) {
        const [quick, whole] = [yield* entry(QUICK, ["ps"], { env }), yield* entry(PROGRAM, ["ps"], { env })]
        expect(quick).toEqual(whole)
      }
      mkdirSync(`${home}/r/agentd`, { recursive: true })
      yield* serve(`${home}/r/agentd`, worldOf())
      const env = { HOME: home, XDG_STATE_HOME: `${home}/s`, XDG_RUNTIME_DIR: `${home}/r` }
      expect(yield* entry(quick, ["why", "builder"], { env })).toMatchObject({ code: 0, err: "" })
    })
  )

  const exit = (id: string, exit: object) => `${JSON.stringify({ _tag: "Exit", requestId: id, exit })}\n`
  const welcome = (id: string) => exit(id, { _tag: "Success", value: { ...ourselves, oldest: OLDEST_PROTOCOL } })

  /** Answers the first frame, hears requests, and says or does the same to each. */
  const strange = (
    socket: string,
    then: (say: (text: string) => void, close: () => void) => void,
    hello: (id: string) => string = welcome
  ) =>
    Effect.acquireRelease(
      Effect.promise(
        () =>
          new Promise<{ readonly heard: Array<string>; readonly close: () => void }>((resolve) => {
            const heard: Array<string> = []
            const server = createServer((connection) => {
              connection.on("error", () => {})
              connection.setEncoding("utf8").on("data", (text: string) => {
                for (const line of text.split("\n").filter((line) => line.includes('"Request"'))) {
                  const { id, tag } = JSON.parse(line) as { readonly id: string; readonly tag: string }
                  if (tag === "Hello") {
                    connection.write(hello(id))
                    continue
                  }
                  heard.push(line)
                  then(
                    (said) => connection.write(said),
                    () => connection.destroy()
                  )
                }
              })
            })
            server.listen(socket, () => resolve({ heard, close: () => server.close() }))
          })
      ),
      ({ close }) => Effect.sync(close)
    )

  it.live("a command that was written and not answered is given once, and what became of it is told", () =>
    Effect.gen(function* () {
      const state = yield* folder
      const { heard } = yield* strange(`${state}/control.sock`, (_, close) => close())
      const { code, err, out } = yield* entry(QUICK, ["--state", state, "send", "builder", "hello"])
      expect(heard).toHaveLength(1)
      expect({ code, out }).toEqual({ code: 3, out: "" })
      expect(err).toContain(`The daemon at ${state}/control.sock stopped before it answered.`)
      expect(err).toContain(`agentd --state ${state} log`)
    })
  )

  it.live("a question that was not answered, or strangely, is asked again by the whole program", () =>
    Effect.gen(function* () {
      const state = yield* folder
      const { heard } = yield* strange(`${state}/control.sock`, (say) => say("rubbish\n"))
      const { err, out } = yield* entry(QUICK, ["--state", state, "why", "builder"])
      expect(out).toBe("")
      expect(err).toMatch(/^agentd: /)
      expect(heard.length).toBeGreaterThan(1)
    })
  )

  it.live("a daemon that does not speak its protocol is asked nothing, and what to do is told", () =>
    Effect.gen(function* () {
      const state = yield* folder
      const newer = mismatch({ protocol: PROTOCOL + 1, version: "9.9.9" })!
      const error = { _tag: "CommandRefused", ...newer }
      const refusing = (id: string) => exit(id, { _tag: "Failure", cause: [{ _tag: "Fail", error }] })
      const { heard } = yield* strange(`${state}/control.sock`, () => {}, refusing)
      const { err, out } = yield* both(state, ["send", "builder", "hello"])
      expect({ heard, out }).toEqual({ heard: [], out: "" })
      expect(err).toContain(`speaks protocol ${PROTOCOL}; this command is of agentd 9.9.9 and speaks ${PROTOCOL + 1}.`)
      expect(err).toContain("agentd --state")
    })
  )

  it.live("a daemon of before the first exchange is an older one", () =>
    Effect.gen(function* () {
      const state = yield* folder
      const unknown = (id: string) =>
        exit(id, { _tag: "Failure", cause: [{ _tag: "Die", defect: "Unknown request tag: Hello" }] })
      const { heard } = yield* strange(`${state}/control.sock`, () => {}, unknown)
      for (const words of [["send", "builder", "hello"], ["ps"]]) {
        const { code, err } = yield* both(state, words)
        expect(code).toBe(3)
        expect(err).toContain("is older than this client")
      }
      // a question may come with the introduction, a command never
      expect(heard.filter((line) => line.includes('"Send"'))).toEqual([])
    })
  )

  it.live("a long log comes in parts", () =>
    Effect.gen(function* () {
      const { state } = yield* serveLog(
        makeWorld(),
        Array.from({ length: 3_000 }, () => draft())
      )
      const { out } = yield* both(state, ["log", "-n", "10000"])
      expect(out.split("\n")).toHaveLength(3_001)
    })
  )
})

describe("Width", () => {
  const pieces =
    "a · … é e\u0301 文 ﾊ 😀 ©\ufe0f \u00ad \u200d \u001b[1m \u001b[0m → │ “ \u0300 한 1️⃣ 👩‍👩‍👧 ǅ \u2028 \t".split(" ")
  it("counts as effect/cli counts", () => {
    let seed = 1
    const next = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
    for (let round = 0; round < 20_000; round++) {
      const text = Array.from({ length: next(12) }, () =>
        next(3) === 0 ? String.fromCodePoint(32 + next(0x2600)) : pieces[next(pieces.length)]!
      ).join("")
      expect(displayWidth(text), JSON.stringify(text)).toBe(original(text))
    }
  })
})
