/**
 * ListeningPorts: the TCP ports on which programs of this machine listen. The service can be replaced: a simulation has
 * no ports.
 *
 * Guarantees: Nothing is bound, so no program is disturbed. Where the system has no list (not Linux), the result is
 * empty.
 */
import { Context, Effect } from "effect"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { attempt } from "../config/Attempt.ts"

/** State of a socket that listens, in Linux' tables. */
const LISTENS = "0A"

/** Reads one of Linux' tables. Columns: number, local address, remote address, state. Pure. */
export const portsIn = (table: string): ReadonlyArray<number> =>
  table.split("\n").flatMap((line) => {
    const [, address = "", , state] = line.trim().split(/\s+/)
    const port = Number.parseInt(address.split(":")[1] ?? "", 16)
    return state === LISTENS && Number.isInteger(port) ? [port] : []
  })

export const ListeningPorts = Context.Reference<Effect.Effect<ReadonlySet<number>>>("agentd/runs/ListeningPorts", {
  defaultValue: () =>
    Effect.sync(() => {
      const tables = ["/proc/net/tcp", "/proc/net/tcp6"].map((file) => attempt(() => fs.readFileSync(file, "utf8")))
      return new Set(tables.flatMap((table) => portsIn(table ?? "")))
    })
})

/** The user's folder in which each daemon notes the ports that it has given. Absolute. */
export const PortClaims = Context.Reference<string>("agentd/runs/PortClaims", {
  defaultValue: () => join(tmpdir(), `agentd-ports-${process.getuid?.() ?? ""}`)
})
