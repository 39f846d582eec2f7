/** Tests of the figures of a day's runes, and of their Prometheus form. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Metric } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { make } from "../../world/agents/AgentWorld.ts"
import { Meters } from "../../../src/telemetry/Meters.ts"

const meters = () => {
  const context = Context.make(Metric.MetricRegistry, new Map())
  const found = new Meters(context)
  const figure = (name: string): number | undefined => {
    const line = PrometheusMetrics.formatUnsafe(context)
      .split("\n")
      .find((line) => line.startsWith(`${name} `))
    return line === undefined ? undefined : Number(line.split(" ")[1])
  }
  return { meters: found, figure, text: () => PrometheusMetrics.formatUnsafe(context) }
}

describe("the figures of an agent's work", () => {
  it.live("messages, turns, runs, tokens and the wait between runs are counted from its runes", () =>
    Effect.gen(function* () {
      const world = yield* make([
        { steps: [{ usage: { inputTokens: 9, outputTokens: 1 } }, { say: "ok" }] },
        { steps: [{ say: "ok" }] }
      ])
      yield* world.tree.send("work", "queue", { by: "ada", config: null })
      yield* world.kind("turn.completed")
      const runes = yield* world.runes
      const { figure, meters: counted } = meters()
      counted.takeAll(runes, { now: runes.at(-1)!.at + 5, looked: 0 })
      const many = (kind: string) => runes.filter((rune) => rune.kind === kind).length
      assert.strictEqual(figure('agentd_runes_total{kind="turn.started"}'), many("turn.started"))
      assert.strictEqual(figure("agentd_append_seconds_count"), runes.length)
      assert.strictEqual(figure("agentd_message_queue_seconds_count"), 1)
      assert.strictEqual(figure('agentd_turn_seconds_count{end="completed"}'), 1)
      assert.strictEqual(figure('agentd_agent_runs_total{agent="builder"}'), 1)
    }).pipe(Effect.scoped)
  )

  it.live("agents beyond the first two hundred are counted together", () =>
    Effect.gen(function* () {
      const world = yield* make([{ steps: [{ usage: { inputTokens: 9, outputTokens: 1 } }, { say: "ok" }] }])
      yield* world.tree.send("work", "queue", { by: "ada", config: null })
      const [usage] = yield* world.kind("agent.usage")
      const { meters: counted, text } = meters()
      const used = Array.from({ length: 300 }, (_, n) => ({ ...usage!, actor: `meter/a${n}` }))
      counted.takeAll(used, { now: usage!.at, looked: 0 })
      const labels = text().match(/^agentd_agent_tokens_total\{agent=/gm)
      assert.strictEqual(labels?.length, 201)
      assert.match(text(), /^agentd_agent_tokens_total\{agent="other"\} 1000$/m)
    }).pipe(Effect.scoped)
  )

  it("of the live tree the messages that wait, restarts and parts are shown as they are now", () => {
    const { figure, meters: counted } = meters()
    counted.look([
      { kind: "supervisor", status: "running", mailbox: null, restarts: 1 },
      { kind: "worker", status: "restarting", mailbox: null, restarts: 2 },
      { kind: "actor", status: null, mailbox: 4, restarts: null },
      { kind: "actor", status: null, mailbox: 1, restarts: null }
    ])
    assert.strictEqual(figure("agentd_mailbox_messages"), 5)
    assert.strictEqual(figure("agentd_mailbox_messages_max"), 4)
    assert.strictEqual(figure("agentd_supervisor_restarts"), 3)
    assert.strictEqual(figure("agentd_supervised_parts"), 1)
  })
})
