/** Channels that a test plays, an alerter over a log in memory, the runes of which channels tell, and time that passes. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { type Duration, Effect, Layer, Queue, Schema } from "effect"
import { TestClock } from "effect/testing"
import { layerMemory } from "../../../src/app/DaemonLog.ts"
import { type AlertChannel, AlertChannels, type Message } from "../../../src/alerts/AlertChannel.ts"
import { AlertContext } from "../../../src/alerts/AlertContext.ts"
import * as Alerter from "../../../src/alerts/Alerter.ts"
import { LiveOutbox } from "../../../src/alerts/LiveOutbox.ts"
import { Mailer, type MailerShape } from "../../../src/alerts/Mailer.ts"
import type { Facts } from "../../../src/alerts/Notice.ts"
import { SendError } from "../../../src/alerts/SendError.ts"
import * as Smtp from "../../../src/alerts/Smtp.ts"
import type { MailConfig } from "../../../src/config/Config.ts"
import { NotifyConfig } from "../../../src/config/NotifyConfig.ts"
import { EventLog } from "../../../src/core/event-log/EventLog.ts"
import { Redact } from "../../../src/core/event-log/Redact.ts"
import type { Rune, RuneDraft } from "../../../src/core/event-log/Rune.ts"

const decode = Schema.decodeUnknownSync(NotifyConfig)
export const STREAM = "demo-00000000"

export interface Played {
  readonly told: Array<Message & { readonly by: string; readonly to: ReadonlyArray<string> | undefined }>
  /** Mails by a mail section: to whom, and of what. */
  readonly mails: Array<{ readonly to: ReadonlyArray<string>; readonly subject: string }>
  readonly back: Array<{ readonly by: string; readonly handle: string; readonly why: string }>
  /** Channels that hang, and those that fail. */
  readonly hanging: Set<string>
  /** A person puts a message off. */
  readonly putOff: (message: Message) => void
  readonly failing: Set<string>
  readonly channels: ReadonlyArray<AlertChannel>
}

const refused = new SendError({ message: "HTTP 503", remedy: "wait", class: "transient" })

/** Channels of these names, each a type of its own; those of capitals cannot take a message back. */
export const played = (...names: ReadonlyArray<string>): Played => {
  const told: Played["told"] = []
  const mails: Played["mails"] = []
  const back: Played["back"] = []
  const hanging = new Set<string>()
  const failing = new Set<string>()
  const off = Effect.runSync(Queue.unbounded<Message>())
  const channels = names.map((name): AlertChannel => ({
    name,
    send: (config, message) =>
      Effect.suspend(() => {
        if (hanging.has(name)) return Effect.never
        if (failing.has(name)) return Effect.fail(refused)
        told.push({ ...message, by: name, to: config.type === "mail" ? config.to : undefined })
        return Effect.succeed({ response: "ok", handle: `${name}-${told.length}` })
      }),
    ...(name === "chat"
      ? {}
      : {
          withdraw: (_: unknown, { handle }: { readonly handle: string }, why: string) =>
            Effect.sync(() => (back.push({ by: name, handle, why }), { response: "ok" }))
        }),
    ...(name === "desk" ? { later: Queue.take(off) } : {}),
    check: () => Effect.succeed("fine")
  }))
  return { told, mails, back, hanging, failing, channels, putOff: (message) => void Queue.offerUnsafe(off, message) }
}

export const config = (names: ReadonlyArray<string>, rest: object = {}) =>
  decode({ channels: Object.fromEntries(names.map((name) => [name, { type: "other", name }])), ...rest })

interface World {
  readonly facts?: (rune: Rune) => Partial<Facts>
  readonly mail?: MailConfig
}

/** A server that takes all. */
const mailer = ({ mails }: Played): MailerShape => ({
  host: () => "lab",
  send: (mail, { subject }) =>
    Effect.sync(() => {
      const to = Smtp.recipients(mail)
      mails.push({ to, subject })
      return { to, rejected: [], response: "250 OK" }
    }),
  probe: () => Effect.succeed("fine")
})

export const living = (play: Played, notify: NotifyConfig, { facts, mail }: World = {}) =>
  Effect.forkScoped(
    Effect.provide(
      Alerter.run({ host: "lab" }),
      Layer.mergeAll(
        AlertContext.layerTest(
          () => mail,
          () => notify,
          facts
        ),
        LiveOutbox.layer,
        Layer.succeed(Mailer, mailer(play)),
        Layer.succeed(AlertChannels, play.channels)
      )
    )
  )

export const append = (...drafts: ReadonlyArray<RuneDraft | ReadonlyArray<RuneDraft>>) =>
  Effect.flatMap(EventLog, (log) => log.append(drafts.flat() as ReadonlyArray<RuneDraft>))

export const asked = (agent: string): RuneDraft => ({
  stream: STREAM,
  kind: "agent.asked",
  actor: `agent/${agent}`,
  payload: { agent_id: agent, question: `Which region, asks ${agent}?` }
})

export const answered = (agent: string, from = "dana"): RuneDraft => ({
  stream: STREAM,
  kind: "inbox.received",
  actor: `inbox/${agent}`,
  payload: { event: { _tag: "Received", message: { messageId: "m", from, text: "eu", urgent: false, at: 0 } } }
})

const worker = (agent: string, from: string, to: string, event: { readonly _tag: string }): RuneDraft => ({
  stream: STREAM,
  kind: "worker.moved",
  actor: `worker/${agent}`,
  from,
  to,
  trigger: event._tag,
  payload: {
    event,
    consecutiveErrors: 5,
    totalErrors: 5,
    fatal: { message: "5 errors in a row; the last: exit code 1", remedy: "Mend it." }
  }
})

const prepared = { _tag: "PromptReady", prompt: "go", runId: "r", messageIds: [], at: 0 }
const exited = { _tag: "SessionExited", runId: "r", outcome: { _tag: "Error", detail: "exit code 1" } }

/** A run that begins and fails, and is the last. */
export const died = (agent: string): ReadonlyArray<RuneDraft> => [
  worker(agent, "BuildingPrompt", "Spawning", prepared),
  worker(agent, "Spawning", "Stopped", exited)
]

export const plan = (kind: string, event: { readonly _tag: string; readonly [field: string]: unknown }): RuneDraft => ({
  stream: STREAM,
  kind,
  actor: "plan/g1",
  payload: { event }
})
/** A move of the project itself. */
export const project = (
  kind: string,
  event: { readonly _tag: string; readonly [field: string]: unknown }
): RuneDraft => ({
  stream: STREAM,
  kind,
  actor: "session/demo",
  payload: { event, reason: "its budget is spent", final_stats: null }
})

const TURN = {
  "turn.started": {
    _tag: "start_turn",
    turnId: "t",
    agentId: "a",
    input: "go",
    source: "own",
    messageIds: ["m"],
    at: 0
  },
  "turn.completed": { _tag: "response_done", turnId: "t", finalOutput: "done", usage: null }
} as const

/** An agent's turn begins, or ends. */
export const turn = (agent: string, kind: "turn.started" | "turn.completed", id: string): RuneDraft => ({
  stream: STREAM,
  kind,
  actor: `turn/${agent}`,
  payload: { turn_id: id, agent_id: agent, event: TURN[kind] }
})

export const blocked = plan("plan.blocked", { _tag: "all_runnable_blocked", reason: "vault refuses" })
export const unblocked = plan("plan.unblocked", { _tag: "dependency_resolved", reason: "dana says so" })

/** The log and the alerter have a turn between two steps of the clock. */
export const passing = (time: Duration.Input, step: Duration.Input = "1 second") =>
  Effect.gen(function* () {
    const [whole, one] = [Number(millis(time)), Number(millis(step))]
    for (let passed = 0; passed < whole; passed += one) {
      yield* settled
      yield* TestClock.adjust(step)
    }
    yield* settled
  })

const millis = (input: Duration.Input): number => {
  const [amount = "0", unit = ""] = String(input).split(" ")
  return Number(amount) * (unit.startsWith("h") ? 3_600_000 : unit.startsWith("m") ? 60_000 : 1_000)
}

export const settled = Effect.promise(async () => {
  for (let turn = 0; turn < 12; turn++) await new Promise((resume) => setImmediate(resume))
})

export const withLog = Effect.provide(Layer.mergeAll(layerMemory, NodeFileSystem.layer, Redact.layer))
