/**
 * Programs: finds the coding CLIs that the user has started in terminals, by their processes. Such a program is open,
 * even if its session reports nothing: hooks may be missing, and some CLIs report a session only at its first prompt.
 *
 * Guarantees: an agent's programs are not listed, nor one that `agentd run` has reported, nor one with another home
 * folder than the daemon's. A program has one plate, and
 * the hooks of its session find that plate. A program whose plate the user has told agentd to forget is not found again
 * by the same daemon. Needs /proc.
 */
import { Clock, Effect } from "effect"
import { basename } from "node:path"
import { environment, type Program, ticksNow } from "../runs/process/ProcessTable.ts"
import type { EventIntake, Origin } from "./EventIntake.ts"
import type { PlateRegistry } from "./PlateRegistry.ts"
import type { SessionSource } from "./SessionSource.ts"
import { SESSION_SOURCES } from "./SessionSources.ts"

const INTERVAL = "3 seconds"
/** Interval while no session is open. */
const IDLE_INTERVAL = "10 seconds"
/** Age from which a program is shown, in clock ticks (1/100 s). Most hooks that report a start arrive before it. */
const SETTLES = 300

const INTERPRETERS = new Set(["node", "nodejs", "bun", "deno"])

/** The home folder of the process, and the names that agentd has given it. */
export const namesOf = (
  pid: number
): Effect.Effect<Pick<Origin, "plate" | "run"> & { readonly home: string | undefined }> =>
  Effect.map(environment(pid), (entries) => {
    const named = (name: string) =>
      entries.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1) || undefined
    return { plate: named("AGENTD_PLATE"), run: named("AGENTD_RUN"), home: named("HOME") }
  })

const nameOf = (path: string): string => basename(path).replace(/\.[cm]?js$/, "")

/** The coding CLI that a command line starts; undefined if it starts none. */
export const sourceOf = ([program = "", ...args]: ReadonlyArray<string>): SessionSource | undefined => {
  const script = args.find((arg) => !arg.startsWith("-")) ?? ""
  const name = nameOf(INTERPRETERS.has(basename(program)) ? script : program)
  return SESSION_SOURCES.find(({ id }) => id === name)
}

interface Found extends Program {
  readonly source: SessionSource
}

const isOne = (a: Program, b: { readonly pid: number }, parents: ReadonlyMap<number, number>): boolean =>
  a.pid === b.pid || a.parent === b.pid || parents.get(b.pid) === a.pid

interface Parts {
  readonly registry: PlateRegistry
  readonly intake: EventIntake
  /** Only programs with this home folder are shown. */
  readonly home: string
}

export class Programs {
  private readonly parts: Parts
  /** The programs that need no plate any more, by process. */
  private met = new Set<string>()

  constructor(parts: Parts) {
    this.parts = parts
  }

  readonly loop: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    const { intake, registry } = this.parts
    if (!registry.processes.isAvailable()) return yield* Effect.never
    while (true) {
      if (intake.isOpen) yield* this.round
      yield* Effect.sleep(registry.open.length > 0 ? INTERVAL : IDLE_INTERVAL)
    }
  })

  /** Opens a plate for each program that has none. */
  readonly round = Effect.gen({ self: this }, function* () {
    const { registry } = this.parts
    const programs = yield* registry.processes.programs
    const parents = new Map(programs.map(({ parent, pid }) => [pid, parent]))
    const found = programs.flatMap((program): ReadonlyArray<Found> => {
      const source = sourceOf(program.argv)
      return source === undefined ? [] : [{ ...program, source }]
    })
    // a CLI can start itself again, or a binary: the child has the session
    const inner = found.filter(({ pid, source }) => !found.some((one) => one.parent === pid && one.source === source))
    this.met = new Set(inner.map(keyOf).filter((key) => this.met.has(key)))
    for (const program of inner) {
      if (this.met.has(keyOf(program)) || ticksNow() - program.start < SETTLES) continue
      const isKnown = registry.open.some(({ process, stand, startedBy }) =>
        [...stand.data.processes, process, startedBy].some((one) => one !== undefined && isOne(program, one, parents))
      )
      if (!isKnown) yield* this.open(program)
    }
  })

  private readonly open = Effect.fnUntraced(
    { self: this },
    function* (this: Programs, program: Found) {
      const { registry } = this.parts
      const { cwd, pid, source, start } = program
      const { home, plate: name, run } = yield* namesOf(pid)
      if (name !== undefined && registry.named(name)?.isOpen === true) return
      if (home !== this.parts.home || run !== undefined) return void this.met.add(keyOf(program))
      const plate = yield* registry.claim(undefined)
      this.met.add(keyOf(program))
      plate.startedBy = { pid, start }
      const { plateId } = plate
      const at = yield* Clock.currentTimeMillis
      plate.tell({ _tag: "Registered", at, plateId, cwd, pid, pidStart: start, cli: source.name })
      registry.populated.openUnsafe()
    },
    Effect.catch(({ message }) => Effect.logWarning(`a program in a terminal: ${message}`))
  )
}

const keyOf = ({ pid, start }: Program): string => `${pid}.${start}`
