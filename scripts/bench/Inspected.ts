/**
 * Inspected: what a process of Node has in memory, asked of its inspector: figures, handles by kind, and the heap by
 * kind. The process is started with `--inspect=127.0.0.1:0` and says its address on standard error.
 */
import { readdirSync, readFileSync } from "node:fs"
import type { Readable } from "node:stream"

/** Bytes or counts, by name. */
export type Counts = ReadonlyMap<string, number>

/** A process as the system sees it. */
export interface Outside {
  /** MB. */
  readonly rss: number
  readonly fds: number
  readonly threads: number
}

export const outside = (pid: number): Outside => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  const of = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1])
  return { rss: of("VmRSS") / 1024, threads: of("Threads"), fds: readdirSync(`/proc/${pid}/fd`).length }
}

/** A process from within; to look takes so much memory that its own size says nothing afterwards. */
export interface Look {
  /** MB. */
  readonly heap: number
  /** Beside the heap: buffers. */
  readonly external: number
  /** Open handles by kind. */
  readonly handles: Counts
  /** Bytes of the heap by kind. */
  readonly kinds: Counts
}

interface Snapshot {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: ReadonlyArray<string>
      readonly node_types: readonly [ReadonlyArray<string>, ...ReadonlyArray<unknown>]
    }
  }
  readonly nodes: ReadonlyArray<number>
  readonly strings: ReadonlyArray<string>
}

/** Kinds whose names are contents. */
const NAMELESS = new Set(["string", "concatenated string", "sliced string", "code", "number", "regexp", "bigint"])

const kindsOf = ({ nodes, snapshot: { meta }, strings }: Snapshot): Counts => {
  const { length: width } = meta.node_fields
  const [type, name, size] = ["type", "name", "self_size"].map((field) => meta.node_fields.indexOf(field))
  const kinds = new Map<string, number>()
  for (let at = 0; at < nodes.length; at += width) {
    const of = meta.node_types[0][nodes[at + type!]!]!
    const kind = NAMELESS.has(of) ? of : `${of} ${strings[nodes[at + name!]!]!.slice(0, 60)}`
    kinds.set(kind, (kinds.get(kind) ?? 0) + nodes[at + size!]!)
  }
  return kinds
}

/** The address that the process says. */
export const addressOf = (stderr: Readable): Promise<string> =>
  new Promise((resolve) => {
    let text = ""
    const hear = (data: Buffer) => {
      text += String(data)
      const found = /ws:\/\/\S+/.exec(text)?.[0]
      if (found !== undefined) resolve(found)
    }
    stderr.on("data", hear)
  })

export class Inspected {
  private readonly socket: WebSocket
  private readonly asked = new Map<number, (result: { readonly result?: { readonly value?: unknown } }) => void>()
  private readonly chunks: Array<string> = []
  private next = 1

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.addEventListener("message", ({ data }) => {
      const message = JSON.parse(String(data))
      if (message.method === "HeapProfiler.addHeapSnapshotChunk") this.chunks.push(message.params.chunk)
      else if (message.id !== undefined) this.asked.get(message.id)?.(message.result)
    })
  }

  static readonly connect = async (address: string): Promise<Inspected> => {
    const socket = new WebSocket(address)
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve)
      socket.addEventListener("error", reject)
    })
    return new Inspected(socket)
  }

  private ask(method: string, params: object = {}): Promise<{ readonly result?: { readonly value?: unknown } }> {
    const id = this.next++
    return new Promise((resolve) => {
      this.asked.set(id, resolve)
      this.socket.send(JSON.stringify({ id, method, params }))
    })
  }

  private async value(expression: string): Promise<unknown> {
    return (await this.ask("Runtime.evaluate", { expression, returnByValue: true })).result?.value
  }

  /** After everything that can be collected has been. */
  async look(): Promise<Look> {
    for (let n = 0; n < 3; n++) await this.ask("HeapProfiler.collectGarbage")
    const memory = (await this.value("process.memoryUsage()")) as { heapUsed: number; external: number }
    const handles = new Map<string, number>()
    for (const kind of (await this.value("process.getActiveResourcesInfo()")) as ReadonlyArray<string>) {
      handles.set(kind, (handles.get(kind) ?? 0) + 1)
    }
    this.chunks.length = 0
    await this.ask("HeapProfiler.takeHeapSnapshot", { reportProgress: false })
    const kinds = kindsOf(JSON.parse(this.chunks.join("")))
    this.chunks.length = 0
    const MB = 1024 * 1024
    return { heap: memory.heapUsed / MB, external: memory.external / MB, handles, kinds }
  }

  close(): void {
    this.socket.close()
  }
}

/** The names that grew most. */
export const grown = (
  before: Counts,
  after: Counts,
  most: number
): ReadonlyArray<readonly [name: string, by: number]> =>
  [...after]
    .map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const)
    .filter(([, by]) => by > 0)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, most)
