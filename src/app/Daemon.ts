/**
 * Daemon: builds and runs every layer of agentd, in start order. Read this first.
 *
 *     lock ─ log ─ processes ─ agents ─┬─ control socket   answers while the streams are still being read
 *                                     ├─ runs' sockets    serve the API of runs
 *                                     ├─ conversations    agents, with a supervision tree per project
 *                                     ├─ alerter          reads the log, mails the user
 *                                     └─ notifier         tells systemd
 *
 * Guarantees: one daemon per store. Processes that an earlier daemon left running, except those of the keeper, are
 * ended before any agent starts. If the log fails, the daemon exits with 74. A stop of the daemon is not an
 * OperatorStop: agents that ran start again with the next daemon.
 */
import { dirname, join } from "node:path"
import {
  Cause,
  Clock,
  Context,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  type FileSystem,
  Layer,
  Ref,
  Schema,
  Stream
} from "effect"
import * as Channels from "../channels/Channels.ts"
import * as ActorSystem from "../core/event-actor/ActorSystem.ts"
import * as DeadLetters from "../core/event-actor/DeadLetters.ts"
import { Log } from "../core/event-log/Log.ts"
import * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import * as Supervisor from "../core/supervision/Supervisor.ts"
import { StartFailed } from "../core/supervision/SupervisorError.ts"
import { Agents } from "../projects/service/Agents.ts"
import * as Access from "../access/Access.ts"
import * as AgentCommands from "../projects/service/AgentCommands.ts"
import * as AgentdMcpServer from "../agents/run/AgentdMcpServer.ts"
import * as WorkingFolder from "../agents/workplace/WorkingFolder.ts"
import * as ClaudeSessions from "../runs/claude/ClaudeSessions.ts"
import * as CopilotSessions from "../plates/CopilotSessions.ts"
import { type Host, hostOf } from "../runs/Host.ts"
import * as OrphanRuns from "../runs/OrphanRuns.ts"
import type { RunSockets } from "../runs/RunSockets.ts"
import { LearnedSecrets } from "../runs/LearnedSecrets.ts"
import { ProcessTree } from "../runs/process/ProcessTree.ts"
import * as ListenerStatus from "../api/http/ListenerStatus.ts"
import * as ConfinedCommand from "../runs/ConfinedCommand.ts"
import { Reaper } from "../runs/process/Reaper.ts"
import { Keeper } from "../runs/keeper/Keeper.ts"
import * as Goals from "../goals/Goals.ts"
import * as Plates from "../plates/Plates.ts"
import * as Budgets from "../budgets/Budgets.ts"
import * as Providers from "../providers/Providers.ts"
import * as Schedules from "../schedules/Schedules.ts"
import { UserPrices } from "../domain/Prices.ts"
import type { UserConfig } from "../config/Config.ts"
import * as ProjectName from "../config/ProjectName.ts"
import { LiveOutbox } from "../alerts/LiveOutbox.ts"
import * as Alerter from "../alerts/Alerter.ts"
import * as PromptRetention from "./PromptRetention.ts"
import * as DaemonInfo from "./DaemonInfo.ts"
import { UserApprovals } from "../domain/UserApprovals.ts"
import * as OwnConfig from "./OwnConfig.ts"
import * as UserFile from "../config/UserFile.ts"
import * as Platform from "./Platform.ts"
import { storeId } from "../runs/process/PeerProcess.ts"
import type { Options } from "./Platform.ts"
import { DAEMON_STREAM, type Payload } from "../core/event-log/Rune.ts"
import * as ProjectAlerts from "./ProjectAlerts.ts"
import * as LogScrubber from "./LogScrubber.ts"
import * as LogSealer from "./LogSealer.ts"
import * as WatchdogCheck from "./WatchdogCheck.ts"
import { Redact } from "../core/event-log/Redact.ts"
import { secretsIn } from "../core/event-log/SecretValues.ts"
import { storeBytes } from "../core/event-log/SegmentFile.ts"
import { EventLog } from "../core/event-log/EventLog.ts"
import { folds } from "./FeatureFolds.ts"
import { Notify } from "../systemd/Notify.ts"
import { VERSION } from "../api/rpc/Version.ts"

/** The daemon could not start, or ended without a request. */
export class DaemonError extends Schema.TaggedError<DaemonError>()("DaemonError", {
  message: Schema.String,
  remedy: Schema.String,
  /**
   * Exit code. 74: the log cannot be used. 75: another daemon has the store. 78: a path cannot be used. 70: any other
   * error.
   */
  exitCode: Schema.Int
}) {}

/** Ends the processes that an earlier daemon left running, except those of the keeper. */
const sweep = (host: Host): Effect.Effect<void, never, FileSystem.FileSystem | ProcessTree | RunSockets> =>
  Effect.gen(function* () {
    const tree = yield* ProcessTree
    const { store } = host
    const held = yield* OrphanRuns.held
    yield* OrphanRuns.clear(host, held)
    const orphans = yield* tree.orphans(store, held)
    yield* Effect.forEach(
      orphans,
      ({ runId }) => Effect.ignore(tree.terminate({ store, runId }, Platform.ORPHAN_GRACE)),
      {
        concurrency: "unbounded",
        discard: true
      }
    )
    if (orphans.length > 0)
      yield* Effect.logWarning(`ended the processes that ${orphans.length} runs of an earlier daemon left`)
  })

interface Supervisors {
  readonly channels: DynamicSupervisor.DynamicSupervisor
  readonly conversations: DynamicSupervisor.DynamicSupervisor
  readonly plans: DynamicSupervisor.DynamicSupervisor
  readonly plates: DynamicSupervisor.DynamicSupervisor
  readonly providers: DynamicSupervisor.DynamicSupervisor
  readonly schedules: DynamicSupervisor.DynamicSupervisor
}

const supervisorOf = (name: string) =>
  DynamicSupervisor.make({ name, strategy: "one_for_one", intensity: 10, period: "30 seconds" })

const makeSupervisors = (): Supervisors => ({
  channels: supervisorOf("channels"),
  conversations: supervisorOf("conversations"),
  plans: supervisorOf("plans"),
  plates: supervisorOf("plates"),
  providers: supervisorOf("providers"),
  schedules: supervisorOf("schedules")
})

/** The service for sessions that are not runs of agentd's agents (plates). */
const platesBeside = (options: Omit<Plates.Options, "sessions">) =>
  Layer.unwrap(Effect.map(Agents, ({ sessions }) => Plates.layer({ ...options, sessions })))

/**
 * The state directory if it contains the sockets, because commands in hints then need `--state`; null for the default
 * directory.
 */
const worldOf = ({ socket, state }: Options): string | null => (dirname(socket) === state ? state : null)

const goalsOf = (options: Options, store: string, supervisor: DynamicSupervisor.DynamicSupervisor) =>
  Layer.unwrap(
    Effect.map(Agents, (agents) =>
      Goals.layer({
        supervisor,
        store,
        environment: options.environment,
        scratch: join(options.state, "goals"),
        stores: join(options.state, "store"),
        projects: {
          ofCaller: (caller) => Effect.map(agents.conversation("", caller), ({ conversation }) => conversation),
          config: agents.configOf
        }
      })
    )
  )

const schedulesOf = (supervisor: DynamicSupervisor.DynamicSupervisor) =>
  Layer.unwrap(
    Effect.map(Effect.all([Agents, Goals.Goals]), ([agents, goals]) =>
      Schedules.layer({
        supervisor,
        goals: {
          submit: (config, { text, ...goal }, { by, key }) =>
            goals.submit({ ...goal, goal: text, plan: null }, { by, config }, key),
          // a conversation that cannot be recovered accepts no goals, so an error here can be ignored
          recovered: Effect.ignore(goals.recovered),
          isOpen: goals.isOpen
        },
        files: Stream.map(agents.configs, ({ config, conversation }) => ({ conversation, file: config })),
        fileOf: agents.configOf,
        ofCaller: (caller) => Effect.map(agents.conversation("", caller), ({ conversation }) => conversation)
      })
    )
  )

/** Configures the channels of all projects, and again whenever a project's config changes. */
const configureChannels = Effect.gen(function* () {
  const agents = yield* Agents
  const channels = yield* Channels.Channels
  return yield* Stream.runForEach(agents.configs, ({ config, conversation }) =>
    channels.configure({ conversation, project: config.name, config: config.path }, config.channels)
  )
})

const actors = Layer.unwrap(Effect.map(Log, (log) => ActorSystem.layer({ log })))

const services = (
  options: Options,
  platform: Platform.Platform,
  machine: Layer.Layer<Platform.Machine>,
  user: UserConfig,
  { channels, conversations, plans, plates, providers, schedules }: Supervisors
) => {
  const store = storeId(options.state)
  const worktrees = WorkingFolder.worktreesIn(options.state)
  return Layer.mergeAll(
    ProjectAlerts.layer(UserFile.inForce(options), worldOf(options)),
    LiveOutbox.layer,
    Access.layer,
    ListenerStatus.layer,
    schedulesOf(schedules)
  ).pipe(
    Layer.provideMerge(Layer.mergeAll(goalsOf(options, store, plans), Channels.layer({ supervisor: channels }))),
    Layer.provideMerge(
      platesBeside({
        supervisor: plates,
        permissionTimeout: user.approvals.timeout,
        claudeFolder: ClaudeSessions.configOf(options.environment),
        home: options.environment["HOME"],
        copilotFolder: CopilotSessions.configOf(options.environment)
      })
    ),
    Layer.provideMerge(
      Layer.unwrap(
        Effect.map(Effect.context<FileSystem.FileSystem | ProcessTree | Reaper | RunSockets>(), (context) =>
          AgentCommands.layer({
            worktrees,
            stores: join(options.state, "store"),
            commands: {
              environment: options.environment,
              run: (of) => Effect.provideContext(ConfinedCommand.run({ ...of, store }), context)
            },
            waiting: join(options.state, "waiting"),
            files: join(options.state, "files"),
            configs: join(options.state, "configs"),
            supervisor: conversations,
            sweep: Effect.provideContext(sweep(hostOf({ ...options, store })), context),
            mcp: AgentdMcpServer.given(options),
            project: options.config
          })
        )
      )
    ),
    Layer.provideMerge(
      Layer.merge(Providers.layer({ supervisor: providers }), Budgets.layer({ machine: user.budget }))
    ),
    Layer.provideMerge(Layer.succeed(UserPrices, user.prices)),
    Layer.provideMerge(actors),
    Layer.provideMerge(DeadLetters.layer()),
    Layer.provideMerge(platform.backends(user)),
    Layer.provideMerge(
      Layer.effect(
        LearnedSecrets,
        Effect.map(Redact, ({ register }) => register)
      )
    ),
    Layer.provideMerge(platform.channels),
    Layer.provideMerge(platform.log({ file: join(options.state, "runes.db"), folds })),
    Layer.provideMerge(Redact.layer),
    Layer.provideMerge(machine)
  )
}

/** The longest time that any config keeps prompts before they are erased; undefined if no config erases prompts. */
const keptAtMost = Effect.fnUntraced(function* (usual: Duration.Duration | undefined) {
  const agents = yield* Agents
  const configs = yield* Effect.forEach(yield* agents.projects, ({ conversation }) => agents.configOf(conversation))
  const all = [usual, ...configs.map((config) => config?.keepPrompts)].filter((kept) => kept !== undefined)
  return all.length === 0 ? undefined : all.reduce(Duration.max)
})

const sealingOf = (state: string, user: UserConfig) =>
  LogSealer.run({
    prompts: keptAtMost(user.keepPrompts),
    log: user.keepLog,
    storeBytes: () => storeBytes(join(state, "runes.db"))
  })

const chores = (state: string, user: UserConfig) => [
  { id: "expiry", start: Effect.succeed(PromptRetention.run(user.keepPrompts)) },
  { id: "sealing", start: Effect.succeed(sealingOf(state, user)) },
  { id: "scrubbing", start: Effect.succeed(LogScrubber.run(user.verifyLog)) }
]

const note = (kind: string, payload: Payload) =>
  Effect.flatMap(EventLog, (log) => log.append([{ stream: DAEMON_STREAM, kind, actor: "daemon", payload }]))

/**
 * Whether the daemon is healthy, decided by comparing the current observation with the previous one (WatchdogCheck).
 */
const alive = Effect.gen(function* () {
  const agents = yield* Agents
  const log = yield* EventLog
  const { status } = yield* Notify
  const last = yield* Ref.make<WatchdogCheck.Look | undefined>(undefined)
  return Effect.gen(function* () {
    const { read, runes, streams } = yield* log.reading
    const isReady = yield* agents.ready
    const now = { isReady, read: runes, assigned: yield* log.assigned, durable: yield* log.head }
    if (!isReady) yield* status(`reading its log: ${read} of ${streams} streams, ${runes} runes`)
    return WatchdogCheck.isWell(yield* Ref.getAndSet(last, now), now)
  })
})

/**
 * Registers the project for which the daemon is started. If the project is new and its file is invalid, the daemon
 * reports the error and ends. If the project is already in the log, or its stream cannot be read, an error in its file
 * does not end the daemon. So a daemon that is restarted while somebody edits the file can start again.
 */
const takeUp = Effect.fnUntraced(function* (config: string, agrees: Options["agrees"], done: Effect.Effect<unknown>) {
  const agents = yield* Agents
  const log = yield* EventLog
  const caller = { by: "agentd up", config }
  const taken = Effect.gen(function* () {
    const { conversation, name, waits } = yield* Effect.ensuring(agents.register(config, caller, "nothing"), done)
    if (waits === undefined) return
    const change = yield* agents.configChange(conversation, caller)
    if (change.hash === null || !change.waits) return
    if (agrees !== undefined && (yield* agrees(change))) {
      return yield* Effect.asVoid(agents.register(config, caller, { hash: change.hash }))
    }
    yield* Effect.logWarning(
      `${config} has changed and waits for your approval; the last usable version stays in force. See the change: agentd trust ${name}`
    )
  })
  yield* Effect.catchTag(
    taken,
    "CommandRefused",
    Effect.fnUntraced(function* (refused) {
      const { unreadable } = yield* log.reading
      const isUnreadable = unreadable.some(({ stream }) => stream.startsWith(ProjectName.conversationId(config)))
      const isKnown = (yield* agents.projects).some((project) => project.config === config)
      if (!isUnreadable && !isKnown) return yield* refused
      yield* Effect.logError(`${config} is not registered: ${refused.message}`)
    })
  )
})

/** Ends runs that an earlier daemon left behind and that belong to no agent. */
const endUnwanted = Effect.fnUntraced(function* (store: string) {
  const agents = yield* Agents
  const end = Effect.flatMap(agents.all, (rows) =>
    OrphanRuns.end(store, new Set(rows.flatMap(({ runId }) => runId ?? [])))
  )
  yield* agents.recovered
  yield* end
  yield* (yield* Keeper).settled.open
  // a run that its worker could not take over within this time belongs to no agent
  yield* Effect.sleep("1 minute")
  yield* end
})

/**
 * Decides what happens to runs when the daemon ends. A daemon that fails leaves its runs to the next daemon. So does a
 * daemon that systemd ends, because systemd might start it again; this is logged, because nobody has asked to end the
 * runs.
 */
const leaving =
  (keeper: Keeper, { handOver, isUnit }: Platform.Platform, lease: Duration.Duration) =>
  <E>(exit: Exit.Exit<void, E>) => {
    if (Exit.isSuccess(exit)) return Effect.void
    const left = Effect.andThen(keeper.leave, handOver)
    if (!Cause.hasInterruptsOnly(exit.cause)) return left
    if (!isUnit) return handOver
    return Effect.andThen(
      left,
      Effect.logInfo(
        `ended by systemd: runs are left to the next daemon for ${Duration.format(lease)}, then ended. To end daemon and runs: agentd stop --daemon`
      )
    )
  }

const crashing = ({ child, reason }: { readonly child: string | undefined; readonly reason: string }) =>
  new DaemonError({
    message: `Parts of the daemon crash repeatedly: ${child ?? "agentd"} (${reason}).`,
    remedy: "See its log for the crashes, report them, and start it again: agentd start",
    exitCode: 70
  })

const live = Effect.fnUntraced(function* (options: Options, platform: Platform.Platform) {
  const { pid } = platform
  const startedAt = yield* Clock.currentTimeMillis
  yield* platform.lock
  const supervisors = makeSupervisors()
  const machine = yield* Layer.build(platform.machine)
  const starting = yield* Effect.forkScoped(Context.get(machine, Notify).starting)
  const { config: user, follow, ...own } = yield* Effect.provideContext(OwnConfig.make(options), machine)
  const ground = Layer.succeedContext(Context.add(machine, UserApprovals, own.userApprovals))
  const context = yield* Layer.build(services(options, platform, ground, user, supervisors))
  const keeper = Context.get(context, Keeper)
  return yield* Effect.gen(function* () {
    yield* (yield* Redact).register(secretsIn(options.environment))
    const log = yield* EventLog
    const agents = yield* Agents
    const notify = yield* Notify
    // commands are answered while this rune is written to disk, because later runes become durable after it
    const noted = yield* Effect.forkScoped(
      note("daemon.started", { pid, version: VERSION, state: options.state, socket: options.socket }),
      { startImmediately: true }
    )
    yield* Effect.addFinalizer(() => Effect.ignore(note("daemon.stopped", { pid })))
    const asked = yield* Deferred.make<DaemonInfo.Asked>()
    const taken = yield* Deferred.make<void>()
    let top: Pick<Supervisor.Supervisor, "inspect"> | undefined = undefined
    const facts = { ...options, ownConfig: own.ownConfig, pid, version: VERSION, startedAt }
    const info = yield* DaemonInfo.make({ ...facts, asked, taken, root: () => top })
    const { commands, hooks } = platform.edges(info, user)
    const root = yield* Supervisor.make<Platform.Needs>({
      name: "agentd",
      intensity: 10,
      period: "30 seconds",
      children: [
        ...commands,
        supervisors.plates.child,
        supervisors.providers.child,
        ...hooks,
        supervisors.conversations.child,
        supervisors.channels.child,
        { id: "channels' config", start: Effect.succeed(configureChannels) },
        supervisors.plans.child,
        supervisors.schedules.child,
        { id: "own config", start: Effect.succeed(follow) },
        ...chores(options.state, user),
        { id: "alerter", start: Effect.succeed(Alerter.run()) },
        { id: "notifier", start: Effect.succeed(notify.watch(yield* alive)) }
      ]
    })
    top = root
    yield* Fiber.join(noted)
    const done = Deferred.succeed(taken, undefined)
    yield* options.config === undefined ? done : takeUp(options.config, options.agrees, done)
    yield* Fiber.interrupt(starting)
    yield* notify.ready
    yield* Effect.forkScoped(endUnwanted(storeId(options.state)))
    const { keep, reason } = yield* Effect.raceAllFirst([
      Deferred.await(asked),
      Effect.flatMap(log.failed, Effect.fail),
      Effect.flatMap(platform.lost, Effect.fail),
      Effect.andThen(agents.recovered, Effect.never),
      Effect.flatMap(root.ended, crashing)
    ])
    if (keep) yield* Effect.andThen(keeper.leave, platform.handOver)
    yield* Effect.andThen(notify.stopping, note("daemon.stopping", { reason, ...(keep ? { keep } : {}) }))
  }).pipe(
    Effect.onExit(leaving(keeper, platform, user.orphanGrace)),
    Effect.onError(() => platform.handOver),
    Effect.provideContext(context)
  )
})

/** Exit code of errors that a restart does not fix. */
const WRONG = 78

const exitCodes: { readonly [tag: string]: number } = {
  StorageError: 74,
  StoreInUse: 75,
  StateFolderRefused: 78,
  EndpointRefused: 78,
  HttpRefused: 78,
  TokenError: 78,
  ConfigError: 78,
  CommandRefused: 78
}

interface Explained {
  readonly _tag: string
  readonly message: string
  readonly remedy?: string
  readonly cause?: unknown
}

/**
 * The error to show. If a part failed to start, the cause of that failure is shown instead, because the user needs to
 * know it.
 */
const explain = (error: Explained): DaemonError => {
  if (error instanceof DaemonError) return error
  if (error instanceof StartFailed && isExplained(error.cause)) return explain(error.cause)
  return new DaemonError({
    message: error.message,
    remedy: error.remedy ?? "See the daemon's log for the cause, then start it again: agentd start",
    exitCode: exitCodes[error._tag] ?? 70
  })
}

const isExplained = (cause: unknown): cause is Explained =>
  typeof cause === "object" && cause !== null && "_tag" in cause && "message" in cause

/** Runs the daemon until it is asked to end, or fails. */
export const run = (
  options: Options,
  platform: Platform.Platform = Platform.node(options)
): Effect.Effect<void, DaemonError> =>
  live(options, platform).pipe(
    Effect.scoped,
    // do this last, because an open listener keeps the process alive
    Effect.ensuring(platform.handOver),
    Effect.mapError(explain),
    Effect.tapError((error) => (error.exitCode === WRONG ? platform.turnAway(error) : Effect.void))
  )
