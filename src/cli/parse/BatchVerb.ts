/**
 * BatchVerb: applies a verb to several items that are selected by names, patterns and labels.
 *
 * Guarantees: if a name is unknown, nothing is done. If a pattern selects items whose work would end, their names are
 * shown and the user is asked first. A failure for one item does not stop the others. Each result is printed on a line,
 * and the exit code says whether all succeeded.
 */
import { Cause, Clock, Console, Effect, Exit } from "effect"
import { predicate, type Word } from "../../domain/StatusWords.ts"
import type { Board } from "../../domain/BoardMessages.ts"
import type { Client } from "../../api/rpc/ControlClient.ts"
import { call } from "../../api/rpc/ControlClient.ts"
import { answers } from "./Asking.ts"
import { isPattern, type Named } from "../sessions/RowFilter.ts"
import { confirm } from "./Confirm.ts"
import { type DeclaredVerb, doesOutside, type Kind, linesOf, type Several, targetsOf } from "./DeclaredVerb.ts"
import { ExitCode } from "./ExitCode.ts"
import { explain } from "../render/ErrorText.ts"
import { VerbFailed } from "./Failure.ts"
import { hint, Invocation, printLines } from "./Invocation.ts"
import { count, plain, READING } from "../render/Output.ts"
import { worldOf } from "../../config/Places.ts"
import { rowsOf } from "../projects/Project.ts"
import { resolve } from "./NamePatterns.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

export interface Thing extends Named {
  readonly word: Word
}

const AT_ONCE = 8
/** Maximum number of items listed in a question. */
const MOST = 40

const OVER: ReadonlySet<string> = new Set(["closed", "archived"])

const ofProjects = (client: Client) =>
  Effect.map(
    Effect.all({
      projects: client.Projects(),
      conversations: client.Conversations(),
      board: yet(client.Board({ all: false }))
    }),
    (given) => rowsOf(given, false).map((row): Thing => ({ ...row, name: row.project }))
  )

const ofConversations = (client: Client, closed: boolean) =>
  Effect.map(client.Conversations(), (all) =>
    all
      .filter(({ state }) => OVER.has(state) === closed)
      .map(({ conversation, project, word }): Thing => ({
        called: conversation,
        conversation,
        name: project,
        project,
        word
      }))
  )

export const thingsOf = (client: Client, { closed = false, kind }: Several<never>) => {
  if (kind === "project") return ofProjects(client)
  if (kind === "conversation") return ofConversations(client, closed)
  return Effect.map(yet(client.Board({ all: true })), ({ rows }): ReadonlyArray<Thing> =>
    rows.filter((row) => row.kind === kind)
  )
}

/** Fails while rows can be missing, because an action on a part of the items would look like one on all. */
export const yet = <E, R>(board: Effect.Effect<Board, E, R>) =>
  Effect.filterOrFail(
    board,
    ({ reading }) => reading !== true,
    () => new VerbFailed({ ...READING, exitCode: ExitCode.failed })
  )

/** The sentence before the question, such as `This stops 2 agents: shop/a is working, shop/b is idle.` */
export const factOf = (does: string, kind: Kind, things: ReadonlyArray<Thing>): string => {
  const named = things.slice(0, MOST).map(({ called, word }) => `${plain(called)} ${predicate({ word }, 0)}`)
  const more = things.length > MOST ? [`and ${things.length - MOST} more`] : []
  return `This ${does} ${count(things.length, kind)}: ${[...named, ...more].join(", ")}.`
}

/**
 * The selected items. If the action needs confirmation, the user is asked first; without confirmation, the effect
 * fails.
 */
export const agreed = Effect.fnUntraced(function* (
  several: Several<never>,
  input: { readonly [field: string]: unknown }
) {
  const { caller, paths } = yield* Invocation
  const all = yield* call(paths.socket, (client) => thingsOf(client, several))
  const targets = targetsOf(input)
  const found = resolve(all, several.kind, targets, caller.config)
  if ("remedy" in found) return yield* new VerbFailed({ ...found, exitCode: ExitCode.failed })
  const outside = doesOutside(several, input, caller)
  const does = outside ?? several.ends?.(input as never)
  const isGroup = several.always === true || targets.labels.length > 0 || targets.names.some(isPattern)
  if (does !== undefined && (isGroup || outside !== undefined)) {
    const verb = does.replace(/^(\w+)s\b/, "$1")
    const question = `${verb[0]!.toUpperCase()}${verb.slice(1)} ${found.length === 1 ? "it" : "them"}?`
    const whole = `Use the full name: ${found.map(({ called }) => called).join(", ")}`
    const remedy = outside === undefined ? [] : [whole]
    yield* confirm(input["yes"] === true, factOf(does, several.kind, found), question, ...remedy)
  }
  return found as readonly [Thing, ...ReadonlyArray<Thing>]
})

/**
 * Runs `act` for each name, and prints one line per result; with --json, prints all results as one array. Fails at the
 * end if any call has failed.
 */
export const each = Effect.fnUntraced(function* <A, E, R>(
  names: ReadonlyArray<string>,
  act: (name: string) => Effect.Effect<A, E, R>,
  view: (value: A) => ReadonlyArray<string>
) {
  const { json } = yield* Invocation
  const results = yield* Effect.forEach(
    names,
    (name) =>
      Effect.gen(function* () {
        const done = yield* Effect.exit(act(name))
        if (Exit.isSuccess(done)) {
          const value: unknown = done.value
          if (!json) yield* printLines(view(done.value))
          return { name, ok: true, ...(typeof value === "object" ? value : { value }) }
        }
        if (Cause.hasInterruptsOnly(done.cause)) return yield* Effect.interrupt
        const { code, message, remedy, tag } = explain(Cause.squash(done.cause))
        if (!json) yield* Console.error(`agentd: ${name}: ${message}\n  → ${yield* hint(remedy)}`)
        return { name, ok: false, error: tag, code, message, remedy }
      }),
    { concurrency: AT_ONCE }
  )
  if (json) yield* printLines([jsonOf(results)])
  const lost = results.filter(({ ok }) => !ok)
  if (lost.length === 0) return
  return yield* new VerbFailed({
    message: `${lost.length} of ${results.length} failed: ${lost.map(({ name }) => name).join(", ")}.`,
    remedy: "The command succeeded for all others. See them: agentd ps",
    exitCode: ExitCode.failed
  })
})

export const run = Effect.fnUntraced(function* (
  verb: DeclaredVerb,
  several: Several<never>,
  input: { readonly [field: string]: unknown }
) {
  const things = yield* agreed(several, input)
  const { caller, colour, columns, paths } = yield* Invocation
  const now = yield* Clock.currentTimeMillis
  const world = { now, colour, columns, world: worldOf(paths) }
  return yield* each(
    things.map(({ called }) => called),
    (name) =>
      call(paths.socket, (client) =>
        answers(client, verb.rpc({ ...input, name, names: [name] } as never, caller, { now }))
      ),
    (value) => linesOf(verb, value, world, false)
  )
})
