/**
 * FleetCommands: what a person, an agent or a program asks of the fleet, by name.
 *
 * Guarantees: commands wait until the log is folded; a name is looked up when the
 * command is carried out, and refused with those there are.
 */
import { Clock, Deferred, Effect, Stream } from "effect"
import { type AgentInfo, type Caller, CommandRefused, type Done } from "../domain/Messages.ts"
import type { StorageError } from "../event-log/EventLog.ts"
import { QUEUED } from "./AgentView.ts"
import type * as Bus from "./Bus.ts"
import * as ConversationCommands from "./ConversationCommands.ts"
import * as Finder from "./Finder.ts"
import { Fleet } from "./Fleet.ts"
import type { LiveFleet } from "./LiveFleet.ts"
import type { Project } from "./Project.ts"
import * as AgentApi from "./AgentApi.ts"

export type Ready = Deferred.Deferred<void, StorageError>

/** What a name means, once the log is folded. */
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

/** For a question, whose asker knows of no log. */
const spoken = <A>(effect: Effect.Effect<A, CommandRefused | StorageError>): Effect.Effect<A, CommandRefused> =>
  Effect.catchTag(effect, "StorageError", ({ message, remedy }) => new CommandRefused({ message, remedy }))

type OnConversations = "conversation" | "conversations" | "newConversation" | "pause" | "resume" | "close" | "archive"

/** The commands on whole conversations. */
const conversations = (fleet: LiveFleet, ready: Ready): Pick<Fleet["Service"], OnConversations> => {
  const on = <A, E>(name: string, caller: Caller, act: (entry: Finder.Entry) => Effect.Effect<A, E>) =>
    onFound(ready, (): Finder.Entry | CommandRefused => Finder.conversation(fleet.entries, name, caller), act)
  return {
    conversations: Effect.sync(() => fleet.entries.map(ConversationCommands.row)),
    conversation: (name, caller) =>
      spoken(on(name, caller, (entry) => Effect.sync(() => ConversationCommands.row(entry)))),
    newConversation: (config, caller) => Effect.andThen(Deferred.await(ready), fleet.newConversation(config, caller)),
    pause: (name, options, caller) => on(name, caller, (entry) => ConversationCommands.pause(entry, options, caller)),
    resume: (name, caller) => on(name, caller, (entry) => ConversationCommands.resume(entry, caller)),
    close: (name, options, caller) =>
      on(name, caller, (entry) =>
        ConversationCommands.close(entry, options, caller, (lost, why) => fleet.closeLost(lost, why))
      ),
    archive: (name, caller) =>
      on(name, caller, (entry) => ConversationCommands.archive(entry, caller, fleet.services.log))
  }
}

/** Begins it; one that waits for a place gets none beyond those there are, whoever asks. */
const inItsPlace = <E>(
  { household, name }: Project,
  { name: agent }: Finder.Found["tree"],
  begin: Effect.Effect<Done, E>
) =>
  Effect.suspend(() => {
    const { family } = household
    if (!family.isQueued(agent)) return begin
    return Effect.succeed<Done>({ eventId: family.begins(agent), message: `${name}/${agent} ${QUEUED}.` })
  })

const again = ({ household }: Project, tree: Finder.Found["tree"], caller: Caller) =>
  Effect.andThen(household.family.stop(tree, caller, "restart"), tree.start(caller))

/** The commands; those on agents wait until the log is folded. */
export const make = (fleet: LiveFleet, ready: Ready, bus: Bus.Bus): Fleet["Service"] => {
  const recovered = Deferred.await(ready)
  const voices = AgentApi.make({
    log: fleet.services.log,
    trees: () => fleet.found.map(({ tree }) => tree),
    find: (of) => fleet.tree(of),
    heard: ({ agent, conversation }, rune) =>
      fleet.projects.get(conversation)?.household.family.heard(agent, rune) ?? Effect.void,
    report: bus.report
  })
  const onAgent = <A, E>(name: string, caller: Caller, act: (found: Finder.Found) => Effect.Effect<A, E>) =>
    onFound(ready, () => Finder.agent(fleet.entries, name, caller), act)
  const rows = (now: number): ReadonlyArray<AgentInfo> => fleet.found.map((one) => fleet.agentInfo(one, now))
  return Fleet.of({
    ...voices,
    ...conversations(fleet, ready),
    news: bus.news,
    configs: Stream.merge(
      bus.configs,
      Stream.suspend(() => Stream.fromIterable([...fleet.projects.values()].map((project) => project.news)))
    ),
    register: (config, caller) => Effect.andThen(recovered, fleet.register(config, caller)),
    projects: Effect.sync(() => [
      ...[...fleet.projects.values()].map((project) => project.info),
      ...[...fleet.lost.values()].map(({ problems, record: { agents, config, conversation, name } }) => ({
        conversation,
        name,
        config,
        agents: [...agents.keys()],
        problems
      }))
    ]),
    agents: Effect.map(Clock.currentTimeMillis, rows),
    agent: (name, caller) =>
      spoken(
        onAgent(name, caller, (found) => Effect.map(Clock.currentTimeMillis, (now) => fleet.agentInfo(found, now)))
      ),
    start: (name, caller) =>
      onAgent(name, caller, ({ project, tree }) => project.isOver ?? inItsPlace(project, tree, tree.start(caller))),
    stop: (name, caller) => onAgent(name, caller, ({ project, tree }) => project.household.family.stop(tree, caller)),
    restart: (name, caller) =>
      onAgent(
        name,
        caller,
        ({ project, tree }) => project.isOver ?? inItsPlace(project, tree, again(project, tree, caller))
      ),
    send: (name, { text, how }, caller) =>
      onAgent(name, caller, ({ project, tree }) => project.refusal ?? tree.send(text, how, caller)),
    interrupt: (name, caller) => onAgent(name, caller, ({ tree }) => tree.interrupt(caller)),
    spawn: (parent, request, caller) =>
      onAgent(parent, caller, ({ project, tree }) => project.household.spawn(tree.name, request, caller)),
    configOf: (conversation) => Effect.sync(() => fleet.configOf(conversation)),
    recovered,
    ready: Effect.andThen(Deferred.isDone(ready), (isDone) =>
      isDone ? Effect.isSuccess(recovered) : Effect.succeed(false)
    )
  })
}
