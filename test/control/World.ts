/**
 * A daemon's inside for tests of its outside: doubles of Fleet, RuneLog and
 * DaemonControl that keep their contracts in memory, behind the real control
 * server on a real socket in a folder of its own.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, FileSystem, Layer, Stream } from "effect"
import { Fleet } from "../../src/agents/Fleet.ts"
import * as ControlServer from "../../src/control/ControlServer.ts"
import { DaemonControl } from "../../src/control/DaemonControl.ts"
import { type AgentInfo, CommandRefused, type ProjectInfo } from "../../src/domain/Messages.ts"
import type { RuneDraft } from "../../src/domain/Rune.ts"
import type * as Worker from "../../src/machines/Worker.ts"
import { layerMemory } from "../../src/runes/MemoryRuneLog.ts"
import { RuneLog, type Selection } from "../../src/runes/RuneLog.ts"
import * as PlatesDouble from "../http/PlatesDouble.ts"

export const T0 = Date.parse("2026-11-20T09:12:00Z")

export const agentInfo = (over: Partial<AgentInfo> = {}): AgentInfo => ({
  conversation: "web-1a2b3c4d",
  project: "web",
  agent: "builder",
  backend: "command",
  mode: "inbox",
  state: "Running",
  since: T0,
  restsOn: 3,
  detail: "run r7 is under way",
  nextAt: null,
  runId: "r7",
  pid: 4242,
  sessionSeq: 7,
  consecutiveErrors: 0,
  totalErrors: 2,
  maxConsecutiveErrors: 5,
  maxTotalErrors: 20,
  inbox: 1,
  cwd: "/srv/web",
  branch: "agent/builder",
  ...over
})

/** A move of the worker of `builder`. */
export const moved = (event: Worker.Event, over: Partial<RuneDraft> = {}): RuneDraft => ({
  stream: "web-1a2b3c4d",
  kind: "worker.moved",
  actor: "worker/builder",
  from: "CoolingDown",
  to: "BuildingPrompt",
  trigger: event._tag,
  payload: { event },
  ...over
})

/** One that says nothing in particular. */
export const draft = (over: Partial<RuneDraft> = {}): RuneDraft => moved({ _tag: "BackoffElapsed" }, over)

/** What a test sees and steers of the daemon behind the socket. */
export interface World {
  readonly agents: Array<AgentInfo>
  readonly projects: Array<ProjectInfo>
  readonly commands: Array<readonly [verb: string, name: string, detail: unknown]>
  readonly shutdowns: Array<readonly [reason: string, by: string]>
  /** What `verify` finds besides what is really there. */
  readonly problems: Array<{ eventId: number; stream: string; rule: string; message: string }>
  /** The sessions, and what reached them. */
  readonly board: PlatesDouble.Board
  /** Followers of the log at this moment. */
  followers: number
}

export const makeWorld = (over: Partial<World> = {}): World => ({
  agents: [agentInfo()],
  projects: [
    {
      conversation: "web-1a2b3c4d",
      name: "web",
      config: "/srv/web/agentd.jsonc",
      agents: ["builder"],
      problems: []
    }
  ],
  commands: [],
  shutdowns: [],
  problems: [],
  board: PlatesDouble.makeBoard(),
  followers: 0,
  ...over
})

const fleet = (world: World): Fleet["Service"] => {
  const find = (name: string) => {
    const found = world.agents.find((each) => each.agent === name || `${each.project}/${each.agent}` === name)
    return found === undefined
      ? Effect.fail(
          new CommandRefused({ message: `There is no agent ${name}.`, remedy: "See which there are: agentd ps" })
        )
      : Effect.succeed(found)
  }
  const command = (verb: string, name: string, detail: unknown = null) =>
    Effect.map(find(name), (found) => {
      world.commands.push([verb, `${found.project}/${found.agent}`, detail])
      return { eventId: 1, message: `${verb} ${found.project}/${found.agent}: done` }
    })
  return {
    register: (config) =>
      Effect.sync(() => {
        world.commands.push(["register", config, null])
        return world.projects[0]!
      }),
    projects: Effect.sync(() => world.projects),
    agents: Effect.sync(() => world.agents),
    mailOf: () => Effect.sync(() => undefined),
    agent: (name) => find(name),
    start: (name) => command("start", name),
    stop: (name) => command("stop", name),
    restart: (name) => command("restart", name),
    send: (name, message, caller) => command("send", name, { ...message, by: caller.by }),
    interrupt: (name) => command("interrupt", name),
    recovered: Effect.void,
    ready: Effect.succeed(true)
  }
}

/** The real rune log, in memory; followers are counted, and problems can be planted. */
const log = (world: World) =>
  Layer.effect(
    RuneLog,
    Effect.map(RuneLog, (real) => ({
      ...real,
      subscribe: (selection: Selection) =>
        Stream.unwrap(
          Effect.sync(() => {
            world.followers++
            return Stream.ensuring(
              real.subscribe(selection),
              Effect.sync(() => void world.followers--)
            )
          })
        ),
      verify: Effect.map(real.verify, (found) => ({ ...found, problems: [...found.problems, ...world.problems] }))
    }))
  ).pipe(Layer.provide(layerMemory))

const control = (world: World, socket: string, log: RuneLog["Service"]): DaemonControl["Service"] => ({
  status: Effect.map(log.head, (head) => ({
    pid: process.pid,
    version: "0.1.0",
    startedAt: T0,
    state: "/var/lib/agentd",
    socket,
    phase: "ready" as const,
    supervision: { by: "detached" as const, unit: null, restsOn: "no INVOCATION_ID in its environment" },
    log: { head, bytes: 4096 },
    outbox: { configured: false, waiting: 0, failed: 0, lastSentAt: null, lastError: null, restsOn: 0 }
  })),
  shutdown: (reason, by) => Effect.sync(() => void world.shutdowns.push([reason, by])),
  alertTest: Effect.succeed({ message: "A test mail went to ops@example.org." }),
  checks: Effect.succeed([{ name: "lock", level: "ok" as const, detail: "held by this daemon", remedy: null }])
})

/** Everything behind the socket; `world` is what the test looks at. */
export const layer = (world: World, socket: string) =>
  ControlServer.layer({ socket }).pipe(
    Layer.provide(Layer.succeed(Fleet)(fleet(world))),
    Layer.provide(PlatesDouble.layer(world.board)),
    Layer.provide(Layer.effect(DaemonControl)(Effect.map(RuneLog, (log) => control(world, socket, log)))),
    Layer.provideMerge(log(world)),
    Layer.provideMerge(NodeServices.layer)
  )

/** A folder of its own, gone with the scope. */
export const folder = Effect.flatMap(FileSystem.FileSystem, (fs) =>
  fs.makeTempDirectoryScoped({ prefix: "agentd-" })
).pipe(Effect.provide(NodeServices.layer))

/** The server up in the current scope, with a rune log that holds `drafts`. */
export const serve = Effect.fnUntraced(function* (world: World, drafts: ReadonlyArray<RuneDraft> = []) {
  const state = yield* folder
  const socket = `${state}/control.sock`
  const context = yield* Layer.build(layer(world, socket))
  const { append } = Context.get(context, RuneLog)
  if (drafts.length > 0) yield* append(drafts)
  return { state, socket, append: (...more: ReadonlyArray<RuneDraft>) => append(more) }
})
