/**
 * ScopeModel: macrosteps of the real `CommitScope`, over a log of which each append lands,
 * fails, or is the last thing that a daemon did.
 *
 * Three messages come from outside, to two actors that tell each other: as siblings in
 * one scope, or across two. A scope cannot be copied, so a state is the way to it, and
 * each move makes the way again, from the first on, in a new system on `EventLoop.Manual`:
 * nothing in it depends on anything but the moves.
 *
 * A message applied is one rune (and a sibling's in the same append), told on it is another
 * one. After a death the states are folded from the log, and what the other scope has not
 * heard of is told again, as `ScopeFold.unheard` says.
 */
import { Clock, Context, Effect, Exit } from "effect"
import { actor, type EventSourcedActor, tell } from "../../../src/core/event-actor/EventSourcedActor.ts"
import { Manual } from "../../../src/core/event-actor/EventLoop.ts"
import { Ask, Mail } from "../../../src/core/event-actor/Mail.ts"
import type { CommitScope } from "../../../src/core/event-actor/CommitScope.ts"
import type { Member } from "../../../src/core/event-actor/Member.ts"
import { fold, unheard } from "../../../src/core/event-actor/ScopeFold.ts"
import type { Cause, Rune } from "../../../src/core/event-log/Rune.ts"
import { HeldLog, lab, Restarter, scopeIn } from "../../world/event-actor/Lab.ts"
import type { Model, Move } from "./Explore.ts"

/** From outside: to one of the two, asked or told. */
export interface Sent {
  readonly to: "a" | "b"
  readonly how: "ask" | "tell"
  /** The other one is told of it. */
  readonly tellsOn: boolean
}

export interface Options {
  /** In one scope, or in one each. */
  readonly scopes: 1 | 2
  readonly sent: ReadonlyArray<Sent>
  /** Appends that fail, and daemons that die. */
  readonly failures: number
  readonly deaths: number
  /** Runes that a scope may have on their way. */
  readonly share: number
  readonly most: number
  /** Plants a mistake. */
  readonly plant?: (definition: Definition) => Definition
  /** Plants a mistake into the log. */
  readonly log?: (share: number) => HeldLog
  /** Plants a mistake into what is told again after a death. */
  readonly tellAgain?: typeof unheard
}

interface Message {
  readonly id: number
  /** True for a message that was told on, and is not again. */
  readonly isEcho: boolean
}
interface Seen {
  readonly seen: ReadonlyArray<string>
}
export type Definition = EventSourcedActor<Seen, Message, string>

/** The moves so far. */
export interface State {
  readonly way: ReadonlyArray<string>
}

const markOf = ({ id, isEcho }: Message): string => (isEcho ? `${id}'` : `${id}`)

/** Nobody waits in real time. */
const still = (): Context.Context<never> =>
  Context.make(Clock.Clock, {
    ...Effect.runSync(Clock.Clock),
    currentTimeMillisUnsafe: () => 0,
    monotonicTimeNanosUnsafe: () => 0n,
    sleep: () => Effect.never
  }) as Context.Context<never>

const STREAMS = ["s0", "s1"] as const

/** Lives of a daemon, one after the other, by the moves that are made. */
class World {
  private readonly options: Options
  private log: HeldLog = undefined as never
  private loop = new Manual()
  private members: { readonly a: Member<Seen, Message>; readonly b: Member<Seen, Message> }
  private readonly asks = new Map<number, Ask<Member>>()
  private sent = 0
  private failures = 0
  private deaths = 0
  /** Asks that were answered, and those that were refused or lost with their daemon. */
  readonly answered = new Set<number>()
  readonly given = new Set<number>()
  /** Told in a life that is over. */
  private readonly lost = new Set<number>()
  private letters: ReadonlyArray<unknown> = []
  /** Dead-lettered, in any life. */
  private readonly buried = new Set<string>()
  private scheduler: unknown = undefined
  private acted: Array<string> = []
  wrong: string | undefined = undefined

  constructor(options: Options) {
    this.options = options
    this.members = this.live([])
  }

  // --- a life

  private definition(name: "a" | "b"): Definition {
    const other = name === "a" ? "b" : "a"
    const definition: Definition = actor<Seen, Message, string>({
      initial: { seen: [] },
      decide: (state, message) => {
        const mark = markOf(message)
        // told again: known, it is stale
        if (state.seen.includes(mark)) return "stale"
        const isTold = !message.isEcho && this.options.sent[message.id]!.tellsOn
        return {
          runes: [{ kind: "did", payload: { ...message, of: name } }],
          tells: isTold ? [tell(this.members[other], { ...message, isEcho: true })] : [],
          acts: [mark]
        }
      },
      apply: (state, { payload }) => ({ seen: [...state.seen, markOf(payload as unknown as Message)] }),
      perform: (mark) => void this.act(mark)
    })
    return this.options.plant?.(definition) ?? definition
  }

  private act(mark: string): void {
    if (this.acted.includes(mark)) this.wrong ??= `${mark} is acted on twice`
    if (!this.log.kept.some(({ payload }) => markOf(payload as unknown as Message) === mark))
      this.wrong ??= `${mark} is acted on, and not in the log`
    this.acted.push(mark)
  }

  private live(runes: ReadonlyArray<Rune>): World["members"] {
    const { log = (share: number) => new HeldLog(share), share } = this.options
    this.log = log(share)
    this.log.resume(runes)
    this.loop = new Manual()
    const context = still()
    const { letters, system } = lab(this.log, { loop: this.loop }, context)
    this.scheduler = system.scheduler
    this.letters = letters
    const supervisor = new Restarter(context)
    const definitions = { a: this.definition("a"), b: this.definition("b") }
    const states = fold(definitions, runes)
    const scopes: Array<CommitScope> = STREAMS.slice(0, this.options.scopes).map((stream) => scopeIn(system, stream))
    const of = { a: scopes[0]!, b: scopes.at(-1)! }
    const members = {
      a: of.a.add("a", definitions.a, states.a) as Member<Seen, Message>,
      b: of.b.add("b", definitions.b, states.b) as Member<Seen, Message>
    }
    this.members = members
    for (const scope of scopes) supervisor.startChild(scope)
    return members
  }

  /** Tells again what one scope told the other and the other has not heard of. */
  private tellAgain(): void {
    if (this.options.scopes === 1) return
    const { kept } = this.log
    const told = this.options.tellAgain ?? unheard
    for (const [from, to] of [
      ["a", "b"],
      ["b", "a"]
    ] as const) {
      const sent = kept.filter(({ actor: name, payload }) => {
        const { id, isEcho } = payload as unknown as Message
        return name === from && !isEcho && this.options.sent[id]!.tellsOn
      })
      for (const { payload, seq, stream } of told(
        sent,
        kept.filter(({ actor: name }) => name === to)
      )) {
        const { id } = payload as unknown as Message
        this.members[to].tellNow({ id, isEcho: true }, { stream, seq })
      }
    }
  }

  // --- moves

  /** Moves that may come next. */
  get moves(): ReadonlyArray<string> {
    const { deaths, failures, log, loop, options, sent } = this
    const found: Array<string> = []
    if (sent < options.sent.length) found.push("send")
    if (loop.waiting > 0) found.push("turn")
    if (log.waiting > 0) {
      found.push("land")
      if (failures < options.failures) found.push("fail")
    }
    if (deaths >= options.deaths) return found
    // with any number of the appends on their way in the log, and nobody told of that
    for (let count = 0; count <= log.waiting; count++) found.push(`die ${count}`)
    return found
  }

  make(move: string): void {
    const [what, count] = move.split(" ")
    if (what === "send") this.send()
    else if (what === "turn") this.loop.turn()
    else if (what === "land") this.log.land(1)
    else if (what === "fail") {
      this.failures += 1
      this.log.break()
    } else this.die(Number(count))
    this.look()
  }

  private send(): void {
    const id = this.sent++
    const { how, to } = this.options.sent[id]!
    const member = this.members[to]
    const message = { id, isEcho: false }
    if (how === "tell") return void member.tellNow(message)
    const ask = new Ask(member as Member, message, null, [])
    this.asks.set(id, ask)
    ;(member.scope as unknown as CommitScope).ask(ask, false)
  }

  private die(count: number): void {
    const landed = this.log.flight.peek(count).flatMap(({ runes }) => runes)
    const kept = [...this.log.kept, ...landed]
    this.deaths += 1
    for (let id = 0; id < this.sent; id++) this.lost.add(id)
    for (const id of this.asks.keys()) if (!this.answered.has(id)) this.given.add(id)
    this.asks.clear()
    this.live(kept)
    // of what was durable when the daemon died, some was not acted on: that is said, not done twice
    this.acted = []
    this.tellAgain()
  }

  // --- what must hold

  private get marks(): ReadonlyArray<string> {
    return this.log.kept.map(({ payload }) => markOf(payload as unknown as Message))
  }

  private look(): void {
    const { answered, asks, given, marks } = this
    for (const letter of this.letters) this.buried.add(markOf((letter as { readonly message: Message }).message))
    for (const [id, { exit }] of asks) {
      if (exit === undefined) continue
      asks.delete(id)
      if (!Exit.isSuccess(exit)) given.add(id)
      else {
        answered.add(id)
        if (!marks.includes(`${id}`)) this.wrong ??= `${id} is acknowledged, and not in the log`
      }
    }
    for (const id of answered) if (!marks.includes(`${id}`)) this.wrong ??= `${id} was acknowledged, and is lost`
    if (new Set(marks).size < marks.length) this.wrong ??= `applied twice: ${marks.join(", ")}`
    this.lookAtLog()
  }

  private lookAtLog(): void {
    const { kept } = this.log
    const isDense = kept.every(({ eventId }, index) => eventId === index + 1)
    if (!isDense) this.wrong ??= `the ids of the log are ${kept.map(({ eventId }) => eventId).join(", ")}`
    for (const stream of STREAMS) {
      const seqs = kept.filter((rune) => rune.stream === stream).map(({ seq }) => seq)
      if (!seqs.every((seq, index) => seq === index + 1)) this.wrong ??= `the seqs of ${stream} are ${seqs.join(", ")}`
    }
    if (this.options.scopes === 1) {
      const half = this.marks.find((mark, index) => this.tells(mark) && this.marks[index + 1] !== `${mark}'`)
      if (half !== undefined) this.wrong ??= `of the macrostep of ${half} only a half is in the log`
    }
    const { a, b } = this.members
    const states = fold({ a: a.definition, b: b.definition }, kept)
    for (const { name, state } of [a, b]) {
      const said = (states as { readonly [of: string]: Seen })[name]!
      if (state.seen.join() !== said.seen.join()) this.wrong ??= `${name} is at ${state.seen}, its log at ${said.seen}`
    }
  }

  private tells(mark: string): boolean {
    return !mark.endsWith("'") && this.options.sent[Number(mark)]!.tellsOn
  }

  /** Nothing is on its way. */
  get isQuiet(): boolean {
    return this.sent === this.options.sent.length && this.loop.waiting === 0 && this.log.waiting === 0
  }

  /** At rest: everything is in the log, is dead-lettered, or was lost before anybody was told of it. */
  get unfinished(): string | undefined {
    const { asks, buried, given, lost, marks, members } = this
    if (asks.size > 0) return `${[...asks.keys()].join(", ")} are never answered`
    for (const [id] of this.options.sent.entries()) {
      const mark = `${id}`
      if (!marks.includes(mark) && !given.has(id) && !lost.has(id) && !buried.has(mark)) return `${mark} is lost`
      const isHeard = marks.includes(`${mark}'`) || buried.has(`${mark}'`)
      if (marks.includes(mark) && this.tells(mark) && !isHeard) return `${mark}' is never heard`
    }
    const waiting = members.a.waiting + members.b.waiting
    return waiting === 0 ? undefined : `${waiting} messages count as waiting, and none does`
  }

  /** Where it stands, whatever the way to it was. */
  get key(): string {
    const { acted, answered, asks, buried, deaths, failures, given, log, loop, lost, members, sent, wrong } = this
    const flight = log.flight.peek(log.waiting).map(({ runes }) => runes.map(shown))
    const scopes = [members.a, members.b].map(({ ahead, scope, state, waiting }) => {
      const { ahead: units, mail, status } = scope as unknown as { ahead: number; mail: unknown; status: string }
      const rare = (scope as unknown as { rare?: { silent: ReadonlyArray<{ item: unknown; behind: number }> } }).rare
      const silent = (rare?.silent ?? []).map(({ behind, item }) => [behind, itemOf(item)])
      return [ahead.seen, state.seen, waiting, units, status, mailOf(mail), silent]
    })
    const { next, ready } = this.scheduler as unknown as { next: number; ready: ReadonlyArray<CommitScope> }
    const tasks = [loop.waiting, ready.slice(next).map(({ stream }) => stream)]
    const known = [[...answered], [...given], [...asks.keys()], [...lost], [...buried], acted]
    return JSON.stringify([log.kept.map(shown), flight, scopes, tasks, known, sent, failures, deaths, wrong])
  }
}

const shown = ({ cause, payload, stream }: Rune): unknown => [stream, markOf(payload as unknown as Message), cause]

const itemOf = (item: unknown): unknown => {
  if (!(item instanceof Mail)) return markOf(item as Message)
  const { behind, cause, crashes, isGone, message } = item as Mail & { readonly cause: Cause | null }
  return [markOf(message as Message), cause, crashes, isGone, behind, item instanceof Ask]
}

const mailOf = (mail: unknown): unknown => {
  if (mail === undefined) return []
  return [...(mail as { all(): Iterable<unknown> }).all()].map(itemOf)
}

const worldOf = (options: Options, way: ReadonlyArray<string>): World => {
  const world = new World(options)
  for (const move of way) world.make(move)
  return world
}

export const scopeModel = (options: Options): Model<State> => {
  // each state is asked for several things, one after the other
  let last: readonly [state: State, world: World] | undefined
  const of = (state: State): World => {
    if (last?.[0] !== state) last = [state, worldOf(options, state.way)]
    return last[1]
  }
  return {
    initial: { way: [] },
    key: (state) => of(state).key,
    invariant: (state) => {
      const world = of(state)
      return world.wrong ?? (world.isQuiet ? world.unfinished : undefined)
    },
    isGoal: (state) => of(state).isQuiet,
    helps: (move) => move === "turn" || move === "land" || move === "send",
    most: options.most,
    moves: (state): ReadonlyArray<Move<State>> =>
      of(state).moves.map((name) => ({ name, next: () => ({ way: [...state.way, name] }) }))
  }
}
