/**
 * Git: a person's repository with its checkout, and the repositories of agents that borrow from
 * it, in the world's files: what git's
 * commands answer and change, as far as the daemon, its agents and people use them.
 *
 * Guarantees: a commit is a tree of files and never changes; a checkout is a folder whose
 * files anybody may change; a command takes its time, and what it does happens at one moment
 * of that time, whether or not the daemon that ran it still lives. A command that is cut off
 * leaves behind what git leaves: an `index.lock`, half of the files.
 */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { type Answer, type Call, GitUnavailable, type Run } from "../../../src/runs/git/Git.ts"
import { type Touch, untouched } from "../Boundaries.ts"
import { type Lurks, never, type Strikes, unseen } from "./Strikes.ts"
import type { Chance } from "../Chance.ts"
import type { Life, Universe } from "../Universe.ts"
import type { Files } from "./Files.ts"
import * as Merge from "./Merge.ts"

type Tree = Merge.Tree

export interface Commit {
  readonly id: string
  readonly number: number
  readonly tree: Tree
  readonly parents: ReadonlyArray<string>
  readonly subject: string
}

/** A folder with the files of a commit. */
export interface Checkout {
  readonly folder: string
  /** The branch that it is on. */
  branch: string
  /** The commit of that branch in a repository of an agent's own; undefined where the branch is the person's. */
  own: string | undefined
  /** The files as git last saw them. */
  index: Tree
  /** Another git is at its index, or was cut off there. */
  hasIndexLock: boolean
}

/** How git misbehaves in a world. */
export interface GitFaults {
  /** The longest that a command takes, ms. */
  readonly slowest: number
  /** Probabilities of one command. */
  readonly fails: number
  readonly isAbsent: number
  readonly findsLock: number
  readonly isCutOff: number
}

/** The view of the repository from outside. */
export interface GitWitness {
  /** A command of the daemon has changed something. */
  readonly changed: (what: string, before: ReadonlySet<string>) => void
  /** A command of the daemon takes a checkout away that holds these. */
  readonly removed: (folder: string, work: ReadonlyArray<string>) => void
}

const MUTATES = /^(update-ref|fetch|read-tree|reset|commit-tree)/
/** Commands that write the index of the tree in which they run. */
const INDEXES = /^(read-tree|reset)/
const well = (stdout = ""): Answer => ({ code: 0, stdout, stderr: "" })
const bad = (code: number, stderr = "", stdout = ""): Answer => ({ code, stdout, stderr })
const sha = (text: string): string => createHash("sha1").update(text).digest("hex")

/** A git folder of the daemon's own: its refs, and the files that its index knows. */
interface Folder {
  readonly refs: Map<string, string>
  index: Tree
}

/** The tree of a repository without commits. */
const nothing: Tree = new Map()

/** A command whose moment has not come: it happens, or happens half, or never. */
type UnderWay = (how: "whole" | "half" | "never") => void

export class Git {
  readonly root: string
  readonly commits = new Map<string, Commit>()
  readonly branches = new Map<string, string>()
  readonly checkouts = new Map<string, Checkout>()
  private readonly trees = new Map<string, Tree>()
  /** The daemon's own git folders, by their paths. */
  private readonly folders = new Map<string, Folder>()
  isUnruly = true
  touch: Touch = untouched
  strikes: Strikes = unseen
  lurks: Lurks = never
  witness: GitWitness = { changed: () => {}, removed: () => {} }
  private readonly underWay = new Set<UnderWay>()
  private readonly universe: Universe
  private readonly chance: Chance
  private readonly files: Files
  private readonly faults: GitFaults

  constructor(
    universe: Universe,
    of: { readonly root: string; readonly chance: Chance; readonly files: Files; readonly faults: GitFaults },
    first: Tree
  ) {
    this.universe = universe
    this.root = of.root
    this.chance = of.chance
    this.files = of.files
    this.faults = of.faults
    this.branches.set("main", this.record(first, [], "first"))
    for (const [path, text] of first) this.files.write(`${this.root}/${path}`, text)
    this.files.write(`${this.root}/.git/HEAD`, "ref: refs/heads/main\n")
    this.files.write(`${this.root}/.git/config`, "[core]\n")
    this.place({ folder: this.root, branch: "main", own: undefined, index: first })
    this.files.removes = (path) => this.goes(path)
  }

  // Commits.

  private record(tree: Tree, parents: ReadonlyArray<string>, subject: string): string {
    const number = this.commits.size + 1
    const id = sha(JSON.stringify([number, [...tree], parents, subject]))
    this.commits.set(id, { id, number, tree, parents, subject })
    return id
  }

  private treeOf(id: string | undefined): Tree {
    return (id === undefined ? undefined : this.commits.get(id)?.tree) ?? nothing
  }

  headOf(checkout: Checkout): string {
    return checkout.own ?? this.branches.get(checkout.branch)!
  }

  /** A commit and all before it. */
  history(...from: ReadonlyArray<string | undefined>): Set<string> {
    const seen = new Set<string>()
    const open = [...from]
    for (let id = open.pop(); open.length > 0 || id !== undefined; id = open.pop()) {
      if (id === undefined || seen.has(id)) continue
      seen.add(id)
      open.push(...(this.commits.get(id)?.parents ?? []))
    }
    return seen
  }

  /** The commits that the first parents lead to. */
  private firsts(from: string | undefined): ReadonlyArray<string> {
    const line: Array<string> = []
    for (let id = from; id !== undefined; id = this.commits.get(id)?.parents[0]) line.push(id)
    return line
  }

  isAncestor(older: string, newer: string): boolean {
    return this.history(newer).has(older)
  }

  /** All that a branch or a checkout still leads to. */
  get reachable(): Set<string> {
    return this.history(
      ...this.branches.values(),
      ...[...this.checkouts.values()].map((checkout) => this.headOf(checkout))
    )
  }

  /** The common beginning of two commits; where they have more than one, these merged, as git has it. */
  private baseOf(a: string, b: string): Tree {
    const ofB = this.history(b)
    const common = [...this.history(a)].filter((id) => ofB.has(id)).map((id) => this.commits.get(id)!)
    const within = new Set<string>()
    const bases = common
      .toSorted((x, y) => y.number - x.number)
      .filter(({ id }) => {
        if (within.has(id)) return false
        for (const older of this.history(id)) within.add(older)
        return true
      })
    const [first, ...others] = bases
    return others.reduce(
      (tree, { id }) => Merge.merge(this.baseOf(first!.id, id), tree, this.treeOf(id)).tree,
      this.treeOf(first?.id)
    )
  }

  private merged(a: string, b: string): Merge.Merged {
    return Merge.merge(this.baseOf(a, b), this.treeOf(a), this.treeOf(b))
  }

  private find(name: string, checkout: Checkout | undefined): string | undefined {
    if (name === "HEAD") return checkout === undefined ? undefined : this.headOf(checkout)
    const branch = this.branches.get(name.replace(/^refs\/heads\//, ""))
    return branch ?? (this.commits.has(name) ? name : undefined)
  }

  // Checkouts.

  private place(of: Omit<Checkout, "hasIndexLock">): void {
    this.checkouts.set(of.folder, { ...of, hasIndexLock: false })
  }

  /** The daemon removes a folder: with it goes an agent's repository. */
  private goes(folder: string): void {
    const checkout = this.checkouts.get(folder)
    if (checkout?.own === undefined) return
    const before = this.reachable
    const { changed, unknown } = this.dirt(checkout)
    this.witness.removed(folder, [...changed, ...unknown])
    this.checkouts.delete(folder)
    this.folders.delete(`${folder}/.git`)
    this.universe.note(`${folder} is removed`)
    this.witness.changed(`removed ${folder}`, before)
  }

  /** The checkout that a folder lies in. */
  checkoutOf(folder: string): Checkout | undefined {
    const found = [...this.checkouts.values()].filter(
      (one) => (folder === one.folder || folder.startsWith(`${one.folder}/`)) && this.files.has(`${one.folder}/.git`)
    )
    return found.toSorted((a, b) => b.folder.length - a.folder.length)[0]
  }

  /** The files of a checkout as they lie there. */
  private work({ folder }: Pick<Checkout, "folder">): Map<string, string> {
    return this.files.texts(folder, (path) => !/^\.git(\/|$)/.test(path) && !path.endsWith(".jsonc"))
  }

  /** Tracked files that are changed, and files that git does not know. */
  dirt(checkout: Checkout): { readonly changed: ReadonlyArray<string>; readonly unknown: ReadonlyArray<string> } {
    const head = this.treeOf(this.headOf(checkout))
    const work = this.work(checkout)
    const tracked = new Set([...head.keys(), ...checkout.index.keys()])
    const changed = [...tracked].filter(
      (path) => head.get(path) !== checkout.index.get(path) || checkout.index.get(path) !== work.get(path)
    )
    return { changed, unknown: [...work.keys()].filter((path) => !tracked.has(path)) }
  }

  /** Files that differ from the commit's are made as the commit has them. */
  private take(checkout: Checkout, tree: Tree, half = false): void {
    const paths = [...new Set([...checkout.index.keys(), ...tree.keys()])].filter(
      (path) => tree.get(path) !== checkout.index.get(path)
    )
    for (const path of half ? paths.slice(0, Math.ceil(paths.length / 2)) : paths) {
      const text = tree.get(path)
      if (text === undefined) this.files.remove(`${checkout.folder}/${path}`)
      else this.files.write(`${checkout.folder}/${path}`, text)
    }
    if (half) checkout.hasIndexLock = true
    else checkout.index = tree
  }

  private moveTo(checkout: Checkout, commit: string): void {
    if (checkout.own === undefined) this.branches.set(checkout.branch, commit)
    else checkout.own = commit
  }

  // What agents and people do by themselves.

  /** Commits all that lies in the folder; undefined where nothing is new, or another git is at it. */
  commit(folder: string, subject: string): string | undefined {
    const checkout = this.checkoutOf(folder)
    if (checkout === undefined || checkout.hasIndexLock) return undefined
    const tree = this.work(checkout)
    const head = this.headOf(checkout)
    if (Merge.isSame(tree, this.treeOf(head))) return undefined
    const id = this.record(tree, [head], subject)
    checkout.index = tree
    this.moveTo(checkout, id)
    this.universe.note(`commit ${id.slice(0, 12)} ${subject}`)
    return id
  }

  /** Merges a commit into the checkout; conflicts are solved by taking both sides. */
  mergeHere(folder: string, commit: string): void {
    const checkout = this.checkoutOf(folder)
    if (checkout === undefined || checkout.hasIndexLock) return
    const head = this.headOf(checkout)
    if (this.isAncestor(commit, head)) return
    const { conflicts, tree } = this.merged(head, commit)
    const solved = new Map(tree)
    const both = (path: string) => [this.treeOf(head).get(path), this.treeOf(commit).get(path)].join("\n")
    for (const path of conflicts) solved.set(path, both(path))
    this.take(checkout, solved)
    const id = this.isAncestor(head, commit) ? commit : this.record(solved, [head, commit], `Merge ${commit}`)
    checkout.index = solved
    this.moveTo(checkout, id)
  }

  /** A person takes away what a git that was cut off has left in the person's own checkout. */
  unlock(desk: ReadonlyMap<string, string>): void {
    const checkout = this.checkouts.get(this.root)!
    if (!checkout.hasIndexLock) return
    checkout.hasIndexLock = false
    const head = this.treeOf(this.headOf(checkout))
    checkout.index = head
    for (const path of new Set([...head.keys(), ...this.work(checkout).keys()])) {
      const text = head.get(path)
      if (desk.has(path)) continue
      if (text === undefined) this.files.remove(`${this.root}/${path}`)
      else this.files.write(`${this.root}/${path}`, text)
    }
  }

  // The commands.

  /** As one life of the daemon runs git. */
  readonly of =
    (life: Life): Run =>
    (call) => {
      const { command, gitDir, options = [], workTree } = call
      return this.played(life, [command, ...options].join(" "), (half) =>
        this.files.has(gitDir) || this.files.has(`${workTree}`)
          ? this.answers(call, half)
          : bad(128, `fatal: not a git repository: '${gitDir}'`)
      )
    }

  /** A command that takes its time, and does what it does at one moment of it. */
  private played(life: Life, name: string, carryOut: (half: boolean) => Answer) {
    return Effect.callback<Answer, GitUnavailable>((resume) => {
      if (!this.touch("git: before")) return
      const { chance, faults } = this
      const roll = this.isUnruly ? chance.unit() : 1
      const isAbsent = this.lurks("noGit") || (this.isUnruly && chance.is(faults.isAbsent))
      const cutOff = this.isUnruly && chance.is(faults.isCutOff)
      const takes = chance.skewed(0.5, this.isUnruly ? faults.slowest : 20)
      const happensAt = takes * chance.unit()
      let answer: Answer | undefined
      const happen: UnderWay = (how) => {
        this.underWay.delete(happen)
        if (answer !== undefined) return
        if (how === "never") return void (answer = bad(137, "Killed"))
        const isLost = roll < faults.fails
        if (isLost || isAbsent) this.strikes("noGit")
        const isLocked = !isLost && roll < faults.fails + faults.findsLock && INDEXES.test(name)
        answer = isLost
          ? bad(128, "fatal: unable to create thread: Resource temporarily unavailable")
          : isLocked
            ? bad(128, "fatal: Unable to create '.git/index.lock': File exists.")
            : carryOut(how === "half")
      }
      this.underWay.add(happen)
      // git goes on without the daemon that has started it
      this.universe.later(happensAt, () => happen(cutOff && MUTATES.test(name) ? "half" : "whole"))
      this.universe.later(
        takes,
        () => {
          happen("whole")
          if (!this.touch("git: after")) return
          if (isAbsent)
            return resume(Effect.fail(new GitUnavailable({ message: `git ${name}`, remedy: "install git" })))
          resume(Effect.succeed(cutOff && MUTATES.test(name) ? bad(137, "Killed") : answer!))
        },
        life
      )
      return Effect.sync(() => happen("never"))
    })
  }

  /** The machine is off: what was under way is not done, or is half done. */
  powerCut(): void {
    for (const one of this.underWay) {
      one(this.chance.is(0.5) ? "half" : "never")
    }
  }

  // The daemon's own git folders.

  /** The git folder of the daemon's: trees share the refs of the store that they lie in. */
  private folderOf(gitDir: string): Folder {
    const known = this.folders.get(gitDir)
    if (known !== undefined) return known
    const store = /^(.*)\/trees\/[^/]+$/.exec(gitDir)?.[1]
    const made = { refs: store === undefined ? new Map<string, string>() : this.folderOf(store).refs, index: nothing }
    this.folders.set(gitDir, made)
    return made
  }

  private commitIn({ refs }: Folder, name: string): string | undefined {
    const word = name.replace(/^[+^]/, "").replace(/\^\{commit\}$/, "")
    return refs.get(word) ?? (this.commits.has(word) ? word : undefined)
  }

  /** Answers in a git folder of the daemon's, or where git gives the person's a commit. */
  private answers(call: Call, half: boolean): Answer {
    const { command, gitDir, names = [], options = [], workTree } = call
    const folder = this.folderOf(gitDir)
    const [first, second] = names.map((name) => this.commitIn(folder, name))
    if (gitDir === `${this.root}/.git` && command !== "fetch") return this.inRepository(call, half)
    if (half && MUTATES.test(command) && command !== "reset") return bad(137, "Killed")
    switch (command) {
      case "fetch":
        return this.fetches(folder, call)
      case "update-ref":
        if (options[0] === "-d") folder.refs.delete(names[0]!)
        else folder.refs.set(names[0]!, names[1]!)
        return well()
      case "rev-parse":
        if (names[0]!.endsWith("^{tree}")) return well(`${this.keep(this.treeOf(names[0]!.slice(0, -7)))}\n`)
        return first === undefined ? bad(1) : well(`${first}\n`)
      case "merge-base":
        if (first === undefined || second === undefined) return bad(128, "fatal: Not a valid commit name")
        return this.isAncestor(first, second) ? well() : bad(1)
      case "merge-tree":
        return first === undefined || second === undefined
          ? bad(128, "not something we can merge")
          : this.mergesTrees(first, second)
      case "commit-tree":
        return this.commitsTree(names[0]!, options)
      case "log":
        return this.logged(folder, names, options)
      case "read-tree":
        folder.index = this.treeOf(first)
        return well()
      case "for-each-ref":
        return well([...folder.refs.keys()].filter((name) => name.startsWith(names[0]!)).join("\n"))
      case "update-index":
      case "ls-files":
      case "ls-tree":
      case "check-attr":
        return well()
      case "status":
        return this.looks(folder, workTree!, options)
      case "reset":
        return this.writes(folder, workTree!, options[0]!, half)
      default:
        throw new Error(`git ${command} is not in this world`)
    }
  }

  private keep(tree: Tree): string {
    const id = sha(JSON.stringify([...tree]))
    this.trees.set(id, tree)
    return id
  }

  private mergesTrees(a: string, b: string): Answer {
    const { conflicts, tree } = this.merged(a, b)
    const id = this.keep(tree)
    return conflicts.length === 0 ? well(`${id}\n`) : bad(1, "", `${id}\n${conflicts.join("\n")}\n\nCONFLICT\n`)
  }

  private commitsTree(tree: string, options: ReadonlyArray<string>): Answer {
    const parents = options.flatMap((name, at) => (options[at - 1] === "-p" ? [name] : []))
    return well(`${this.record(this.trees.get(tree)!, parents, options.at(-1)!)}\n`)
  }

  private logged(folder: Folder, given: ReadonlyArray<string>, options: ReadonlyArray<string>): Answer {
    const shape = options[1]!
    const not = options.indexOf("--not")
    const globbed = options.flatMap((option, at) => {
      const start = /^--glob=(.*)\*$/.exec(option)?.[1]
      const refs = [...folder.refs.keys()].filter((name) => start !== undefined && name.startsWith(start))
      return refs.map((name) => (not !== -1 && at > not ? `^${name}` : name))
    })
    const names = [...given, ...globbed]
    const found = names.map((name) => ({ not: name.startsWith("^"), id: this.commitIn(folder, name) }))
    if (found.some(({ id }) => id === undefined)) return bad(128, `fatal: bad revision '${names.join(" ")}'`)
    const without = this.history(...found.flatMap(({ id, not }) => (not ? [id] : [])))
    const from = found.flatMap(({ id, not }) => (not ? [] : [id]))
    const all = options.includes("--first-parent") ? this.firsts(from[0]) : this.history(...from)
    const lines = [...all]
      .filter((id) => !without.has(id))
      .map((id) => this.commits.get(id)!)
      .toSorted((a, b) => b.number - a.number)
      .map(({ id, parents, subject }) =>
        shape.includes("%P") ? `${id} ${parents.join(" ")}` : `${shape.includes("%H") ? id : id.slice(0, 9)} ${subject}`
      )
    return well(lines.length === 0 ? "" : `${lines.join("\n")}\n`)
  }

  private fetches(into: Folder, { gitDir, names = [] }: Call): Answer {
    const [from, ...specs] = names
    if (gitDir === `${this.root}/.git`) return this.given(this.folderOf(from!), specs)
    for (const spec of specs) {
      const [source, target] = spec.replace("+", "").split(":") as [string, string]
      if (source === "refs/heads/*" && target.startsWith("refs/agents/")) {
        const checkout = this.checkoutOf(from!)
        if (checkout !== undefined) into.refs.set(target.replace("*", checkout.branch), this.headOf(checkout))
      } else if (source === "refs/heads/*") {
        for (const name of into.refs.keys()) if (name.startsWith("refs/person/heads/")) into.refs.delete(name)
        for (const [branch, commit] of this.branches) into.refs.set(`refs/person/heads/${branch}`, commit)
      } else if (source === "HEAD") {
        const checkout = this.checkoutOf(from!)
        if (checkout === undefined) return bad(128, `fatal: '${from}' does not appear to be a git repository`)
        into.refs.set(target, this.headOf(checkout))
      } else if (!source.endsWith("*")) {
        const commit = this.folderOf(from!).refs.get(source)
        if (commit === undefined) return bad(128, `fatal: couldn't find remote ref ${source}`)
        into.refs.set(target, commit)
      }
    }
    return well()
  }

  /** Commits arrive in the person's repository: a branch moves by a fast-forward, and from under no checkout. */
  private given(from: Folder, specs: ReadonlyArray<string>): Answer {
    const before = this.reachable
    for (const spec of specs) {
      const [source, target] = spec.replace("+", "").split(":") as [string, string]
      const { refs } = this.folderOf(`${this.root}/.git`)
      if (source.endsWith("*")) {
        const [of, to] = [source.slice(0, -1), target.slice(0, -1)]
        for (const name of refs.keys()) if (name.startsWith(to)) refs.delete(name)
        for (const [name, commit] of from.refs) if (name.startsWith(of)) refs.set(name.replace(of, to), commit)
        continue
      }
      const commit = from.refs.get(source)
      if (commit === undefined) return bad(128, `fatal: couldn't find remote ref ${source}`)
      if (!target.startsWith("refs/heads/")) {
        refs.set(target, commit)
        continue
      }
      const branch = target.slice("refs/heads/".length)
      const now = this.branches.get(branch)
      if ([...this.checkouts.values()].some((one) => one.own === undefined && one.branch === branch))
        return bad(128, `fatal: refusing to fetch into branch '${target}' checked out`)
      if (now !== undefined && !spec.startsWith("+") && !this.isAncestor(now, commit))
        return bad(1, `! [rejected] ${source} -> ${branch} (non-fast-forward)`)
      this.branches.set(branch, commit)
    }
    this.witness.changed(`fetch ${specs.join(" ")}`, before)
    return well()
  }

  /** The files of a tree against the index of the daemon's own. */
  private looks({ index }: Folder, folder: string, options: ReadonlyArray<string>): Answer {
    const work = this.work({ folder })
    const changed = [...index.keys()].filter((path) => index.get(path) !== work.get(path)).map((path) => ` M ${path}`)
    const unknown = [...work.keys()].filter((path) => !index.has(path)).map((path) => `?? ${path}`)
    return well([...changed, ...(options.includes("--untracked-files=all") ? unknown : [])].join("\0"))
  }

  /** The files of a commit, in a tree of the daemon's own. */
  private writes(of: Folder, folder: string, commit: string, half: boolean): Answer {
    const tree = this.treeOf(commit)
    const paths = [...new Set([...of.index.keys(), ...tree.keys()])]
    for (const path of half ? paths.slice(0, Math.ceil(paths.length / 2)) : paths) {
      const text = tree.get(path)
      if (text === undefined) this.files.remove(`${folder}/${path}`)
      else this.files.write(`${folder}/${path}`, text)
    }
    if (half) return bad(137, "Killed")
    of.index = tree
    const branch = /^ref: refs\/heads\/(agentd\/.+)\n$/.exec(this.files.text(`${folder}/.git/HEAD`) ?? "")?.[1]
    if (branch !== undefined) this.place({ folder, branch, own: commit, index: tree })
    return well()
  }

  /** The person's own git, in the person's terminal: brings what is checked out to a commit that the daemon has given. */
  fastForward(folder: string, to: string): boolean {
    const checkout = this.checkouts.get(folder)
    if (checkout === undefined || checkout.hasIndexLock || this.dirt(checkout).changed.length > 0) return false
    return this.forwards(checkout, this.find(to, checkout), false).code === 0
  }

  /** In the person's repository: its branches, and what is kept by name. */
  private inRepository({ command, names = [], options = [] }: Call, half: boolean): Answer {
    const before = this.reachable
    const { refs } = this.folderOf(`${this.root}/.git`)
    switch (command) {
      case "config":
        return bad(1)
      case "rev-parse": {
        const commit = refs.get(names[0]!.replace("^{commit}", ""))
        return commit === undefined ? bad(1) : well(`${commit}\n`)
      }
      case "for-each-ref": {
        const [before, after] = names[0]!.split("*") as [string, string]
        const found = [...refs.keys()].filter((name) => name.startsWith(before) && name.endsWith(after))
        return well(found.map((name) => name.replace(/^refs\//, "")).join("\n"))
      }
      case "update-ref": {
        const answer = half ? bad(137, "Killed") : this.moves(names, options[0] === "-d")
        this.witness.changed("update-ref", before)
        return answer
      }
      default:
        throw new Error(`git ${command} is not in this world`)
    }
  }

  /** A branch is moved, or deleted, from where it is known to be. */
  private moves(names: ReadonlyArray<string>, deletes: boolean): Answer {
    if (names[0]!.startsWith("refs/agentd/")) {
      this.folderOf(`${this.root}/.git`).refs.set(names[0]!, names[1]!)
      return well()
    }
    const branch = names[0]!.replace("refs/heads/", "")
    const from = deletes ? names[1] : names[2]
    if ((this.branches.get(branch) ?? "") !== from)
      return bad(128, `fatal: cannot lock ref '${names[0]}': is at another commit`)
    if (deletes) this.branches.delete(branch)
    else this.branches.set(branch, names[1]!)
    return well()
  }

  private forwards(checkout: Checkout, to: string | undefined, half: boolean): Answer {
    const head = this.headOf(checkout)
    if (to === undefined) return bad(1, "merge: not something we can merge")
    if (this.isAncestor(to, head)) return well("Already up to date.\n")
    if (!this.isAncestor(head, to)) return bad(128, "fatal: Not possible to fast-forward, aborting.")
    const [now, then, work] = [this.treeOf(head), this.treeOf(to), this.work(checkout)]
    const moves = [...new Set([...now.keys(), ...then.keys()])].filter((path) => now.get(path) !== then.get(path))
    const inTheWay = moves.filter(
      (path) => work.get(path) !== now.get(path) || checkout.index.get(path) !== now.get(path)
    )
    if (inTheWay.length > 0) return bad(1, `error: these files would be overwritten by merge: ${inTheWay.join(" ")}`)
    this.take(checkout, then, half)
    if (half) return bad(137, "Killed")
    this.moveTo(checkout, to)
    return well()
  }
}
