/**
 * Simulation: one seed's world from its beginning to its end: people who want things,
 * agents that do them or do not, a disk, a clock, and one daemon after the other.
 *
 * First everything may go wrong; then nothing does any more, and within an hour all
 * that was acknowledged has to be done.
 */
import { Cause, Effect, Exit } from "effect"
import type { Boundaries, Touch } from "./Boundaries.ts"
import { Chance } from "./Chance.ts"
import { Checker, type Violation } from "./Checker.ts"
import { caller, CONFIG, run as runDaemon, type Up, USER_CONFIG } from "./Daemon.ts"
import type { Cells } from "./checks/Tables.ts"
import { Disk, watched } from "./world/Disk.ts"
import { Files } from "./world/Files.ts"
import { Mail } from "./world/Mail.ts"
import { Models, type ModelWitness } from "./world/Models.ts"
import { Processes } from "./world/Processes.ts"
import type { Sessions } from "./world/Sessions.ts"
import { backendOf, Programs } from "./world/Programs.ts"
import { Workshop } from "./world/Workshop.ts"
import { Lookout } from "./people/Lookout.ts"
import { type Command, commands } from "./people/Commands.ts"
import type { Order, Outside } from "./people/Order.ts"
import { type Asks, ERRANDS } from "./world/Errands.ts"
import type { Voice } from "./world/Speech.ts"
import type { Telling } from "./world/Work.ts"
import { faultWhile, refused } from "./Coverage.ts"
import { everyGoal, reasonOf, refusalsIn } from "./Answers.ts"
import { type Fault, FAULTS, isFault, type Mishap, type Swarm, swarmOf } from "./Swarm.ts"
import { Halted, Life, Stuck, Universe, type Wall } from "./Universe.ts"

export interface Options {
  readonly seed: number
  /** How long things may go wrong, ms. */
  readonly stormy: number
  readonly trace?: boolean
  /** The world ends at this step. */
  readonly until?: number
  readonly swarm?: Swarm
  /** Commands (`c1` …) and faults (`f1` …) that do not happen: for shrinking. The dice fall as before. */
  readonly without?: ReadonlySet<string>
  /** A person's deeds, line by line, instead of people and faults by chance. */
  readonly script?: ReadonlyArray<Line>
  /** Where the daemon is killed. */
  readonly boundaries?: Boundaries
}

/** A line of a script, done at that time (ms), or as soon afterwards as a daemon is there. */
export interface Line {
  readonly at: number
  readonly what: Command | "shutdown"
  readonly agent: string
}

export interface Result {
  readonly seed: number
  readonly hash: string
  readonly violations: ReadonlyArray<Violation>
  readonly simulated: number
  readonly steps: number
  readonly runes: number
  readonly lives: number
  readonly messages: number
  readonly commands: number
  readonly faults: number
  readonly logged: ReadonlyMap<string, number>
  readonly reached: ReadonlyMap<string, number>
  readonly cells: Cells
  readonly lines: ReadonlyArray<string>
  /** The commands and faults that happened, in order. */
  readonly happened: ReadonlyArray<string>
}

/** An hour's limit of runs, by a clock that was set back by two, and some time for the work. */
const CALM = 4 * 3_600_000

/** So often a lurking mishap meets each kind of command. */
const ENOUGH = 2

const DISK_STATES = { diskFull: "full", diskIo: "io", diskLocked: "locked" } as const

/** Limits that a conversation after an error does not meet. */
const STRICT = { maxTurnErrors: 1, maxFatalStops: 1 }

/** A seed's world. */
export class World implements Outside {
  readonly universe: Universe
  readonly checker: Checker
  readonly disk: Disk
  readonly files: Files
  readonly processes: Processes
  readonly programs: Programs | undefined
  readonly models: Models | undefined
  readonly mail: Mail
  readonly workshop: Workshop | undefined
  readonly sessions: Sessions | undefined
  private readonly lookout: Lookout
  readonly swarm: Swarm
  readonly wall: Wall = { skew: 0 }
  readonly logged = new Map<string, number>()
  private readonly options: Options
  private readonly people: Chance
  private readonly fate: Chance
  private life: Life | undefined = undefined
  private daemon: Up | undefined = undefined
  private ending: Life | undefined = undefined
  lives = 0
  readonly happened: Array<string> = []
  commands = 0
  faults = 0
  private tokens = 0
  private stormy = true
  private busy = 0
  constructor(options: Options) {
    const { seed } = options
    this.options = options
    this.swarm = options.swarm ?? swarmOf(seed)
    this.universe = new Universe(seed, this.swarm.order)
    this.universe.tracing = options.trace === true
    this.universe.haltAt = options.until ?? Number.POSITIVE_INFINITY
    const { every } = this.swarm
    // while its file is broken, nothing of a project lives
    const keepsTime =
      this.swarm.lurks === undefined &&
      every.clockJump + every.diskFull + every.diskIo + every.diskLocked + every.diskSlow + this.swarm.commands.edit ===
        0
    this.checker = new Checker(this.universe, {
      keepsTime,
      stormy: options.stormy,
      lives: () => this.lives,
      settingsOf: (agent) => (this.names.includes(agent) ? this.settingsOf(agent) : undefined),
      fallbacksOf: (agent) => this.swarm.models?.fallbacks[agent]
    })
    this.disk = new Disk(this.universe, new Chance(seed, "disk"), this.checker.durable)
    this.disk.kept = (order) => this.checker.snapshots.kept(order)
    this.disk.committed = (number) => this.atCommit(number)
    this.files = new Files(this.universe)
    this.files.write(CONFIG, this.config())
    this.processes = new Processes(this.universe, seed, this.swarm, this.checker)
    const { bytes } = this.swarm
    this.programs = bytes === undefined ? undefined : new Programs(this.processes, bytes)
    const lease = bytes?.kept?.lease
    if (lease !== undefined) this.files.write(USER_CONFIG, JSON.stringify({ orphanGrace: lease }))
    this.models = this.openModels()
    this.mail = new Mail(this.universe, new Chance(seed, "mail"), this.swarm, this.checker.mailed)
    this.workshop = this.openWorkshop()
    this.lookout = new Lookout({ ...this, seed, up: () => this.standing }, this.checker.plates)
    this.sessions = this.lookout.sessions
    // without a reaper the next daemon has to end what the last one left
    this.processes.hasReaper = options.script === undefined || seed % 2 === 0
    for (const part of [this.disk, this.files, this.processes, this.mail]) part.touch = this.touch
    for (const part of [this.processes, this.mail]) {
      part.strikes = this.strikes
      part.lurks = this.lurks
    }
    this.people = new Chance(seed, "people")
    this.fate = new Chance(seed, "fate")
  }

  /** Agents that are models, in a world that has some. */
  private openModels(): Models | undefined {
    const { checker, files, processes, swarm } = this
    if (swarm.models === undefined) return undefined
    files.trouble = () => this.disk.trouble
    const { fallbacks, models } = checker
    const witness: ModelWitness = {
      ...models,
      asked: (request) => {
        fallbacks.asked(request)
        models.asked(request)
      },
      answered: (request) => {
        fallbacks.answered(request)
        models.answered(request)
      }
    }
    return new Models(processes, files, swarm.models, witness)
  }

  /** Where goals are worked off, in a world that has some. */
  private openWorkshop(): Workshop | undefined {
    const { checker, files, options, processes, swarm } = this
    if (swarm.aims === undefined) return undefined
    const workshop = new Workshop(this.universe, {
      seed: options.seed,
      aims: swarm.aims,
      files,
      witness: checker.goals,
      folders: () => processes.living
    })
    checker.goals.workshop = workshop
    processes.work = workshop.work
    workshop.git.touch = this.touch
    workshop.git.strikes = this.strikes
    workshop.git.lurks = this.lurks
    return workshop
  }

  /** The next word that a message is known by. */
  token(): string {
    return `m${++this.tokens}`
  }

  get names(): ReadonlyArray<string> {
    return ["a", "b", "c", "d"].slice(0, this.swarm.agents)
  }

  /** The file's settings of an agent. */
  private settingsOf(agent: string): object {
    const { aims, errands, ofAgent, settings } = this.swarm
    const may = ["post", "report", ...(errands === undefined ? [] : ERRANDS.filter((name) => name !== "report"))]
    const atGoals = aims === undefined ? {} : { mode: "inbox", worktree: aims.worktree, may }
    return { ...settings, ...ofAgent[agent], ...atGoals }
  }

  /** The project's file as it is meant. */
  private config(
    names = this.names,
    settings: object = {},
    review: object | undefined = {},
    strict: object = {}
  ): string {
    const { aims, errands, mailing, schedules, talk } = this.swarm
    const conversation = { ...this.swarm.conversation, ...strict }
    const one = (name: string) => ({
      backend: this.swarm.models?.of[name] ?? backendOf(this.swarm.bytes?.of[name]),
      may: [...(talk === undefined ? [] : ["post"]), ...(errands === undefined ? [] : ERRANDS)],
      ...this.swarm.models?.fallbacks[name],
      ...this.settingsOf(name),
      ...settings
    })
    return JSON.stringify({
      name: "shop",
      conversation,
      mail: { to: "ada@example.org", smtp: { host: "mail.example.org" }, ...mailing },
      agents: Object.fromEntries(names.map((name) => [name, one(name)])),
      ...(aims === undefined ? {} : { goals: aims.goals }),
      ...(Object.keys(schedules).length === 0 ? {} : { schedules }),
      ...(talk === undefined || review === undefined ? {} : { channels: { review: this.room(names, review) } })
    })
  }

  /** The file's settings of its channel; agents that it does not name cannot sit there. */
  private room(names: ReadonlyArray<string>, settings: object): object {
    const { agents, ...review } = this.swarm.review as { readonly agents: ReadonlyArray<string> }
    return { ...review, agents: agents.filter((agent) => names.includes(agent)), ...settings }
  }

  edit(people: Chance): void {
    const what = people.weighed({
      same: 1,
      broken: 1,
      fewer: 1,
      others: 2,
      gone: 0.3,
      silent: this.swarm.talk === undefined ? 0 : 0.3,
      more: this.swarm.edits,
      strict: this.swarm.strict,
      tight: this.swarm.starves
    })
    if (what === "broken" || what === "gone") this.strikes("fileGone")
    const { budget } = this.swarm.settings as { readonly budget?: object }
    this.universe.note(`the file: ${what}`)
    if (what === "gone") return this.files.remove(CONFIG)
    if (what === "broken") return this.files.write(CONFIG, this.config().slice(0, people.below(200)))
    if (what === "silent") return this.files.write(CONFIG, this.config(this.names, {}, undefined))
    if (what === "more") return this.files.write(CONFIG, this.config([...this.names, "d"]))
    if (what === "tight") return this.files.write(CONFIG, this.config(this.names, { budget: { ...budget, tokens: 1 } }))
    if (what === "strict") return this.files.write(CONFIG, this.config(this.names, {}, {}, STRICT))
    if (what === "fewer") return this.files.write(CONFIG, this.config(["a"]))
    this.files.write(CONFIG, this.config(this.names, what === "others" ? { interruptGrace: "1s" } : {}))
  }

  // The daemon's lives.

  private begin(): void {
    if (this.life !== undefined) return
    const number = ++this.lives
    this.universe.note(`life ${number} begins`)
    // what a wait was for goes on as agents are taken up, which is before it says that it is up
    this.checker.upAt = Number.POSITIVE_INFINITY
    const { checker } = this
    const life = new Life(this.universe, {
      seed: this.options.seed,
      number,
      wall: this.wall,
      maxOps: this.swarm.maxOps,
      onLog: (level, message) => {
        this.universe.note(
          `log ${level} ${message.split("\n", 1)[0]!.replaceAll(this.disk.folder, "/state").slice(0, 200)}`
        )
        const said = /^run (\S+) does not end: it is killed/.exec(message)?.[1]
        if (said !== undefined && !checker.isAlive(said))
          checker.broken("what agentd says is true", `it says that it kills run ${said}, which is gone`)
        const key = `${level} ${message
          .replace(/[0-9a-hjkmnp-tv-z]{26}/g, "#")
          .replace(/\d+/g, "#")
          .slice(0, 90)}`
        this.logged.set(key, (this.logged.get(key) ?? 0) + 1)
        if (
          /crashed|gave up|giving up|This is a bug/.test(message) &&
          !/StorageError/.test(message) &&
          this.disk.state === "well"
        )
          this.checker.broken("no part of agentd crashes", message.slice(0, 200))
      }
    })
    this.life = life
    const up = (daemon: Up) => {
      if (this.life !== life || life.isDead) return
      this.daemon = daemon
      checker.upAt = this.universe.now
      this.processes.voice = this.voiceOf(life, daemon)
      if (this.workshop !== undefined) this.workshop.work.tell = this.tellingOf(life, daemon)
      this.processes.asks = this.asksOf(life, daemon)
      this.universe.note(`life ${number} is up`)
    }
    life.run(runDaemon(this, life, up), (exit) => {
      const reason = (Exit.isSuccess(exit) ? "asked" : reasonOf(exit)).replaceAll(this.disk.folder, "/state")
      this.universe.note(`life ${number} ended: ${reason}`)
      checker.sometimes(`ended: ${reason.slice(0, 40)}`)
      const { refusing } = this.disk
      const isDisk = refusing !== undefined && reason.includes("the disk is")
      const trouble = this.universe.now - (refusing ?? 0)
      if (isDisk && trouble < 9_000)
        checker.broken("the log is given up only after ten seconds", `${trouble.toFixed(0)} ms of trouble`)
      if (!isDisk && reason !== "asked") checker.broken("a daemon stands", reason.slice(0, 300))
      this.universe.soon(() => this.end(life))
    })
  }

  /** An agent's tools: they reach the daemon that started it. */
  private voiceOf(life: Life, { client }: Up): Voice {
    return (runId, channel, utterance) => {
      life.run(client.VoiceChannel({ runId, channel, utterance }), (exit) => {
        this.universe.note(`voice ${runId} #${channel} ${utterance._tag} ${Exit.isSuccess(exit) ? "ok" : "refused"}`)
        this.checker.sometimes(`voice ${utterance._tag} ${Exit.isSuccess(exit) ? "carried out" : "refused"}`)
        if (Exit.isSuccess(exit) && utterance._tag === "Post")
          this.checker.channels.acked("voice", exit.value.eventId, utterance.text)
      })
    }
  }

  /** An agent's reports: the same. */
  private tellingOf(life: Life, { client }: Up): Telling {
    return (runId, report) =>
      life.run(client.VoiceReport({ runId, report }), (exit) => {
        this.universe.note(`report ${runId} ${report.status} ${Exit.isSuccess(exit) ? "ok" : "refused"}`)
        this.checker.sometimes(`report ${report.status} ${Exit.isSuccess(exit) ? "carried out" : "refused"}`)
      })
  }

  /** Requests of an agent by its tools; a message that it sends is a message like a person's. */
  private asksOf(life: Life, { client }: Up): Asks {
    return (runId, errand) => {
      const { checker } = this
      const token = errand._tag === "message" || errand._tag === "spawn" ? this.token() : ""
      const request = (): Effect.Effect<unknown, unknown> => {
        switch (errand._tag) {
          case "message":
            checker.sending(token, errand.to)
            return client.VoiceMessage({ runId, agent: errand.to, text: `[${token}] do it` })
          case "spawn":
            checker.sending(token, errand.name)
            return client.VoiceSpawn({ runId, request: { name: errand.name, task: `[${token}] help` } })
          case "report":
            return client.VoiceReport({ runId, report: { status: errand.status, summary: "as it is", evidence: [] } })
          case "ask":
            return client.VoiceAsk({ runId, question: "what now?" })
          case "inbox":
            return client.VoiceInbox({ runId })
        }
      }
      life.run(request(), (exit) => {
        const isDone = Exit.isSuccess(exit)
        this.universe.note(`errand ${runId} ${errand._tag} ${isDone ? "ok" : "refused"}`)
        checker.sometimes(`errand ${errand._tag} ${isDone ? "carried out" : "refused"}`)
        if (!isDone) return
        checker.answered(`errand ${errand._tag}`, exit.value)
        if (errand._tag === "message") checker.acked(token, (exit.value as { readonly eventId: number }).eventId)
      })
    }
  }

  /** Ends a life, for any reason; somebody starts the next one. */
  private end(life: Life): void {
    if (this.life !== life) return
    life.kill()
    this.life = undefined
    this.daemon = undefined
    this.processes.voice = undefined
    if (this.workshop !== undefined) this.workshop.work.tell = undefined
    this.processes.asks = undefined
    this.checker.readers.allLeave()
    this.checker.upAt = Infinity
    this.waiting.clear()
    this.starting.clear()
    this.lookout.closes()
    this.disk.crash()
    this.files.forget(life)
    this.programs?.keepers?.ends(life)
    this.processes.orphan()
    this.models?.orphan()
    const dice = new Chance(this.options.seed, `after life ${life.number}`)
    const longest = this.stormy && this.options.script === undefined ? 60_000 : 1_000
    this.universe.later(dice.skewed(10, longest), () => this.begin())
  }

  // What goes wrong.

  /** With dice of its own: one fault fewer changes nothing about the others. */
  private strike(fault: Fault, dice: Chance): void {
    this.universe.note(`fault ${fault}`)
    this.checker.sometimes(`fault: ${fault}`)
    this.lookout.disturbed()
    this.strikes(fault)
    const { life } = this
    switch (fault) {
      case "kill":
        return life && this.end(life)
      case "powerCut":
        this.programs?.keepers?.powerCut()
        this.processes.powerCut()
        this.workshop?.git.powerCut()
        return life && this.end(life)
      case "stop": {
        if (life === undefined || this.daemon === undefined) return
        this.checker.upAt = Infinity
        life.run(
          Effect.ignore(this.daemon.client.Shutdown({ reason: "asked to stop", by: "ada", ...this.leaving(dice) }))
        )
        // as systemd does
        this.universe.later(90_000, () => {
          if (this.life !== life) return
          this.checker.broken("a daemon that is asked to stop stops", `life ${life.number}`)
          this.end(life)
        })
        return
      }
      case "diskFull":
      case "diskIo":
      case "diskLocked":
        this.disk.worsen(DISK_STATES[fault], dice.skewed(10, 30_000))
        return
      case "diskSlow":
        this.disk.slowest = 3_000
        this.universe.later(dice.skewed(1_000, 60_000), () => (this.disk.slowest = 5))
        return
      case "clockJump":
        this.wall.skew += dice.is(0.5) ? dice.skewed(1_000, 7_200_000) : -dice.skewed(1_000, 7_200_000)
    }
  }

  /** A daemon that is restarted leaves its runs to the next. */
  private leaving(dice: Chance): { readonly keep?: boolean } {
    const { kept } = this.swarm.bytes ?? {}
    return kept !== undefined && dice.is(kept.leaves) ? { keep: true } : {}
  }

  /** The keeper is killed, or hangs, again and again. */
  private hauntsKeepers(how: "dies" | "hangs"): void {
    const { bytes } = this.swarm
    const mean = bytes?.kept?.[how] ?? 0
    if (mean === 0) return
    const dice = new Chance(this.options.seed, `keepers ${how}`)
    const next = () =>
      void this.universe.later(-Math.log(1 - dice.unit()) * mean, () => {
        if (!this.stormy) return
        const ms = dice.skewed(100, 60_000)
        if (!this.isLeftOut(`f${++this.faults}`)) {
          this.universe.note(`fault keeper ${how}`)
          this.checker.sometimes(`fault: keeper ${how}`)
          if (how === "dies") this.programs?.keepers?.dies()
          else this.programs?.keepers?.hangs(ms)
        }
        next()
      })
    next()
  }

  /** Records a mishap for the commands that have had no answer yet. */
  private readonly strikes = (fault: Mishap): void => {
    for (const { name } of this.waiting.values()) this.checker.sometimes(faultWhile(fault, name))
    if (fault !== this.swarm.lurks) return
    for (const name of new Set([...this.waiting.values()].map(({ name }) => name)))
      this.struck.set(name, this.timesStruck(name) + 1)
  }

  private readonly struck = new Map<Command, number>()
  private timesStruck = (name: Command): number => this.struck.get(name) ?? 0

  /** Whether this world's mishap comes now: a command waits that it has not met often enough. */
  private readonly lurks = (mishap: Mishap): boolean =>
    this.stormy &&
    mishap === this.swarm.lurks &&
    [...this.waiting.values()].some(({ name }) => this.timesStruck(name) < ENOUGH)

  /** The earliest moment of the next one, ms. */
  private lurksFrom = 0

  /** A command that this world's mishap has not met is held open by a slow disk, and met. */
  private lurk(id: number, name: Command): void {
    const { lurks } = this.swarm
    const { now } = this.universe
    if (lurks === undefined || !this.stormy || now < this.lurksFrom || this.timesStruck(name) >= ENOUGH) return
    const dice = new Chance(this.options.seed, `lurking ${id}`)
    this.lurksFrom = now + 2_000
    this.disk.slowest = 3_000
    this.universe.later(10_000, () => (this.disk.slowest = 5))
    this.universe.later(dice.skewed(0.005, 50), () => {
      if (!this.waiting.has(id) || !this.lurks(lurks) || this.isLeftOut(`f${++this.faults}`)) return
      if (isFault(lurks)) this.strike(lurks, dice)
      else if (lurks === "fileGone") this.misplace()
      else if (lurks === "noStart") this.order("restart", dice.pick(this.names))
    })
  }

  /** The file is gone, and found again. */
  private misplace(): void {
    this.strikes("fileGone")
    this.universe.note("the file: gone")
    this.files.remove(CONFIG)
    this.universe.later(3_000, () => {
      if (this.stormy) this.files.write(CONFIG, this.config())
    })
  }

  private atCommit(number: number): void {
    const { life } = this
    const dice = new Chance(this.options.seed, `commit ${number}`)
    if (!this.stormy || life === undefined || life.isDead) return
    if (!this.lurks("killAtCommit") && !dice.is(this.swarm.killAtCommit)) return
    if (this.isLeftOut(`f${++this.faults}`)) return
    this.universe.note("fault kill at commit")
    this.checker.sometimes("fault: kill at commit")
    this.strikes("killAtCommit")
    // nothing of it goes on from here
    life.kill()
    this.universe.soon(() => this.end(life))
  }

  private readonly touch: Touch = (boundary) => {
    const { life } = this
    if (life === undefined || life.isDead) return false
    if (this.options.boundaries?.pass(boundary, this.daemon === undefined, this.universe.now) !== true) return true
    this.universe.note(`killed at ${boundary}`)
    life.kill()
    this.universe.soon(() => this.end(life))
    return false
  }

  private isLeftOut(event: string): boolean {
    if (this.options.without?.has(event) === true) return true
    this.happened.push(event)
    return false
  }

  private threaten(fault: Fault): void {
    const mean = this.swarm.every[fault]
    if (mean === 0) return
    this.universe.later(-Math.log(1 - this.fate.unit()) * mean, () => {
      if (!this.stormy) return
      const name = `f${++this.faults}`
      if (!this.isLeftOut(name)) this.strike(fault, new Chance(this.options.seed, name))
      this.threaten(fault)
    })
  }

  // What people want.

  private visit(): void {
    this.universe.later(-Math.log(1 - this.people.unit()) * this.swarm.pause, () => {
      if (!this.stormy) return
      const command = this.people.weighed(this.swarm.commands)
      const agent = this.people.pick(this.names)
      if (!this.isLeftOut(`c${++this.commands}`)) this.order(command, agent)
      this.visit()
    })
  }

  private order(name: Command, agent: string, then: (ok: boolean) => void = () => {}): void {
    const { daemon, life } = this
    if (daemon === undefined || life === undefined) return then(false)
    commands[name]({
      world: this,
      client: daemon.client,
      agent,
      people: this.people,
      then,
      run: this.asking(life, name, agent, then)
    })
  }

  meanwhile<A, E>(effect: Effect.Effect<A, E>, ended: () => void): void {
    this.life?.run(effect, ended)
  }

  /** Makes a call of a command: noted, answered in this life or not at all. */
  private asking(life: Life, name: Command, agent: string, then: (ok: boolean) => void): Order["run"] {
    const { checker } = this
    return (effect, answered = () => {}) => {
      const id = ++this.busy
      this.universe.note(`asks ${id} ${name} ${agent}`)
      this.waiting.set(id, { name, what: `${name} ${agent}, asked at ${this.universe.now.toFixed(0)} ms` })
      if (!this.touch("rpc: asked")) return
      this.meddle(id)
      this.lurk(id, name)
      const asker = new Chance(this.options.seed, `asker ${id}`)
      if (this.stormy && asker.is(this.swarm.leaves)) return this.asksInPassing(life, id, effect, asker)
      life.run(effect, (exit) => {
        if (!this.touch("rpc: before")) return
        this.waiting.delete(id)
        const said = Exit.isSuccess(exit) ? "ok" : reasonOf(exit).replaceAll(this.disk.folder, "/state")
        if (Exit.isSuccess(exit)) checker.answered(name, exit.value)
        else if (Cause.hasInterruptsOnly(exit.cause)) this.isEnding(life)
        this.universe.note(`answer ${id} ${name} ${agent} ${said.slice(0, 90)}`)
        checker.sometimes(`${name} ${Exit.isSuccess(exit) ? "carried out" : "refused"}`)
        for (const refusal of refusalsIn(exit)) checker.sometimes(refused(refusal))
        if (Exit.isFailure(exit) && exit.cause.reasons.some(({ _tag }) => _tag === "Die"))
          checker.broken("a command is answered or refused", `${name}: ${said.slice(0, 200)}`)
        answered(exit)
        then(Exit.isSuccess(exit))
        this.touch("rpc: after")
      })
    }
  }

  /** Records that a daemon's socket takes no commands any more: as systemd does, the world gives it so long to be gone. */
  private isEnding(life: Life): void {
    if (this.ending === life) return
    this.ending = life
    this.universe.later(90_000, () => {
      if (this.life !== life) return
      this.checker.broken("a daemon that ends comes to its end", `life ${life.number}`)
      this.end(life)
    })
  }

  /** Makes a call whose asker does not wait for the answer, and never learns what came of it. */
  private asksInPassing(life: Life, id: number, effect: Effect.Effect<unknown, unknown>, dice: Chance): void {
    const patience = Effect.andThen(Effect.sleep(dice.skewed(0.01, 2_000)), Effect.fail("gone"))
    life.run(Effect.raceFirst(effect, patience), () => {
      this.universe.note(`leaves ${id}`)
      this.checker.sometimes("an asker goes away")
      this.waiting.delete(id)
    })
  }

  /** Strikes while somebody waits, with faults that strike at times anyway. */
  private meddle(id: number): void {
    const { every, meddles } = this.swarm
    if (!this.stormy || meddles === 0) return
    const dice = new Chance(this.options.seed, `meddling ${id}`)
    const faults = FAULTS.filter((fault) => every[fault] > 0)
    if (faults.length === 0 || !dice.is(meddles)) return
    const name = `f${++this.faults}`
    this.universe.later(dice.skewed(0.005, 50), () => {
      if (this.stormy && !this.isLeftOut(name)) this.strike(dice.pick(faults), dice)
    })
  }

  /** Commands that have had no answer yet, of this life. */
  private readonly waiting = new Map<number, { readonly name: Command; readonly what: string }>()
  /** Agents that somebody has asked to start, and was not answered yet. */
  readonly starting = new Map<string, number>()
  readonly starts = new Map<string, number>()
  readonly calls = new Set<string>()

  // From the beginning to the end.

  live(): void {
    this.begin()
    const { script } = this.options
    if (script !== undefined) this.follow(script)
    else {
      for (const fault of FAULTS) this.threaten(fault)
      this.hauntsKeepers("dies")
      this.hauntsKeepers("hangs")
      for (let person = 0; person < this.swarm.people; person++) this.visit()
      this.universe.runFor(this.options.stormy)
    }
    this.stormy = false
    this.universe.note("calm")
    this.disk.state = "well"
    this.disk.slowest = 5
    this.processes.unruly = false
    if (this.models !== undefined) this.models.api.unruly = false
    this.mail.isUnruly = false
    if (this.workshop !== undefined) this.workshop.isUnruly = false
    this.lookout.calms()
    // somebody mends what cannot work
    this.files.write(
      CONFIG,
      this.config(
        this.names,
        this.workshop === undefined
          ? { worktree: false, maxRunsPerHour: 100_000, minRunInterval: "5 minutes" }
          : { maxRunsPerHour: 100_000, minRunInterval: "1s", can: ["magic"] },
        { order: "round-robin" }
      )
    )
    this.tend()
    const early = [...this.waiting]
    if (!this.universe.until(() => this.atRest, CALM)) this.checker.atRest()
    this.compare()
    if (script !== undefined) this.audit()
    // what was asked in the storm has had its time
    const isOpen = () => early.some(([id]) => this.waiting.has(id))
    if (!this.universe.until(() => !isOpen(), CALM)) {
      for (const [id, { what }] of early) if (this.waiting.has(id)) this.checker.broken("a command is answered", what)
    }
  }

  /** Line by line; where no daemon is there, the person waits for one. */
  private follow(script: ReadonlyArray<Line>): void {
    const { boundaries } = this.options
    for (const { agent, at, what } of script) {
      if (boundaries !== undefined && at > boundaries.until) break
      if (this.universe.now < at) this.universe.runFor(at - this.universe.now)
      if (!this.universe.until(() => this.daemon !== undefined, CALM)) this.checker.broken("a daemon comes back", what)
      this.commands += 1
      if (what === "shutdown") this.strike("stop", this.fate)
      else this.order(what, agent)
    }
    if (boundaries !== undefined) boundaries.isOpen = false
  }

  /** All is at rest: the log is whole, and no process is left of a daemon that is gone. */
  private audit(): void {
    let isAnswered = false
    this.order("verify", "", () => (isAnswered = true))
    // the last of a minute's boundaries is this one: then the next daemon comes first
    if (!this.universe.until(() => isAnswered && this.atRest, CALM))
      this.checker.broken("a command is answered", "verify")
    for (const { agent, isOrphan, runId } of this.processes.living)
      if (isOrphan) this.checker.broken("no process outlives its daemon and the grace", `${agent}: ${runId}`)
  }

  /** Nothing moves for a moment: what is said is what the log says. */
  private compare(): void {
    const { checker, daemon, disk, life } = this
    if (daemon === undefined || life === undefined) return
    // an agent is stopped before its run's grace is over; one that never ends is told of below
    this.universe.until(() => !this.processes.areEnding, CALM)
    const commits = disk.commits
    this.universe.runFor(20)
    if (disk.commits !== commits) return
    life.run(daemon.client.Agents(), (exit) => {
      if (Exit.isSuccess(exit) && disk.commits === commits) checker.shown(exit.value, true)
    })
    if (this.workshop !== undefined)
      life.run(everyGoal(daemon), (exit) => {
        if (Exit.isSuccess(exit) && disk.commits === commits)
          for (const page of exit.value) checker.goals.shown(page, true)
      })
    this.universe.runFor(20)
  }

  /** The daemon that is up, and its life. */
  private get standing(): { readonly life: Life; readonly daemon: Up } | undefined {
    const { daemon, life } = this
    return daemon === undefined || life === undefined ? undefined : { daemon, life }
  }

  private get atRest(): boolean {
    return this.checker.open === 0 && this.daemon !== undefined
  }

  /** Once a minute a person looks after everybody. */
  private tend(): void {
    const { daemon, life } = this
    if (daemon !== undefined && life !== undefined) {
      const { client } = daemon
      const whole = Effect.all([
        Effect.ignore(client.Register({ config: CONFIG, caller })),
        Effect.ignore(client.NewConversation({ config: CONFIG, caller })),
        Effect.ignore(client.Resume({ name: "", caller }))
      ])
      life.run(whole, () => {
        this.order("approve", "")
        for (const agent of this.names) this.order("start", agent)
        if (this.swarm.talk !== undefined) this.order("channelTend", "")
        if (this.workshop !== undefined) this.order("goalTend", "")
      })
    }
    this.universe.later(60_000, () => this.tend())
  }
}

/** Never throws: what breaks the simulation itself is a broken promise, too. */
export const simulate = (options: Options): Result => {
  const world = new World(options)
  try {
    watched(() => world.live())
  } catch (error) {
    const promise = error instanceof Stuck ? "time goes on" : "nothing throws"
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error)
    if (!(error instanceof Halted)) world.checker.broken(promise, what)
  }
  const { checker, disk, universe } = world
  disk.remove()
  return {
    seed: options.seed,
    hash: universe.hash,
    violations: checker.violations,
    simulated: universe.now,
    steps: universe.steps,
    runes: checker.head,
    lives: world.lives,
    messages: checker.messages.size,
    commands: world.commands,
    faults: world.faults,
    logged: world.logged,
    reached: checker.reached,
    cells: checker.tables.cells,
    lines: universe.lines,
    happened: world.happened
  }
}
