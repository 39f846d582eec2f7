/**
 * WorkingFolder: the folder in which an agent works. It is the project's root, or the agent's own worktree.
 *
 * Guarantees: A worktree belongs to one agent of one project, and the agent's next conversation finds its unfinished
 * work there. When the agent is removed, its worktree is deleted only if no work is lost. The log records the result.
 */
import { Effect, FileSystem } from "effect"
import { dirname, join, relative } from "node:path"
import { type AgentConfig, worktreeConfigOf } from "../../config/AgentConfig.ts"
import type * as ConfigFile from "../../config/ConfigFile.ts"
import * as ProjectName from "../../config/ProjectName.ts"
import { CommandRefused, refuse } from "../../domain/Messages.ts"
import type { EventLog, StorageError } from "../../core/event-log/EventLog.ts"
import type { TreeMount } from "../../runs/Backend.ts"
import type { Runner } from "../../runs/ConfinedCommand.ts"
import * as GitStore from "../../runs/git/GitStore.ts"
import * as TreeDiff from "../../runs/git/TreeDiff.ts"
import type { PortBlock, TreePorts } from "./TreePorts.ts"
import * as TreeFiles from "./TreeFiles.ts"
import * as TreeSetup from "./TreeSetup.ts"
import * as Worktree from "./Worktree.ts"

export interface WorkingFolder {
  readonly agent: string
  readonly config: AgentConfig
  readonly project: ConfigFile.Project
  /** Folder that contains all worktrees: `<state>/worktrees`. */
  readonly worktrees: string
  /** The folder of the daemon's own git repositories. */
  readonly stores: string
  readonly tell: Worktree.WorktreeSpec["tell"]
  readonly commands: Runner
  /** The ports of all agents of the daemon. */
  readonly ports: TreePorts
  readonly showing: TreeSetup.Tree["showing"]
}

export const worktreesIn = (state: string): string => join(state, "worktrees")

const worktreeOf = (worktrees: string, project: ConfigFile.Project, agent: string): string =>
  join(worktrees, ProjectName.conversationId(project.path), agent)

/** The folder that the agent works in. It need not exist yet. */
export const folderOf = (state: string, project: ConfigFile.Project, agent: string, config: AgentConfig): string =>
  config.worktree === false ? project.root : worktreeOf(worktreesIn(state), project, agent)

const specOf = ({
  agent,
  config,
  project,
  stores,
  tell,
  worktrees
}: WorkingFolder): Worktree.WorktreeSpec | undefined => {
  if (config.worktree === false) return undefined
  const base = worktreeConfigOf(config)?.base
  return {
    repository: project.root,
    stores,
    tell,
    folder: worktreeOf(worktrees, project, agent),
    agent,
    base
  }
}

/**
 * Fails with a clear message if the project's folder does not exist, because git's own error would not mention that.
 */
const isThere = Effect.fnUntraced(function* ({ name, root }: ConfigFile.Project) {
  const files = yield* FileSystem.FileSystem
  if (yield* Effect.orElseSucceed(files.exists(root), () => true)) return
  return yield* new Worktree.WorktreeError({
    reason: "NotARepository",
    message: `the folder ${root} of its project no longer exists`,
    remedy: `restore it, or remove the project: agentd project remove ${name}`
  })
})

export const prepare = (
  of: WorkingFolder
): Effect.Effect<
  { readonly cwd: string; readonly branch: string | undefined },
  Worktree.WorktreeError,
  FileSystem.FileSystem
> => {
  const spec = specOf(of)
  return spec === undefined
    ? Effect.succeed({ cwd: of.project.root, branch: undefined })
    : Effect.andThen(isThere(of.project), Worktree.prepare(spec))
}

/** The name of an agent's ports. */
export const portsOf = ({ agent, project }: Pick<WorkingFolder, "agent" | "project">) =>
  `${ProjectName.conversationId(project.path)}/${agent}`

/** The agent's worktree and what it gets; undefined if it has none. `cwd`: the project's root in the worktree. */
const treeOf = (of: WorkingFolder, cwd: string, ports: PortBlock | undefined): TreeSetup.Tree | undefined => {
  const { commands, config, project, showing, worktrees } = of
  const [spec, settings] = [specOf(of), worktreeConfigOf(config)]
  if (spec === undefined || settings === undefined) return undefined
  return {
    spec,
    settings,
    config,
    cwd,
    ports,
    commands,
    showing,
    state: dirname(worktrees),
    project: ProjectName.conversationId(project.path),
    trusted: new Map(Object.entries(project.files ?? {}))
  }
}

export interface Furnished {
  readonly ports?: PortBlock | undefined
  /** Mounts in the worktree that the agent's confined runs see. */
  readonly mounts: ReadonlyArray<TreeMount>
}

/** Gives the agent its ports: those that it had, if nobody else listens there. */
const portsFor = Effect.fnUntraced(function* (of: WorkingFolder, count: number, before: PortBlock | undefined) {
  const given = yield* of.ports.give(portsOf(of), count, before)
  if (given === undefined)
    return yield* new Worktree.WorktreeError({
      reason: "SetupFailed",
      message: `there are no ${count} consecutive ports that nobody uses`,
      remedy: "end programs that listen, or lower worktree.ports in agentd.jsonc"
    })
  const { block, taken } = given
  if (taken !== undefined)
    yield* (
      of.tell?.(
        `another program listens on its port ${taken}: its ports are now ${block.first} to ${block.first + block.count - 1}`,
        false
      ) ?? Effect.void
    )
  return block
})

/**
 * Copies each file once for each tree and each text of the settings, so that a file that the agent has removed does not
 * come again. Succeeds with the folders that the agent's confined runs see.
 */
const filed = Effect.fnUntraced(function* (tree: TreeSetup.Tree, project: ConfigFile.Project) {
  const { settings, trusted } = tree
  if (settings.copy.length === 0 && settings.link.length === 0 && !trusted.has(TreeFiles.INCLUDE)) return []
  const files = yield* FileSystem.FileSystem
  const held = (yield* TreeSetup.confined(tree)).all
  const secrets = TreeFiles.secretsOf(project)
  const key = TreeSetup.filesKey(tree, TreeFiles.INCLUDE, secrets, held)
  const known = yield* TreeSetup.stampOf(tree)
  const isThere = (link: string) => Effect.orElseSucceed(files.exists(join(tree.spec.repository, link)), () => false)
  const isKnown = known.files === key
  const { copies, idle, links } = yield* TreeFiles.plan(tree, secrets, held, !isKnown).pipe(
    // what came to the checkout later does not stop an agent that has its tree
    Effect.catchIf(
      () => isKnown,
      ({ message }) =>
        Effect.andThen(
          Effect.logWarning(`${tree.spec.agent}: ${message}`),
          Effect.map(Effect.filter(known.links ?? [], isThere), (links) => ({ copies: [], idle: [], links }))
        )
    )
  )
  const had = new Set(isKnown ? (known.wanted ?? known.copied) : [])
  const folders = [...had].filter((one) => one.endsWith("/"))
  const wanted = copies.filter((entry) => !had.has(entry) && !folders.some((one) => TreeFiles.isBelow(entry, one)))
  if (isKnown && wanted.length === 0) return links
  for (const pattern of idle)
    yield* Worktree.told(
      tree.spec,
      `${pattern} matches no file of your checkout that git leaves out: create the file, or correct agentd.jsonc`,
      true
    )
  const what = `copying ${wanted.length} files and folders to its work tree`
  const names = yield* tree.showing(what, TreeFiles.copy(tree, wanted))
  if (names.length > 0) {
    const told = `its work tree got copies from your checkout: ${names.join(", ").slice(0, 200)}`
    yield* Worktree.told(tree.spec, told, false)
  }
  yield* TreeSetup.ignoring(tree, [...names, ...links])
  yield* TreeSetup.stamp(tree, {
    ...known,
    files: key,
    links,
    wanted: [...had, ...wanted],
    copied: [...new Set([...(known.copied ?? []), ...names])]
  })
  return links
})

/**
 * Gives a prepared worktree what the project needs there: ports, files, caches, and the set-up. Can be repeated: what
 * was done is not done again. `isLive`: a run is working there, so that nothing may change.
 */
export const furnish = Effect.fnUntraced(function* (
  of: WorkingFolder,
  {
    before,
    cwd,
    isLive = false
  }: { readonly cwd: string; readonly before: PortBlock | undefined; readonly isLive?: boolean }
): Effect.fn.Return<Furnished, Worktree.WorktreeError, FileSystem.FileSystem> {
  const count = worktreeConfigOf(of.config)?.ports
  if (count === undefined) yield* of.ports.release(portsOf(of))
  const ports = count === undefined ? undefined : isLive ? before : yield* portsFor(of, count, before)
  const tree = treeOf(of, cwd, ports)
  if (tree === undefined) return { mounts: [] }
  if (isLive) return { ports, mounts: yield* TreeSetup.cacheMounts(tree) }
  const caches = yield* TreeSetup.caches(tree)
  const mounts = [...caches, ...(yield* TreeFiles.mounts(tree, yield* filed(tree, of.project)))]
  yield* TreeSetup.setUp(tree, mounts)
  yield* of.ports.note(portsOf(of))
  return { ports, mounts }
})

/** Copies the commits in the agent's own worktree to the user's repository. */
export const handOver = (of: WorkingFolder): Effect.Effect<void, never, FileSystem.FileSystem> => {
  const spec = specOf(of)
  return spec === undefined ? Effect.void : Effect.ignore(Worktree.handOver(spec))
}

/** Shows the differences between the agent's folder and the commit at which the agent's work started. */
export const diff = Effect.fnUntraced(
  function* (of: WorkingFolder) {
    const { agent, project, stores } = of
    const folder = specOf(of)?.folder ?? project.root
    const files = yield* FileSystem.FileSystem
    if (!(yield* Effect.orElseSucceed(files.exists(folder), () => false)))
      return yield* new CommandRefused(
        folder === project.root
          ? {
              code: "not_found",
              message: `The folder ${folder} does not exist.`,
              remedy: "Restore it, or remove the project."
            }
          : {
              code: "conflict",
              message: `${agent} has no worktree yet: it is created for its first run.`,
              remedy: `agentd start ${project.name}/${agent}`
            }
      )
    const store = yield* GitStore.open(stores, project.root)
    const found = store === undefined ? undefined : yield* TreeDiff.diff(store, stores, folder)
    if (found !== undefined) return { folder, ...found }
    return yield* refuse(
      "conflict",
      `${folder} is not in a git checkout with a commit: there is nothing to compare it with.`,
      "Create one: git init, then a first commit."
    )
  },
  Effect.catchTags({
    GitFailed: ({ message, remedy }) => Effect.fail(refuse("unavailable", `${message}.`, `${remedy}.`)),
    GitUnavailable: ({ message, remedy }) => Effect.fail(refuse("unavailable", `${message}.`, `${remedy}.`))
  })
)

interface Cleared {
  readonly failed?: string
  readonly placed?: ReadonlyArray<string>
}

/**
 * Prepares the removal of a worktree without work. `failed`: why its tear-down failed. `placed`: files that agentd has
 * put there.
 */
const cleared = Effect.fnUntraced(function* (
  of: WorkingFolder,
  spec: Worktree.WorktreeSpec
): Effect.fn.Return<Cleared, { readonly message: string }, FileSystem.FileSystem> {
  const files = yield* FileSystem.FileSystem
  if (!(yield* files.exists(spec.folder))) return {}
  const { cwd } = yield* Worktree.prepare(spec)
  const tree = treeOf(of, cwd, of.ports.of(portsOf(of)))!
  yield* TreeSetup.unlink(tree)
  const { copied = [], links = [] } = yield* TreeSetup.stampOf(tree)
  const placed = [...copied, ...links].map((name) => relative(spec.folder, join(cwd, name)))
  if ((yield* Worktree.keptFor({ ...spec, placed })) !== undefined) return { placed }
  const why = yield* TreeSetup.tearDown(tree, yield* TreeSetup.caches(tree))
  yield* TreeSetup.unlink(tree)
  yield* TreeSetup.forget(tree)
  return { placed, ...(why === undefined ? {} : { failed: why }) }
})

/** Removes the worktree of a deleted agent if no work is lost, and logs the result. */
export const clear = Effect.fnUntraced(function* (
  of: WorkingFolder,
  conversation: string,
  log: EventLog["Service"]
): Effect.fn.Return<void, StorageError, FileSystem.FileSystem> {
  const spec = specOf(of)
  if (spec === undefined) return
  const { failed: teardown, placed } = yield* Effect.catch(cleared(of, spec), ({ message }) =>
    Effect.succeed<Cleared>({ failed: message })
  )
  yield* of.ports.release(portsOf(of))
  const removal = yield* Effect.catch(Worktree.remove({ ...spec, placed }), ({ message, reason }) =>
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
          ...(teardown === undefined ? {} : { teardown }),
          ...(removal._tag === "Kept" ? { reason: removal.reason, detail: removal.detail } : {})
        }
      }
    ])
    // if the log rejects this rune, that is a bug of agentd
    .pipe(Effect.catchTag("RuneRefused", Effect.die))
})
