/**
 * States: records the states that the daemon folds from a recording, at its end and at moments in between. They are
 * written once into a file next to the recording, as the changes from one moment to the next.
 */
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { isDeepStrictEqual } from "node:util"
import { gzipSync } from "node:zlib"
import type { Folded } from "../../world/event-log/recorded/Folded.ts"
import { foldedAt } from "../../world/event-log/recorded/Replayed.ts"
import { fileOf, type Moment, open, type Recording } from "../Recording.ts"

/**
 * The moments: after each recorded append, after each first move of a kind of machine, after each first rune of a kind,
 * and after the last rune.
 */
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
