/**
 * Stage: a sandbox's daemon with projects whose agents do what their input says (Told), on each backend. A test acts
 * as a person over the daemon's socket, so that a command needs no process.
 */
import { Effect, type Scope, Stream } from "effect"
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import * as ControlClient from "../../src/api/rpc/ControlClient.ts"
import type { AgentInfo, CallInfo } from "../../src/domain/Messages.ts"
import type { Rune } from "../../src/core/event-log/Rune.ts"
import type { Provider } from "../world/backends/ModelStand.ts"
import * as ModelCast from "./ModelCast.ts"
import { PATIENCE } from "./Patience.ts"
import * as Sandbox from "./Sandbox.ts"
import { type Step, told } from "./Told.ts"

const CLAUDE = resolve(import.meta.dirname, "../fixtures/claude/fake.mjs")
const ACP = resolve(import.meta.dirname, "../fixtures/acp/agent.mjs")
const CODEX = resolve(import.meta.dirname, "../fixtures/codex/told.mjs")

export const BACKENDS = ["claude", "acp", "model"] as const
export type BackendName = (typeof BACKENDS)[number] | "codex"

const line = ({ actor, at, eventId, from, kind, payload, to, trigger }: Rune): string =>
  `${eventId} +${at % 100_000} ${actor} ${kind} ${from}→${to} ${trigger} ${String(payload["turn_id"] ?? "")}`

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1")
  } catch {
    return ""
  }
}

const PAUSE = 40
const TRIES = PATIENCE / PAUSE

interface Config {
  readonly agents: { readonly [name: string]: object }
  readonly [field: string]: unknown
}

/** Further fields for an agent's config and for its backend's. */
export type More = { readonly backend?: object; readonly [field: string]: unknown }

/** A project of the stage's daemon, with the commands of a person in it. */
export class Project {
  readonly stage: Stage
  readonly name: string
  readonly root: string
  readonly config: string

  constructor(stage: Stage, name: string) {
    this.stage = stage
    this.name = name
    this.root = join(stage.box.folder, name)
    this.config = join(this.root, "agentd.jsonc")
    mkdirSync(this.root, { recursive: true })
  }

  /** Writes the project's config; an agent with a process gets its own folder. */
  configure(config: Config): void {
    const agents = Object.entries(config.agents).map(([name, settings]) => {
      const { backend, worktree } = settings as {
        readonly backend: { readonly type: string }
        readonly worktree?: true
      }
      if (backend.type === "model" || worktree === true) return [name, settings]
      mkdirSync(join(this.root, name), { recursive: true })
      return [name, { ...settings, backend: { cwd: name, ...backend } }]
    })
    writeFileSync(this.config, JSON.stringify({ ...config, agents: Object.fromEntries(agents) }, null, 2))
  }

  get caller() {
    return { by: "ada", config: this.config }
  }

  /** Registers the project with the daemon. */
  readonly register = Effect.suspend(() =>
    this.stage.rpc((client) => client.Register({ config: this.config, caller: this.caller }))
  )

  send(name: string, text: string, how: "queue" | "steer" | "urgent" = "queue") {
    return this.stage.rpc((client) => client.Send({ name, text, how, caller: this.caller }))
  }

  tell(name: string, ...steps: ReadonlyArray<Step>) {
    return this.send(name, told(...steps))
  }

  interrupt(name: string) {
    return this.stage.rpc((client) => client.Interrupt({ name, caller: this.caller }))
  }

  start(name: string) {
    return this.stage.rpc((client) => client.Start({ name, caller: this.caller }))
  }

  why(name: string) {
    return this.stage.rpc((client) => client.Why({ name, caller: this.caller }))
  }

  /** Answers a call, with the hash of the call as it was seen. */
  answer(name: string, decision: "allow" | "deny", reason = "") {
    const { caller } = this
    return this.stage.rpc((client) =>
      Effect.flatMap(client.Asked({ name, caller }), ({ hash, id }) =>
        client.Answer({ name: id, decision, reason, hash, caller })
      )
    )
  }

  readonly conversation = Effect.suspend(() =>
    this.stage.rpc((client) => client.Conversation({ name: this.name, caller: this.caller }))
  )

  /** Runs an agentd command in the project's folder. */
  cli(...args: ReadonlyArray<string>) {
    return this.stage.box.cliIn(this.root, ...args)
  }

  readonly agents: Effect.Effect<ReadonlyArray<AgentInfo>> = Effect.suspend(() =>
    this.stage
      .rpc((client) => client.Agents())
      .pipe(
        Effect.map((rows) => rows.filter(({ project }) => project === this.name)),
        Effect.orElseSucceed(() => [])
      )
  )

  /** Runes of the project's conversation, oldest first; empty if no daemon answers. */
  log(...kinds: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Rune>> {
    return this.stage
      .rpc((client) =>
        Effect.gen({ self: this }, function* () {
          const { conversation } = yield* client.Conversation({ name: this.name, caller: this.caller })
          const only = kinds.length === 0 ? {} : { kinds }
          return yield* Stream.runCollect(
            client.Log({ stream: conversation, ...only, internal: true, follow: false, caller: this.caller })
          )
        })
      )
      .pipe(Effect.orElseSucceed(() => []))
  }

  /** Polls until `holds` is true; fails with the last value and the end of the log. */
  until<A, E>(what: string, read: Effect.Effect<A, E>, holds: (value: A) => boolean) {
    return Effect.gen({ self: this }, function* () {
      for (let tries = 0; ; tries++) {
        const value = yield* Effect.orDie(read)
        if (holds(value)) return value
        if (tries === TRIES) {
          const seen = JSON.stringify(value)?.slice(-3000)
          const log = (yield* this.log()).slice(-60).map(line).join("\n")
          return yield* new Sandbox.NeverHappened({ message: `never: ${what}; last seen: ${seen}\n${log}` })
        }
        yield* Effect.sleep(PAUSE)
      }
    })
  }

  /** Number of the agent's runs that have started. */
  runs(agent: string) {
    return Effect.map(
      this.log("turn.started"),
      (runes) => runes.filter(({ moves }) => moves.includes(`worker/${agent}`)).length
    )
  }

  /** Waits until `holds` is true for the agent's row; returns the row. */
  row(agent: string, what: string, holds: (row: AgentInfo) => boolean) {
    return Effect.map(
      this.until(`${agent} ${what}`, this.agents, (rows) => rows.some((row) => row.agent === agent && holds(row))),
      (rows) => rows.find((row) => row.agent === agent)!
    )
  }

  /** Waits for at least `count` runes of these kinds by the agent's turn, calls, worker …; returns them. */
  of(agent: string, count: number, ...kinds: ReadonlyArray<string>) {
    const isIts = ({ actor }: Rune) => actor.split("/")[1] === agent
    return this.until(
      `${agent}: ${count} × ${kinds.join(", ")}`,
      Effect.map(this.log(...kinds), (runes) => runes.filter(isIts)),
      (runes) => runes.length >= count
    )
  }

  /** Waits until at least `count` of the agent's turns are completed; returns their answers. */
  answers(agent: string, count: number) {
    return Effect.map(this.of(agent, count, "turn.completed"), (runes) =>
      runes.map(({ payload }) => payload["final_output"])
    )
  }

  /** Waits until a call of the agent waits for an approval; returns the call. */
  asked(agent: string): Effect.Effect<CallInfo, Sandbox.NeverHappened> {
    const isIt = (call: CallInfo) =>
      call.project === this.name && call.agent === agent && call.state === "awaiting_approval"
    const read = this.stage.rpc((client) => client.Calls())
    return Effect.map(
      this.until(`${agent} asks`, read, (calls) => calls.some(isIt)),
      (calls) => calls.find(isIt)!
    )
  }

  /** Lines that an agent's fake or command has written to a file. */
  noted(...path: ReadonlyArray<string>): ReadonlyArray<string> {
    const file = join(this.root, ...path)
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : []
  }
}

export class Stage {
  readonly box: Sandbox.Sandbox
  readonly model: Provider

  constructor(box: Sandbox.Sandbox, model: Provider) {
    this.box = box
    this.model = model
    const claude = join(box.folder, "claude")
    writeFileSync(claude, `#!/bin/sh\nexec "${process.execPath}" "${CLAUDE}" "$@"\n`)
    chmodSync(claude, 0o755)
  }

  /** Writes a key of the model's API to a file; returns its path. */
  key(name: string): string {
    const file = join(this.box.folder, `key-${name}`)
    writeFileSync(file, `${name}\n`)
    return file
  }

  /** The config of an agent. Without `may` it has no agentd tools, which would need a process for each run. */
  agent(on: BackendName, { backend: own = {}, ...more }: More = {}): object {
    const shared = { killGrace: "500ms", startTimeout: "20 seconds" }
    const backend = {
      claude: { type: "claude", binary: join(this.box.folder, "claude"), ...shared },
      acp: { type: "acp", argv: [process.execPath, ACP, "told"], ...shared },
      codex: { type: "codex", argv: [process.execPath, CODEX], ...shared },
      model: { type: "model", provider: "anthropic", baseUrl: this.model.url, model: "m", keyFile: this.key("right") }
    }[on]
    return {
      backend: { ...backend, ...own },
      may: [],
      minRunInterval: "0ms",
      // a sandbox that is interrupted while it starts needs two seconds itself
      interruptGrace: "6 seconds",
      backoff: { base: "100ms", cap: "200ms" },
      ...more
    }
  }

  /** Configs of three agents, one on each backend, named after it: `NAME-acp`. */
  trio(name: string, more?: More) {
    return Object.fromEntries(BACKENDS.map((on) => [`${name}-${on}`, this.agent(on, more)] as const))
  }

  project(name: string, config: Config): Project {
    const project = new Project(this, name)
    project.configure(config)
    return project
  }

  /** The sandbox's own project, which `up` finds. */
  home(config: Config): Project {
    return this.project("shop", config)
  }

  /** Starts the daemon; returns when it is ready and has resumed earlier work. */
  readonly up = Effect.gen({ self: this }, function* () {
    const ready = Effect.map(
      this.rpc((client) => client.Status()),
      ({ daemon }) => daemon.phase === "ready"
    )
    yield* this.box.up(Effect.orElseSucceed(ready, () => false))
  })

  /** Pids of the keepers of the daemon's runs. */
  get keepers(): ReadonlyArray<number> {
    const folder = join(this.box.state, "keeper")
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => commandOf(pid).includes(`${folder}/`) && commandOf(pid).includes("keeper.mjs"))
  }

  rpc<A, E, R>(use: (client: ControlClient.Client) => Effect.Effect<A, E, R>) {
    return ControlClient.call(join(this.box.state, "control.sock"), use)
  }
}

const staged = ({ keeps }: { readonly keeps: boolean }): Effect.Effect<Stage, never, Scope.Scope> =>
  Effect.gen(function* () {
    const box = yield* Sandbox.make("shop", { keeps })
    return new Stage(box, yield* ModelCast.make)
  })

/** A sandbox and a model's server, closed with the scope. The daemon is not started yet. */
export const make = staged({ keeps: false })

/** Like `make`, but runs outlive the daemon. */
export const keeping = staged({ keeps: true })

/** Does the same on several backends at once; by default on all. */
export const onEach = <E, R>(
  act: (on: BackendName) => Effect.Effect<unknown, E, R>,
  on: ReadonlyArray<BackendName> = BACKENDS
) => Effect.forEach(on, act, { concurrency: "unbounded", discard: true })
