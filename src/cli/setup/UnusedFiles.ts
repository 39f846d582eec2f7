/**
 * UnusedFiles: finds files in a state directory that are no longer needed and are old enough to be removed.
 *
 * Guarantees: `find` removes nothing. A work tree can be removed only if the daemon is running and has no agent for it,
 * if it contains no uncommitted or unmerged work, and if no process uses it. A branch can be removed only if it is
 * merged. A home folder can be removed only if no agent has its name. If a work tree must be kept, the reason is
 * reported.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import { basename, dirname, join } from "node:path"
import * as WorkingFolder from "../../agents/workplace/WorkingFolder.ts"
import * as Worktree from "../../agents/workplace/Worktree.ts"
import * as ProcessTable from "../../runs/process/ProcessTable.ts"
import { STORES } from "../../runs/git/AgentRepositoryRecord.ts"
import * as AgentRepository from "../../runs/git/AgentRepository.ts"
import { folderBytes } from "./FolderBytes.ts"

export interface Leftover {
  readonly kind: "worktree" | "branch" | "home" | "cache" | "keeper" | "log" | "replaced" | "part" | "hook"
  readonly path: string
  readonly bytes: number
  /** Time of the last change, in ms since the epoch. */
  readonly at: number
  readonly why: string
  /** Data for removing a work tree; undefined for all other kinds. */
  readonly spec?: Worktree.WorktreeSpec
  readonly branch?: Worktree.Branch
}

export interface Kept {
  readonly path: string
  readonly bytes: number
  readonly why: string
}

export interface Found {
  readonly leftovers: ReadonlyArray<Leftover>
  readonly kept: ReadonlyArray<Kept>
}

/** An agent, with the data by which its work tree is recognized. */
export interface Agent {
  readonly agent: string
  readonly conversation: string
  readonly cwd: string | null
}

export interface Options {
  readonly state: string
  /** Files that have changed after this time are kept; in ms since the epoch. */
  readonly before: number
  /** The daemon's agents; undefined if no daemon is running. */
  readonly agents: ReadonlyArray<Agent> | undefined
}

const changedAt = (path: string): number => fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

const namesIn = (folder: string): ReadonlyArray<string> => (fs.existsSync(folder) ? fs.readdirSync(folder) : [])

const leftover = (kind: Leftover["kind"], path: string, why: string, at = changedAt(path)): Leftover => ({
  kind,
  path,
  bytes: folderBytes(path),
  at,
  why
})

/** Time of the last commit, staging or checkout in a work tree, in ms since the epoch. */
const workedAt = (folder: string): number =>
  Math.max(...["", ".git/HEAD", ".git/index", ".git/logs/HEAD"].map((name) => changedAt(join(folder, name))))

const inside = (folder: string, path: string): boolean => path === folder || path.startsWith(`${folder}/`)

const realOf = (path: string): string => (fs.existsSync(path) ? fs.realpathSync(path) : path)

/**
 * True if the work tree belongs to the agent, according to the agent's working directory, or to the names of agent and
 * conversation.
 */
const isOf = ({ agent, conversation, cwd }: Agent, folder: string): boolean =>
  (cwd !== null && inside(realOf(folder), realOf(cwd))) ||
  (agent === basename(folder) && conversation.startsWith(basename(dirname(folder))))

/** Decides whether a work tree can be removed, or is kept for a reason. If an agent uses it, neither is reported. */
const judge = Effect.fnUntraced(function* ({ agents, before, state }: Options, folder: string) {
  const at = workedAt(folder)
  const keep = (why: string): Found => ({ leftovers: [], kept: [{ path: folder, bytes: folderBytes(folder), why }] })
  if (agents === undefined) return keep("the daemon does not run, so it is unknown whether an agent needs it")
  if (agents.some((agent) => isOf(agent, folder))) return { leftovers: [], kept: [] }
  const stores = join(state, STORES)
  const own = yield* AgentRepository.read(stores, folder)
  if (own === undefined) return keep("it contains no repository that agentd created")
  const repository = basename(own.lender) === ".git" ? dirname(own.lender) : own.lender
  const spec = { repository, stores, folder, agent: own.branch.replace(/^agentd\//, "") }
  if (at >= before) return keep("it has changed recently")
  const why = yield* Effect.match(Worktree.keptFor(spec), {
    onSuccess: (found) => found?.detail,
    onFailure: ({ message }) => message
  })
  if (why !== undefined) return keep(why)
  const found: Leftover = { ...leftover("worktree", folder, "no agent uses it, and all its work is merged", at), spec }
  return { leftovers: [found], kept: [] }
})

/** Paths of all work trees. The path of each consists of project and agent. */
const foldersIn = (state: string): ReadonlyArray<string> => {
  const base = WorkingFolder.worktreesIn(state)
  return namesIn(base)
    .flatMap((project) => namesIn(join(base, project)).map((agent) => join(base, project, agent)))
    .filter((folder) => fs.statSync(folder).isDirectory())
}

/** The repositories from which the daemon has made its own git folders. */
const repositories = (state: string): ReadonlyArray<string> => {
  const lenders = namesIn(join(state, STORES))
    .map((name) => join(state, STORES, name, "objects/info/alternates"))
    .filter((file) => fs.existsSync(file))
    .map((file) => dirname(fs.readFileSync(file, "utf8").split("\n")[0]!))
    .filter((gitDir) => basename(gitDir) === ".git" && fs.existsSync(gitDir))
  return [...new Set(lenders.map((gitDir) => dirname(gitDir)))]
}

/** Branches without an agent and a work tree, whose commits are merged into the branch that is checked out. */
const branches = Effect.fnUntraced(function* ({ agents, before, state }: Options) {
  if (agents === undefined) return []
  const trees = new Set(foldersIn(state).map((folder) => basename(folder)))
  const stores = join(state, STORES)
  const all = yield* Effect.forEach(repositories(state), (repository) =>
    // if a repository cannot be read, keep its branches
    Effect.orElseSucceed(Worktree.mergedBranches(stores, repository), () => [])
  )
  return all
    .flat()
    .filter(({ agent, at }) => at < before && !trees.has(agent) && !agents.some((one) => one.agent === agent))
    .map((branch): Leftover => {
      const path = `${branch.repository} ${Worktree.branchOf(branch.agent)}`
      return { kind: "branch", path, bytes: 0, at: branch.at, why: "no agent uses it, and it is merged", branch }
    })
})

/** Home folders of sandboxed agents that no longer exist. */
const homes = ({ agents, state }: Options): ReadonlyArray<Leftover> => {
  if (agents === undefined) return []
  const base = join(state, "homes")
  return namesIn(base)
    .filter((name) => !agents.some(({ agent }) => agent === name.slice(0, name.lastIndexOf("-"))))
    .map((name) => leftover("home", join(base, name), "no agent has this name", workedIn(join(base, name))))
}

/** Caches and notes of the work trees of agents that no longer exist; a shared cache if its project has no agent. */
const caches = ({ agents, state }: Options): ReadonlyArray<Leftover> =>
  ["caches", "setups"].flatMap((kind) =>
    namesIn(join(state, kind))
      .filter((project) => fs.statSync(join(state, kind, project)).isDirectory())
      .flatMap((project) => namesIn(join(state, kind, project)).map((name) => ({ project, name })))
      .filter(({ name, project }) => {
        const agent = kind === "caches" ? name : name.replace(/\.(json|script)$/, "")
        const isNeeded = (one: Agent) =>
          one.conversation.startsWith(project) && (agent === ".shared" || agent === one.agent)
        const tree = join(WorkingFolder.worktreesIn(state), project, agent)
        return agents !== undefined && !agents.some(isNeeded) && !fs.existsSync(tree)
      })
      .map(({ name, project }) => join(state, kind, project, name))
      .map((path) => leftover("cache", path, "no agent or work tree uses it", workedIn(path)))
  )

/** Time of the last change of a folder or of one of its direct entries, in ms since the epoch. */
const workedIn = (folder: string): number =>
  Math.max(
    changedAt(folder),
    ...(fs.statSync(folder).isDirectory() ? namesIn(folder) : []).map((name) => changedAt(join(folder, name)))
  )

/**
 * True if the keeper of this folder is still running. Its pid alone is not enough, because another process might have
 * that pid by now.
 */
const isKept = (folder: string): boolean => {
  try {
    const pid = Number(fs.readFileSync(join(folder, "pid"), "utf8"))
    return pid > 1 && ProcessTable.commandLine(pid).includes(join(folder, "keeper.mjs"))
  } catch {
    return false
  }
}

/**
 * Folders of keepers that have ended, if no daemon is running. The newest folder is left out, because the next daemon
 * looks for runs there.
 */
const keepers = ({ agents, state }: Options): ReadonlyArray<Leftover> => {
  const base = join(state, "keeper")
  const all = namesIn(base).filter((name) => /^\d+$/.test(name))
  const newest = `${Math.max(...all.map(Number))}`
  return all
    .filter((name) => name !== newest && agents === undefined && !isKept(join(base, name)))
    .map((name) => leftover("keeper", join(base, name), "its keeper has ended, and there is a newer keeper"))
}

const logs = ({ state }: Options): ReadonlyArray<Leftover> =>
  ["daemon.log.1"]
    .map((name) => join(state, name))
    .filter((path) => fs.existsSync(path))
    .map((path) => leftover("log", path, "the daemon writes to another log file"))

const replaced = ({ state }: Options): ReadonlyArray<Leftover> =>
  namesIn(state)
    .filter((name) => name.startsWith("replaced-"))
    .map((name) => leftover("replaced", join(state, name), "a restore has replaced this store"))

/** Copies of the store from before a change of its schema. */
const schemas = ({ state }: Options): ReadonlyArray<Leftover> =>
  namesIn(state)
    .filter((name) => /^runes\.db\.schema-\d+$/.test(name))
    .map((name) => leftover("replaced", join(state, name), "a copy of the store from before a change of its schema"))

const backups = ({ state }: Options): ReadonlyArray<Leftover> =>
  namesIn(state)
    .filter((name) => /^before-\d.*\.tar\.zst$/.test(name))
    .map((name) => leftover("replaced", join(state, name), "a copy of the store from before an upgrade"))

const parts = ({ state }: Options): ReadonlyArray<Leftover> =>
  ["files", "waiting", "configs", "segments", "archive"]
    .flatMap((folder) => namesIn(join(state, folder)).map((name) => join(state, folder, name)))
    .filter((path) => path.endsWith(".part"))
    .map((path) => leftover("part", path, "the file was never completed"))

const hooks = ({ state }: Options): ReadonlyArray<Leftover> =>
  namesIn(join(state, "hooks", "refused"))
    .map((name) => join(state, "hooks", "refused", name))
    .map((path) => leftover("hook", path, "the daemon could not read this event"))

export const find = Effect.fnUntraced(function* (options: Options) {
  const trees = yield* Effect.forEach(foldersIn(options.state), (folder) => judge(options, folder))
  const merged = yield* branches(options)
  const others = [homes, caches, keepers, logs, replaced, schemas, backups, parts, hooks]
    .flatMap((look) => look(options))
    .filter(({ at }) => at < options.before)
  return {
    leftovers: [...trees.flatMap(({ leftovers }) => leftovers), ...merged, ...others],
    kept: trees.flatMap(({ kept }) => kept)
  } satisfies Found
})

/** Removes a leftover, after checking a work tree or branch again. If it must be kept, returns the reason. */
export const remove = Effect.fnUntraced(function* ({ branch, path, spec }: Leftover, state: string) {
  if (branch !== undefined) {
    return yield* Effect.match(Worktree.removeBranch(join(state, STORES), branch), {
      onSuccess: () => undefined,
      onFailure: ({ message }) => message
    })
  }
  if (spec === undefined) {
    return yield* Effect.match(
      Effect.try({
        try: () => fs.rmSync(path, { recursive: true, force: true }),
        catch: (cause) => ({ message: cause instanceof Error ? cause.message : String(cause) })
      }),
      { onSuccess: () => undefined, onFailure: ({ message }) => message }
    )
  }
  return yield* Effect.match(Worktree.remove(spec), {
    onSuccess: (removal) => (removal._tag === "Kept" ? removal.detail : undefined),
    onFailure: ({ message }) => message
  })
})
