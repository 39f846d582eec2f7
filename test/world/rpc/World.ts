/**
 * A daemon's inside for tests of its outside: doubles of Agents, EventLog and
 * DaemonControl that keep their contracts in memory, behind the real control
 * server on a real socket in a folder of its own.
 */
import { attempt } from "../../../src/config/Attempt.ts"
import { createHash } from "node:crypto"
import type { AnswerScope } from "../../../src/approvals/AnswerScope.ts"
import * as Access from "../../../src/access/Access.ts"
import type { Board } from "../../../src/domain/BoardMessages.ts"
import { conversation, wordOf } from "../../../src/domain/StatusWords.ts"
import { type BoardGiven, rowsOf } from "../../../src/board/BoardList.ts"
import type { Given } from "../../../src/board/WaitingList.ts"
import { kinds } from "../../../src/app/EventKinds.ts"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, FileSystem, Layer, Stream } from "effect"
import { type AgentFacts, Agents } from "../../../src/projects/service/Agents.ts"
import type { InboxMessage, VoiceOf } from "../../../src/agents/actors/AgentVoice.ts"
import { Channels } from "../../../src/channels/Channels.ts"
import * as ControlServer from "../../../src/api/rpc/ControlServer.ts"
import { DaemonControl } from "../../../src/api/rpc/DaemonControl.ts"
import {
  type AskedCall,
  type AgentInfo,
  BacklogInfo,
  type CallInfo,
  CommandRefused,
  type ConfigChangeInfo,
  type ConversationInfo,
  type ProjectInfo
} from "../../../src/domain/Messages.ts"
import type { Address } from "../../../src/domain/AgentPort.ts"
import { hashOf, refusalOf } from "../../../src/domain/CallHash.ts"
import type { RuneDraft } from "../../../src/core/event-log/Rune.ts"
import type * as WorkerMachine from "../../../src/agents/machines/WorkerMachine.ts"
import { treeOf } from "../../../src/board/TreeMessages.ts"
import { layerMemory } from "../../../src/app/DaemonLog.ts"
import { EventLog, type Selection } from "../../../src/core/event-log/EventLog.ts"
import { Goals } from "../../../src/goals/Goals.ts"
import { Schedules } from "../../../src/schedules/Schedules.ts"
import * as PlatesDouble from "../http/PlatesDouble.ts"

export const T0 = Date.parse("2026-11-20T09:12:00Z")

export const agentInfo = (over: Partial<AgentInfo> = {}): AgentInfo => ({
  conversation: "web-1a2b3c4d",
  project: "web",
  agent: "builder",
  backend: "command",
  mode: "inbox",
  role: "",
  model: "",
  word: "working",
  reason: null,
  state: "Running",
  since: T0,
  restsOn: 3,
  detail: "run r7 is in progress",
  nextAt: null,
  runId: "r7",
  pid: 4242,
  sessionSeq: 7,
  consecutiveErrors: 0,
  totalErrors: 2,
  maxConsecutiveErrors: 5,
  maxTotalErrors: 20,
  inbox: 1,
  cwd: "/srv/web",
  branch: "agent/builder",
  ...over
})

/** A tool call that asks. */
export const callInfo = (over: Partial<CallInfo> = {}): CallInfo => ({
  callId: "01call000000000000000000aa",
  conversation: "web-1a2b3c4d",
  project: "web",
  agent: "builder",
  turnId: "t1",
  tool: "shell",
  arguments: '{"command":"rm -rf build"}',
  state: "awaiting_approval",
  since: T0,
  reason: "it has side effects",
  until: null,
  restsOn: 5,
  ...over
})

const nothing = { tokens: null, toolCalls: null, wallTime: null, usd: null }

export const conversationInfo = (over: Partial<ConversationInfo> = {}): ConversationInfo => ({
  conversation: "web-1a2b3c4d",
  project: "web",
  config: "/srv/web/agentd.jsonc",
  word: wordOf(conversation, (over.state ?? "active") as keyof typeof conversation, { turns: 1 }),
  state: "active",
  since: T0,
  restsOn: 2,
  detail: "1 turn is in progress",
  agents: ["builder"],
  turns: 4,
  turnsActive: 1,
  turnErrors: 0,
  fatalStops: 0,
  spent: { ...nothing, tokens: 1200, toolCalls: 3 },
  limits: { ...nothing, tokens: 100_000 },
  archive: null,
  ...over
})

/** A move of the worker of `builder`. */
export const moved = (event: WorkerMachine.Event, over: Partial<RuneDraft> = {}): RuneDraft => ({
  stream: "web-1a2b3c4d",
  kind: "worker.moved",
  actor: "worker/builder",
  from: "CoolingDown",
  to: "BuildingPrompt",
  trigger: event._tag,
  payload: { event },
  ...over
})

/** A rune that says nothing in particular. */
export const draft = (over: Partial<RuneDraft> = {}): RuneDraft => moved({ _tag: "BackoffElapsed" }, over)

/** A test's view of the daemon behind the socket, and its levers. */
export interface World {
  readonly agents: Array<AgentInfo>
  readonly projects: Array<ProjectInfo>
  /** By the project's name. */
  readonly changes: Map<string, ConfigChangeInfo>
  readonly calls: Array<CallInfo>
  /** The parts and offers of each call. */
  readonly decided: Pick<AskedCall, "parts" | "offers" | "scopes" | "onlyHere">
  readonly conversations: Array<ConversationInfo>
  /** Live runs, and whose they are. */
  readonly voices: Map<string, VoiceOf>
  readonly inbox: Array<InboxMessage>
  readonly backlog: Array<BacklogInfo>
  readonly commands: Array<readonly [verb: string, name: string, detail: unknown]>
  readonly shutdowns: Array<readonly [reason: string, by: string]>
  /** Problems that `verify` finds besides those that are really there. */
  readonly problems: Array<{ eventId: number; stream: string; rule: string; message: string }>
  /** The sessions, and what reached them. */
  readonly board: PlatesDouble.Board
  /** Followers of the log at this moment. */
  followers: number
}

export const makeWorld = (over: Partial<World> = {}): World => ({
  agents: [agentInfo()],
  projects: [
    {
      conversation: "web-1a2b3c4d",
      name: "web",
      config: "/srv/web/agentd.jsonc",
      agents: ["builder"],
      problems: []
    }
  ],
  changes: new Map(),
  calls: [],
  decided: {},
  conversations: [conversationInfo()],
  voices: new Map([
    [
      "r7",
      {
        conversation: "web-1a2b3c4d",
        agent: "builder",
        turnId: "t1",
        may: ["inbox", "message", "post", "report", "ask"]
      }
    ]
  ]),
  inbox: [],
  backlog: [],
  commands: [],
  shutdowns: [],
  problems: [],
  board: PlatesDouble.makeBoard(),
  followers: 0,
  ...over
})

const refused = (message: string, remedy: string) =>
  Effect.fail(new CommandRefused({ code: "not_found", message, remedy }))

/** The part of an agent in the lists of all. */
export const factsOf = (
  { agents, backlog, calls }: Pick<Given, "agents" | "backlog" | "calls">,
  { agent, conversation }: Address
): AgentFacts => {
  const isIts = (one: Address) => one.agent === agent && one.conversation === conversation
  return {
    conversation,
    agent,
    info: agents.find(isIts),
    backlog: backlog.find(isIts),
    calls: calls.filter(isIts)
  }
}

/** Commands on one agent, recorded. */
const onAgents = (world: World) => {
  const find = (name: string) => {
    const found = world.agents.find(({ agent, conversation, project }) =>
      [agent, `${project}/${agent}`, `${conversation}/${agent}`].includes(name)
    )
    return found === undefined
      ? refused(`There is no agent ${name}.`, "See which there are: agentd ps")
      : Effect.succeed(found)
  }
  const command = (verb: string, name: string, detail: unknown = null) =>
    Effect.map(find(name), (found) => {
      world.commands.push([verb, `${found.project}/${found.agent}`, detail])
      return { eventId: 1, message: `${verb} ${found.project}/${found.agent}: done` }
    })
  return {
    all: Effect.sync(() => world.agents),
    addresses: Effect.sync(() => world.agents),
    agent: (name) => find(name),
    some: (agents) => Effect.sync(() => [...agents].map((one) => factsOf(world, one))),
    start: (name) => command("start", name),
    stop: (name) => command("stop", name),
    restart: (name) => command("restart", name),
    send: (name, message, caller) => command("send", name, { ...message, by: caller.by }),
    interrupt: (name) => command("interrupt", name),
    choose: (name) => command("choose", name),
    backlog: Effect.sync(() => world.backlog),
    retry: (name, message) => command("retry", name, message),
    dismiss: (name, what) => command("dismiss", name, what),
    spawn: (parent, request, caller) => command("spawn", parent, { ...request, by: caller.by })
  } satisfies Partial<Agents["Service"]>
}

/** A call, whole. */
export const askedOf = ({
  agent,
  arguments: input,
  callId,
  project,
  reason,
  since,
  tool,
  until
}: CallInfo): AskedCall => {
  const whole = { agent: `${project}/${agent}`, run: "r1", tool, folder: "/p", input }
  // a test may give arguments that are no JSON: what is stored for a real call always is
  const hash = hashOf({ ...whole, call: callId, input: attempt(() => JSON.parse(input) as unknown) ?? input })!
  return { ...whole, id: callId, hash, reason, since, until }
}

/** The hash that an approval with a rule names. */
export const previewHash = (call: CallInfo, scope: AnswerScope): string =>
  createHash("sha256")
    .update(`${askedOf(call).hash} ${scope}`)
    .digest("hex")

/** A call is answered once; whoever comes later is told so. */
const onCalls = (world: World) =>
  ({
    calls: Effect.sync(() => world.calls),
    forgetInputs: () => Effect.void,
    offers: () => Effect.die("no agent"),
    addFile: ({ at, data }) => Effect.succeed(at + data.length),
    forgetFiles: () => Effect.void,
    expire: () => Effect.succeed(0),
    openSince: Effect.succeed(Number.POSITIVE_INFINITY),
    askedCall: (name) => {
      const found = world.calls.find(({ callId, state }) => callId.startsWith(name) && state === "awaiting_approval")
      return found === undefined
        ? refused(`${name} asks no more.`, "See what waits: agentd approve")
        : Effect.succeed({ ...askedOf(found), ...world.decided })
    },
    answerPreview: (name, { offer: number, scope }) => {
      const call = world.calls.find(({ callId }) => callId.startsWith(name))
      const offer = world.decided.offers?.[number - 1]
      if (call === undefined || offer === undefined)
        return refused(`There is no offer ${number}.`, "See what waits: agentd approve")
      const file = scope === "run" ? null : "/srv/web/agentd.jsonc"
      const diff = file === null ? [] : ["@ 3", '   "approvals": {', `+    "rules": [{ "allow": "${offer.rules[0]}" }]`]
      return Effect.succeed({ hash: previewHash(call, scope), scope, offer, file, diff })
    },
    answerCall: (callId, { answers, behavior, hash, lasting, reason }, caller) =>
      Effect.suspend(() => {
        const index = world.calls.findIndex((call) => call.callId === callId)
        const found = world.calls[index]
        if (found === undefined) return refused(`${callId} has its result already.`, "See what waits: agentd approve")
        if (found.state !== "awaiting_approval") {
          return refused(`${callId} was approved already.`, "See what waits: agentd approve")
        }
        const shown = lasting === undefined ? askedOf(found).hash : previewHash(found, lasting.scope)
        const unseen = behavior === "allow" && !answers ? refusalOf(callId, hash, shown) : undefined
        if (unseen !== undefined) return refused(unseen.message, unseen.remedy)
        world.calls[index] = { ...found, state: "executing" }
        world.commands.push([
          "answerCall",
          callId,
          { behavior, reason, by: caller.by, ...(answers && { answers }), ...(lasting && { lasting }) }
        ])
        return Effect.succeed({ eventId: 9, message: `${found.tool}: ${behavior}` })
      })
  }) satisfies Partial<Agents["Service"]>

/** By id or project; empty: the caller's. */
const onConversations = (world: World) => {
  const find = (name: string, config: string | null) => {
    const found = world.conversations.find((each) =>
      name === "" ? each.config === config : each.conversation.startsWith(name) || each.project === name
    )
    return found === undefined
      ? refused(
          name === "" ? "There is no project here." : `There is no conversation ${name}.`,
          "See which there are: agentd project ls --conversations"
        )
      : Effect.succeed(found)
  }
  const command = (verb: string, name: string, config: string | null, detail: unknown = null) =>
    Effect.map(find(name, config), (found) => {
      world.commands.push([verb, found.conversation, detail])
      return { eventId: 1, message: `${verb} ${found.conversation}: done` }
    })
  return {
    conversations: Effect.sync(() => world.conversations),
    conversation: (name, caller) => find(name, caller.config),
    newConversation: (config) =>
      Effect.sync(() => {
        world.commands.push(["newConversation", config, null])
        return conversationInfo({ conversation: "web-1a2b3c4d-2", config, state: "created" })
      }),
    stopProject: (name, caller) => command("stopProject", name, caller.config),
    startProject: (name, caller) => command("startProject", name, caller.config),
    pause: (name, options, caller) => command("pause", name, caller.config, options),
    resume: (name, caller) => command("resume", name, caller.config),
    close: (name, options, caller) => command("close", name, caller.config, options),
    archive: (name, caller) => command("archive", name, caller.config)
  } satisfies Partial<Agents["Service"]>
}

const onVoices = (world: World) => {
  const said = (of: VoiceOf, verb: string, detail: unknown) =>
    Effect.sync(() => {
      world.commands.push([verb, `${of.conversation}/${of.agent}`, detail])
      return { eventId: 1, message: `${verb}: done` }
    })
  return {
    voice: (runId) =>
      Effect.suspend(() => {
        const found = world.voices.get(runId)
        return found === undefined
          ? refused(`The run ${runId} is over.`, "Nothing can be done for it any more.")
          : Effect.succeed(found)
      }),
    report: (of, report) => said(of, "report", report),
    ask: (of, question) => said(of, "ask", question),
    inbox: () => Effect.sync(() => world.inbox)
  } satisfies Partial<Agents["Service"]>
}

const fleet = (world: World): Agents["Service"] => ({
  ...onAgents(world),
  ...onCalls(world),
  ...onConversations(world),
  ...onVoices(world),
  register: (config) =>
    Effect.sync(() => {
      world.commands.push(["register", config, null])
      return world.projects[0]!
    }),
  configKeep: (name) => (world.changes.has(name) ? Effect.die("not played") : refused("no change waits", "…")),
  configChange: (name) =>
    Effect.suspend(() => {
      const change = world.changes.get(name)
      return change === undefined ? refused(`There is no conversation "${name}".`, "…") : Effect.succeed(change)
    }),
  diff: () =>
    Effect.sync(() => ({
      conversation: "c1",
      project: "web",
      agent: "builder",
      folder: "/srv/web",
      base: "0".repeat(40),
      files: [{ path: "a", added: 1, removed: 0 }],
      more: 0,
      patch: "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+a\n",
      isCut: false
    })),
  projects: Effect.sync(() => world.projects),
  configOf: () => Effect.sync(() => undefined),
  sessions: Effect.succeed([]),
  configs: Stream.never,
  recovered: Effect.void,
  ready: Effect.succeed(true)
})

/** The real rune log, in memory; followers are counted, and problems can be planted. */
const log = (world: World) =>
  Layer.effect(
    EventLog,
    Effect.map(EventLog, (real) => ({
      ...real,
      subscribe: (selection: Selection) =>
        Stream.unwrap(
          Effect.sync(() => {
            world.followers++
            return Stream.ensuring(
              real.subscribe(selection),
              Effect.sync(() => void world.followers--)
            )
          })
        ),
      verify: Effect.map(real.verify, (found) => ({ ...found, problems: [...found.problems, ...world.problems] }))
    }))
  ).pipe(Layer.provide(layerMemory))

const control = (world: World, socket: string, log: EventLog["Service"]): DaemonControl["Service"] => ({
  status: Effect.map(log.head, (head) => ({
    pid: process.pid,
    version: "0.1.0",
    startedAt: T0,
    state: "/var/lib/agentd",
    socket,
    phase: "ready" as const,
    supervision: { by: "detached" as const, unit: null, restsOn: "no INVOCATION_ID in its environment" },
    log: { head, bytes: 4096 },
    outbox: { configured: false, waiting: 0, failed: 0, lastSentAt: null, lastError: null, restsOn: 0 }
  })),
  shutdown: (reason, by) => Effect.sync(() => void world.shutdowns.push([reason, by])),
  notifyList: Effect.succeed([]),
  notifyTest: (name) => Effect.succeed({ message: `${name} took it: ok` }),
  alertTest: Effect.succeed({ message: "A test mail went to ops@example.org." }),
  alerts: () => Effect.succeed([]),
  tree: Effect.sync(() =>
    treeOf("agentd", {
      _tag: "Supervisor",
      strategy: "one_for_one",
      count: 1,
      children: [
        {
          id: "builder",
          type: "worker",
          status: "running",
          restart: "permanent",
          restarts: 2,
          crash: { at: T0, message: "Error: it broke" },
          inside: {
            _tag: "Parts",
            parts: [
              { address: "web/turn/builder", state: "idle", mailbox: 1, newest: [{ at: T0, message: "start_turn" }] }
            ]
          }
        }
      ]
    })
  ),
  address: Effect.succeed("http://127.0.0.1:7777"),
  pagePort: Effect.succeed(7778),
  kinds: kinds.names,
  reach: Effect.succeed([]),
  outages: Effect.succeed([]),
  accounts: Effect.succeed([]),
  checks: Effect.succeed([{ name: "lock", level: "ok" as const, detail: "held by this daemon", remedy: null }])
})

/** Goals and channels are nobody's business in most tests: whoever asks them for anything is wrong. */
export interface Siblings {
  readonly goals?: Goals["Service"]
  readonly channels?: Channels["Service"]
  readonly schedules?: Schedules["Service"]
}

const noGoals = { stopAll: () => Effect.void, list: () => Effect.succeed([]) } as unknown as Goals["Service"]
const noSchedules = { list: () => Effect.succeed([]) } as unknown as Schedules["Service"]
const noChannels = {
  isConfigured: () => Effect.succeed(true),
  configured: () => Effect.void,
  list: Effect.succeed([])
} as unknown as Channels["Service"]

/** Everything behind the sockets; `world` is what the test looks at. */
export const inside = (
  world: World,
  socket: string,
  { channels = noChannels, goals = noGoals, schedules = noSchedules }: Siblings = {}
) =>
  Layer.mergeAll(
    Layer.succeed(Goals)(goals),
    Layer.succeed(Channels)(channels),
    Layer.succeed(Schedules)(schedules),
    Layer.succeed(Agents)(fleet(world)),
    Access.layer,
    PlatesDouble.layer(world.board),
    Layer.effect(DaemonControl)(Effect.map(EventLog, (log) => control(world, socket, log)))
  ).pipe(Layer.provideMerge(log(world)), Layer.provideMerge(NodeServices.layer))

export const layer = (world: World, socket: string, siblings?: Siblings) =>
  ControlServer.layer({ socket }).pipe(Layer.provideMerge(inside(world, socket, siblings)))

/** A daemon in which nothing waits. */
export const nothingWaits: Given = {
  agents: [],
  backlog: [],
  calls: [],
  channels: [],
  conversations: [],
  goals: [],
  outages: [],
  log: { head: 1, bytes: 1 },
  plates: [],
  projects: [],
  outbox: { failed: 0, waiting: 0, lastError: null, lastSentAt: null }
}

/** The board of these things. */
export const boardOf = (over: Partial<BoardGiven>, now = T0): Board => ({
  head: { rune: 1, startedAt: T0, today: { tokens: 0, usd: 0 } },
  rows: rowsOf({ ...nothingWaits, all: false, today: new Map(), ...over }, now)
})

/** A folder of its own, gone with the scope. */
export const folder = Effect.flatMap(FileSystem.FileSystem, (fs) =>
  fs.makeTempDirectoryScoped({ prefix: "agentd-" })
).pipe(Effect.provide(NodeServices.layer))

/** The server up in the current scope, with a rune log that holds `drafts`. */
export const serve = (world: World, drafts: ReadonlyArray<RuneDraft> = []) =>
  Effect.flatMap(folder, (state) => serveAt(state, world, drafts))

/** In this folder. */
export const serveAt = Effect.fnUntraced(function* (state: string, world: World, drafts: ReadonlyArray<RuneDraft>) {
  const socket = `${state}/control.sock`
  const context = yield* Layer.build(layer(world, socket))
  const { append } = Context.get(context, EventLog)
  if (drafts.length > 0) yield* append(drafts)
  return { state, socket, append: (...more: ReadonlyArray<RuneDraft>) => append(more) }
})
