/** Logs that older daemons wrote, of every kind of rune: they verify, and fold to what they folded to then. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { linesOf, type Moment, names, open } from "../../support/Recording.ts"
import type { Data as PlateData } from "../../../src/plates/PlateState.ts"
import { kinds } from "./recorded/Folded.ts"
import { foldedAt } from "./recorded/Replayed.ts"
import { sample } from "../../support/Long.ts"

/** Of the moments at which a fold was recorded: each, or a sample, and always the last. */
const EVERY = sample(1, 4)

/** Kinds that came after the recording; each is recorded by the next one. */
const LATER: ReadonlyArray<string> = [
  "access.granted",
  "access.revoked",
  "agent.bound_reached",
  "tool.approval_withdrawn",
  "agent.chosen",
  "agent.compacted",
  "alert.answered",
  "alert.overtaken",
  "budget.near",
  "budget.spent",
  "caller.refused",
  "channel.stirred",
  "config.changed",
  "config.kept",
  "config.trusted",
  "config.waits",
  "conversation.given_up",
  "http.port_taken",
  "log.begins",
  "log.verified",
  "inbox.asked_again",
  "inbox.dismissed",
  "inbox.dropped",
  "inbox.rested",
  "log.repaired",
  "provider.lasting",
  "provider.moved",
  "provider.recovered",
  "provider.used",
  "project.started",
  "project.stopped",
  "run.background",
  "run.memory_lost",
  "run.thought",
  "rune.erased",
  "rune.erasing",
  "rune.lost",
  "schedule.added",
  "schedule.paused",
  "schedule.removed",
  "schedule.resumed",
  "schedule.set",
  "schedule.skipped",
  "segment.rewritten",
  "segment.sealed",
  "stream.checkpoint"
]

/**
 * A turn that ended was finalized by a rune of its own, where its last rune does that today:
 * what differs is since when it is idle, and what is shown between the two; since when a channel waits was not said.
 */
const finalized = (name: string, value: unknown): unknown => {
  if (name.startsWith("row: channel ")) {
    const { channel, ...view } = value as { readonly channel: { readonly since?: number } }
    const { since: _, ...info } = channel
    return JSON.parse(JSON.stringify({ ...view, channel: info }).replaceAll('"has the floor"', '"is given the floor"'))
  }
  if (!/ turn\/[^ ]+$/.test(name)) return value
  const turn = value as { readonly state: string }
  const isOver = turn.state === "completed" || turn.state === "error" || turn.state === "idle"
  return isOver ? { ...turn, state: "idle", at: 0, entered: 0 } : value
}

/** Undoes a newer field: an asker without a call of its own has gone on since then, and an older interrupt is none of its. */
const asking = (name: string, value: unknown): unknown => {
  if (!/ plate\/[^ ]+$/.test(name)) return value
  const { data, ...plate } = value as { readonly data: PlateData }
  const asked = data.prompts.filter(({ callId, tool }) => callId === null && tool === "*").map(({ at }) => at)
  return { ...plate, data: { ...data, turnAt: Math.max(data.turnAt, ...asked) } }
}

/** Undoes newer words: of a run that goes on its number was said, and not what its agent does. */
const doing = (state: string, detail: string): string =>
  state === "Running" && !detail.startsWith("asks ") ? "" : detail

/** Undoes newer fields: whether it stopped by itself was not said, the failures since the last answer were not counted then, and waits not reckoned by them. */
const stumbling = (name: string, value: unknown): unknown => {
  if (name.startsWith("row: agent ")) {
    const {
      busy: _,
      failed: __,
      ...row
    } = value as {
      readonly state: string
      readonly detail: string
      readonly busy?: boolean
      readonly failed?: boolean
    }
    const { detail, state } = row
    return { ...row, detail: doing(state, detail), ...(state === "CoolingDown" ? { nextAt: 0 } : {}) }
  }
  if (!/ worker\/[^ ]+$/.test(name) || typeof value !== "object" || value === null) return value
  const { data, ...worker } = value as { readonly data: { readonly failures?: number } }
  const { failures: _, ...rest } = data
  return { ...worker, data: rest }
}

/** Undoes newer fields: sub-agents that agents begin were not counted by the day, and no turn was taken up: whether its agent had begun it did not matter. */
const counting = (name: string, value: unknown): unknown => {
  if (!name.endsWith(": facts") || typeof value !== "object" || value === null) return value
  const {
    begun: _,
    interrupts: __,
    newest: ___,
    turns,
    ...facts
  } = value as {
    readonly begun?: unknown
    readonly interrupts?: unknown
    readonly newest?: unknown
    readonly turns?: { readonly [turnId: string]: object }
  }
  if (turns === undefined) return facts
  const all = Object.entries(turns).map(([turnId, turn]) => [turnId, { ...turn, begun: true }] as const)
  return { ...facts, turns: Object.fromEntries(all) }
}

/** Undoes newer fields: there was no word for people, nor since when it is true, and who cancelled a goal was not kept. */
const wordless = (name: string, value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (/ plan\/[^ ]+$/.test(name)) {
    const { data, ...stand } = value as { readonly data?: { readonly cancelledBy?: string } }
    if (data?.cancelledBy === undefined) return value
    const { cancelledBy: _, ...rest } = data
    return { ...stand, data: rest }
  }
  if (!name.startsWith("row: ")) return value
  const without = (key: string, one: unknown) =>
    key === "word" || (["reason", "role", "model", "since"].includes(key) && name.startsWith("row: agent "))
      ? undefined
      : one
  return JSON.parse(JSON.stringify(value, without))
}

/** Wordings of details in rows: today's, and the one of the recordings. */
const REWORDED = [
  ["prepares its working folder", "prepares where it works"],
  ["in progress", "under way"],
  ["has reported nothing yet", "waits for its session to start"],
  ["has finished a run successfully", "has ended a run well"]
] as const

/** Why a worker's run ended early, which the fold says: today's wordings, and the one of the recordings. */
const ENDED = [
  ["agentd ended while it ran", "agentd was stopped while it ran"],
  ["it is unknown how it ended", "agentd was stopped while it ran"]
] as const

/** Undoes newer wordings in rows and in what a worker's fold says. */
const reworded = (name: string, value: unknown): unknown => {
  const isRow = name.startsWith("row: ")
  if (!isRow && !/ worker\/[^ ]+$/.test(name)) return value
  const words = isRow ? [...REWORDED, ...ENDED] : ENDED
  const text = words.reduce((all, [today, recorded]) => all.replaceAll(today, recorded), JSON.stringify(value))
  return JSON.parse(text) as unknown
}

/** Undoes a newer field: the outbox kept when messages were due, and not when they left. */
const leaving = (name: string, value: unknown): unknown => {
  if (name !== "daemon alerter" || typeof value !== "object" || value === null) return value
  const { due: _, failsSince: __, left: ___, ...outbox } = value as { readonly [name: string]: unknown }
  return outbox
}

/** Undoes newer fields: the time of a turn without its waits for a person, when a call was made, whether it has asked, when a person answered, and when a seat got the floor. */
const timing = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, one: unknown) =>
      ["inTurn", "made", "asked", "beganAt", "answeredAt"].includes(key) ? undefined : one
    )
  )

/** Leaves out what an archive was called: the runes of an archived conversation stay in the log today. */
const unfiled = (name: string, value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  const { archive: _, ...rest } = value as { readonly archive?: unknown; readonly state?: string }
  if (name.endsWith(": facts")) return rest
  if (!name.startsWith("row: conversation ")) return value
  return { ...rest, ...(rest.state === "archived" ? { detail: "archived" } : {}) }
}

/** As far as it has to be what it was. */
const known = (name: string, value: unknown): unknown => {
  const asked = asking(name, finalized(name, timing(unfiled(name, value))))
  return reworded(name, leaving(name, wordless(name, counting(name, stumbling(name, asked)))))
}

/** Plates of runs, by their ids: no run has one any more. */
const runsIn = (expected: ReadonlyMap<string, unknown>): ReadonlySet<string> => {
  const ids = [...expected].flatMap(([name, value]) => {
    const [, id] = / plate\/([^ ]+)$/.exec(name) ?? []
    return id !== undefined && (value as { readonly data: PlateData }).data.runId !== null ? [id] : []
  })
  return new Set(ids)
}

/** Compares what is there, is not, or is another. */
const compare = (
  when: string,
  states: { readonly [name: string]: unknown },
  expected: ReadonlyMap<string, unknown>
) => {
  const runs = runsIn(expected)
  for (const [name, value] of expected) {
    if (states[name] === undefined && runs.has(/plate[ /]([^ :]+)/.exec(name)?.[1] ?? "")) continue
    if (name === "plates: used names") {
      const used = (states[name] as ReadonlyArray<string>).filter((plate) => !runs.has(plate))
      assert.deepStrictEqual(used, value, `${name} ${when}`)
      continue
    }
    assert.deepStrictEqual(known(name, states[name]), known(name, value), `${name} ${when}`)
  }
  const more = Object.keys(states).filter((name) => !expected.has(name))
  assert.deepStrictEqual(more, [], `more than there was ${when}`)
}

describe("a recorded log", () => {
  for (const name of names()) {
    const recording = open(name)
    const moments = linesOf(name, "states") as ReadonlyArray<Moment>
    it.live(`${name}: folds at its moments to what it folded to when it was written`, () =>
      Effect.gen(function* () {
        const expected = new Map<string, unknown>()
        for (const [at, { after, gone, set, why }] of moments.entries()) {
          for (const one of gone) expected.delete(one)
          for (const [one, value] of Object.entries(set)) expected.set(one, value)
          if (at % EVERY !== 0 && at !== moments.length - 1) continue
          const when = `after rune ${after} of ${name} (${why})`
          const { problems, runes, states } = yield* foldedAt(recording, after)
          assert.deepStrictEqual(problems, [], when)
          assert.strictEqual(runes, recording.runes.filter(({ eventId }) => eventId <= after).length, when)
          compare(when, JSON.parse(JSON.stringify(states)), expected)
        }
        assert.strictEqual(moments.at(-1)?.after, recording.runes.at(-1)?.eventId, "its end is among them")
      })
    )
  }

  it("every rune has the type that its readers trust", () => {
    const others = names().flatMap((name) =>
      open(name).runes.flatMap(({ eventId, kind, payload }) => {
        const said: unknown = JSON.parse(payload)
        return kinds.accepts(kind, said) ? [] : [`${name}, rune ${eventId}: ${kinds.explain(kind, said)}`]
      })
    )
    assert.deepStrictEqual(others, [])
  })

  it("there is every kind of rune in one of them, and none that nobody knows", () => {
    const recorded = new Set(names().flatMap((name) => open(name).runes.map(({ kind }) => kind)))
    const missing = kinds.names.filter((kind) => !recorded.has(kind) && !LATER.includes(kind))
    assert.deepStrictEqual(missing, [])
    assert.deepStrictEqual(
      [...recorded].filter((kind) => kinds.get(kind) === undefined),
      []
    )
  })
})
