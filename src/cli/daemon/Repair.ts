/**
 * `agentd repair`: repairs a damaged log while no daemon runs. Each damaged conversation is cut after its last good
 * rune.
 *
 * Guarantees: before the question, the command says which data would be lost. Nothing is changed with --dry-run, or
 * without a terminal unless --yes was passed. A copy of the damaged store is kept.
 */
import { Clock, Effect, FileSystem, HashMap } from "effect"
import { join } from "node:path"
import * as DaemonLog from "../../app/DaemonLog.ts"
import { folds } from "../../app/FeatureFolds.ts"
import { StorageError } from "../../core/event-log/EventLog.ts"
import type { BaselineFile } from "../../core/event-log/BaselineFile.ts"
import * as RepairStore from "../../core/event-log/Repair.ts"
import type { Cut, Cuts } from "../../core/event-log/Cuts.ts"
import type { RuneRow } from "../../core/event-log/RuneRow.ts"
import { firstState } from "../../core/event-log/InitialState.ts"
import * as StoreLock from "../../core/event-log/StoreLock.ts"
import { confirm } from "../parse/Confirm.ts"
import { Invocation, print } from "../parse/Invocation.ts"
import { count, cut as cutOff, plain } from "../render/Output.ts"

interface Input {
  readonly conversation: string | undefined
  readonly dryRun: boolean
  readonly yes: boolean
}

const MAX_NAMED = 5

interface Lost {
  readonly messages: Array<string>
  messagesInAll: number
  turns: number
}

/** Counts the lost messages and turns per stream. */
export class Losses {
  readonly of = new Map<string, Lost>()

  readonly hear = ({ kind, payload, stream }: RuneRow): void => {
    const lost = this.of.get(stream) ?? { messages: [], messagesInAll: 0, turns: 0 }
    this.of.set(stream, lost)
    if (kind === "turn.started") lost.turns += 1
    if (kind !== "inbox.received") return
    lost.messagesInAll += 1
    const text = /"text":"((?:[^"\\]|\\.)*)"/.exec(payload ?? "")?.[1]
    if (text !== undefined && lost.messages.length < MAX_NAMED) lost.messages.push(text)
  }

  text(stream: string): string {
    const { messages, messagesInAll, turns } = this.of.get(stream) ?? { messages: [], messagesInAll: 0, turns: 0 }
    const named = messages.map((text) => `“${cutOff(plain(text), 60)}”`).join(", ")
    return `${count(messagesInAll, "message")}${named === "" ? "" : ` (${named})`}, ${count(turns, "turn")}`
  }
}

const lineOf = ({ eventId, lost, reason, seq, stream }: Cut, losses: Losses): string => {
  const gone = `${count(lost, "rune")} of this stream ${lost === 1 ? "is" : "are"} lost`
  // in the daemon's own stream only the damaged runes are removed, not the runes after them
  if (stream === DaemonLog.rules.home) return plain(`${stream}: ${reason}. ${gone}; all others are kept.`)
  const rest =
    eventId === 0 ? "No rune of it is left" : `It continues after its rune ${seq} (rune ${eventId} of the log)`
  return plain(`${stream}: ${reason}. ${rest}; ${gone}: ${losses.text(stream)}.`)
}

type Plan = Pick<Cuts, "behind" | "blanked" | "cuts" | "unknown">

export const linesOf = (plan: Plan, losses: Losses): ReadonlyArray<string> => [
  ...[...plan.cuts.values()].map((one) => lineOf(one, losses)),
  ...(plan.behind === undefined ? [] : [`${plan.behind}. Only a backup can restore the missing part.`]),
  ...(plan.unknown === 0
    ? []
    : [`${count(plan.unknown, "unreadable rune")} of unknown streams ${plan.unknown === 1 ? "is" : "are"} lost.`]),
  ...(plan.blanked.length === 0
    ? []
    : [
        `${count(plan.blanked.length, "rune")} of agent output ${plan.blanked.length === 1 ? "loses its text" : "lose their texts"}; no other state is lost.`
      ])
]

const jsonOf = (plan: Cuts, losses: Losses, beside: string | null) => ({
  lost: plan.lost,
  behind: plan.behind ?? null,
  unknown: plan.unknown,
  blanked: plan.blanked,
  streams: [...plan.cuts.values()].map((one) => ({
    ...one,
    messages: losses.of.get(one.stream)?.messagesInAll ?? 0,
    turns: losses.of.get(one.stream)?.turns ?? 0
  })),
  beside
})

/** The part of a state that the fold has marked as broken; undefined if no part is broken. */
const brokenIn = (state: unknown): string | undefined => {
  const of = state as {
    readonly life?: { readonly broken?: string }
    readonly isBroken?: boolean
    readonly broken?: { readonly [channel: string]: string }
  } | null
  if (of?.isBroken === true) return "the session"
  const [channel] = Object.entries(of?.broken ?? {})
  if (channel !== undefined) return `the channel ${channel[0]}: ${channel[1]}`
  if (HashMap.isHashMap(state)) {
    for (const [goalId, record] of state) if (record === "broken") return `the goal ${String(goalId)}`
  }
  return of?.life?.broken
}

/**
 * Makes a function that folds a conversation's runes in order. For each rune, it returns the reason why the rune cannot
 * be folded, or undefined.
 */
const foldsOf = (conversation: string) => (beginning: BaselineFile | undefined) => {
  const own = folds.filter((fold) => fold.of?.(conversation) ?? true)
  const states = new Map(own.map((fold) => [fold, firstState(beginning, conversation, fold)]))
  return (row: RuneRow): string | undefined => {
    const rune = RepairStore.runeOf(row)
    if (rune === undefined) return "its payload cannot be read"
    for (const [fold, state] of states) {
      try {
        const next = fold.apply(state, rune)
        const broken = brokenIn(next)
        if (broken !== undefined) return `it does not fold: ${broken}`
        states.set(fold, next)
      } catch (cause) {
        return `it does not fold: ${cause instanceof Error ? cause.message : String(cause)}`
      }
    }
    return undefined
  }
}

export const run = Effect.fnUntraced(function* ({ conversation, dryRun, yes }: Input) {
  const { paths } = yield* Invocation
  const fs = yield* FileSystem.FileSystem
  if (!(yield* Effect.orElseSucceed(fs.exists(paths.store), () => false))) {
    return yield* new StorageError({
      reason: "cannot-open",
      message: `There is no rune log at ${paths.store}.`,
      remedy: "Pass the right state directory with --state DIR."
    })
  }
  yield* StoreLock.acquire({ folder: paths.state, socket: null })
  const inputOf = (losses: Losses): RepairStore.Input => ({
    file: paths.store,
    rules: DaemonLog.rules,
    only: conversation,
    onLost: losses.hear,
    ...(conversation === undefined ? {} : { folds: foldsOf(conversation) })
  })
  const losses = new Losses()
  const plan = yield* RepairStore.look(inputOf(losses))
  const lines = linesOf(plan, losses)
  const sides = "The files next to the store are created again."
  if (dryRun) {
    return yield* print(jsonOf(plan, losses, null), () =>
      plan.isWell ? ["Every rune is intact: there is nothing to repair."] : ["A repair would do this:", ...lines]
    )
  }
  const fact = plan.isWell
    ? `Every rune is intact. A repair rewrites the store without loss. ${sides}`
    : `${lines.join("\n")}\nA copy of the current store is kept. ${sides}`
  yield* confirm(yes, fact, "Repair the store?")
  const done = yield* RepairStore.run(inputOf(new Losses()), yield* Clock.currentTimeMillis)
  yield* print(jsonOf(done.plan, losses, done.beside), () => [
    ...lines,
    plan.isWell
      ? `The store was rewritten, and nothing was lost. The old store is in ${done.beside}. Remove it when you no longer need it.`
      : `The store was repaired. The old store is in ${done.beside}. You can read the lost runes in ${join(done.beside, "lost.jsonl")}.`,
    "Check the result: agentd verify"
  ])
}, Effect.scoped)
