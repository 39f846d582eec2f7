/**
 * OtherHosts: the rows of the saved hosts, for the page of this daemon.
 *
 * Guarantees: a host is connected only while a page looks, and with one connection for all pages. Nothing is asked of a
 * person: a key that only the person's ssh-agent has is a row that says so.
 */
import { Effect, FileSystem, Queue, Stream } from "effect"
import { dirname, join } from "node:path"
import { follow, type Following, lateness, type Lost } from "../cli/hosts/HostNews.ts"
import { HostRows } from "../cli/hosts/HostRows.ts"
import * as HostsFile from "../config/HostsFile.ts"
import type { BoardNews, BoardRow } from "../domain/BoardMessages.ts"
import { after } from "../domain/BoardRow.ts"

type Rows = ReadonlyMap<string, BoardRow>

/** The reason of a login that this daemon cannot make, because the daemon has no ssh-agent. */
const refusedBy = (lost: Lost, agent: string | undefined): Lost =>
  lost.reason === "login" && (agent === undefined || agent === "")
    ? {
        message: "refused: the key needs your agent.",
        remedy:
          "agentd --all-hosts shows it in your terminal; or restart this machine's daemon where ssh-add -l lists the key."
      }
    : lost

const changes = (before: Rows, now: Rows): NonNullable<BoardNews["others"]> => ({
  rows: [...now.values()].filter((row) => before.get(row.id) !== row),
  gone: [...before.keys()].filter((id) => !now.has(id))
})

/** The rows of all hosts at first, then their changes. `state`: the daemon's state directory. */
export const make = Effect.fnUntraced(function* (options: {
  readonly userConfig: string
  readonly state: string
  readonly environment: { readonly [name: string]: string | undefined }
}) {
  const { environment, state, userConfig } = options
  const fs = yield* FileSystem.FileSystem
  const looks = Stream.callback<Rows>(
    (queue) =>
      Effect.suspend(() => {
        const saved = HostsFile.read(join(dirname(userConfig), "hosts.json"))
        let rows: Rows = new Map()
        const take = (news: Pick<BoardNews, "gone" | "rows">) => {
          rows = after(rows, news)
          return Queue.offer(queue, rows)
        }
        return Effect.forEach(
          typeof saved === "string" ? [] : saved,
          ([name, { url }]) => {
            const host = new HostRows(name, url)
            const following: Following<never> = {
              state,
              heard: take,
              lost: (lost, seen) => take(host.lose(refusedBy(lost, environment["SSH_AUTH_SOCK"]), seen))
            }
            return Effect.all([follow(host, following), lateness(host, following)], { concurrency: "unbounded" })
          },
          { concurrency: "unbounded", discard: true }
        )
      }).pipe(Effect.provideService(FileSystem.FileSystem, fs)),
    { bufferSize: 1, strategy: "sliding" }
  )
  const shared = yield* Stream.share(looks, { capacity: 1, strategy: "sliding", replay: 1 })
  return Stream.mapAccum(
    shared,
    (): Rows => new Map(),
    (before, now) => [now, [changes(before, now)]] as const
  )
})
