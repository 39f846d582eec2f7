/**
 * Bench of a long day: the real daemon while ten agents work in a loop, as fast as they can, and somebody watches.
 * Says what has grown between the end of the first quarter and the end: memory, handles, file descriptors, and the
 * heap by kind. Runs where it is named, for 8 minutes, or so many as `MINUTES` says: half of them beside an inspector,
 * which takes memory itself. Agents that take a turn a minute make in ten hours what they make here in some minutes.
 */
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import type { Bench, Row } from "./Bench.ts"
import { Client } from "./Client.ts"
import { AGENTS, daemonOf, type Place, phaseOf, placeOf, stopped } from "./History.ts"
import { addressOf, grown, Inspected, type Look, outside } from "./Inspected.ts"

const MINUTES = Number(process.env["MINUTES"] ?? 8)
const FIRST = 0.25
/** Bytes of a kind that are worth a line. */
const WORTH = 20_000

interface AgentRow {
  readonly agent: string
  readonly inbox: number
  readonly state: string
}

/** Gives each agent its next message as soon as it has done the one before; answers how many. */
const work = async (place: Place, until: number, progress: { turns: number }): Promise<void> => {
  const client = new Client(place)
  const caller = { by: "ada", config: join(place.project, "agentd.jsonc") }
  const said = new Map<string, number>()
  while (performance.now() < until) {
    const { value } = await client.ask("Agents", null)
    for (const { agent, inbox, state } of value as ReadonlyArray<AgentRow>) {
      if (inbox > 0 || state === "Running") continue
      const n = (said.get(agent) ?? 0) + 1
      said.set(agent, n)
      const text = `Say again what you said at your turn ${n - 1}, and ${"more ".repeat(n % 40)}of it.`
      const exit = await client.ask("Send", { name: agent, caller, text, how: "queue" })
      if (exit._tag !== "Success") throw new Error(JSON.stringify(exit))
      progress.turns += 1
    }
    await wait(20)
  }
  client.close()
}

/** Asks what a person's commands ask, each on a connection of its own. */
const watch = async (place: Place, until: number): Promise<void> => {
  const caller = { by: "ada", config: join(place.project, "agentd.jsonc") }
  for (let n = 0; performance.now() < until; n++) {
    const client = new Client(place)
    await client.ask("Status", null)
    await client.ask("Waiting", null)
    await client.ask("Why", { name: AGENTS[n % AGENTS.length], caller })
    client.close()
    await wait(200)
  }
}

const rowsOf = (what: string, unit: string, before: number, after: number): ReadonlyArray<Row> => [
  { what, subject: "after the first quarter", unit, median: before, samples: [before], ratios: [1] },
  { what, subject: "at the end", unit, median: after, samples: [after], ratios: [after / before] }
]

const told = (before: Look, after: Look, turns: number): void => {
  console.log(`Between the two: ${turns} turns. Bytes of the heap by kind, where they grew:`)
  for (const [kind, by] of grown(before.kinds, after.kinds, 25)) if (by > WORTH) console.log(`  ${by}  ${kind}`)
  console.log("Handles, where they grew:")
  for (const [kind, by] of grown(before.handles, after.handles, 10)) console.log(`  ${by}  ${kind}`)
}

/** A day of one daemon, looked at after its first quarter and at its end. */
const day = async <A>(
  flags: ReadonlyArray<string>,
  looking: (daemon: ReturnType<typeof daemonOf>) => Promise<{ look(): A | Promise<A>; close(): void }>
): Promise<{ readonly before: A; readonly after: A; readonly turns: number }> => {
  const place = placeOf("soak")
  const daemon = daemonOf(place, flags)
  try {
    // what nobody reads would stop the daemon
    daemon.stderr?.resume()
    const eye = await looking(daemon)
    while ((await phaseOf(place)) !== "ready") await wait(20)
    const progress = { turns: 0 }
    const run = async (minutes: number): Promise<A> => {
      const until = performance.now() + minutes * 60_000
      await Promise.all([work(place, until, progress), watch(place, until)])
      // what is under way ends
      await wait(5_000)
      return eye.look()
    }
    const before = await run((MINUTES / 2) * FIRST)
    const first = progress.turns
    const after = await run((MINUTES / 2) * (1 - FIRST))
    // a process does not end while its inspector is connected
    eye.close()
    return { before, after, turns: progress.turns - first }
  } finally {
    await stopped(daemon)
  }
}

const soaked = async (): Promise<ReadonlyArray<Row>> => {
  const plain = await day([], async ({ pid }) => ({ look: () => outside(pid!), close: () => {} }))
  const within = await day(["--inspect=127.0.0.1:0"], async ({ stderr }) => {
    return Inspected.connect(await addressOf(stderr!))
  })
  told(within.before, within.after, within.turns)
  console.log(`Without an inspector: ${plain.turns} turns between the two.`)
  return [
    ...rowsOf("rss", "MB", plain.before.rss, plain.after.rss),
    ...rowsOf("file descriptors", "", plain.before.fds, plain.after.fds),
    ...rowsOf("threads", "", plain.before.threads, plain.after.threads),
    ...rowsOf("heap", "MB", within.before.heap, within.after.heap),
    ...rowsOf("beside the heap", "MB", within.before.external, within.after.external)
  ]
}

const flat = (what: string, atMost: number) => ({
  what,
  of: "at the end",
  to: { subject: "after the first quarter" },
  atMost
})

/** Two more descriptors: the file of the actors' runes, and its log, are opened as it is read first. */
export const bench: Bench = {
  name: "soak",
  isLong: true,
  run: soaked,
  aims: [flat("rss", 1.1), flat("heap", 1.1), flat("file descriptors", 1.05), flat("threads", 1)]
}
