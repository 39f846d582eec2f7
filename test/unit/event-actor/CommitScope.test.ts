/** CommitScope: the semantics, corner by corner. */
import type { CommitScope } from "../../../src/core/event-actor/CommitScope.ts"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { System } from "../../../src/core/event-actor/ActorSystem.ts"
import type { AskError } from "../../../src/core/event-actor/ActorHandle.ts"
import { actor, later, Refuse, tell } from "../../../src/core/event-actor/EventSourcedActor.ts"
import { MAX_STEPS } from "../../../src/core/event-actor/Macrostep.ts"
import { HeldLog, lab, memory, quiet, Restarter, scopeIn } from "../../world/event-actor/Lab.ts"

type Message =
  | { readonly _tag: "Add"; readonly n: number }
  | { readonly _tag: "Both"; readonly n: number; readonly then?: "throw" | "illegal" | "early" | "circle" | "refuse" }
  | { readonly _tag: "Open" }
  | { readonly _tag: "Crash" }
  | { readonly _tag: "Bad" }
  | { readonly _tag: "Say"; readonly what: string }
  | { readonly _tag: "Circle" }

interface State {
  readonly sum: number
  readonly open: boolean
}
const said: Array<string> = []

const left = actor<State, Message, string>({
  initial: { sum: 0, open: true },
  decide: (_, message, { ref }) => {
    if (message._tag === "Crash") throw new Error("crash")
    if (message._tag === "Bad") return "illegal"
    if (message._tag === "Circle") return { runes: [], tells: [tell(ref("right"), message)] }
    if (message._tag === "Say")
      return { runes: [{ kind: "said", payload: { n: 0 } }], acts: [message.what], reply: message.what }
    if (message._tag === "Open") return { runes: [{ kind: "opened", payload: { n: 0 } }] }
    const inner: Message =
      message._tag === "Add" || message.then === undefined
        ? { _tag: "Add", n: message.n }
        : message.then === "throw"
          ? { _tag: "Crash" }
          : message.then === "illegal"
            ? { _tag: "Bad" }
            : message.then === "circle"
              ? { _tag: "Circle" }
              : message.then === "refuse"
                ? { _tag: "Say", what: "refuse" }
                : { _tag: "Both", n: message.n }
    return {
      runes: [{ kind: "added", payload: { n: message.n } }],
      tells: message._tag === "Both" ? [tell(ref("right"), inner)] : [],
      acts: [`left ${message.n}`]
    }
  },
  apply: (state, { kind, payload }) =>
    kind === "opened" ? { ...state, open: true } : { ...state, sum: state.sum + Number(payload["n"]) },
  perform: (what) => void said.push(what)
})

const right = actor<State, Message, string, string>({
  initial: { sum: 0, open: false },
  decide: (state, message, { ref }) => {
    switch (message._tag) {
      case "Crash":
        throw new Error("crash of the right")
      case "Bad":
        return "illegal"
      case "Circle":
        return { runes: [], tells: [tell(ref("left"), message)] }
      case "Open":
        return { runes: [{ kind: "opened", payload: {} }] }
      case "Say":
        return new Refuse("the right says no")
      case "Both":
        return state.open ? { runes: [{ kind: "added", payload: { n: message.n } }] } : "postpone"
      case "Add":
        return { runes: [{ kind: "added", payload: { n: message.n } }], acts: [`right ${message.n}`] }
    }
  },
  apply: (state, { kind, payload }) =>
    kind === "opened" ? { ...state, open: true } : { ...state, sum: state.sum + Number(payload["n"]) },
  perform: (what) => void said.push(what)
})

const pair = (system: System, supervisor = new Restarter(), stream = "s") => {
  const scope = scopeIn(system, stream)
  const l = scope.add("left", left)
  const r = scope.add("right", right)
  said.length = 0
  supervisor.startChild(scope)
  return { scope, l, r, supervisor }
}
const run = Effect.runPromise
const failure = <A>(effect: Effect.Effect<A, unknown>) =>
  run(Effect.flip(effect)) as Promise<AskError & { reason?: string; why?: string }>

it("a macrostep is one append: the runes of both actors, with cause", async () => {
  const { log, system } = lab(new HeldLog())
  const { l, r } = pair(system)
  const asked = run(l.ask({ _tag: "Both", n: 2 }))
  assert.strictEqual(log.waiting, 1)
  assert.deepStrictEqual([l.state.sum, r.state.sum, said.length], [0, 0, 0], "nothing is seen before it is durable")
  log.land()
  assert.strictEqual((await asked).eventId, 2)
  assert.deepStrictEqual(
    log.appends.map((runes) => runes.map(({ actor, cause, eventId }) => [actor, eventId, cause])),
    [
      [
        ["left", 1, null],
        ["right", 2, { stream: "s", seq: 1 }]
      ]
    ]
  )
  assert.deepStrictEqual([l.state.sum, r.state.sum, said], [2, 2, ["left 2", "right 2"]])
})

it("a throw in step k takes the whole macrostep back; ids are dense", async () => {
  const { log, system } = memory()
  const { l, r, supervisor } = pair(system)
  await run(l.ask({ _tag: "Both", n: 1 }))
  const error = await failure(l.ask({ _tag: "Both", n: 5, then: "throw" }))
  assert.strictEqual(error.reason, "crashed")
  assert.strictEqual(supervisor.restarts, 1)
  await run(l.ask({ _tag: "Both", n: 1 }))
  assert.deepStrictEqual([l.state.sum, r.state.sum], [2, 2])
  assert.deepStrictEqual(
    log.kept.map(({ eventId }) => eventId),
    [1, 2, 3, 4]
  )
})

it("illegal, or a refusal in words, from a sibling refuses the whole macrostep and crashes nothing", async () => {
  const { letters, log, system } = memory()
  const { l, r, supervisor } = pair(system)
  const illegal = await failure(l.ask({ _tag: "Both", n: 5, then: "illegal" }))
  assert.deepInclude({ ...illegal }, { _tag: "Refused", actor: "right", event: "Bad", why: "illegal" })
  const refused = await failure(l.ask({ _tag: "Both", n: 5, then: "refuse" }))
  assert.strictEqual(refused as unknown, "the right says no")
  l.tellNow({ _tag: "Both", n: 5, then: "illegal" })
  await quiet()
  assert.deepStrictEqual(
    letters.map(({ reason }) => reason),
    ["illegal"]
  )
  assert.deepStrictEqual([l.state.sum, r.state.sum, supervisor.restarts, log.kept.length], [0, 0, 0, 0])
})

it("what comes too early for a sibling is kept, and comes back in front", async () => {
  const { system } = memory()
  const { l, r } = pair(system)
  await run(l.ask({ _tag: "Both", n: 3, then: "early" }))
  assert.deepStrictEqual([l.state.sum, r.state.sum, r.waiting], [3, 0, 1])
  await run(r.ask({ _tag: "Open" }))
  await quiet()
  assert.deepStrictEqual([r.state.sum, r.waiting], [3, 0])
})

it("a circle within a macrostep ends at the bound, as a crash that is dead-lettered", async () => {
  const { letters, log, system } = memory()
  const { l, supervisor } = pair(system)
  l.tellNow({ _tag: "Both", n: 1, then: "circle" })
  await quiet()
  assert.strictEqual(supervisor.restarts, 3)
  assert.deepStrictEqual(
    letters.map(({ reason }) => reason),
    ["poison"]
  )
  assert.match(String(letters[0]!.why), new RegExp(`${MAX_STEPS} steps`))
  assert.strictEqual(log.kept.length, 0)
  assert.strictEqual((l.scope as CommitScope).status, "running")
})

it("it steps ahead of the log, and shows nothing of it", async () => {
  const { log, system } = lab(new HeldLog())
  const { l } = pair(system)
  const one = run(l.ask({ _tag: "Add", n: 1 }))
  const two = run(l.ask({ _tag: "Add", n: 2 }))
  const no = failure(l.ask({ _tag: "Bad" }))
  assert.deepStrictEqual([log.waiting, l.ahead.sum, l.state.sum], [2, 3, 0])
  let refused = false
  void no.then(() => (refused = true))
  log.land(1)
  await quiet()
  assert.deepStrictEqual(
    [l.state.sum, refused],
    [1, false],
    "a refusal may speak of a state that is not durable: it waits, too"
  )
  log.land(1)
  await Promise.all([one, two, no])
  assert.strictEqual(l.state.sum, 3)
})

it("a failed append poisons like a throw, and what was stepped ahead is stepped again", async () => {
  const { letters, log, system } = lab(new HeldLog())
  const { l, supervisor } = pair(system)
  for (const n of [1, 2, 3]) l.tellNow({ _tag: "Add", n })
  const asked = run(l.ask({ _tag: "Add", n: 10 }))
  await quiet()
  log.land(1)
  for (let n = 1; n <= 3; n++) {
    log.break()
    assert.strictEqual(l.ahead.sum, 1, "back to the last durable state")
    await quiet()
    assert.strictEqual(supervisor.restarts, n)
  }
  assert.deepStrictEqual(
    letters.map(({ message, reason }) => [(message as { n: number }).n, reason]),
    [[2, "poison"]]
  )
  log.land()
  await asked
  assert.strictEqual(l.state.sum, 14)
  assert.deepStrictEqual(
    log.kept.map(({ eventId }) => eventId),
    [1, 2, 3]
  )
  assert.strictEqual(l.waiting, 0)
})

it("another scope's appends behind a failed one are stepped again, and their scope does not crash", async () => {
  const { log, system } = lab(new HeldLog())
  const one = pair(system)
  const two = pair(system)
  one.l.tellNow({ _tag: "Add", n: 1 })
  two.l.tellNow({ _tag: "Add", n: 5 })
  await quiet()
  log.break()
  await quiet()
  log.land()
  assert.deepStrictEqual([one.l.state.sum, two.l.state.sum], [1, 5])
  assert.deepStrictEqual([one.supervisor.restarts, two.supervisor.restarts], [1, 0])
})

it("what a failed append takes back is stepped again in the order in which it came, asks and all", async () => {
  const { log, system } = lab(new HeldLog())
  const one = pair(system)
  const two = pair(system, one.supervisor, "t")
  two.l.tellNow({ _tag: "Add", n: 0 })
  await quiet()
  for (const n of [1, 2, 3]) one.l.tellNow({ _tag: "Add", n })
  await quiet()
  const given = Effect.runFork(one.l.ask({ _tag: "Add", n: 4 }))
  const asked = run(one.l.ask({ _tag: "Add", n: 5 }))
  await quiet()
  assert.strictEqual(log.waiting, 6)
  log.break()
  // undone, it is as if its turn had never come
  given.interruptUnsafe()
  assert.strictEqual(one.l.waiting, 4)
  await quiet()
  log.land()
  await asked
  assert.deepStrictEqual(
    log.kept.filter(({ stream }) => stream === "s").map(({ payload }) => payload["n"]),
    [1, 2, 3, 5]
  )
  assert.strictEqual(one.l.waiting, 0)
})

it("a refused macrostep tells nothing to anybody", async () => {
  const { letters, system } = memory()
  const supervisor = new Restarter()
  const stranger = pair(system, supervisor, "stranger")
  const scope = scopeIn(system, "u")
  const no = scope.add("no", actor<number, string>({ initial: 0, decide: () => "illegal", apply: (n) => n }))
  const speaks = scope.add(
    "speaks",
    actor<number, string, string>({
      initial: 0,
      decide: () => ({
        runes: [{ kind: "k", payload: {} }],
        tells: [tell(stranger.l, { _tag: "Add", n: 1 }), later(stranger.r, { _tag: "Add", n: 1 }), tell(no, "x")],
        acts: ["act"]
      }),
      apply: (n) => n + 1,
      perform: () => assert.fail("it was refused")
    })
  )
  supervisor.startChild(scope)
  speaks.tellNow("go")
  await quiet()
  assert.deepStrictEqual([stranger.l.state.sum, stranger.r.state.sum, speaks.state, letters.length], [0, 0, 0, 1])
})

it("what a sibling postpones and what then unblocks it may come of one message: it comes back right after", async () => {
  const { log, system } = memory()
  const scope = scopeIn(system, "early")
  const door = scope.add(
    "door",
    actor<boolean, "enter" | "open">({
      initial: false,
      decide: (isOpen, message) =>
        message === "open" || isOpen ? { runes: [{ kind: message, payload: {} }] } : "postpone",
      apply: () => true
    })
  )
  const guest = scope.add(
    "guest",
    actor<number, "knock">({
      initial: 0,
      decide: () => ({ runes: [{ kind: "knock", payload: {} }], tells: [tell(door, "enter"), tell(door, "open")] }),
      apply: (n) => n + 1
    })
  )
  new Restarter().startChild(scope)
  guest.tellNow("knock")
  await quiet()
  assert.deepStrictEqual(
    log.kept.map(({ kind }) => kind),
    ["knock", "open", "enter"]
  )
  assert.deepStrictEqual([door.waiting, guest.waiting], [0, 0])
})

it("an index over stepped states: two channels in one pass do not give the floor to the same agent", async () => {
  const { log, system } = lab(new HeldLog())
  const held = new Map<string, number>()
  const count = (agent: string | null, by: number) =>
    void (agent !== null && held.set(agent, (held.get(agent) ?? 0) + by))
  const channel = actor<string | null, string>({
    initial: null,
    decide: (_, agent) =>
      (held.get(agent) ?? 0) > 0 ? "illegal" : { runes: [{ kind: "granted", payload: { agent } }] },
    apply: (_, { payload }) => String(payload["agent"]),
    stepped: (before, after) => {
      count(before, -1)
      count(after, 1)
    }
  })
  const supervisor = new Restarter()
  const channels = ["one", "two"].map((stream) => {
    const scope = scopeIn(system, stream)
    const member = scope.add("channel", channel)
    supervisor.startChild(scope)
    return member
  })
  for (const member of channels) member.tellNow("builder")
  await quiet()
  assert.deepStrictEqual([log.waiting, held.get("builder")], [1, 1])
  log.break()
  assert.strictEqual(held.get("builder"), 0, "undone, the agent is free again")
  await quiet()
  assert.strictEqual(held.get("builder"), 1)
})

it("beyond its share it waits for the disk", async () => {
  const { log, system } = lab(new HeldLog(3))
  const { l } = pair(system)
  for (let n = 0; n < 10; n++) l.tellNow({ _tag: "Add", n: 1 })
  await quiet()
  assert.strictEqual(log.waiting, 3)
  log.land()
  await quiet()
  assert.strictEqual(log.waiting, 3)
})

it("answers come before tells, tells before actions", async () => {
  const { system } = memory()
  const order: Array<string> = []
  const target = scopeIn(system, "t")
  const hears = target.add(
    "t",
    actor<number, string>({
      initial: 0,
      decide: (n) => {
        order.push("told")
        return { runes: [], state: n }
      },
      apply: (n) => n
    })
  )
  const scope = scopeIn(system, "u")
  const speaks = scope.add(
    "u",
    actor<number, string, string>({
      initial: 0,
      decide: () => ({ runes: [{ kind: "k", payload: {} }], tells: [later(hears, "x")], acts: ["act"] }),
      apply: (n) => n + 1,
      perform: () => void order.push(`act ${hears.waiting} told`)
    })
  )
  const supervisor = new Restarter()
  supervisor.startChild(target)
  supervisor.startChild(scope)
  await run(
    Effect.andThen(
      speaks.ask("go"),
      Effect.sync(() => order.push("answered"))
    )
  )
  await quiet()
  assert.deepStrictEqual(order, ["act 1 told", "answered", "told"], "the asker's fiber goes on when the stack is free")
})

it("a stranger hears before it is durable, appends behind it, and acts on nothing before", async () => {
  const { log, system } = lab(new HeldLog())
  const acted: Array<string> = []
  const target = scopeIn(system, "t")
  const hears = target.add(
    "t",
    actor<number, string, string>({
      initial: 0,
      decide: (_, message) => ({ runes: message === "write" ? [{ kind: "heard", payload: {} }] : [], acts: [message] }),
      apply: (n) => n + 1,
      perform: (message) => void acted.push(message)
    })
  )
  const scope = scopeIn(system, "u")
  const speaks = scope.add(
    "u",
    actor<number, string>({
      initial: 0,
      decide: (_, message) => ({ runes: [{ kind: "said", payload: {} }], tells: [tell(hears, message)] }),
      apply: (n) => n + 1
    })
  )
  const supervisor = new Restarter()
  supervisor.startChild(target)
  supervisor.startChild(scope)
  speaks.tellNow("read")
  speaks.tellNow("write")
  await quiet()
  assert.deepStrictEqual([log.waiting, acted], [3, []], "also what has no rune of its own")
  log.break()
  await quiet()
  assert.deepStrictEqual([log.waiting, acted], [3, []], "undone with its sender, and told again by it")
  log.land()
  await quiet()
  assert.deepStrictEqual(acted, ["read", "write"])
  assert.deepStrictEqual(log.kept.map(({ cause, kind }) => `${kind} ${cause?.stream} ${cause?.seq}`).toSorted(), [
    "heard u 2",
    "said undefined undefined",
    "said undefined undefined"
  ])
})

it("a secret is gone before the rune is folded: the live state is that of the log", async () => {
  const { log, system } = memory()
  log.scrub = (json) => json.replaceAll("hunter2", "***")
  const scope = scopeIn(system, "secrets")
  const member = scope.add(
    "a",
    actor<string, string>({
      initial: "",
      decide: (_, text) => ({ runes: [{ kind: "said", payload: { text } }], state: text }),
      apply: (_, { payload }) => String(payload["text"])
    })
  )
  new Restarter().startChild(scope)
  await run(member.ask("it is hunter2"))
  assert.strictEqual(member.state, "it is ***")
  await run(member.ask("plain"))
  assert.strictEqual(member.state, "plain")
})

it("tells of a closed scope are dead letters, asks end typed", async () => {
  const { letters, system } = memory()
  const { l, scope, supervisor } = pair(system)
  scope.close()
  assert.strictEqual((await failure(l.ask({ _tag: "Add", n: 1 }))).reason, "stopped")
  await run(l.tell({ _tag: "Add", n: 1 }))
  assert.deepStrictEqual(
    letters.map(({ reason }) => reason),
    ["closed"]
  )
  assert.strictEqual(supervisor.restarts, 0, "a close is no restart")
})

it("a stop lets what is on its way become durable, answers it, and takes nothing more", async () => {
  const { log, system } = lab(new HeldLog())
  const { l, scope, supervisor } = pair(system)
  const asked = run(l.ask({ _tag: "Add", n: 1 }))
  const stopped = supervisor.stopChild(scope)
  const late = failure(l.ask({ _tag: "Add", n: 1 }))
  await quiet()
  assert.strictEqual(scope.status, "stopping")
  log.land()
  await asked
  await stopped
  assert.strictEqual((await late).reason, "stopped")
  assert.strictEqual(scope.status, "stopped")
})

it("an ask waits out a restart", async () => {
  const { system } = memory()
  const { l } = pair(system)
  const fiber = Effect.runFork(
    Effect.all([Effect.exit(l.ask({ _tag: "Crash" })), l.ask({ _tag: "Add", n: 1 })], {
      concurrency: 2
    })
  )
  const [, second] = await run(Fiber.join(fiber))
  assert.strictEqual(second.eventId, 1)
})
