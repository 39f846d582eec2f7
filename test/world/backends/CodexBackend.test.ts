import { assert, describe, it, layer } from "@effect/vitest"
import { Duration, Effect, Stream } from "effect"
import * as fs from "node:fs"
import * as path from "node:path"
import type * as Config from "../../../src/config/BackendConfig.ts"
import type { Run, RunEvent, RunSpec } from "../../../src/runs/Backend.ts"
import * as CodexBackend from "../../../src/runs/codex/CodexBackend.ts"
import * as CodexCommand from "../../../src/runs/codex/CodexCommand.ts"
import * as Support from "../../support/backend-run.ts"

const FIXTURES = path.resolve(import.meta.dirname, "../../fixtures/codex")

const config = (more: Partial<Config.CodexBackend> = {}): Config.CodexBackend => ({
  type: "codex",
  argv: ["./codex"],
  config: {},
  env: {},
  killGrace: Duration.seconds(5),
  sandbox: "off",
  network: false,
  share: [],
  provider: {},
  resume: true,
  silence: Duration.minutes(5),
  startTimeout: Duration.minutes(1),
  ...more
})

interface Play {
  readonly recording: string
  readonly config?: Partial<Config.CodexBackend>
  readonly spec?: Partial<RunSpec>
  readonly environment?: { readonly [name: string]: string }
  readonly on?: (event: RunEvent, run: Run) => Effect.Effect<unknown, unknown> | undefined
}

/** A run to its end, with a double that sends what the real program sent. */
const play = Effect.fnUntraced(function* (what: Play) {
  const { folder, store } = yield* Support.world
  const start = `#!/bin/sh\nexec "${process.execPath}" "${path.join(FIXTURES, "fake.mjs")}" "$@"\n`
  fs.writeFileSync(path.join(folder, "codex"), start, { mode: 0o755 })
  const environment = { PATH: process.env["PATH"], HOME: folder, ...what.environment }
  const RECORDING = path.join(FIXTURES, `${what.recording}.jsonl`)
  const backend = yield* CodexBackend.make(config({ env: { RECORDING }, ...what.config }), { store, environment })
  const events: Array<RunEvent> = []
  yield* Effect.scoped(
    Effect.gen(function* () {
      const run = yield* backend.start({
        runId: "run-1",
        agent: "builder",
        turnId: "t1",
        prompt: "do it",
        cwd: folder,
        env: {},
        resume: undefined,
        mcp: { agentd: { argv: ["agentd", "mcp"], env: { AGENTD_TOKEN: "shh" } } },
        ...what.spec
      })
      yield* Stream.runForEach(run.events, (event) => {
        events.push(event)
        return what.on?.(event, run) ?? Effect.void
      })
    })
  )
  const read = (name: string) =>
    fs
      .readFileSync(path.join(folder, name), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
  return { events, inputs: read("inputs.jsonl"), starts: read("starts.jsonl") }
})

const only = <T extends RunEvent["_tag"]>(events: ReadonlyArray<RunEvent>, tag: T) =>
  events.filter((event): event is Extract<RunEvent, { readonly _tag: T }> => event._tag === tag)

const endsAfter = (turnId: string) => (event: RunEvent, run: Run) =>
  (event._tag === "TurnCompleted" || event._tag === "TurnInterrupted") && event.turnId === turnId ? run.end : undefined

describe("what Codex may do without asking", () => {
  it("depends on the agent's approvals, on agentd's sandbox, and on what the config says", () => {
    const asked = { approvalPolicy: "on-request", sandbox: "read-only" }
    for (const mode of [undefined, "auto", "read_only"] as const)
      assert.deepStrictEqual(CodexCommand.permissionsOf({}, mode, false), asked as CodexCommand.Permissions)
    const free = { approvalPolicy: "never", sandbox: "danger-full-access" }
    assert.deepStrictEqual(CodexCommand.permissionsOf({}, "full_access", false), free as CodexCommand.Permissions)
    const confined = { approvalPolicy: "untrusted", sandbox: "danger-full-access" }
    assert.deepStrictEqual(CodexCommand.permissionsOf({}, "auto", true), confined as CodexCommand.Permissions)
    const own = { approvalPolicy: "untrusted", sandboxMode: "workspace-write" } as const
    assert.deepStrictEqual(CodexCommand.permissionsOf(own, "full_access", false), {
      approvalPolicy: "untrusted",
      sandbox: "workspace-write"
    })
  })
  it("is nothing while a rule denies or asks, unless the config names a policy", () => {
    const policy = (config: Parameters<typeof CodexCommand.permissionsOf>[0]) =>
      CodexCommand.permissionsOf(config, "auto", false, true)
    assert.deepStrictEqual(policy({}), { approvalPolicy: "untrusted", sandbox: "read-only" })
    assert.strictEqual(policy({ approvalPolicy: "on-request" }).approvalPolicy, "on-request")
    assert.strictEqual(policy({ approvalPolicy: "never" }).approvalPolicy, "never")
  })
})

layer(Support.layer, { excludeTestServices: true })("CodexBackend", (it) => {
  it.effect("two turns in one process; settings go to its thread, and none to the command line", () =>
    Effect.gen(function* () {
      const { events, inputs, starts } = yield* play({
        recording: "two-turns",
        config: { model: "gpt-x", effort: "high", config: { web_search: "disabled" } },
        on: (event, run) =>
          event._tag === "TurnCompleted" && event.turnId === "t1"
            ? run.send({ turnId: "t2", text: "more" })
            : endsAfter("t2")(event, run)
      })
      assert.deepStrictEqual(
        only(events, "TurnCompleted").map(({ turnId }) => turnId),
        ["t1", "t2"]
      )
      assert.deepStrictEqual(only(events, "Exited"), [{ _tag: "Exited", outcome: { _tag: "Success" } }])
      assert.deepStrictEqual(starts[0].args, ["app-server"])
      const { params } = inputs.find(({ method }) => method === "thread/start")
      assert.deepInclude(params, { approvalPolicy: "on-request", sandbox: "read-only", approvalsReviewer: "user" })
      assert.deepInclude(params, { model: "gpt-x" })
      assert.deepInclude(params.config, { model_reasoning_effort: "high", web_search: "disabled" })
      assert.deepStrictEqual(params.config.mcp_servers, {
        agentd: { command: "agentd", args: ["mcp"], env: { AGENTD_TOKEN: "shh" } }
      })
      const turns = inputs.filter(({ method }) => method === "turn/start")
      assert.deepStrictEqual(
        turns.map((turn) => turn.params.input[0].text),
        ["do it", "more"]
      )
    })
  )

  it.effect("uses a key from the environment, which app-server reads by no name, unless there is a login", () =>
    Effect.gen(function* () {
      const environment = { OPENAI_API_KEY: "sk-test" }
      const { inputs } = yield* play({ recording: "two-turns", environment, on: endsAfter("t1") })
      const { config } = inputs.find(({ method }) => method === "thread/start").params
      assert.strictEqual(config.model_provider, "agentd")
      assert.deepInclude(config.model_providers.agentd, { env_key: "OPENAI_API_KEY" })
      assert.notInclude(JSON.stringify(inputs), "sk-test")
    })
  )

  it.effect("what is approved runs, what is interrupted ends, and a limit counts against nobody", () =>
    Effect.gen(function* () {
      const asked = yield* play({
        recording: "calls",
        on: (event, run) =>
          event._tag === "ApprovalRequested"
            ? run.answer(event.callId, { behavior: "allow" })
            : endsAfter("t1")(event, run)
      })
      assert.strictEqual(only(asked.events, "ApprovalRequested").length, 3)
      assert.strictEqual(only(asked.events, "TurnCompleted")[0]?.output, "done")

      const cut = yield* play({
        recording: "interrupt",
        on: (event, run) =>
          event._tag === "ToolProgress"
            ? run.interruptTurn
            : event._tag === "TurnInterrupted"
              ? run.send({ turnId: "t2", text: "more" })
              : endsAfter("t2")(event, run)
      })
      assert.strictEqual(only(cut.events, "TurnInterrupted").length, 1)
      assert.include(
        cut.inputs.map(({ method }) => method),
        "thread/backgroundTerminals/terminate"
      )
      assert.deepStrictEqual(only(cut.events, "Exited")[0]?.outcome, { _tag: "Success" })

      const spent = yield* play({ recording: "error-usage" })
      assert.deepInclude(only(spent.events, "Exited")[0]?.outcome, { _tag: "Uncounted", reason: "quota" })
    })
  )

  it.effect("a thread that is gone is replaced in the same process; a program that is none is an error", () =>
    Effect.gen(function* () {
      const resume = { sessionId: "01a22bc8-0000-7000-8000-000000000000", fork: false }
      const silent = yield* play({
        recording: "gone-2",
        spec: { resume },
        config: { startTimeout: Duration.seconds(2) }
      })
      assert.strictEqual(only(silent.events, "MemoryLost").length, 1)
      assert.deepInclude(only(silent.events, "Exited")[0]?.outcome, { _tag: "Error" })
      assert.strictEqual(silent.starts.length, 1)
    })
  )
})
