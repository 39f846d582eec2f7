/**
 * Leftovers: what lies in a state folder and nothing needs any more, by age.
 *
 * Guarantees: looking removes nothing; a work tree is a leftover only where the daemon that runs knows no agent of it,
 * and no work would go with it: nothing uncommitted, nothing unmerged, no process in it; so with an agent's branch and
 * its home. What has to stay is told with the reason.
 */
import { Effect } from "effect"
import * as fs from "node:fs"
import { basename, dirname, join } from "node:path"
import * as Workplace from "../../agents/workplace/Workplace.ts"
import * as Worktree from "../../agents/workplace/Worktree.ts"
import * as ProcessTable from "../../runs/process/ProcessTable.ts"
import { STORES } from "../../runs/git/OwnRecord.ts"
import * as OwnRepository from "../../runs/git/OwnRepository.ts"
import { folderBytes } from "./FolderBytes.ts"

export interface Leftover {
  readonly kind: "worktree" | "branch" | "home" | "keeper" | "log" | "replaced" | "part" | "hook"
  readonly path: string
  readonly bytes: number
  /** When it was last changed, ms since the epoch. */
  readonly at: number
  readonly why: string
  /** A work tree goes by its own way. */
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

/** An agent, as far as its work tree can be told by it. */
export interface Agent {
  readonly agent: string
  readonly conversation: string
  readonly cwd: string | null
}

export interface Options {
  readonly state: string
  /** Things that were changed after this stay, ms since the epoch. */
  readonly before: number
  /** The agents that the daemon has; undefined where none runs. */
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

/** When anything was last committed, staged or checked out in a work tree. */
const workedAt = (folder: string): number =>
  Math.max(...["", ".git/HEAD", ".git/index", ".git/logs/HEAD"].map((name) => changedAt(join(folder, name))))

const inside = (folder: string, path: string): boolean => path === folder || path.startsWith(`${folder}/`)

const realOf = (path: string): string => (fs.existsSync(path) ? fs.realpathSync(path) : path)

/** Whether the work tree is the agent's: it works there, or would. The name of the folder above begins its conversation's. */
const isOf = ({ agent, conversation, cwd }: Agent, folder: string): boolean =>
  (cwd !== null && inside(realOf(folder), realOf(cwd))) ||
  (agent === basename(folder) && conversation.startsWith(basename(dirname(folder))))

/** Judges a work tree: it may go, it stays, or there is nothing to say. */
const judge = Effect.fnUntraced(function* ({ agents, before, state }: Options, folder: string) {
  const at = workedAt(folder)
  const keep = (why: string): Found => ({ leftovers: [], kept: [{ path: folder, bytes: folderBytes(folder), why }] })
  if (agents === undefined) return keep("the daemon does not run, so nobody can tell whether an agent needs it")
  if (agents.some((agent) => isOf(agent, folder))) return { leftovers: [], kept: [] }
  const stores = join(state, STORES)
  const own = yield* OwnRepository.read(stores, folder)
  if (own === undefined) return keep("it holds no repository that agentd has made")
  const repository = basename(own.lender) === ".git" ? dirname(own.lender) : own.lender
  const spec = { repository, stores, folder, agent: own.branch.replace(/^agentd\//, "") }
  if (at >= before) return keep("it was changed lately")
  const why = yield* Effect.match(Worktree.keptFor(spec), {
    onSuccess: (found) => found?.detail,
    onFailure: ({ message }) => message
  })
  if (why !== undefined) return keep(why)
  const found: Leftover = { ...leftover("worktree", folder, "no agent is of it, and all work is merged", at), spec }
  return { leftovers: [found], kept: [] }
})

/** The work trees, by project and agent. */
const foldersIn = (state: string): ReadonlyArray<string> => {
  const base = Workplace.worktreesIn(state)
  return namesIn(base)
    .flatMap((project) => namesIn(join(base, project)).map((agent) => join(base, project, agent)))
    .filter((folder) => fs.statSync(folder).isDirectory())
}

/** The repositories that the daemon has a git folder of its own beside. */
const repositories = (state: string): ReadonlyArray<string> => {
  const lenders = namesIn(join(state, STORES))
    .map((name) => join(state, STORES, name, "objects/info/alternates"))
    .filter((file) => fs.existsSync(file))
    .map((file) => dirname(fs.readFileSync(file, "utf8").split("\n")[0]!))
    .filter((gitDir) => basename(gitDir) === ".git" && fs.existsSync(gitDir))
  return [...new Set(lenders.map((gitDir) => dirname(gitDir)))]
}

/** Branches whose agent and work tree are gone, where their work is in what is checked out. */
const branches = Effect.fnUntraced(function* ({ agents, before, state }: Options) {
  if (agents === undefined) return []
  const trees = new Set(foldersIn(state).map((folder) => basename(folder)))
  const stores = join(state, STORES)
  const all = yield* Effect.forEach(repositories(state), (repository) =>
    // what cannot be looked at stays
    Effect.orElseSucceed(Worktree.mergedBranches(stores, repository), () => [])
  )
  return all
    .flat()
    .filter(({ agent, at }) => at < before && !trees.has(agent) && !agents.some((one) => one.agent === agent))
    .map((branch): Leftover => {
      const path = `${branch.repository} ${Worktree.branchOf(branch.agent)}`
      return { kind: "branch", path, bytes: 0, at: branch.at, why: "no agent is of it, and it is merged", branch }
    })
})

/** Homes of confined agents, by a name that no agent has any more. */
const homes = ({ agents, state }: Options): ReadonlyArray<Leftover> => {
  if (agents === undefined) return []
  const base = join(state, "homes")
  return namesIn(base)
    .filter((name) => !agents.some(({ agent }) => name.startsWith(`${agent}-`)))
    .map((name) => leftover("home", join(base, name), "no agent of that name is there", workedIn(join(base, name))))
}

/** When something in a folder was last made or removed, two levels deep. */
const workedIn = (folder: string): number =>
  Math.max(changedAt(folder), ...namesIn(folder).map((name) => changedAt(join(folder, name))))

/** A keeper of that folder lives: its pid may be another's by now. */
const isKept = (folder: string): boolean => {
  try {
    const pid = Number(fs.readFileSync(join(folder, "pid"), "utf8"))
    return pid > 1 && ProcessTable.commandLine(pid).includes(join(folder, "keeper.mjs"))
  } catch {
    return false
  }
}

/** Folders of keepers that have ended, but the newest one's: the next daemon looks there. Without a daemon, its runs. */
const keepers = ({ agents, state }: Options): ReadonlyArray<Leftover> => {
  const base = join(state, "keeper")
  const all = namesIn(base).filter((name) => /^\d+$/.test(name))
  const newest = `${Math.max(...all.map(Number))}`
  return all
    .filter((name) => name !== newest && agents === undefined && !isKept(join(base, name)))
    .map((name) => leftover("keeper", join(base, name), "its keeper has ended, and a newer one is there"))
}

const logs = ({ state }: Options): ReadonlyArray<Leftover> =>
  ["daemon.log.1"]
    .map((name) => join(state, name))
    .filter((path) => fs.existsSync(path))
    .map((path) => leftover("log", path, "the daemon writes to another one"))

const replaced = ({ state }: Options): ReadonlyArray<Leftover> =>
  namesIn(state)
    .filter((name) => name.startsWith("replaced-"))
    .map((name) => leftover("replaced", join(state, name), "a restore has put another store in its place"))

/** Copies of a store before its schema was changed. */
const schemas = ({ state }: Options): ReadonlyArray<Leftover> =>
  namesIn(state)
    .filter((name) => /^runes\.db\.schema-\d+$/.test(name))
    .map((name) => leftover("replaced", join(state, name), "the store as it was before it was brought up to date"))

const backups = ({ state }: Options): ReadonlyArray<Leftover> =>
  namesIn(state)
    .filter((name) => /^before-\d.*\.tar\.zst$/.test(name))
    .map((name) => leftover("replaced", join(state, name), "the store as it was before an upgrade"))

const parts = ({ state }: Options): ReadonlyArray<Leftover> =>
  ["files", "waiting", "configs", "segments", "archive"]
    .flatMap((folder) => namesIn(join(state, folder)).map((name) => join(state, folder, name)))
    .filter((path) => path.endsWith(".part"))
    .map((path) => leftover("part", path, "it was never whole"))

const hooks = ({ state }: Options): ReadonlyArray<Leftover> =>
  namesIn(join(state, "hooks", "refused"))
    .map((name) => join(state, "hooks", "refused", name))
    .map((path) => leftover("hook", path, "the daemon could not read it"))

export const find = Effect.fnUntraced(function* (options: Options) {
  const trees = yield* Effect.forEach(foldersIn(options.state), (folder) => judge(options, folder))
  const merged = yield* branches(options)
  const others = [homes, keepers, logs, replaced, schemas, backups, parts, hooks]
    .flatMap((look) => look(options))
    .filter(({ at }) => at < options.before)
  return {
    leftovers: [...trees.flatMap(({ leftovers }) => leftovers), ...merged, ...others],
    kept: trees.flatMap(({ kept }) => kept)
  } satisfies Found
})

/** Removes one; answers why it stays, where it does: it is looked at once more. */
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
