/**
 * LostProject: a project of which no config is there that a person has agreed to: known, and not running.
 *
 * Guarantees: its conversation can be closed all the same: without a file there are
 * no agents, and what an earlier daemon left of them was ended when this one began.
 */
import { Deferred, Effect, Schema, type Scope } from "effect"
import type * as DynamicSupervisor from "../core/supervision/DynamicSupervisor.ts"
import { ConversationConfig } from "../config/Config.ts"
import type { CommandRefused, ProjectInfo } from "../domain/Messages.ts"
import type { StorageError } from "../core/event-log/EventLog.ts"
import { waiting } from "./ConfigTrust.ts"
import { ConversationActor } from "./ConversationActor.ts"
import { ActorSystem } from "../core/event-actor/ActorSystem.ts"
import { AgentsPlace } from "./AgentsPlace.ts"
import type { ProjectRecord } from "./Recovery.ts"

export class LostProject {
  readonly record: ProjectRecord
  readonly problems: ReadonlyArray<string>
  /** True while the project is being closed: its file may come back, its conversation does not. */
  isEnding = false
  private readonly over = Deferred.makeUnsafe<void, StorageError>()

  constructor(record: ProjectRecord, { message }: CommandRefused) {
    this.record = record
    this.problems = message.split("\n")
  }

  get info(): ProjectInfo {
    const { agents, config, conversation, name, trust } = this.record
    const { problems } = this
    return { conversation, name, config, agents: [...agents.keys()], problems, ...waiting(trust) }
  }

  /** Answers when it is closed. Carried out even if whoever asked goes away; a second one waits for the first. */
  readonly close = Effect.fnUntraced(
    { self: this },
    function* (
      this: LostProject,
      { nest, scope }: LostProject.Place,
      why?: { readonly by: string; readonly reason: string }
    ) {
      if (!this.isEnding) {
        this.isEnding = true
        yield* Effect.forkIn(
          Effect.onExit(this.end(nest, why), (exit) => Deferred.done(this.over, exit)),
          scope
        )
      }
      yield* Deferred.await(this.over)
    }
  )

  private end(
    nest: DynamicSupervisor.DynamicSupervisor,
    why: { readonly by: string; readonly reason: string } | undefined
  ): Effect.Effect<void, StorageError, ActorSystem | AgentsPlace> {
    return Effect.scoped(
      Effect.gen({ self: this }, function* () {
        const { agents, conversation, life, name } = this.record
        const config = Schema.decodeSync(ConversationConfig)({})
        const made = new ConversationActor(
          {
            conversation,
            system: yield* ActorSystem,
            config: () => config,
            residents: () => [],
            leaving: Effect.succeed([]),
            ended: () => Effect.void,
            renewed: () => Effect.void,
            recoveredTo: (yield* AgentsPlace).recoveredTo
          },
          life,
          yield* Effect.scope
        )
        yield* nest.add(made.child)
        yield* made.create({ name, agents: [...agents.keys()] })
        if (why !== undefined) yield* made.ask({ _tag: "close_requested", ...why })
        yield* Deferred.await(made.closed)
        life.snapshot = made.snapshot
        yield* nest.remove(made.child.id)
      })
    )
  }
}

export declare namespace LostProject {
  interface Place {
    readonly nest: DynamicSupervisor.DynamicSupervisor
    readonly scope: Scope.Scope
  }
}
