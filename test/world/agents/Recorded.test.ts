/**
 * Lives that an older daemon wrote append by append, cut after each of their appends, also
 * between two that belong together: the next daemon brings them to the end that was promised.
 * `ALL=1` takes every cut, else a sample of them.
 */
import type { Rune } from "../../../src/core/event-log/Rune.ts"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { rmSync } from "node:fs"
import { reading } from "../../../src/config/OwnFile.ts"
import { withLogAt } from "../event-log/recorded/Replayed.ts"
import * as Laws from "../../support/Laws.ts"
import { open, type Recording } from "../../support/Recording.ts"
import { AgentWorld } from "./AgentWorld.ts"
import { drive, holds, obedient, settings } from "./Obedient.ts"
import { provided } from "./TestLog.ts"
import { until, World } from "./World.ts"
import { sample } from "../../support/Long.ts"

/** Of the sample. */
const EVERY = sample(1, 3)

/** The deeds outside of the older daemon's agent by then: it paid once it heard of an approval. */
const outsideAt = ({ runes }: Recording, after: number) => {
  const approved = runes.filter(({ eventId, kind }) => eventId <= after && kind === "tool.approved").length
  return { paid: approved, approvals: approved }
}

/** The next daemon's life on what there is of one agent. */
const goesOn = (recording: Recording, after: number) =>
  Effect.gen(function* () {
    const log = yield* provided
    const outside = outsideAt(recording, after)
    const world = new AgentWorld(log, [], settings)
    world.puppet = obedient(outside)
    yield* world.open
    yield* Effect.ensuring(Effect.andThen(drive(world, outside), holds(world, log, outside)), world.lose)
  })

/** The next daemon's fleet on what there is; a person allows what asks, and interrupts what hangs. */
const settles = (recording: Recording, after: number) =>
  Effect.gen(function* () {
    const log = yield* provided
    const outside = outsideAt(recording, after)
    const world = new World(log, () => Effect.succeed(obedient(outside)))
    const [[path, text]] = Object.entries(recording.configs) as [[string, string]]
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(world.folder, { recursive: true, force: true })))
    world.configure(text)
    // the recorded folder is not there
    world.ownFile = (file, most) => reading()(file === path ? world.config : file, most)
    const fleet = yield* world.open
    const caller = { by: "ada", config: path }
    if ((yield* fleet.projects).length === 0) return yield* Effect.asVoid(fleet.register(path, caller))
    const look = Effect.gen(function* () {
      for (const { callId } of yield* fleet.calls) {
        outside.approvals++
        yield* fleet.askedCall(callId).pipe(
          Effect.flatMap(({ hash }) => fleet.answerCall(callId, { behavior: "allow", reason: "", hash }, caller)),
          Effect.ignore
        )
      }
      const runes = yield* log.tail({ stream: recording.runes[1]!.stream }, 10_000)
      const open = Laws.turnsOf(runes).find(({ ends }) => ends.length === 0)
      const begun = runes.find(({ kind, payload }) => kind === "turn.started" && payload["turn_id"] === open?.turnId)
      if (/hang/.test(String(begun?.payload["input"]))) yield* Effect.ignore(fleet.interrupt("builder", caller))
      const { turnsActive } = yield* fleet.conversation(recording.runes[1]!.stream, caller)
      const rows = yield* fleet.all
      const isStopped = rows[0]?.state === "Stopped"
      // what is not done when an agent is stopped waits for its next start
      const broken = Laws.broken(runes).filter((line) => !isStopped || !line.startsWith("message"))
      const isMoved = ({ moves }: Rune) => moves.some((name) => name.startsWith("agent/"))
      const count = (holds: (rune: Rune) => boolean) => runes.filter(holds).length
      const began = count((rune) => rune.kind === "agent.busy" || (rune.kind === "turn.started" && isMoved(rune)))
      const idle = count(
        (rune) =>
          rune.kind === "agent.idle" ||
          rune.kind === "agent.terminated" ||
          (rune.kind !== "turn.started" && isMoved(rune))
      )
      const waits = isStopped || rows.every(({ inbox }) => inbox === 0)
      return { broken, turnsActive, waits, settled: idle >= began, rows: rows.map(({ state }) => state) }
    })
    yield* until(
      Effect.orDie(look),
      ({ broken, rows, settled, turnsActive, waits }) =>
        broken.length === 0 && turnsActive === 0 && waits && settled && !rows.includes("Spawning")
    )
    assert.deepStrictEqual((yield* log.verify).problems, [])
  }).pipe(Effect.scoped)

const lives = { life: goesOn, sends: settles }

for (const [name, live] of Object.entries(lives)) {
  const recording = open(name)
  const cuts = recording.appends.filter((_, index) => index % EVERY === 0)
  describe(`${name}, which an older daemon has begun`, () => {
    assert.isAbove(cuts.length, 15)
    for (const after of cuts) {
      const { actor, kind } = recording.runes.find(({ eventId }) => eventId === after)!
      it.live(`and has left after ${kind} of ${actor} (rune ${after}): all of it is done once`, () =>
        withLogAt(recording, after, live(recording, after))
      )
    }
  })
}
