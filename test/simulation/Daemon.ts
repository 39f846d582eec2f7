/**
 * Daemon: one life of the real thing in the simulated world: `Daemon.run` itself, over a
 * platform that is played. People steer it by the procedures of its control socket.
 */
import { Effect, FileSystem, Layer, Path, Stdio, Stream, Terminal } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { ChildProcessSpawner } from "effect/process"
import type { RpcClient } from "effect/rpc"
import { RpcTest } from "effect/rpc"
import { Mailer } from "../../src/alerts/Mailer.ts"
import * as Daemon from "../../src/app/Daemon.ts"
import * as DaemonLog from "../../src/app/DaemonLog.ts"
import { keeping, type Options, type Platform, service } from "../../src/app/Platform.ts"
import { Agents } from "../../src/projects/service/Agents.ts"
import * as Git from "../../src/runs/git/Git.ts"
import { Backends } from "../../src/runs/Backends.ts"
import { Lookup } from "../../src/runs/process/ProcessTable.ts"
import * as Workspace from "../../src/runs/sandbox/Workspace.ts"
import { FileFailed } from "../../src/runs/sandbox/PathContainment.ts"
import { Spawn } from "../../src/runs/process/ChildProcess.ts"
import { ProcessTree } from "../../src/runs/process/ProcessTree.ts"
import { Reaper } from "../../src/runs/process/Reaper.ts"
import { RunSockets } from "../../src/runs/RunSockets.ts"
import type { UserConfig } from "../../src/config/Config.ts"
import { OwnFile } from "../../src/config/OwnFile.ts"
import { EventLoop } from "../../src/core/event-actor/EventLoop.ts"
import { EventLog } from "../../src/core/event-log/EventLog.ts"
import * as Api from "../../src/api/http/Api.ts"
import * as Spool from "../../src/api/http/Spool.ts"
import * as ControlHandlers from "../../src/api/rpc/ControlHandlers.ts"
import { DaemonControl } from "../../src/api/rpc/DaemonControl.ts"
import { Control } from "../../src/api/rpc/Protocol.ts"
import { Machinery } from "../../src/runs/keeper/Keeper.ts"
import { Notify } from "../../src/systemd/Notify.ts"
import type { Disk } from "./world/Disk.ts"
import type { Files } from "./world/Files.ts"
import { groundsOf } from "./world/Grounds.ts"
import type { Models } from "./world/Models.ts"
import type { Mail } from "./world/Mail.ts"
import type { Processes } from "./world/Processes.ts"
import { type Programs, STORE } from "./world/Programs.ts"
import type { Request, Sessions } from "./world/Sessions.ts"
import type { Workshop } from "./world/Workshop.ts"
import type { Life } from "./Universe.ts"

export type Client = RpcClient.FromGroup<typeof Control>

/** A daemon that has recovered, as a person reaches it. */
export interface Up {
  readonly client: Client
  readonly log: EventLog["Service"]
}

export interface World {
  readonly disk: Disk
  readonly files: Files
  readonly processes: Processes
  /** Undefined in a world where backends are played. */
  readonly programs: Programs | undefined
  /** Undefined in a world without models. */
  readonly models: Models | undefined
  readonly mail: Mail
  /** Undefined in a world without goals. */
  readonly workshop: Workshop | undefined
  /** Undefined in a world where nobody has sessions of their own. */
  readonly sessions: Sessions | undefined
}

export const CONFIG = "/home/ada/shop/agentd.jsonc"
export const USER_CONFIG = "/home/ada/.config/agentd/config.jsonc"
export const caller = { by: "ada", config: CONFIG }

export const STATE = "/state"

const options: Options = {
  state: STATE,
  socket: "/run/agentd.sock",
  config: CONFIG,
  userConfig: USER_CONFIG,
  command: ["agentd"],
  environment: {}
}

/** A service that nobody may use here. */
const absent = <S extends object>(name: string): S =>
  new Proxy({} as S, {
    get: (_, field) => {
      if (typeof field === "symbol" || field === "then") return undefined
      throw new Error(`${name}.${field} is not in this world`)
    }
  })

/** Agents read and write their files by themselves. */
const noWorkspace = (folder: string) =>
  Effect.fail(new FileFailed({ reason: "Unsupported", message: `${folder} cannot be held`, remedy: "mount /proc" }))

/** A machine without git. */
const noGit = new Git.GitUnavailable({ message: "git could not be run", remedy: "install git" })
const withoutGit = Effect.provideService(Git.Git, () => Effect.fail(noGit))

/** A machine on which nobody has a process. */
const nobody: Lookup = {
  identify: (pid) => ({ pid, start: 0 }),
  isAlive: () => false,
  isAvailable: () => true,
  snapshot: Effect.succeed([]),
  programs: Effect.succeed([])
}

/** As it came through the unix socket: of a request only this is looked at. */
const requestOf = ({ body, ...request }: Request) => {
  const { headers, method, path: url } = request
  const made: Partial<HttpServerRequest.HttpServerRequest> = {
    url,
    originalUrl: url,
    method,
    headers: headers as HttpServerRequest.HttpServerRequest["headers"],
    text: Effect.succeed(body),
    stream: Stream.make(new TextEncoder().encode(body))
  }
  return made as HttpServerRequest.HttpServerRequest
}

const textOf = ({ body }: HttpServerResponse.HttpServerResponse): string =>
  body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""

/** The entrance of hooks of people's sessions: the API itself, without a socket, and the spool. */
const hooksOf = (sessions: Sessions, life: Life, status: Effect.Effect<unknown>) => [
  {
    id: "http",
    start: Effect.map(Api.make({ status: status, metrics: Effect.succeed(""), hook: () => {} }), (api) =>
      Effect.suspend(() => {
        sessions.door = {
          life,
          ask: (request, answered) =>
            life.run(
              api({ _tag: "Unix" }, () => true).pipe(
                Effect.provideService(HttpServerRequest.HttpServerRequest, requestOf(request)),
                Effect.provideService(Lookup, sessions.lookup)
              ),
              (exit) => {
                if (exit._tag === "Success") answered(exit.value.status, textOf(exit.value))
                else answered(500, "")
              }
            )
        }
        return Effect.never
      })
    )
  },
  service("spool", Spool.layer({ state: STATE }))
]

const quiet: Notify["Service"] = {
  starting: Effect.void,
  ready: Effect.void,
  status: () => Effect.void,
  stopping: Effect.void,
  watch: () => Effect.never
}

/** The real ones over programs and APIs that are played, or played ones. */
const backendsOf = (
  { disk, models, processes, programs }: World,
  life: Life,
  user: UserConfig
): ReturnType<Platform["backends"]> => {
  const others =
    programs === undefined
      ? Layer.succeed(Backends, { make: () => Effect.succeed(processes.backend(life)) })
      : Layer.effect(
          Backends,
          Effect.map(Backends, ({ make }) => ({ make: (config) => Effect.map(make(config), programs.noting) }))
        ).pipe(Layer.provide(Backends.layer({ store: STORE, environment: {} })))
  const all =
    models === undefined
      ? others
      : Layer.effect(
          Backends,
          Effect.map(Backends, ({ make }) => ({
            make: (config) => (config.type === "model" ? models.backend(life, config) : make(config))
          }))
        ).pipe(Layer.provide(others))
  const keepers = programs?.keepers
  const held =
    keepers === undefined
      ? Layer.empty
      : keeping({ ...options, state: disk.folder, environment: keepers.environment }, user, undefined)
  return Layer.provideMerge(all, Layer.mergeAll(Reaper.layerNone, RunSockets.layerNone)).pipe(
    Layer.provideMerge(
      keepers === undefined ? held : Layer.provide(held, Layer.succeed(Machinery, keepers.machinery(life)))
    )
  )
}

const platformOf = (world: World, life: Life, up: (daemon: Up) => void): Platform => {
  const { disk, files, processes } = world
  return {
    lock: Effect.void,
    machine: Layer.mergeAll(
      Layer.succeed(FileSystem.FileSystem, files.of(life)),
      Layer.succeed(ChildProcessSpawner.ChildProcessSpawner, absent("ChildProcessSpawner")),
      Layer.succeed(Stdio.Stdio, absent("Stdio")),
      Layer.succeed(Terminal.Terminal, absent("Terminal")),
      Layer.succeed(Notify, quiet),
      Layer.succeed(ProcessTree, processes.machine?.tree(life) ?? processes.tree),
      Layer.succeed(EventLoop, life.loop),
      Path.layer
    ),
    log: (log) => DaemonLog.layerInline({ ...log, file: disk.file }, disk.of(life)),
    backends: (user) => backendsOf(world, life, user),
    channels: Layer.empty,
    lost: Effect.never,
    edges: (control) => ({
      commands: [
        {
          id: "people",
          start: Effect.gen(function* () {
            const handlers = yield* Layer.build(
              ControlHandlers.layer.pipe(Layer.provide(Layer.succeed(DaemonControl, control)))
            )
            const client = yield* Effect.provideContext(RpcTest.makeClient(Control), handlers)
            const agents = yield* Agents
            const log = yield* EventLog
            return Effect.andThen(
              agents.recovered,
              Effect.suspend(() => {
                up({ client, log })
                return Effect.never
              })
            )
          })
        }
      ],
      hooks: world.sessions === undefined ? [] : hooksOf(world.sessions, life, control.status)
    }),
    isUnit: false,
    handOver: Effect.void,
    turnAway: () => Effect.void,
    pid: 1000 + life.number
  }
}

/** Until it is asked to end, its log fails, or it cannot go on. */
export const run = (world: World, life: Life, up: (daemon: Up) => void) =>
  Daemon.run(options, platformOf(world, life, up)).pipe(
    Effect.provideService(Mailer, world.mail.mailer),
    Effect.provideService(OwnFile, world.files.owned),
    Effect.provideService(Lookup, world.sessions?.lookup ?? nobody),
    Effect.provideService(
      Workspace.Opener,
      world.processes.machine === undefined ? noWorkspace : groundsOf(world.files)
    ),
    (daemon) =>
      world.programs === undefined ? daemon : Effect.provideService(daemon, Spawn, world.programs.spawn(life)),
    (daemon) => world.workshop?.around(life, daemon) ?? withoutGit(daemon)
  )
