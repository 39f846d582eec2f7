/**
 * Work: what agents do of goals: they plan, carry out tasks, and review, well or badly, and
 * change the files of the folder that they work in.
 *
 * Each goal is known by a word of its own (`[goal-7]`), each commit by goal, task and process.
 */
import type { Report } from "../../../src/domain/Messages.ts"
import { Chance } from "../Chance.ts"
import type { Files } from "./Files.ts"
import type { Git, GitFaults } from "./Git.ts"

export const PLANS = ["good", "cyclic", "empty", "garbage", "unknown", "prose"] as const
export const DEEDS = [
  "commits",
  "shares",
  "breaks",
  "several",
  "forgets",
  "idles",
  "fails",
  "blocks",
  "reports"
] as const
export const REVIEWS = ["satisfied", "error", "errorOfTask", "replan", "garbage", "warns"] as const
type Mood<A extends ReadonlyArray<string>> = { readonly [mood in A[number]]: number }

/** How goals fare in a seed's world. */
export interface Aims {
  /** The file's settings of goals. */
  readonly goals: object
  readonly worktree: boolean
  readonly plans: Mood<typeof PLANS>
  readonly deeds: Mood<typeof DEEDS>
  readonly reviews: Mood<typeof REVIEWS>
  /** The probability that an agent commits something in a turn that is of no goal. */
  readonly strays: number
  readonly git: GitFaults
  /** The longest that a check takes, ms; the probability that it does not run, or ends badly whatever the work. */
  readonly checkTakes: number
  readonly checkFails: number
}

export type Telling = (runId: string, report: Report) => void

/** An agent's turn as it begins. */
export interface Beginning {
  readonly agent: string
  readonly runId: string
  readonly pid: number
  readonly cwd: string
  readonly text: string
}

/** The view of the agents' work from outside. */
export interface WorkWitness {
  /** A task was given to its agent. */
  readonly taskGiven: (goal: string, task: string, of: Beginning) => void
  /** A commit was made for a task. */
  readonly committed: (goal: string, task: string, of: Beginning, commit: string) => void
}

const GOAL = /\[(goal-\d+)\]/
const TASK = /^Task ([^:\n]+): /m
const BRANCH = /\(branch (\S+) at ([0-9a-f]{12})\)/g
const DONE = /^- (\S+): completed/gm

const fenced = (value: unknown): string => `Here it is.\n\n\`\`\`json\n${JSON.stringify(value)}\n\`\`\`\n`

export class Work {
  private readonly seed: number
  readonly aims: Aims
  readonly git: Git
  private readonly files: Files
  private readonly witness: WorkWitness
  private turns = 0
  private plans = 0
  /** The hearer of the agents' reports, while there is a daemon. */
  tell: Telling | undefined = undefined

  constructor(seed: number, aims: Aims, git: Git, files: Files, witness: WorkWitness) {
    this.seed = seed
    this.aims = aims
    this.git = git
    this.files = files
    this.witness = witness
  }

  /** Begins a turn; the answer is asked for at its end, and undefined where the turn is of no goal. */
  begin(of: Beginning, unruly: boolean, later: (ms: number, run: () => void) => void): () => string | undefined {
    const chance = new Chance(this.seed, `work ${++this.turns} of ${of.agent}`)
    const goal = GOAL.exec(of.text)?.[1]
    if (goal === undefined) {
      if (unruly && chance.is(this.aims.strays)) later(chance.skewed(1, 400), () => this.stray(of))
      return () => undefined
    }
    if (of.text.includes("Make a plan for this goal:")) return () => this.plan(chance, unruly, [])
    if (of.text.includes("the review says that the plan must change")) {
      return () =>
        this.plan(
          chance,
          unruly,
          [...of.text.matchAll(DONE)].map((match) => match[1]!)
        )
    }
    if (of.text.includes("Review whether this goal is met:")) return () => this.review(chance, unruly, of.text)
    const task = TASK.exec(of.text)?.[1]
    if (task === undefined) return () => undefined
    this.witness.taskGiven(goal, task, of)
    return this.task(chance, unruly, goal, task, of, later)
  }

  private stray(of: Beginning): void {
    if (!this.inWorktree(of)) return
    this.files.write(`${of.cwd}/src/stray-${of.pid}.txt`, `${of.pid}`)
    this.git.commit(of.cwd, `stray of ${of.agent}`)
  }

  /** Nobody but people changes the checkout of people. */
  private inWorktree({ cwd }: Beginning): boolean {
    return cwd !== this.git.root && this.git.checkoutOf(cwd)?.folder === cwd
  }

  /** The text that a plan is read from; `done` are tasks that a revision may build on. */
  plan(chance: Chance, unruly: boolean, done: ReadonlyArray<string>): string {
    const mood = unruly ? chance.weighed(this.aims.plans) : "good"
    const prefix = `p${++this.plans}`
    const count = 1 + chance.below(unruly ? 5 : 3)
    const id = (n: number) => `${prefix}-${n}`
    const tasks = Array.from({ length: count }, (_, n) => ({
      id: id(n),
      title: `step ${n}`,
      ...(chance.is(0.3) ? { description: "with care" } : {}),
      dependsOn: [
        ...Array.from({ length: n }, (_, before) => id(before)).filter(() => chance.is(0.4)),
        ...done.filter(() => chance.is(0.2))
      ],
      ...(chance.is(0.3) ? { priority: chance.below(5) - 2 } : {}),
      ...(chance.is(0.15) ? { owner: "c" } : {}),
      ...(unruly && chance.is(0.1) ? { needs: ["magic"] } : {}),
      ...(unruly && chance.is(0.1) ? { timeout: "20 seconds" } : {})
    }))
    switch (mood) {
      case "good":
        return fenced({ tasks })
      case "cyclic":
        return fenced({
          tasks: [...tasks, { id: "x", title: "x", dependsOn: ["y"] }, { id: "y", title: "y", dependsOn: ["x"] }]
        })
      case "empty":
        return fenced({ tasks: [] })
      case "unknown":
        return fenced({
          tasks: [
            { id: id(0), title: "x", dependsOn: ["nothing"] },
            { id: id(0), title: "" }
          ]
        })
      case "garbage":
        return fenced({ tasks }).slice(0, chance.below(60))
      case "prose":
        return `I thought about it. ${JSON.stringify({ tasks })} So be it.`
    }
  }

  private review(chance: Chance, unruly: boolean, text: string): string {
    const mood = unruly ? chance.weighed(this.aims.reviews) : "satisfied"
    const [task] = [...text.matchAll(/^## (\S+): /gm)].map((match) => match[1]!)
    const error = { severity: "error", message: "it is not done", fix: "do it" }
    switch (mood) {
      case "satisfied":
        return fenced({ findings: [] })
      case "warns":
        return fenced({ findings: [{ severity: "warning", message: "so so" }] })
      case "error":
        return fenced({ findings: [error] })
      case "errorOfTask":
        return fenced({
          findings: [
            { ...error, task: task ?? "none" },
            { severity: "info", message: "well" }
          ]
        })
      case "replan":
        return fenced({ findings: [{ ...error, needsReplan: true }] })
      case "garbage":
        return "It looks good to me."
    }
  }

  private task(
    chance: Chance,
    unruly: boolean,
    goal: string,
    task: string,
    of: Beginning,
    later: (ms: number, run: () => void) => void
  ): () => string {
    const deed = unruly ? chance.weighed(this.aims.deeds) : "commits"
    const isHere = this.inWorktree(of)
    const write = () => {
      if (!isHere || deed === "idles") return
      this.gather(of, unruly)
      const path = deed === "shares" ? "src/shared.txt" : `src/${goal}-${task}.txt`
      this.files.write(`${of.cwd}/${path}`, `${of.agent} ${of.pid} ${deed === "breaks" ? "broken" : "works"}`)
    }
    const commit = () => {
      if (!isHere || deed === "idles" || deed === "forgets") return
      const id = this.git.commit(of.cwd, `${goal} ${task} ${of.pid}`)
      if (id !== undefined) this.witness.committed(goal, task, of, id)
    }
    const report = (status: Report["status"]) =>
      later(chance.skewed(1, 100), () =>
        this.tell?.(of.runId, { status, summary: `${task} is ${status}`, evidence: [] })
      )
    later(chance.skewed(0.5, 20), write)
    if (deed === "several") later(chance.skewed(20, 100), commit)
    if (deed === "fails") report("failed")
    if (deed === "blocks") report("blocked")
    if (deed === "reports") report("done")
    return () => {
      if (deed === "several" && isHere) this.files.write(`${of.cwd}/src/more-${of.pid}-${task}.txt`, "more")
      write()
      commit()
      return `${task} is done`
    }
  }

  /** Merges the others' work; in the calm all of it, and what is broken is mended. */
  private gather({ cwd, text }: Beginning, unruly: boolean): void {
    const { git } = this
    const named = [...text.matchAll(BRANCH)].flatMap(
      ([, , short]) => [...git.commits.keys()].find((id) => id.startsWith(short!)) ?? []
    )
    for (const commit of unruly ? named : [...named, ...git.branches.values()]) git.mergeHere(cwd, commit)
    if (unruly) return
    for (const [path, content] of this.files.texts(cwd, (path) => path.startsWith("src/"))) {
      if (content.includes("broken")) this.files.write(`${cwd}/${path}`, content.replaceAll("broken", "mended"))
    }
  }
}
