/**
 * States: what the daemon that wrote a recording makes of it, at its end and at moments in
 * between: written once beside it, as what changes from one moment to the next.
 */
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { isDeepStrictEqual } from "node:util"
import { gzipSync } from "node:zlib"
import type { Folded } from "../../event-log/recorded/Folded.ts"
import { foldedAt } from "../../event-log/recorded/Replayed.ts"
import { fileOf, type Moment, open, type Recording } from "../Recording.ts"

/** After each append, where that was noted; else where a kind of machine makes a move, or writes a kind of rune, for the first time. */
const momentsOf = ({ appends, name, runes }: Recording): ReadonlyArray<Pick<Moment, "after" | "why">> => {
  const seen = new Set<string>()
  const found = runes.flatMap(({ actor, eventId, from, kind, to, trigger }) => {
    const move = to === null ? "" : ` ${from ?? "·"} → ${to} by ${trigger ?? "·"}`
    const what = `${actor.split("/")[0]!}: ${kind}${move}`
    const isNew = !seen.has(what)
    seen.add(what)
    const isLast = eventId === runes.at(-1)!.eventId
    return isNew || isLast || appends.includes(eventId) ? [{ after: eventId, why: what }] : []
  })
  if (found.length === 0) throw new Error(`${name} is empty`)
  return found
}

const changed = (before: Folded, now: Folded): Pick<Moment, "set" | "gone"> => ({
  set: Object.fromEntries(Object.entries(now).filter(([name, value]) => !isDeepStrictEqual(value, before[name]))),
  gone: Object.keys(before).filter((name) => !(name in now))
})

export const write = Effect.fnUntraced(function* (name: string) {
  const recording = open(name)
  let before: Folded = {}
  const moments: Array<Moment> = []
  for (const { after, why } of momentsOf(recording)) {
    const now = JSON.parse(JSON.stringify((yield* foldedAt(recording, after)).states)) as Folded
    moments.push({ after, why, ...changed(before, now) })
    before = now
  }
  const text = moments.map((moment) => `${JSON.stringify(moment)}\n`).join("")
  const bytes = gzipSync(text, { level: 9 })
  writeFileSync(fileOf(name, "states"), bytes)
  console.log(`${name}: ${moments.length} moments, ${bytes.length} bytes`)
})
