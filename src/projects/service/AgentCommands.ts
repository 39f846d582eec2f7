/**
 * AgentCommands: the commands with which users, agents and programs control agents by name, and the layer that starts
 * the agents.
 *
 * Guarantees: Commands wait until the log has been read. A name is resolved when the command runs. An error lists the
 * existing names.
 */
import { dirname } from "node:path"
import { Clock, Context, Deferred, Effect, Layer, Schedule, Semaphore, Stream } from "effect"
import type { ProcessTree } from "../../runs/process/ProcessTree.ts"
import { AgentPort } from "../../domain/AgentPort.ts"
import { UserApprovals } from "../../domain/UserApprovals.ts"
import { Conversations } from "../../domain/Conversations.ts"
import { type Caller, CommandRefused, type Done, refuse, refusedBy } from "../../domain/Messages.ts"
import { EventLog, type StorageError } from "../../core/event-log/EventLog.ts"
import type * as DynamicSupervisor from "../../core/supervision/DynamicSupervisor.ts"
import * as AgentChoice from "../../agents/actors/AgentChoice.ts"
import * as Backlog from "./Backlog.ts"
import * as Inbox from "../../agents/machines/Inbox.ts"
import { QUEUED } from "../../agents/run/AgentView.ts"
import { AgentsEnvironment } from "../AgentsEnvironment.ts"
import { sizeInWords } from "../../runs/FileDescription.ts"
import { MAX_MESSAGE } from "../../runs/AttachedFile.ts"
import { TreePorts } from "../../agents/workplace/TreePorts.ts"
import type { Runner } from "../../runs/ConfinedCommand.ts"
import * as MessageFiles from "../../agents/prompt/MessageFiles.ts"
import * as RetainedFiles from "./RetainedFiles.ts"
import * as WaitingInputs from "../../agents/run/WaitingInputs.ts"
import { Bus, layer as busLayer } from "./Bus.ts"
import * as ConversationCommands from "../ConversationCommands.ts"
import * as NameLookup from "./NameLookup.ts"
import { Agents } from "./Agents.ts"
import { Projects } from "../Projects.ts"
import type { Project } from "../Project.ts"
import * as Expiry from "../Expiry.ts"
import { openSince } from "./OldestOpenWork.ts"
import * as AgentApi from "./AgentApi.ts"
import * as LiveAgentPort from "./LiveAgentPort.ts"
import * as LiveConversations from "../LiveConversations.ts"
import { type ProjectRecord, recoverEach } from "../Recovery.ts"
import * as NotLiving from "../NotLiving.ts"
import * as TurnMachine from "../../agents/machines/TurnMachine.ts"

export type Ready = Deferred.Deferred<void, StorageError>

/** Waits until the log has been read, finds the named object, and applies `act` to it. */
const onFound = <F extends object, A, E>(
  ready: Ready,
  find: () => F | CommandRefused,
  act: (found: F) => Effect.Effect<A, E>
): Effect.Effect<A, E | CommandRefused | StorageError> =>
  Effect.andThen(
    Deferred.await(ready),
    Effect.suspend((): Effect.Effect<A, E | CommandRefused> => {
      const found = find()
      return found instanceof CommandRefused ? Effect.fail(found) : act(found)
    })
  )

/** Converts a StorageError to an error that callers of queries handle. */
const spoken = <A>(effect: Effect.Effect<A, CommandRefused | StorageError>): Effect.Effect<A, CommandRefused> =>
  Effect.catchTag(effect, "StorageError", (error) => refusedBy(error))

type OnConversations =
  | "configKeep"
  | "startProject"
  | "stopProject"
  | "conversation"
  | "conversations"
  | "newConversation"
  | "pause"
  | "resume"
  | "close"
  | "archive"

const conversations = (
  projects: Projects,
  ready: Ready,
  log: EventLog["Service"]
): Pick<Agents["Service"], OnConversations> => {
  const on = <A, E>(
    name: string,
    caller: Caller,
    act: (entry: NameLookup.Entry) => Effect.Effect<A, E>,
    kind?: "project"
  ) =>
    onFound(
      ready,
      (): NameLookup.Entry | CommandRefused => NameLookup.conversation(projects.entries, name, caller, kind),
      act
    )
  const onProject = <A, E>(name: string, caller: Caller, act: (project: Project) => Effect.Effect<A, E>) =>
    on(name, caller, (entry) => Effect.flatMap(ConversationCommands.opened(entry), act), "project")
  return {
    conversations: Effect.sync(() => projects.entries.map(ConversationCommands.row)),
    conversation: (name, caller) =>
      spoken(on(name, caller, (entry) => Effect.sync(() => ConversationCommands.row(entry)))),
    newConversation: (config, caller) =>
      Effect.andThen(Deferred.await(ready), projects.newConversation(config, caller)),
    stopProject: (name, caller) => onProject(name, caller, (project) => ConversationCommands.stopAll(project, caller)),
    startProject: (name, caller) =>
      onProject(name, caller, (project) => ConversationCommands.startAll(project, caller)),
    configKeep: (name, hash, caller) =>
      onProject(name, caller, (project) => ConversationCommands.keepInForce(project, hash, caller)),
    pause: (name, options, caller) => on(name, caller, (entry) => ConversationCommands.pause(entry, options, caller)),
    resume: (name, caller) => on(name, caller, (entry) => ConversationCommands.resume(entry, caller)),
    close: (name, options, caller) =>
      on(name, caller, (entry) =>
        ConversationCommands.close(entry, options, caller, { lost: projects.closeLost, damaged: projects.giveUp })
      ),
    archive: (name, caller) => on(name, caller, (entry) => ConversationCommands.archive(entry, caller, log))
  }
}

/** Starts the agent, and reports limits that cannot be enforced. An agent that waits for a free slot remains queued. */
const inItsPlace = <E>(project: Project, agentScope: NameLookup.Found["agentScope"], begin: Effect.Effect<Done, E>) =>
  Effect.suspend(() => {
    const { registry, name } = project
    const { subAgentTree } = registry
    if (!subAgentTree.isQueued(agentScope.name)) {
      const gaps = project.gapsOf(agentScope.name, agentScope.config())
      return Effect.map(begin, (done): Done =>
        gaps.length === 0 ? done : { ...done, message: [done.message, ...gaps].join(" ") }
      )
    }
    return Effect.succeed<Done>({
      eventId: subAgentTree.begins(agentScope.name),
      message: `${name}/${agentScope.name} ${QUEUED}.`
    })
  })

/** Rejects a second restart of an agent by the same run in one turn: each restart would start the turn again. */
const mayRestart = (
  agentScope: NameLookup.Found["agentScope"],
  { by }: Caller
): Effect.Effect<void, CommandRefused> => {
  const { actors, fullName, setting } = agentScope
  // excludes the parent: it starts its sub-agents itself
  const isRun = by.startsWith("agent:") && by !== `agent:${setting.parent}`
  if (!isRun || actors.worker.state.by !== by || agentScope.life().data.stats.completed > 0) return Effect.void
  return Effect.fail(
    refuse(
      "not_allowed",
      `${fullName} was already restarted by ${by} in this turn: a run may restart an agent once in a turn.`,
      `Continue the turn, or ask a person to do it: agentd restart ${fullName}`
    )
  )
}

const again = ({ registry }: Project, agentScope: NameLookup.Found["agentScope"], caller: Caller) =>
  Effect.suspend(() => mayRestart(agentScope, caller)).pipe(
    Effect.andThen(registry.subAgentTree.stop(agentScope, caller, "restart")),
    Effect.andThen(agentScope.start(caller))
  )

/** How many messages from agents led to the caller's message, one after another; undefined for a user. */
const hopsOf = (projects: Projects, caller: Caller): number | undefined => {
  const [, name] = /^agent:(.*)$/.exec(caller.by) ?? []
  if (name === undefined) return undefined
  const found = NameLookup.agent(projects.entries, name, caller)
  return found instanceof CommandRefused ? 1 : Inbox.hopsOf(found.agentScope.inbox().data)
}

/**
 * `changes`: true if the command ends or changes the agent. Outside a project, such a command requires the full name.
 */
type OnAgent = <A, E>(
  name: string,
  caller: Caller,
  act: (found: NameLookup.Found) => Effect.Effect<A, E>,
  changes?: true
) => Effect.Effect<A, E | CommandRefused | StorageError>

const described = Effect.fnUntraced(function* (
  contents: MessageFiles.MessageFiles,
  given: ReadonlyArray<{ readonly filename: string; readonly sha256: string }>
) {
  const files = yield* Effect.forEach(given, ({ filename, sha256 }) => contents.describe(filename, sha256))
  const size = files.reduce((sum, file) => sum + file.size, 0)
  return size <= MAX_MESSAGE
    ? files
    : yield* refuse(
        "too_large",
        `The files of the message have ${sizeInWords(size)} in total, and the maximum is ${sizeInWords(MAX_MESSAGE)}.`,
        "Send some of them in a separate message."
      )
})

const contentsOf = (
  projects: Projects,
  log: EventLog["Service"],
  files: MessageFiles.MessageFiles,
  recovered: Effect.Effect<void, StorageError>
): Pick<Agents["Service"], "addFile" | "forgetFiles"> => {
  const sweep = RetainedFiles.sweep(projects, log, files)
  // until the log has been read, it is unknown which files are needed
  const sweepOnce = Effect.matchEffect(recovered, { onFailure: () => Effect.void, onSuccess: () => sweep })
  return {
    addFile: (piece) => Effect.andThen(piece.at === 0 ? sweepOnce : Effect.void, files.add(piece)),
    forgetFiles: (hashes) => Effect.forEach(hashes, files.forget, { discard: true })
  }
}

const messages = (
  projects: Projects,
  contents: MessageFiles.MessageFiles,
  onAgent: OnAgent
): Pick<Agents["Service"], "send" | "backlog" | "retry" | "dismiss"> => ({
  send: (name, { files: given = [], text, how }, caller) =>
    onAgent(name, caller, ({ project, agentScope }) =>
      Effect.gen(function* () {
        if (project.refusal !== undefined) return yield* project.refusal
        const files = yield* described(contents, given)
        return yield* agentScope.send(text, how, caller, hopsOf(projects, caller), files)
      })
    ),
  backlog: Effect.sync(() => projects.found.flatMap(({ agentScope }) => Backlog.of(agentScope) ?? [])),
  retry: (name, message, caller) =>
    onAgent(name, caller, ({ project, agentScope }) => project.isOver ?? Backlog.retry(agentScope, message, caller)),
  dismiss: (name, what, caller) =>
    onAgent(name, caller, ({ agentScope }) => Backlog.dismiss(agentScope, what, caller), true)
})

/** When the oldest unfinished work started, ms since the epoch; 0 if the state of an agent cannot be read. */
const openIn = (projects: Projects): number => {
  const living = [...projects.living.values()].filter(({ isOver }) => isOver === undefined)
  if (living.some(({ record }) => [...record.agents.values()].some(({ broken }) => broken !== undefined))) return 0
  return openSince(living.flatMap(({ members }) => [...members.values()].map(({ agentScope }) => agentScope)))
}

const lists = (
  projects: Projects
): Pick<Agents["Service"], "projects" | "all" | "sessions" | "addresses" | "some"> => ({
  projects: Effect.sync(() => [
    ...[...projects.living.values()].map((project) => project.info),
    ...projects.notLiving.filter(({ reason }) => reason !== "closed").map(NotLiving.infoOf)
  ]),
  all: Effect.map(Clock.currentTimeMillis, (now) => projects.found.map((one) => projects.agentInfo(one, now))),
  sessions: Effect.sync(() => projects.found.flatMap((one) => projects.session(one) ?? [])),
  addresses: Effect.sync(() =>
    projects.found.map(({ project, agentScope }) => ({ conversation: project.conversation, agent: agentScope.name }))
  ),
  some: (agents) => Effect.map(Clock.currentTimeMillis, (now) => [...agents].map((one) => projects.facts(one, now)))
})

/** Lists the changed files of agents. Only one diff runs at a time, because each reads a whole work tree. */
const diffs = (onAgent: OnAgent, one = Semaphore.makeUnsafe(1)): Pick<Agents["Service"], "diff"> => ({
  diff: (name, caller) =>
    spoken(
      onAgent(name, caller, ({ project, agentScope }) =>
        Effect.map(one.withPermit(project.registry.diff(agentScope.name, agentScope.config())), (found) => ({
          conversation: project.record.conversation,
          project: project.name,
          agent: agentScope.name,
          ...found
        }))
      )
    )
})

const choices = (onAgent: OnAgent): Pick<Agents["Service"], "choose" | "offers" | "diff"> => ({
  ...diffs(onAgent),
  choose: (name, choice, caller) =>
    onAgent(
      name,
      caller,
      ({ project, agentScope }) => project.refusal ?? AgentChoice.choose(agentScope, choice, caller),
      true
    ),
  offers: (name, caller) =>
    spoken(onAgent(name, caller, ({ agentScope }) => Effect.sync(() => AgentChoice.offered(agentScope))))
})

const lives = (onAgent: OnAgent): Pick<Agents["Service"], "interrupt" | "restart" | "start" | "stop"> => ({
  start: (name, caller) =>
    onAgent(
      name,
      caller,
      ({ project, agentScope }) => project.isStill ?? inItsPlace(project, agentScope, agentScope.start(caller))
    ),
  stop: (name, caller) =>
    onAgent(name, caller, ({ project, agentScope }) => project.registry.subAgentTree.stop(agentScope, caller), true),
  restart: (name, caller) =>
    onAgent(
      name,
      caller,
      ({ project, agentScope }) =>
        project.isStill ?? inItsPlace(project, agentScope, again(project, agentScope, caller)),
      true
    ),
  interrupt: (name, caller) => onAgent(name, caller, ({ agentScope }) => agentScope.interrupt(caller), true)
})

export const make = (projects: Projects, ready: Ready) =>
  Effect.gen(function* () {
    const bus = yield* Bus
    const log = yield* EventLog
    const { files, waiting } = yield* AgentsEnvironment
    const recovered = Deferred.await(ready)
    const voices = AgentApi.make({
      log,
      context: yield* Effect.context<never>(),
      agentScopes: () => projects.found.map(({ agentScope }) => agentScope),
      find: (of) => projects.agentScope(of),
      projectOf: ({ setting }) => projects.living.get(setting.conversation),
      heard: ({ agent, conversation }, rune) =>
        projects.living.get(conversation)?.registry.subAgentTree.heard(agent, rune) ?? Effect.void,
      report: bus.report
    })
    const onAgent: OnAgent = (name, caller, act, changes) =>
      onFound(ready, () => NameLookup.agent(projects.entries, name, caller, changes), act)
    return Agents.of({
      ...voices,
      ...conversations(projects, ready, log),
      configs: Stream.merge(
        bus.configs,
        Stream.suspend(() => Stream.fromIterable([...projects.living.values()].map((project) => project.news)))
      ),
      register: (config, caller, agreed = "as it stands") =>
        Effect.andThen(recovered, projects.register(config, caller, agreed)),
      configChange: (name, caller) =>
        spoken(
          onFound(
            ready,
            (): NameLookup.Entry | CommandRefused => NameLookup.conversation(projects.entries, name, caller, "project"),
            projects.configChange
          )
        ),
      ...lists(projects),
      agent: (name, caller) =>
        spoken(
          onAgent(name, caller, (found) => Effect.map(Clock.currentTimeMillis, (now) => projects.agentInfo(found, now)))
        ),
      ...lives(onAgent),
      ...messages(projects, files, onAgent),
      ...contentsOf(projects, log, files, recovered),
      ...choices(onAgent),
      spawn: (parent, request, caller) =>
        onAgent(parent, caller, ({ project, agentScope }) => project.registry.spawn(agentScope.name, request, caller)),
      expire: Expiry.make(projects, log, files),
      openSince: Effect.sync(() => openIn(projects)),
      forgetInputs: (callIds) => Effect.forEach(callIds, (callId) => waiting.drop(callId), { discard: true }),
      configOf: (conversation) => Effect.sync(() => projects.configOf(conversation)),
      recovered,
      ready: Effect.andThen(Deferred.isDone(ready), (isDone) =>
        isDone ? Effect.isSuccess(recovered) : Effect.succeed(false)
      )
    })
  })

export interface Options {
  readonly worktrees: string
  /** The folder of the daemon's own git repositories. */
  readonly stores: string
  /** Runs the commands that set up worktrees. */
  readonly commands: Runner
  /** The folder of the stored inputs of calls that wait for the user. */
  readonly waiting: string
  /** The folder of files that are attached to messages. */
  readonly files: string
  /** The folder of the configs that the user has trusted. */
  readonly configs: string
  /** Supervises all conversations. */
  readonly supervisor: DynamicSupervisor.DynamicSupervisor
  /** Ends processes that an earlier daemon left running. Runs before any agent is restored. */
  readonly sweep: Effect.Effect<void, never, ProcessTree>
  readonly mcp: AgentsEnvironment["Service"]["mcp"]
  /** File of a project to register at the start, before `ready`. If it is refused, only a warning is logged. */
  readonly project?: string | undefined
}

const takeUp = (projects: Projects, project: string): Effect.Effect<void, StorageError> =>
  projects.register(project, { by: "agentd up", config: project }, "nothing").pipe(
    Effect.asVoid,
    // only a warning: a caller that registers the project gets the same error
    Effect.catchTag("CommandRefused", ({ message, remedy }) =>
      Effect.logWarning(`${project} is not registered: ${message} ${remedy}`)
    )
  )

/** Tries the rules of the user's own config on the calls that wait, each time when the file has changed. */
const weighing = (projects: Projects) =>
  Effect.flatMap(UserApprovals, ({ changes }) =>
    Stream.runForEach(changes, () =>
      Effect.forEach(projects.found, ({ agentScope }) => agentScope.weigh, { discard: true })
    )
  )

const environment = (options: Options) =>
  Layer.effect(
    AgentsEnvironment,
    Effect.gen(function* () {
      const log = yield* EventLog
      const waiting = yield* WaitingInputs.make(options.waiting)
      const files = yield* MessageFiles.make(options.files)
      const ports = new TreePorts(dirname(options.worktrees))
      return { ...options, ports, recoveredTo: yield* log.head, waiting, files }
    })
  )

/** Returns at once. The agents of the log are restored in the background; `ready` completes when they are. */
export const layer = (options: Options) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const log = yield* EventLog
      const bus = yield* Bus
      const projects = yield* Projects.make(options.supervisor)
      const ready = yield* Deferred.make<void, StorageError>()
      const revive = (record: ProjectRecord) =>
        Effect.catchTag(projects.revive(record), "CommandRefused", (error) =>
          Effect.logWarning(`${record.name}: ${error.message}`)
        )
      yield* Effect.andThen(options.sweep, recoverEach(revive, projects.setApart)).pipe(
        Effect.andThen(options.project === undefined ? Effect.void : takeUp(projects, options.project)),
        Effect.onExit((exit) => Deferred.done(ready, exit)),
        Effect.tapCause((cause) => Effect.logError("the log could not be recovered", cause)),
        Effect.forkScoped
      )
      // damage in older runes may be found later
      yield* Effect.forkScoped(
        Effect.andThen(
          Deferred.await(ready),
          Stream.runForEach(log.damages, ({ message, stream }) => projects.setApart(stream, message))
        )
      )
      yield* Effect.forkScoped(weighing(projects))
      yield* Effect.all([Clock.currentTimeMillis, Clock.monotonicTimeNanos]).pipe(
        Effect.flatMap(([now, nanos]) =>
          Effect.forEach(projects.found, ({ agentScope }) => agentScope.sweep(now, Number(nanos) / 1e6), {
            discard: true
          })
        ),
        Effect.schedule(Schedule.spaced(TurnMachine.SWEEP_INTERVAL)),
        Effect.forkScoped
      )
      const agentPort = LiveAgentPort.make({
        find: (of) => projects.agentScope(of),
        info: (of, now) => projects.facts(of, now).info,
        of: (conversation) =>
          [...(projects.living.get(conversation)?.members.values() ?? [])].map(({ agentScope }) => agentScope),
        reports: bus.reports,
        // if the log cannot be read, the daemon ends, so nothing needs to wait for it
        recovered: Effect.catch(Deferred.await(ready), () => Effect.never)
      })
      const conversations = LiveConversations.make({
        log,
        known: Effect.map(agentPort.recovered, () =>
          projects.entries.flatMap((entry) =>
            entry._tag === "NotLiving" && entry.reason === "damaged" ? [] : [entry.record.conversation]
          )
        ),
        stateOf: (conversation) => projects.stateOf(conversation)
      })
      return Context.make(Agents, yield* make(projects, ready)).pipe(
        Context.add(AgentPort, agentPort),
        Context.add(Conversations, conversations)
      )
    })
  ).pipe(Layer.provide(environment(options)), Layer.provide(busLayer))
