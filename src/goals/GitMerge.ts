/**
 * GitMerge: done work, brought together: in a commit that no branch knows, for the
 * checks; or into a target branch, for a person.
 *
 * Guarantees: nothing is forced: a branch moves only from where it was looked at, by
 * a merge; a checkout with changes of its own is not touched; what conflicts is
 * named by its files and left alone. Only commits of done tasks are merged, not what
 * an agent has done since.
 */
import { Effect, Schema } from "effect"
import { type Answer, git, GitUnavailable } from "../backends/Git.ts"
import type { MergeResult } from "../domain/GoalMessages.ts"

export class MergeRefused extends Schema.TaggedError<MergeRefused>()("MergeRefused", {
  message: Schema.String,
  remedy: Schema.String
}) {}

/** Most characters of a commit's subject with its hash. */
const MAX_SUBJECT = 200

/** The work on one branch. */
export interface Work {
  readonly branch: string
  /** The commit of its last done task. */
  readonly head: string
  readonly tasks: ReadonlyArray<string>
  /** The commits between which the tasks were worked on; a span without a known beginning counts for nothing. */
  readonly spans: ReadonlyArray<{ readonly from: string | null; readonly to: string }>
}

/** Commits that a branch has before the target, of which this many are looked at. */
const MAX_COMMITS = 10_000

const refuse = (message: string, remedy: string) => new MergeRefused({ message, remedy })

const must = Effect.fnUntraced(function* (folder: string, ...args: ReadonlyArray<string>) {
  const answer = yield* git(folder, ...args)
  if (answer.code === 0) return answer.stdout.trim()
  return yield* refuse(
    `git ${args.slice(0, 2).join(" ")} failed: ${answer.stderr || answer.stdout.slice(0, 500)}`,
    `see what "git -C ${folder} ${args.join(" ")}" says`
  )
})

/** Git's answers for a folder that has no commits and no branches. */
const NO_REPOSITORY = /not a git repository|cannot change to/

/** Git's answer to a question that it may deny; one that it cannot answer fails. */
const answered = Effect.fnUntraced(function* (folder: string, ...args: ReadonlyArray<string>) {
  const answer = yield* git(folder, ...args)
  if (answer.code === 0 || answer.code === 1 || NO_REPOSITORY.test(answer.stderr)) return answer
  return yield* new GitUnavailable({
    message: `git ${args[0]} failed: ${answer.stderr}`,
    remedy: `see what "git -C ${folder} ${args.join(" ")}" says`
  })
})

/** The commit that a name stands for. */
export const commitOf = (folder: string, name: string): Effect.Effect<string | undefined, GitUnavailable> =>
  Effect.map(answered(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`), (answer) =>
    answer.code === 0 ? answer.stdout.trim() : undefined
  )

/** The author of merge commits that no branch points to. */
const AS_AGENTD = ["-c", "user.name=agentd", "-c", "user.email=agentd@localhost"] as const

type Joined =
  | { readonly _tag: "UpToDate" }
  | { readonly _tag: "Merged"; readonly commit: string }
  | { readonly _tag: "Conflict"; readonly files: ReadonlyArray<string> }

const conflictsIn = ({ stdout }: Answer): ReadonlyArray<string> => {
  // the tree, then the files up to an empty line, then words
  const lines = stdout.split("\n").slice(1)
  const end = lines.indexOf("")
  return [...new Set(lines.slice(0, end === -1 ? undefined : end))].filter((line) => line !== "")
}

/** The merge of two commits, as a commit that no branch points to. */
const join = Effect.fnUntraced(function* (repository: string, into: string, head: string, message: string) {
  if ((yield* answered(repository, "merge-base", "--is-ancestor", head, into)).code === 0) {
    return { _tag: "UpToDate" } as Joined
  }
  if ((yield* answered(repository, "merge-base", "--is-ancestor", into, head)).code === 0) {
    return { _tag: "Merged", commit: head } as Joined
  }
  const merged = yield* git(repository, "merge-tree", "--write-tree", "--name-only", into, head)
  if (merged.code === 1) return { _tag: "Conflict", files: conflictsIn(merged) } as Joined
  if (merged.code !== 0) {
    return yield* refuse(
      `git cannot merge ${head.slice(0, 12)}: ${merged.stderr || merged.stdout.slice(0, 500)}`,
      "see that git is 2.38 or newer, and that the branches have a common beginning"
    )
  }
  const tree = merged.stdout.split("\n")[0]!.trim()
  const commit = yield* must(repository, ...AS_AGENTD, "commit-tree", tree, "-p", into, "-p", head, "-m", message)
  return { _tag: "Merged", commit } as Joined
})

/** Joins spans that begin where another ends: a thousand tasks in a row are one question to git. */
const joined = (spans: Work["spans"]): Work["spans"] => {
  const open = new Map(spans.flatMap(({ from, to }) => (from === to ? [] : [[`${from} ${to}`, { from, to }] as const])))
  const next = new Map([...open.values()].map((span) => [span.from, span]))
  const ends = new Set([...open.values()].map(({ to }) => to))
  const starts = [...open.values()].filter((span) => !ends.has(span.from ?? "") || next.get(span.from) !== span)
  return starts.map(({ from, to }) => {
    let end = to
    // an agent may have taken its branch back to where it was
    const seen = new Set<string | null>([from, to])
    for (let on = next.get(end); on !== undefined && !seen.has(on.to); on = next.get(end)) {
      end = on.to
      seen.add(end)
    }
    return { from, to: end }
  })
}

/** `<hash> <subject>` of what a branch would bring along that no task of the goal has made, newest first. */
export const foreign = Effect.fnUntraced(function* (
  repository: string,
  target: string,
  { head, spans }: Pick<Work, "head" | "spans">
) {
  const listed = (...range: ReadonlyArray<string>) =>
    Effect.map(must(repository, "log", `--max-count=${MAX_COMMITS}`, "--format=%H %s", ...range), (lines) =>
      lines.split("\n").filter((line) => line !== "")
    )
  const own = new Set<string>()
  for (const { from, to } of joined(spans)) {
    if (from === null) continue
    for (const line of yield* listed(to, `^${from}`)) own.add(line)
  }
  return (yield* listed(head, `^${target}`))
    .filter((line) => !own.has(line))
    .map((line) => `${line.slice(0, 12)}${line.slice(line.indexOf(" "))}`.slice(0, MAX_SUBJECT))
})

/** Merges one work after the other; a conflict is left out and named. */
export const combine = Effect.fnUntraced(function* (
  repository: string,
  base: string,
  works: ReadonlyArray<Work>,
  what: string
) {
  let commit = base
  const results: Array<MergeResult> = []
  for (const { branch, head, tasks } of works) {
    const joined = yield* join(repository, commit, head, `Merge ${branch}: ${what}`)
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

/** The folder in which a branch is checked out; undefined where there is none. */
const checkoutOf = Effect.fnUntraced(function* (repository: string, branch: string) {
  const list = yield* must(repository, "worktree", "list", "--porcelain")
  const block = list.split("\n\n").find((entry) => entry.split("\n").includes(`branch refs/heads/${branch}`))
  return block?.split("\n")[0]?.replace(/^worktree /, "")
})

/** The branch that work goes into by default. */
export const currentBranch = Effect.fnUntraced(function* (repository: string) {
  const answer = yield* git(repository, "symbolic-ref", "--quiet", "--short", "HEAD")
  return answer.code === 0 ? answer.stdout.trim() : undefined
})

/** Moves the branch and its checkout together; git itself looks after local changes. */
const advance = Effect.fnUntraced(function* (repository: string, branch: string, from: string, to: string) {
  const checkout = yield* checkoutOf(repository, branch)
  if (checkout === undefined) {
    yield* must(repository, "update-ref", "-m", "agentd goal merge", `refs/heads/${branch}`, to, from)
    return
  }
  const changes = yield* must(checkout, "status", "--porcelain", "--untracked-files=no")
  if (changes !== "") {
    return yield* refuse(
      `${branch} is checked out in ${checkout}, which has changes that are not committed: ${changes.split("\n").slice(0, 3).join(", ")}`,
      "commit them or stash them, then merge again"
    )
  }
  const head = yield* commitOf(checkout, "HEAD")
  if (head !== from) return yield* refuse(`${branch} has moved meanwhile.`, "merge again")
  yield* must(checkout, "merge", "--ff-only", "--quiet", to)
})

/** Merges works into a branch, as far as nothing conflicts. */
export const into = Effect.fn("Merge.into")(function* (
  repository: string,
  branch: string,
  works: ReadonlyArray<Work>,
  what: string
) {
  const from = yield* commitOf(repository, `refs/heads/${branch}`)
  if (from === undefined) {
    return yield* refuse(`There is no branch "${branch}".`, `make it: git -C ${repository} branch ${branch}`)
  }
  const { commit, results } = yield* combine(repository, from, works, what)
  if (commit !== from) yield* advance(repository, branch, from, commit)
  return results
})

/** The commits in a folder since a commit: `<hash> <subject>`, newest first. */
export const commitsSince = Effect.fnUntraced(function* (folder: string, base: string, most: number) {
  const answer = yield* git(folder, "log", `--max-count=${most}`, "--format=%h %s", `${base}..HEAD`)
  return answer.code === 0
    ? answer.stdout.split("\n").flatMap((line) => (line === "" ? [] : [line.slice(0, MAX_SUBJECT)]))
    : []
})

/** Tracked files that are changed and not committed. */
export const uncommitted = Effect.fnUntraced(function* (folder: string) {
  const changes = yield* must(folder, "status", "--porcelain", "--untracked-files=no")
  return changes.split("\n").filter((line) => line !== "")
})
