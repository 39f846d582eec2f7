/**
 * Order: what somebody asks of the daemon, and what a command has at hand to ask it.
 */
import type { Effect, Exit } from "effect"
import type { Chance } from "../Chance.ts"
import type { Checker } from "../Checker.ts"
import type { Client } from "../Daemon.ts"
import type { Files } from "../world/Files.ts"

/** The world as people see it. */
export interface Outside {
  readonly checker: Checker
  readonly files: Files
  /** Agents that somebody has asked to start, and was not answered yet. */
  readonly starting: Map<string, number>
  /** The project's file as it is to be. */
  config(): string
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

/** What people may ask, by name. */
export type Orders = { readonly [name: string]: (order: Order) => void }
