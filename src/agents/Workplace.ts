/**
 * Workplace: where an agent works: the project's root, or a worktree of its own.
 *
 * Guarantees: a worktree belongs to the project and the agent, so the next
 * conversation finds what this one had to leave; it goes with the agent only if no
 * work goes with it, and the log says what became of it.
 */
import { Effect, type FileSystem } from "effect"
import { join } from "node:path"
import type { AgentConfig } from "../config/AgentConfig.ts"
import type * as ConfigFile from "../config/ConfigFile.ts"
import * as ProjectName from "../config/ProjectName.ts"
import type { EventLog, StorageError } from "../event-log/EventLog.ts"
import * as Worktree from "./Worktree.ts"

export interface Workplace {
  readonly agent: string
  readonly config: AgentConfig
  readonly project: ConfigFile.Project
  /** Where worktrees are made: `<state>/worktrees`. */
  readonly worktrees: string
  /** Where the daemon's own git folders lie. */
  readonly stores: string
}

/** Where worktrees are made, in a state folder. */
export const worktreesIn = (state: string): string => join(state, "worktrees")

const worktreeOf = (worktrees: string, project: ConfigFile.Project, agent: string): string =>
  join(worktrees, ProjectName.conversationId(project.path), agent)

/** The folder that the agent works in, whether it is made yet or not. */
export const folderOf = (state: string, project: ConfigFile.Project, agent: string, config: AgentConfig): string =>
  config.worktree === false ? project.root : worktreeOf(worktreesIn(state), project, agent)

const specOf = ({ agent, config, project, stores, worktrees }: Workplace): Worktree.WorktreeSpec | undefined => {
  if (config.worktree === false) return undefined
  return {
    repository: project.root,
    stores,
    folder: worktreeOf(worktrees, project, agent),
    agent,
    base: config.worktree === true ? undefined : config.worktree.base
  }
}

/** Makes it where it is not there yet. */
export const prepare = (
  of: Workplace
): Effect.Effect<
  { readonly cwd: string; readonly branch: string | undefined },
  Worktree.WorktreeError,
  FileSystem.FileSystem
> => {
  const spec = specOf(of)
  return spec === undefined ? Effect.succeed({ cwd: of.project.root, branch: undefined }) : Worktree.prepare(spec)
}

/** Hands over what the agent has committed in a worktree of its own. */
export const handOver = (of: Workplace): Effect.Effect<void, never, FileSystem.FileSystem> => {
  const spec = specOf(of)
  return spec === undefined ? Effect.void : Effect.ignore(Worktree.handOver(spec))
}

/** When the agent has gone. */
export const clear = Effect.fnUntraced(function* (
  of: Workplace,
  conversation: string,
  log: EventLog["Service"]
): Effect.fn.Return<void, StorageError, FileSystem.FileSystem> {
  const spec = specOf(of)
  if (spec === undefined) return
  const removal = yield* Effect.catch(Worktree.remove(spec), ({ message, reason }) =>
    Effect.succeed({ _tag: "Kept", reason, detail: message } as const)
  )
  yield* log
    .append([
      {
        stream: conversation,
        kind: removal._tag === "Kept" ? "worktree.kept" : "worktree.removed",
        actor: `worker/${of.agent}`,
        trigger: "dismiss",
        payload: {
          path: spec.folder,
          ...(removal._tag === "Kept" ? { reason: removal.reason, detail: removal.detail } : {})
        }
      }
    ])
    // a note that the log refuses is a bug of ours
    .pipe(Effect.catchTag("RuneRefused", Effect.die))
})
