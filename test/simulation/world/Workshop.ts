/**
 * Workshop: the project whose goals are worked off: its repository, the desk of the person
 * who works beside the agents, the files of plans, and how the checks of a review end.
 */
import { Effect } from "effect"
import { BackendError } from "../../../src/runs/Backend.ts"
import { WorkingIn } from "../../../src/runs/process/ProcessTable.ts"
import * as GitCommand from "../../../src/runs/git/Git.ts"
import { CheckCommand, type Run } from "../../../src/goals/CheckCommand.ts"
import { PlanSource, PlanUnread, type Read } from "../../../src/goals/PlanFile.ts"
import { Chance } from "../Chance.ts"
import type { Life, Universe } from "../Universe.ts"
import type { Files } from "./Files.ts"
import { Git, type GitWitness } from "./Git.ts"
import { type Aims, Work, type WorkWitness } from "./Work.ts"

export const ROOT = "/home/ada/shop"

export class Workshop {
  readonly git: Git
  readonly work: Work
  readonly aims: Aims
  readonly files: Files
  /** Files that the person has written into the checkout and not committed. */
  readonly desk = new Map<string, string>()
  private plans = 0
  private readonly chance: Chance
  /** Folders in which agents' processes work. */
  private readonly folders: () => Iterable<{ readonly pid: number; readonly cwd: string }>

  constructor(
    universe: Universe,
    of: {
      readonly seed: number
      readonly aims: Aims
      readonly files: Files
      readonly witness: GitWitness & WorkWitness
      readonly folders: () => Iterable<{ readonly pid: number; readonly cwd: string }>
    }
  ) {
    const { aims, files, seed, witness } = of
    this.aims = aims
    this.files = files
    this.folders = of.folders
    this.chance = new Chance(seed, "checks")
    const first = new Map([
      ["src/main.txt", "main"],
      ["src/shared.txt", "shared"]
    ])
    this.git = new Git(universe, { root: ROOT, chance: new Chance(seed, "git"), files, faults: aims.git }, first)
    this.git.witness = witness
    this.work = new Work(seed, aims, this.git, files, witness)
  }

  set isUnruly(unruly: boolean) {
    this.git.isUnruly = unruly
  }

  /** A person writes in the checkout and does not commit. */
  write(people: Chance): void {
    const path = people.pick(["src/main.txt", "src/shared.txt", "src/desk.txt"])
    this.files.write(`${ROOT}/${path}`, `ada ${people.below(1_000_000)}`)
    this.desk.set(path, this.files.text(`${ROOT}/${path}`)!)
  }

  /** A person commits all that lies in the checkout, once no other git is at it. */
  commit(): void {
    this.git.unlock(this.desk)
    this.git.commit(ROOT, "by ada")
    this.desk.clear()
  }

  /** A new file with a plan; sometimes one that cannot be taken. */
  plan(people: Chance, unruly: boolean): string {
    const path = `/home/ada/plans/${++this.plans}.json`
    const text = this.work.plan(people, unruly, [])
    this.files.write(path, /```json\n([\s\S]*)\n```/.exec(text)?.[1] ?? text)
    return path
  }

  private readonly runs: Run = ({ command, cwd, timeout }) =>
    Effect.suspend(() => {
      const { aims, chance, git } = this
      const takes = chance.skewed(5, git.isUnruly ? aims.checkTakes : 1_000)
      const roll = git.isUnruly ? chance.unit() : 1
      if (roll < aims.checkFails / 3)
        return Effect.fail(new BackendError({ message: "too many processes", remedy: "wait", fatal: false }))
      if (takes > timeout) return Effect.as(Effect.sleep(timeout), undefined)
      return Effect.map(Effect.sleep(takes), () => {
        const broken = [...this.files.texts(cwd, (path) => path.startsWith("src/"))].filter(([, text]) =>
          text.includes("broken")
        )
        const fails = roll < aims.checkFails || broken.length > 0
        return {
          held: true,
          status: { code: fails ? 1 : 0, signal: null },
          printed: fails ? `${command}: ${broken.map(([path]) => path).join(" ")}` : ""
        }
      })
    })

  private readonly reads: Read = (path, most) =>
    Effect.suspend(() => {
      const text = this.files.text(path)
      if (text === undefined)
        return Effect.fail(new PlanUnread({ reason: "Unreadable", message: `${path} cannot be read: ENOENT` }))
      return text.length > most
        ? Effect.fail(new PlanUnread({ reason: "TooLong", message: `${path} is too long` }))
        : Effect.succeed(new TextEncoder().encode(text))
    })

  /** The daemon's life in this workshop. */
  readonly around = <A, E, R>(life: Life, daemon: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    daemon.pipe(
      Effect.provideService(GitCommand.Git, this.git.of(life)),
      Effect.provideService(CheckCommand, this.runs),
      Effect.provideService(PlanSource, this.reads),
      Effect.provideService(WorkingIn, (folder) =>
        Effect.sync(() => [...this.folders()].filter(({ cwd }) => cwd === folder || cwd.startsWith(`${folder}/`)))
      )
    )
}
