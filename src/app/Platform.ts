/**
 * Platform: everything outside the daemon: the store's lock, the log's disk, files, processes, mail, systemd, and the
 * daemon's sockets. Code that uses a platform is the same on all platforms. `node` is the real machine; a simulation
 * provides its own platform.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { type Config, Duration, Effect, FileSystem, Layer, type Scope } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Access } from "../access/Access.ts"
import type { Agents } from "../projects/service/Agents.ts"
import type { AlertContext } from "../alerts/AlertContext.ts"
import type { LiveOutbox } from "../alerts/LiveOutbox.ts"
import * as Restoring from "../backup/Restoring.ts"
import { Backends } from "../runs/Backends.ts"
import { hostOf } from "../runs/Host.ts"
import * as ToolSandbox from "../runs/ToolSandbox.ts"
import * as PeerProcess from "../runs/process/PeerProcess.ts"
import { ProcessTree } from "../runs/process/ProcessTree.ts"
import { Reaper } from "../runs/process/Reaper.ts"
import { RunSockets } from "../runs/RunSockets.ts"
import * as RunWatch from "../runs/process/RunWatch.ts"
import type { Channels } from "../channels/Channels.ts"
import { portOf, type UserConfig } from "../config/Config.ts"
import type { ConfigChangeInfo } from "../domain/Messages.ts"
import * as EventLoop from "../core/event-actor/EventLoop.ts"
import { EventLog, type StorageError } from "../core/event-log/EventLog.ts"
import type { Log } from "../core/event-log/Log.ts"
import { DAEMON_STREAM } from "../core/event-log/Rune.ts"
import type { Redact } from "../core/event-log/Redact.ts"
import type { StateFolderRefused } from "../core/event-log/StateFolder.ts"
import * as StoreLock from "../core/event-log/StoreLock.ts"
import type { Goals } from "../goals/Goals.ts"
import type { Schedules } from "../schedules/Schedules.ts"
import { storageError } from "../core/event-log/StorageFailure.ts"
import * as Keeper from "../runs/keeper/Keeper.ts"
import type * as ListenerStatus from "../api/http/ListenerStatus.ts"
import type { HttpRoutes } from "../api/http/HttpRoutes.ts"
import * as Server from "../api/http/Server.ts"
import { collectorOf } from "../telemetry/Collector.ts"
import * as Telemetry from "../telemetry/Telemetry.ts"
import * as Tracing from "../telemetry/Tracing.ts"
import * as Spool from "../api/http/Spool.ts"
import * as NotifyChannels from "../alerts/channels/Channels.ts"
import type { Plates } from "../plates/Plates.ts"
import { Look } from "../api/rpc/CallerIdentity.ts"
import * as ControlServer from "../api/rpc/ControlServer.ts"
import { DaemonControl } from "../api/rpc/DaemonControl.ts"
import * as Endpoint from "../api/rpc/Endpoint.ts"
import { InheritedSocket, type Why } from "../api/rpc/InheritedSocket.ts"
import * as RunServer from "../api/rpc/RunServer.ts"
import * as Verbs from "../api/rpc/Verbs.ts"
import { ourselves } from "../api/rpc/Version.ts"
import type { ChildSpec } from "../core/supervision/Child.ts"
import * as Activation from "../systemd/Activation.ts"
import { Notify } from "../systemd/Notify.ts"
import { ownUnit, scopeOf } from "../systemd/CurrentUnit.ts"
import * as DaemonLog from "./DaemonLog.ts"
import * as OtherHosts from "./OtherHosts.ts"
import * as UserFile from "../config/UserFile.ts"
import * as StatusLine from "./StatusLine.ts"

export interface Options {
  /** Absolute path of the state directory. */
  readonly state: string
  readonly socket: string
  /** Config file of the project to register at the start. */
  readonly config?: string
  /** Asks the user to agree to a change of the project's config file; undefined if there is no user to ask. */
  readonly agrees?: (change: ConfigChangeInfo) => Effect.Effect<boolean>
  /** Path of the user's own config file; the file need not exist. */
  readonly userConfig: string
  /** The command that starts this program, also used to start `agentd mcp` for runs. */
  readonly command: readonly [string, ...ReadonlyArray<string>]
  /** The daemon's own environment, which agents inherit. */
  readonly environment: { readonly [name: string]: string | undefined }
  /** Sockets on which systemd listens, by their names. */
  readonly handed?: Activation.Handed
}

/** The services that the daemon's children use. */
export type Needs =
  | Access
  | Agents
  | AlertContext
  | Channels
  | EventLog
  | FileSystem.FileSystem
  | Goals
  | ListenerStatus.ListenerStatus
  | LiveOutbox
  | Notify
  | Plates
  | Redact
  | RunSockets
  | Schedules

/** Children of the daemon's root that serve requests from outside the daemon. */
export interface Edges {
  /** Children that are started first, because they answer while the log is still being read. */
  readonly commands: ReadonlyArray<ChildSpec<Needs>>
  /** Servers for hooks. They are started when the board can process hooks. */
  readonly hooks: ReadonlyArray<ChildSpec<Needs>>
}

export type Machine = Layer.Success<typeof NodeServices.layer> | EventLoop.EventLoop | Notify | ProcessTree

/** Grace period for an agent's process after its daemon has ended. */
export const ORPHAN_GRACE = "5 seconds"

export interface Platform {
  /** Acquires the store's lock until the scope closes. Only one daemon can have the lock. */
  readonly lock: Effect.Effect<void, StoreLock.StoreInUse | StorageError | StateFolderRefused, Scope.Scope>
  readonly machine: Layer.Layer<Machine, Config.ConfigError>
  readonly log: (options: DaemonLog.Options) => Layer.Layer<EventLog | Log, StorageError, Redact>
  readonly backends: (
    user: UserConfig
  ) => Layer.Layer<Backends | Reaper | RunSockets, never, ProcessTree | FileSystem.FileSystem>
  /** All notification channels except mail. */
  readonly channels: Layer.Layer<never, never, Redact>
  readonly edges: (daemon: DaemonControl["Service"], user: UserConfig) => Edges
  /** Completes with an error when the store is no longer at its path. */
  readonly lost: Effect.Effect<StorageError>
  readonly pid: number
  /** True if a service manager stops the daemon and can start it again. Runs then continue for the next daemon. */
  readonly isUnit: boolean
  /** Prepares the daemon's end before another daemon starts: new connections are left to the next daemon. */
  readonly handOver: Effect.Effect<void>
  /** Called when the daemon cannot start: tells waiting clients the reason, and disconnects them. */
  readonly turnAway: (why: Why) => Effect.Effect<void>
}

/** A supervised child that runs a layer until the child is stopped. */
export const service = <E, R>(id: string, layer: Layer.Layer<never, E, R>): ChildSpec<R> => ({
  id,
  start: Effect.as(Layer.build(layer), Effect.never)
})

/** Records in the log that another program has the port, so that a user can find this out later. */
const noting =
  (log: EventLog["Service"]) =>
  ({ foreign, port, uid }: Server.Taken): Effect.Effect<void> =>
    log
      .append([{ stream: DAEMON_STREAM, kind: "http.port_taken", actor: "daemon", payload: { port, uid, foreign } }])
      .pipe(
        Effect.asVoid,
        Effect.catchCause((cause) => Effect.logWarning("a port that is taken could not be recorded", cause))
      )

/** The HTTP interface for pages and programs. The page's files are in a folder next to the program. */
const doorsOf = (options: Options) =>
  Effect.gen(function* () {
    const {
      command: [, program = ""],
      state
    } = options
    const folder = dirname(program)
    return {
      access: yield* Access,
      // a call that a run makes counts as a call of its agent, as on the socket
      verbs: yield* Effect.provideService(Verbs.make, Look, PeerProcess.make(PeerProcess.storeId(state))),
      versions: ourselves,
      others: yield* OtherHosts.make(options),
      page: { fs: yield* FileSystem.FileSystem, folders: [join(folder, "web"), join(folder, "../dist/web")] }
    } satisfies HttpRoutes
  })

/**
 * Port offset for a daemon whose sockets are in its state directory, so that two daemons of one user get different
 * ports. 0 for the user's default daemon.
 */
const worldNumber = (state: string, socket: string): number =>
  dirname(socket) === state ? Number.parseInt(PeerProcess.storeId(state).slice(0, 8), 16) : 0

const httpOf = (
  options: Options,
  ports: ReadonlyArray<Server.GivenPort>,
  control: DaemonControl["Service"],
  { http, telemetry }: UserConfig
) => {
  const { environment, socket, state } = options
  const uid = process.getuid?.() ?? 0
  return Layer.unwrap(
    Effect.map(Effect.all([Telemetry.Telemetry, EventLog, doorsOf(options)]), ([{ hook, text }, log, doors]) =>
      Server.layer({
        state,
        socket: join(dirname(socket), "http.sock"),
        claim: Endpoint.claim,
        port: portOf(http, uid),
        spare:
          http.enabled === false ? undefined : portOf({ ...http, enabled: true }, uid + worldNumber(state, socket)),
        names: http.names,
        given: ports,
        doors,
        about: { status: control.status, metrics: Effect.flatMap(control.tree, text), hook },
        taken: noting(log)
      })
    )
  ).pipe(
    Layer.provide(Telemetry.layer({ collector: collectorOf(environment, telemetry.otlp), tree: control.tree })),
    Layer.provide(Layer.succeed(DaemonControl, control))
  )
}

/** The control socket that systemd has passed to the daemon; undefined if systemd does not listen on it. */
const givenOf = ({ handed, socket }: Options): InheritedSocket | undefined => {
  const descriptor = handed?.get(Activation.CONTROL)?.find((one) => Activation.pathOf(one) === socket)
  return descriptor === undefined ? undefined : new InheritedSocket(socket, descriptor)
}

type GivenPort = Server.GivenPort & { readonly socket: InheritedSocket }

/** The web page's ports on which systemd listens. */
const givenPorts = ({ handed }: Options): ReadonlyArray<GivenPort> =>
  (handed?.get(Activation.PAGE) ?? []).flatMap((descriptor) => {
    const at = Activation.portOf(descriptor)
    if (at === undefined) return []
    const socket = new InheritedSocket(`${at.host}:${at.port}`, descriptor, { allowHalfOpen: true })
    return [{ ...at, socket }]
  })

const partingOf = (
  given: InheritedSocket | undefined,
  ports: ReadonlyArray<GivenPort>
): Pick<Platform, "handOver" | "turnAway"> => ({
  handOver: Effect.andThen(
    Effect.forEach(ports, ({ socket }) => socket.leave),
    given?.handOver ?? Effect.void
  ),
  turnAway: given?.turnAway ?? (() => Effect.void)
})

/** Fails if a daemon already answers at the socket. */
const alone = (state: string, socket: string): Effect.Effect<void, StoreLock.StoreInUse> =>
  Effect.flatMap(Endpoint.probe(socket), (found) =>
    found === "live" ? Effect.fail(StoreLock.inUse(state, StoreLock.seen(state))) : Effect.void
  )

const mended = (state: string): Effect.Effect<void, StorageError> =>
  Effect.flatMap(
    Effect.try({ try: () => Restoring.undo(state), catch: (cause) => storageError(state, cause) }),
    (wasTorn) =>
      wasTorn
        ? Effect.logWarning("an interrupted restore of the store was undone: the store is as it was before")
        : Effect.void
  )

const bytesIn = (text: string | undefined) => (text === undefined ? undefined : Number(text))

/** The keeper, which keeps runs alive without the daemon; none if runs must end with the daemon. */
export const keeping = (
  { environment, state }: Options,
  { orphanGrace }: UserConfig,
  via: Keeper.KeeperOptions["via"]
) =>
  Duration.isZero(orphanGrace)
    ? Layer.empty
    : Keeper.layer({
        folder: join(state, "keeper"),
        lease: orphanGrace,
        path: environment["PATH"] ?? PATHS,
        bound: bytesIn(environment["AGENTD_KEEPER_BOUND"]),
        segment: bytesIn(environment["AGENTD_KEEPER_SEGMENT"]),
        via: via === undefined ? undefined : (name) => via(`keeper-${name}`)
      })

/** Default for PATH if the environment has none. */
const PATHS = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin"

/** The cgroups of this process; empty if the system has no cgroups. */
const cgroups = (): string => (existsSync("/proc/self/cgroup") ? readFileSync("/proc/self/cgroup", "utf8") : "")

const ownMail = (place: UserFile.Place) =>
  UserFile.inForce(place).pipe(
    Effect.provide(NodeFileSystem.layer),
    Effect.map(({ mail }) => mail),
    Effect.catch((error) => Effect.as(Effect.logWarning(`no mail from the user's config: ${error.message}`), undefined))
  )

export const node = (options: Options): Platform => {
  const { environment, socket, state } = options
  const store = PeerProcess.storeId(state)
  const unit = ownUnit(environment, cgroups(), process.pid)
  const via = unit === undefined ? undefined : (name: string) => scopeOf(unit, environment, name)
  const host = { ...hostOf({ store, environment, state, socket }), command: options.command, via }
  const [given, ports] = [givenOf(options), givenPorts(options)]
  return {
    lock: Effect.andThen(
      // if systemd listens, the socket always exists, so only the lock shows whether a daemon runs
      Effect.andThen(
        given === undefined ? alone(state, socket) : Effect.void,
        StoreLock.acquire({ folder: state, socket })
      ),
      mended(state)
    ),
    machine: Layer.mergeAll(ProcessTree.layer, Notify.layer, EventLoop.layer).pipe(
      Layer.provideMerge(NodeServices.layer)
    ),
    log: DaemonLog.layer,
    backends: (user) =>
      Backends.layer(host).pipe(
        Layer.provideMerge(
          Layer.mergeAll(Reaper.layer({ store, grace: ORPHAN_GRACE }), RunSockets.layer(host.sockets))
        ),
        Layer.provideMerge(keeping(options, user, via)),
        Layer.provideMerge(RunWatch.layer({ store, homes: host.homes })),
        Layer.provideMerge(ToolSandbox.layer({ environment, hidden: [state] }))
      ),
    channels: NotifyChannels.layer({ ...options, mail: ownMail(options) }).pipe(Layer.provide(NodeServices.layer)),
    edges: (control, user) => ({
      commands: [
        service(
          "control",
          Layer.unwrap(
            Effect.map(Tracing.to(collectorOf(environment, user.telemetry.otlp)), (tracing) =>
              ControlServer.layer({ socket, store, tracing, given })
            )
          ).pipe(Layer.provide(Layer.succeed(DaemonControl, control)))
        ),
        service("runs' sockets", Layer.provide(RunServer.layer, Layer.succeed(DaemonControl, control)))
      ],
      hooks: [
        service("http", httpOf(options, ports, control, user)),
        service("spool", Spool.layer({ state })),
        ...(environment["NOTIFY_SOCKET"] === undefined
          ? []
          : [
              {
                id: "status line",
                start: Effect.succeed(Effect.provideService(StatusLine.follow, DaemonControl, control))
              }
            ])
      ]
    }),
    lost: StoreLock.lost(state),
    isUnit: unit !== undefined,
    ...partingOf(given, ports),
    pid: process.pid
  }
}
