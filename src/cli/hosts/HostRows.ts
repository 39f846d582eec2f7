/**
 * HostRows: the rows of a host in a list of several, with the connection that is held to it. Pure except for this state.
 *
 * Guarantees: in a list of several hosts, each id and each name contains its host, and `own` gives back the name that
 * its daemon uses. A host that does not answer has one row, which says so.
 */
import type { Client } from "../../api/rpc/ControlClient.ts"
import type { BoardHead, BoardNews, BoardRow } from "../../domain/BoardMessages.ts"
import type { AskedCall } from "../../domain/Messages.ts"
import type { ShownBatch } from "../agents/ApproveAll.ts"
import type { Refused } from "./HostLine.ts"
import { named, rowOf, silentRow } from "./HostReplies.ts"

export class HostRows {
  /** Null for this machine, or if the list is that of one host. */
  readonly name: string | null
  readonly address: string
  /** The held connection; undefined: there is none yet, or it was lost. */
  client: Client | undefined = undefined
  head: BoardHead | undefined = undefined
  /** True while the host's only row says that it does not answer. */
  isSilent = false
  /** The host's rows as its daemon has sent them, by their ids in the list. */
  private readonly rows = new Map<string, BoardRow>()

  constructor(name: string | null, address: string) {
    this.name = name
    this.address = address
  }

  private named(text: string): string {
    return this.name === null ? text : named(this.name, text)
  }

  /** True if the row, call or agent with this id or name in the list is of this host. */
  has(text: string): boolean {
    return this.name !== null && text.startsWith(`${this.name}:`)
  }

  /** The id or name in the list, as the host's daemon knows it. */
  own(text: string): string {
    return this.has(text) ? text.slice(this.name!.length + 1) : text
  }

  ownRow({ id }: BoardRow): BoardRow | undefined {
    return this.rows.get(id)
  }

  /** The host's news for the list. `isFirst`: the first news of a connection, which have all rows of the host. */
  hear({ gone, head, rows }: BoardNews, isFirst: boolean): Pick<BoardNews, "gone" | "rows"> {
    this.head = head
    this.isSilent = false
    const came = new Set(rows.map(({ id }) => this.named(id)))
    const left = isFirst ? [...this.rows.keys()].filter((id) => !came.has(id)) : gone.map((id) => this.named(id))
    const { name } = this
    for (const id of left) this.rows.delete(id)
    for (const row of rows) this.rows.set(this.named(row.id), row)
    return { rows: name === null ? rows : rows.map((row) => rowOf(row, name)), gone: left }
  }

  /** Replaces the host's rows by one that says since when it does not answer. */
  lose(silent: Refused, seen: number): Pick<BoardNews, "gone" | "rows"> {
    this.head = undefined
    this.isSilent = true
    const row = silentRow({ host: this.name, silent, seen })
    const gone = [...this.rows.keys()].filter((id) => id !== row.id)
    this.rows.clear()
    this.rows.set(row.id, row)
    return { rows: [row], gone }
  }

  /** A call as the list shows it. */
  asked(call: AskedCall): AskedCall {
    return { ...call, id: this.named(call.id), agent: this.named(call.agent) }
  }

  batch(batch: ShownBatch | undefined): ShownBatch | undefined {
    if (batch === undefined) return undefined
    const [first, ...others] = batch.calls
    const title = this.name === null ? batch.title : `${this.name}: ${batch.title}`
    return { ...batch, title, calls: [this.asked(first), ...others.map((one) => this.asked(one))] }
  }
}
