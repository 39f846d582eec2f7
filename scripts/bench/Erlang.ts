/**
 * Erlang: the peers that are written in Erlang. `erlang/agentd_peer.erl` measures one of
 * them and prints its figures; without `erl` on the path there are none, and that is said.
 */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { type Figures, folder, isOnPath, type Subject } from "./Bench.ts"

/** Minutes are no measurement: the peer hangs. */
const TIMEOUT = 300_000

/** "<what> <figure>", a line each. */
const read = (output: string): Figures =>
  Object.fromEntries(
    output
      .trim()
      .split("\n")
      .map((line) => {
        const gap = line.lastIndexOf(" ")
        return [line.slice(0, gap), Number(line.slice(gap + 1))]
      })
  )

/** A round of the peer: a measurement of `agentd_peer`, by name. */
export const erlang = (
  peers: ReadonlyArray<{ readonly subject: string; readonly measures: string; readonly file?: string }>
): ReadonlyArray<Subject> => {
  if (!isOnPath("erl") || !isOnPath("erlc")) {
    console.log(
      "erl is not on the path: nothing is compared with Erlang (Debian: apt install erlang-base erlang-crypto)"
    )
    return []
  }
  const beams = folder()
  execFileSync("erlc", ["-o", beams, join(import.meta.dirname, "erlang", "agentd_peer.erl")])
  return peers.map(({ file = "none", measures, subject }) => ({
    subject,
    round: async () =>
      read(
        execFileSync("erl", ["-noshell", "-pa", beams, "-run", "agentd_peer", "main", measures, file], {
          encoding: "utf8",
          timeout: TIMEOUT
        })
      )
  }))
}
