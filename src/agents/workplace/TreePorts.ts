/**
 * TreePorts: blocks of consecutive ports, one for each agent of the daemon that asks for ports.
 *
 * Guarantees: No two agents have the same port at the same time. Nobody listened on a port of a block when the block
 * was given. An agent keeps its block as long as nobody else listens there; the log records it. A program that began to
 * listen while the agent worked or was set up, or while no daemon ran, counts as the agent's: a container, for example.
 */
import { Effect } from "effect"
import { ListeningPorts } from "../../runs/ListeningPorts.ts"
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

  /** Reserves the block that an agent has according to the log. */
  readonly recall = (key: string, block: PortBlock | undefined): void => {
    if (block !== undefined && !this.isOthers(key, block)) this.blocks.set(key, block)
  }

  readonly of = (key: string): PortBlock | undefined => this.blocks.get(key)

  readonly release = (key: string): void => void this.blocks.delete(key)

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
      let block = own !== undefined && isFree(own) ? own : undefined
      for (let step = 0; block === undefined && step < size; step++) {
        const tried = { first: LEAST + ((start + step) % size), count }
        if (isFree(tried)) block = tried
      }
      if (block === undefined) return undefined
      this.blocks.set(key, block)
      return { block, ...(taken === undefined ? {} : { taken }) }
    }
  )
}
