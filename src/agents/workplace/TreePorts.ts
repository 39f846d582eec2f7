/**
 * TreePorts: blocks of consecutive ports, one for each agent of the daemon that asks for ports.
 *
 * Guarantees: No two agents of one user have the same port at the same time, even of two daemons: a symbolic link for
 * each port, in a folder of the user, names the state directory whose daemon has given it. Nobody listened on a port of a block when the block
 * was given. An agent keeps its block as long as nobody else listens there; the log records it. A program that began to
 * listen while the agent worked or was set up, or while no daemon ran, counts as the agent's: a container, for example.
 */
import { Effect, FileSystem, Option } from "effect"
import { join } from "node:path"
import { ListeningPorts, PortClaims } from "../../runs/ListeningPorts.ts"
import type { PortBlock } from "../machines/WorkerMachine.ts"

export type { PortBlock }

/** First and last port of all blocks: above the ports of known services, below those that Linux gives to connections. */
const [LEAST, MOST] = [20_000, 32_000]

export const environmentOf = (block: PortBlock | undefined): { readonly [name: string]: string } =>
  block === undefined
    ? {}
    : Object.fromEntries([
        ["PORT", `${block.first}`],
        // otherwise containers of two work trees whose folders have the same name replace each other
        ["COMPOSE_PROJECT_NAME", `agentd-${block.first}`],
        ...Array.from({ length: block.count }, (_, index) => [`PORT_${index}`, `${block.first + index}`])
      ])

const numbersOf = ({ count, first }: PortBlock) => Array.from({ length: count }, (_, index) => first + index)

const overlap = (one: PortBlock, other: PortBlock): boolean =>
  one.first < other.first + other.count && other.first < one.first + one.count

/** Where the search for an agent's first block begins, so that agents rarely search the same ports. Pure. */
const startOf = (key: string): number => {
  let hash = 7
  for (const letter of key) hash = (hash * 31 + letter.charCodeAt(0)) % (MOST - LEAST)
  return hash
}

export class TreePorts {
  private readonly blocks = new Map<string, PortBlock>()
  /** Ports on which services of each agent listen. */
  private readonly services = new Map<string, ReadonlySet<number>>()

  private readonly state: string

  constructor(state: string) {
    this.state = state
  }

  /** Reserves the block that an agent has according to the log. */
  readonly recall = (key: string, block: PortBlock | undefined): void => {
    if (block !== undefined && !this.isOthers(key, block)) this.blocks.set(key, block)
  }

  readonly of = (key: string): PortBlock | undefined => this.blocks.get(key)

  readonly release = (key: string): Effect.Effect<void, never, FileSystem.FileSystem> =>
    Effect.suspend(() => {
      const block = this.blocks.get(key)
      this.blocks.delete(key)
      return block === undefined ? Effect.void : this.unclaim(numbersOf(block))
    })

  /** Claims ports against other daemons; false if one of them has a port. Without a folder of its own, claims nothing. */
  private readonly claim = Effect.fnUntraced({ self: this }, function* (this: TreePorts, block: PortBlock) {
    const files = yield* FileSystem.FileSystem
    const claims = yield* PortClaims
    yield* Effect.ignore(files.makeDirectory(claims, { recursive: true, mode: 0o700 }))
    const folder = yield* Effect.option(files.stat(claims))
    const owner = Option.getOrUndefined(Option.flatMap(folder, ({ uid }) => uid))
    if (owner !== process.getuid?.()) return true
    const made: Array<number> = []
    for (const port of numbersOf(block)) {
      const at = join(claims, `${port}`)
      const holder = Option.getOrUndefined(yield* Effect.option(files.readLink(at)))
      if (holder === this.state) continue
      // a state directory that is gone has no agents
      if (holder !== undefined && !(yield* Effect.orElseSucceed(files.exists(holder), () => true)))
        yield* Effect.ignore(files.remove(at))
      if (Option.isNone(yield* Effect.option(files.symlink(this.state, at)))) {
        yield* this.unclaim(made)
        return false
      }
      made.push(port)
    }
    return true
  })

  private readonly unclaim = Effect.fnUntraced(
    { self: this },
    function* (this: TreePorts, ports: ReadonlyArray<number>) {
      const files = yield* FileSystem.FileSystem
      const claims = yield* PortClaims
      for (const at of ports.map((port) => join(claims, `${port}`))) {
        const holder = yield* Effect.option(files.readLink(at))
        if (Option.isSome(holder) && holder.value === this.state) yield* Effect.ignore(files.remove(at))
      }
    }
  )

  /** Notes that the programs that listen in the agent's block now are its services. */
  readonly note = Effect.fnUntraced({ self: this }, function* (this: TreePorts, key: string) {
    const block = this.blocks.get(key)
    if (block === undefined) return
    const listening = yield* yield* ListeningPorts
    this.services.set(key, new Set(numbersOf(block).filter((port) => listening.has(port))))
  })

  private isOthers(key: string, block: PortBlock): boolean {
    return [...this.blocks].some(([other, taken]) => other !== key && overlap(taken, block))
  }

  /**
   * Returns a block of `count` ports for the agent: the one that it had, if it is still free. `taken`: a port of the
   * earlier block on which a program listens. Undefined if no block is free.
   */
  readonly give = Effect.fnUntraced(
    { self: this },
    function* (this: TreePorts, key: string, count: number, before: PortBlock | undefined) {
      const listening = yield* yield* ListeningPorts
      const services = this.services.get(key)
      const busyIn = (block: PortBlock) =>
        numbersOf(block).find((port) => listening.has(port) && services?.has(port) !== true)
      const isFree = (block: PortBlock) => busyIn(block) === undefined && !this.isOthers(key, block)
      const own = before?.count === count ? before : undefined
      const taken = own === undefined ? undefined : busyIn(own)
      const size = MOST - LEAST - count
      const start = startOf(key) % size
      let block = own !== undefined && isFree(own) && (yield* this.claim(own)) ? own : undefined
      for (let step = 0; block === undefined && step < size; step++) {
        const tried = { first: LEAST + ((start + step) % size), count }
        if (isFree(tried) && (yield* this.claim(tried))) block = tried
      }
      if (block === undefined) return undefined
      const kept = new Set(numbersOf(block))
      const last = this.blocks.get(key)
      if (last !== undefined) yield* this.unclaim(numbersOf(last).filter((port) => !kept.has(port)))
      this.blocks.set(key, block)
      return { block, ...(taken === undefined ? {} : { taken }) }
    }
  )
}
