/**
 * GitMerge: merges completed work in the daemon's own copy of the repository. The result is a commit without a branch,
 * for the checks, or a commit for a target branch.
 *
 * Guarantees: git does not run in a folder that an agent can write. Nothing is forced: a branch is only fast-forwarded,
 * from the commit that was read. No checkout is changed: if the target branch is checked out, the user's own git merges
 * it. Conflicts are reported by file and left alone. Only commits of completed tasks are merged, not later ones. If
 * other goals also worked on the branch, only this goal's commits are picked.
 */
import { Effect, Schema } from "effect"
import { type Answer, type Call, git } from "../runs/git/Git.ts"
import * as Repository from "../runs/git/Repository.ts"
import * as GitStore from "../runs/git/GitStore.ts"
import type { MergeResult } from "../domain/GoalMessages.ts"

export class MergeRefused extends Schema.TaggedError<MergeRefused>()("MergeRefused", {
  message: Schema.String,
  remedy: Schema.String
}) {}

/** Maximum length of a commit's hash and subject, in characters. */
const MAX_SUBJECT = 200

export interface Work {
  readonly branch: string
  /** The commit of the last completed task on the branch. */
  readonly head: string
  readonly tasks: ReadonlyArray<string>
  /** Start and end commit of the work on each task. A span whose start is unknown is ignored. */
  readonly spans: ReadonlyArray<{ readonly from: string | null; readonly to: string }>
  /** Spans of the branch to merge, oldest first; undefined to merge the whole branch. */
  readonly picks?: ReadonlyArray<Span>
}

interface Span {
  readonly from: string
  readonly to: string
}

/** A task's last attempt. `from` is the commit at its start; `to` is its last commit, null if unknown. */
export interface Try {
  readonly goalId: string
  readonly from: string
  readonly to: string | null
}

/** Maximum number of commits ahead of the target that are read. */
const MAX_COMMITS = 10_000

const refuse = (message: string, remedy: string) => new MergeRefused({ message, remedy })

export const storeOf = Effect.fnUntraced(function* (stores: string, root: string) {
  const store = yield* GitStore.open(stores, root)
  if (store !== undefined) return store
  return yield* refuse(`${root} is not in a git checkout.`, "make it a repository: git init, then a first commit")
})

type Joined =
  | { readonly _tag: "UpToDate" }
  | { readonly _tag: "Merged"; readonly commit: string }
  | { readonly _tag: "Conflict"; readonly files: ReadonlyArray<string> }

const conflictsIn = ({ stdout }: Answer): ReadonlyArray<string> => {
  // git prints the tree, the conflicting files up to an empty line, then messages
  const lines = stdout.split("\n").slice(1)
  const end = lines.indexOf("")
  return [...new Set(lines.slice(0, end === -1 ? undefined : end))].filter((line) => line !== "")
}

/** Returns the merged tree, or the conflicting files. */
const mergeTrees = Effect.fnUntraced(function* ({ gitDir }: GitStore.GitStore, into: string, head: string) {
  yield* GitStore.count(gitDir, head)
  const call: Call = { gitDir, command: "merge-tree", options: ["--write-tree", "--name-only"], names: [into, head] }
  const merged = yield* git(call)
  if (merged.code === 1) return { _tag: "Conflict", files: conflictsIn(merged) } as const
  if (merged.code !== 0) {
    return yield* refuse(
      `git cannot merge ${head.slice(0, 12)}: ${merged.stderr || merged.stdout.slice(0, 500)}`,
      "check that git is 2.38 or newer, and that the branches have a common ancestor"
    )
  }
  return { _tag: "Tree", tree: merged.stdout.split("\n")[0]!.trim() } as const
})

const record = ({ gitDir }: GitStore.GitStore, tree: string, message: string, ...parents: ReadonlyArray<string>) => {
  const options = [...parents.flatMap((parent) => ["-p", parent]), "-m", message]
  return Effect.map(GitStore.must({ gitDir, command: "commit-tree", options, names: [tree] }), (id) => id.trim())
}

const treeOf = ({ gitDir }: GitStore.GitStore, commit: string) => {
  const call: Call = { gitDir, command: "rev-parse", options: ["--verify", "--quiet"], names: [`${commit}^{tree}`] }
  return Effect.map(GitStore.must(call), (id) => id.trim())
}

/** Applies the changes between some commits of a branch on top of another commit. */
const pick = Effect.fnUntraced(function* (
  store: GitStore.GitStore,
  into: string,
  picks: ReadonlyArray<Span>,
  message: string
) {
  let commit = into
  for (const { from, to } of picks) {
    const [before, ours, theirs] = yield* Effect.forEach([from, commit, to], (one) => treeOf(store, one))
    // git 2.38 merges only commits with a common ancestor: create one that is on no branch
    const base = yield* record(store, before!, "base")
    const sides = [yield* record(store, ours!, "ours", base), yield* record(store, theirs!, "theirs", base)] as const
    const merged = yield* mergeTrees(store, ...sides)
    if (merged._tag === "Conflict") return merged as Joined
    if (merged.tree !== ours) commit = yield* record(store, merged.tree, message, commit)
  }
  return (commit === into ? { _tag: "UpToDate" } : { _tag: "Merged", commit }) as Joined
})

/** Merges a commit into another. The result is a commit that no branch points to. */
const join = Effect.fnUntraced(function* (store: GitStore.GitStore, into: string, head: string, message: string) {
  if (yield* GitStore.isAncestor(store, head, into)) return { _tag: "UpToDate" } as Joined
  if (yield* GitStore.isAncestor(store, into, head)) return { _tag: "Merged", commit: head } as Joined
  const merged = yield* mergeTrees(store, into, head)
  if (merged._tag === "Conflict") return merged as Joined
  return { _tag: "Merged", commit: yield* record(store, merged.tree, message, into, head) } as Joined
})

/** Joins adjacent spans, so that a thousand consecutive tasks need a single git call. */
const joined = (spans: Work["spans"]): Work["spans"] => {
  const open = new Map(spans.flatMap(({ from, to }) => (from === to ? [] : [[`${from} ${to}`, { from, to }] as const])))
  const next = new Map([...open.values()].map((span) => [span.from, span]))
  const ends = new Set([...open.values()].map(({ to }) => to))
  const starts = [...open.values()].filter((span) => !ends.has(span.from ?? "") || next.get(span.from) !== span)
  return starts.map(({ from, to }) => {
    let end = to
    // the agent's branch may have been moved back to an earlier commit
    const seen = new Set<string | null>([from, to])
    for (let on = next.get(end); on !== undefined && !seen.has(on.to); on = next.get(end)) {
      end = on.to
      seen.add(end)
    }
    return { from, to: end }
  })
}

/** Lines of `git log` in the given format, newest first. */
const listed = (store: GitStore.GitStore, most: number, format: string, ...range: ReadonlyArray<string>) =>
  Effect.map(
    GitStore.must({
      gitDir: store.gitDir,
      command: "log",
      options: [`--max-count=${most}`, `--format=${format}`],
      names: range,
      paths: []
    }),
    (lines) => lines.split("\n").filter((line) => line !== "")
  )

/** `<hash> <subject>` of the branch's new commits that no task of the goal made, newest first. */
export const foreign = Effect.fnUntraced(function* (
  store: GitStore.GitStore,
  target: string,
  { head, spans }: Pick<Work, "head" | "spans">
) {
  const own = new Set<string>()
  for (const { from, to } of joined(spans)) {
    if (from === null) continue
    for (const line of yield* listed(store, MAX_COMMITS, "%H %s", to, `^${from}`)) own.add(line)
  }
  return (yield* listed(store, MAX_COMMITS, "%H %s", head, `^${target}`))
    .filter((line) => !own.has(line))
    .map((line) => `${line.slice(0, 12)}${line.slice(line.indexOf(" "))}`.slice(0, MAX_SUBJECT))
})

/**
 * Commits that are on a branch but not on the target, oldest first. Consecutive commits of the same goal, or of no
 * goal, form one span.
 */
export const parted = Effect.fnUntraced(function* (
  store: GitStore.GitStore,
  target: string,
  head: string,
  tries: ReadonlyArray<Try>
) {
  const options = [`--max-count=${MAX_COMMITS}`, "--format=%H %P", "--first-parent"]
  const names = [head, `^${target}`]
  const lines = (yield* GitStore.must({ gitDir: store.gitDir, command: "log", options, names, paths: [] }))
    .trim()
    .split("\n")
  const runs: Array<Span & { readonly goalId: string | undefined }> = []
  let goalId: string | undefined = undefined
  for (const line of lines.toReversed()) {
    const [to = "", from = ""] = line.split(" ")
    const begun = tries.findLast((one) => one.from === from && one.to !== from)
    if (begun !== undefined) goalId = begun.goalId
    else if (tries.some((one) => one.to === from)) goalId = undefined
    const last = runs.at(-1)
    if (last !== undefined && last.goalId === goalId) runs[runs.length - 1] = { ...last, to }
    else runs.push({ from, to, goalId })
  }
  return runs
})

/** Merges the branches one after the other. A branch that conflicts is left out and reported. */
export const combine = Effect.fnUntraced(function* (
  store: GitStore.GitStore,
  base: string,
  works: ReadonlyArray<Work>,
  what: string
) {
  let commit = base
  const results: Array<MergeResult> = []
  for (const { branch, head, picks, tasks } of works) {
    const message = `Merge ${branch}: ${what}`
    const joined = yield* picks === undefined ? join(store, commit, head, message) : pick(store, commit, picks, message)
    if (joined._tag === "Merged") commit = joined.commit
    results.push({
      branch,
      head,
      tasks,
      outcome: joined._tag === "Merged" ? "merged" : joined._tag === "UpToDate" ? "up-to-date" : "conflict",
      conflicts: joined._tag === "Conflict" ? joined.files : []
    })
  }
  return { commit, results }
})

/** The default target branch: the one that the user has checked out. Undefined if none is checked out. */
export const currentBranch = Effect.fnUntraced(function* ({ person }: GitStore.GitStore) {
  return (yield* Repository.headOf(person.gitDir))?.branch
})

/** The outcome of a merge: the branch was moved, or the user's git must move it in its checkout. */
export interface Merged {
  readonly results: ReadonlyArray<MergeResult>
  /** A checkout of the branch, and the commit to which it must be moved. The repository has that commit. */
  readonly toCheckout: { readonly folder: string; readonly from: string; readonly commit: string } | undefined
}

/** Merges all work that does not conflict into a branch. */
export const into = Effect.fn("Merge.into")(function* (
  store: GitStore.GitStore,
  branch: string,
  works: ReadonlyArray<Work>,
  of: { readonly goalId: string; readonly what: string }
) {
  const from = yield* GitStore.commitOf(store, `refs/heads/${branch}`)
  if (from === undefined) {
    return yield* refuse(`There is no branch "${branch}".`, `create it: git -C ${store.person.top} branch ${branch}`)
  }
  const { commit, results } = yield* combine(store, from, works, of.what)
  if (commit === from) return { results, toCheckout: undefined } as Merged
  const ref = `refs/merges/${of.goalId}`
  const { commonDir } = store.person
  yield* GitStore.must({ gitDir: store.gitDir, command: "update-ref", names: [ref, commit] })
  const give = (to: string) => ({ gitDir: commonDir, command: "fetch", names: [store.gitDir, `${ref}:${to}`] }) as const
  const checkout = (yield* Repository.checkouts(store.person)).find((one) => one.branch === branch)
  if (checkout !== undefined) {
    // the branch is checked out: store the commit where the user's git can find it
    yield* GitStore.must({ ...give(""), names: [store.gitDir, `+${ref}:refs/agentd/merges/${of.goalId}`] }, "person")
    return { results, toCheckout: { folder: checkout.folder, from, commit } } as Merged
  }
  const call = give(`refs/heads/${branch}`)
  const answer = yield* GitStore.ask(call, "person")
  if (answer.code === 0) return { results, toCheckout: undefined } as Merged
  if (/non-fast-forward/.test(answer.stderr))
    return yield* refuse(`${branch} has changed in the meantime.`, "merge again")
  return yield* GitStore.failed(call, answer)
})

/** The results of a merge that the user's git has done in a checkout. */
export const seen = Effect.fnUntraced(function* (
  store: GitStore.GitStore,
  branch: string,
  works: ReadonlyArray<Work>,
  done: { readonly from: string; readonly commit: string }
) {
  const tip = yield* GitStore.commitOf(store, `refs/heads/${branch}`)
  if (tip === undefined || !(yield* GitStore.isAncestor(store, done.commit, tip)))
    return yield* refuse(`${branch} does not have ${done.commit.slice(0, 12)}.`, "merge again")
  const { results } = yield* combine(store, done.from, works, "")
  return { results, toCheckout: undefined } as Merged
})

/** The commits between two commits: `<hash> <subject>`, newest first. */
export const commitsBetween = (store: GitStore.GitStore, base: string, head: string, most: number) =>
  Effect.map(listed(store, most, "%h %s", head, `^${base}`), (lines) => lines.map((line) => line.slice(0, MAX_SUBJECT)))

/** Tracked files of a checkout that have uncommitted changes. */
export const uncommitted = (store: GitStore.GitStore, folder: string) => GitStore.changes(store, folder, "no")
