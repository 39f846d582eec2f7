/**
 * Order: what somebody asks of the daemon, and what a command has at hand to ask it.
 */
import type { Effect, Exit } from "effect"
import type { Chance } from "../Chance.ts"
import type { Checker } from "../Checker.ts"
import type { Client } from "../Daemon.ts"
import type { Workshop } from "../world/Workshop.ts"

/** The world as people see it. */
export interface Outside {
  readonly checker: Checker
  /** The agents of the project's file as it is meant. */
  readonly names: ReadonlyArray<string>
  /** Agents that somebody has asked to start, and was not answered yet. */
  readonly starting: Map<string, number>
  /** Calls that somebody was asked about, by their ids. */
  readonly calls: Set<string>
  /** How often somebody has asked to start an agent. */
  readonly starts: Map<string, number>
  /** The project as goals have it; undefined in a world without goals. */
  readonly workshop: Workshop | undefined
  /** Somebody changes the project's file. */
  edit(people: Chance): void
  /** Asks the daemon for what goes on as long as it lives; told where it ends before. */
  meanwhile<A, E>(effect: Effect.Effect<A, E>, ended: () => void): void
  /** The next word that a message is known by. */
  token(): string
}

export interface Order {
  readonly world: Outside
  readonly client: Client
  readonly agent: string
  readonly people: Chance
  /** Told once, with whether it was carried out. */
  readonly then: (ok: boolean) => void
  /** Asks the daemon; who asks hears the answer unless the daemon dies first. */
  readonly run: <A, E>(effect: Effect.Effect<A, E>, answered?: (exit: Exit.Exit<A, E>) => void) => void
}

/** Commands that people may ask, by name. */
export type Orders = { readonly [name: string]: (order: Order) => void }
