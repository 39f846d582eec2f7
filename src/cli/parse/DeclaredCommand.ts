/**
 * DeclaredCommand: turns a declared verb into a command of the whole program, with its flags, its arguments, its calls
 * to the daemon, and its output.
 *
 * Guarantees: a verb's calls run concurrently over one connection. The quick entry accepts the same arguments.
 */
import { Clock, Console, Effect, Option, type Stdio } from "effect"
import { Argument, Command, Flag, type Prompt } from "effect/cli"
import { call } from "../../api/rpc/ControlClient.ts"
import { answers } from "./Asking.ts"
import type { SavedHost } from "../../config/Host.ts"
import { AllHosts, type Paths } from "./Paths.ts"
import type { Arg, Args, Ask, DeclaredVerb, Input, Shape } from "./DeclaredVerb.ts"
import { doesOutside, isOne, linesOf } from "./DeclaredVerb.ts"
import { VerbFailed } from "./Failure.ts"
import { Invocation, printLines } from "./Invocation.ts"
import { worldOf } from "../../config/Places.ts"
import { shellWord } from "../../config/ShellWord.ts"
import { FORM, parse } from "../render/MomentText.ts"
import { isMode } from "./Renamed.ts"
import { textOf } from "./StandardInput.ts"
import { loaded, oneHost } from "./Verb.ts"

const momentOf = (text: string) => {
  const moment = parse(text)
  if (moment === undefined) throw new Error(`Expected ${FORM}`)
  return moment
}
const within = (least: number, most: number) => (count: number) => {
  if (count < least || count > most) throw new Error(`Expected a number from ${least} to ${most}`)
  return count
}
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
const orUndefined = Option.getOrUndefined<unknown>

type Param = Argument.Argument<unknown> | Flag.Flag<unknown>

const argumentOf = (name: string, shape: Shape): Argument.Argument<unknown> => {
  const { description } = shape
  switch (shape.kind) {
    case "word":
      return shape.default === undefined
        ? Argument.String(name).pipe(Argument.withDescription(description))
        : Argument.String(name).pipe(
            Argument.withDescription(description),
            Argument.optional,
            Argument.map(Option.getOrElse(() => shape.default))
          )
    case "words":
      return Argument.String(name).pipe(Argument.withDescription(description), Argument.atLeast(0))
    case "pick":
      return Argument.Literals(name, shape.of).pipe(Argument.withDescription(description))
    default:
      return Argument.String(name).pipe(
        Argument.withDescription(description),
        Argument.optional,
        Argument.map(orUndefined)
      )
  }
}

const countOf = (name: string, shape: Extract<Shape, { readonly kind: "count" }>): Flag.Flag<unknown> => {
  const { alias, description, least, metavar = "N", most } = shape
  const flag = Flag.Int(name).pipe(
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
    Flag.mapTryCatch(within(least, most), messageOf)
  )
  const short = alias === undefined ? flag : Flag.withAlias(flag, alias)
  return shape.default === undefined
    ? short.pipe(Flag.optional, Flag.map(orUndefined))
    : Flag.withDefault(short, shape.default)
}

const paramOf = (field: string, shape: Shape): Param => {
  const { alias, description, metavar = "TEXT", name = field } = shape
  switch (shape.kind) {
    case "switch": {
      const flag = Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))
      return alias === undefined ? flag : Flag.withAlias(flag, alias)
    }
    case "option":
      return Flag.String(name).pipe(
        Flag.withMetavar(metavar),
        Flag.withDescription(description),
        Flag.optional,
        Flag.map(orUndefined)
      )
    case "options": {
      const flag = Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description))
      return (alias === undefined ? flag : Flag.withAlias(flag, alias)).pipe(Flag.atLeast(0))
    }
    case "choice":
      return Flag.Literals(name, shape.of).pipe(
        Flag.withDescription(description),
        Flag.withDefault(shape.default ?? shape.of[0]!)
      )
    case "count":
      return countOf(name, shape)
    case "moment":
      return Flag.String(name).pipe(
        Flag.withMetavar(metavar),
        Flag.withDescription(`${description} ${FORM}`),
        Flag.mapTryCatch(momentOf, messageOf),
        Flag.optional,
        Flag.map(orUndefined)
      )
    default:
      return argumentOf(name, shape)
  }
}

/** The result of a call; undefined if the call fails, or does not return within `millis`. */
const inTime = <E, R>(asked: Effect.Effect<unknown, E, R>, millis: number) =>
  asked.pipe(
    Effect.timeoutOrElse({ duration: millis, orElse: () => Effect.succeed(undefined) }),
    Effect.catch(() => Effect.succeed(undefined))
  )

/** Fails if the arguments are invalid according to the verb's declaration. */
const refusing = Effect.fnUntraced(function* (verb: DeclaredVerb, input: object) {
  // if an argument is `-`, its text comes from standard input and has not been read yet, so check later
  const isUnread = Object.entries(verb.args).some(
    ([field, { kind }]) => kind === "maybeText" && Reflect.get(input, field) === "-"
  )
  const wrong = isUnread ? undefined : verb.wrong?.(input as never, (yield* Invocation).caller)
  if (wrong !== undefined) return yield* new VerbFailed(wrong)
})

/** The value of the calls over all hosts. A host that did not answer and has no row in the value is named. */
const ofAll = Effect.fnUntraced(function* (ask: Ask<unknown>, hosts: ReadonlyMap<string, SavedHost>, paths: Paths) {
  const { answersOf } = yield* Effect.promise(() => import("../hosts/AllHosts.ts"))
  const { left, value } = yield* answersOf(ask, hosts, paths)
  for (const { host, silent } of left)
    yield* Console.error(`agentd: ${host ?? "this machine"} does not answer: ${silent.message}\n  → ${silent.remedy}`)
  return value
})

/** The beginning of the verb's command line: its words, and the name of what it acts on. */
const lineOf = ({ args, path }: DeclaredVerb, given: { readonly [field: string]: unknown }): string => {
  const names = Object.entries(args).filter(([, { kind }]) => kind === "word")
  return [...path, ...names.map(([field]) => shellWord(String(given[field])))].join(" ")
}

const carriedOut = (verb: DeclaredVerb) =>
  Effect.fnUntraced(function* (given: { readonly [field: string]: unknown }) {
    const { caller, colour, columns, json, paths } = yield* Invocation
    const input: { [field: string]: unknown } = { ...given, ...(verb.meant?.(given as never) as object | undefined) }
    for (const [field, { kind }] of Object.entries(verb.args)) {
      if (kind === "maybeText" && given[field] === "-") input[field] = yield* textOf("-", verb.path.join(" "))
    }
    yield* refusing(verb, input)
    for (const [field, { kind }] of Object.entries(verb.args)) {
      if (kind === "text") input[field] = yield* textOf(given[field] as string | undefined, lineOf(verb, given))
    }
    if (verb.several !== undefined && (!isOne(input) || doesOutside(verb.several, input, caller) !== undefined)) {
      const { agreed, run } = yield* Effect.promise(() => import("./BatchVerb.ts"))
      if (!isOne(input)) return yield* run(verb, verb.several, input)
      const [{ called }] = yield* agreed(verb.several, input)
      Object.assign(input, { name: called, names: [called] })
    }
    const now = yield* Clock.currentTimeMillis
    const ask = verb.rpc(input as never, caller, { now })
    const hosts = yield* AllHosts
    const here = call(paths.socket, (client) => answers(client, ask))
    const asked = Effect.gen(function* () {
      return hosts === undefined ? yield* here : yield* ofAll(ask, hosts, paths)
    })
    const { fleeting } = verb
    const value = fleeting === undefined ? yield* asked : yield* inTime(asked, fleeting)
    if (fleeting !== undefined && value === undefined) return
    const absent = verb.absent?.(value as never)
    if (absent !== undefined) return yield* new VerbFailed(absent)
    const world = { now: yield* Clock.currentTimeMillis, colour, columns, world: worldOf(paths) }
    return yield* printLines(linesOf(verb, value, world, json))
  })

type Failed = Effect.Error<ReturnType<ReturnType<typeof carriedOut>>>

interface Loaded<E, R> {
  readonly run: () => Effect.Effect<unknown, E, R>
}

/** The command's name. A verb with a mode is a separate command; help shows the mode as a flag of the verb. */
const nameOf = ({ path }: DeclaredVerb): string => {
  const words = path.join(" ")
  return isMode(words) ? words : path.at(-1)!
}

/** Hides the command of a verb with a mode, because help and completions show the mode as a flag of its verb. */
const unlistedMode = <C extends Command.Command.Any>(command: C): C =>
  isMode(command.name) ? (Command.unlisted(command as never) as unknown as C) : command

/**
 * Makes a command from a declared verb. `program`: loads code that runs instead of the declaration; if it returns
 * undefined, the declaration is used. `before`: runs first, for example to ask for confirmation.
 */
export const commandOf = <const A extends Args, E = never, R = never, EB = never, RB = never>(
  verb: DeclaredVerb & { readonly args: A },
  life: {
    readonly program?: (input: Input<A>) => (() => Promise<Loaded<E, R>>) | undefined
    readonly before?: (input: Input<A>) => Effect.Effect<unknown, EB, RB>
    /** True if the loaded code works with `--all-hosts`. */
    readonly allHosts?: boolean
  } = {}
) => {
  const params = Object.fromEntries(
    Object.entries<Arg<unknown>>(verb.args).map(([field, shape]) => [field, paramOf(field, shape)])
  )
  const run = carriedOut(verb)
  return Command.make(nameOf(verb), params, (given) => {
    const input = given as Input<A>
    const declared = (): Effect.Effect<unknown, Failed | EB, Invocation | Stdio.Stdio | Prompt.Environment | RB> =>
      life.before === undefined ? run(given) : Effect.andThen(life.before(input), run(given))
    const program = life.program?.(input)
    const load = async (): Promise<Loaded<E | Failed | EB, R | Invocation | Stdio.Stdio | Prompt.Environment | RB>> => {
      if (program === undefined) return { run: declared }
      const { run: own } = await program()
      // with all hosts, the declaration runs if it alone does what the arguments ask for
      const { quick } = verb
      const isAlone = typeof quick === "boolean" ? quick : quick(input as never, false)
      const run = () =>
        Effect.gen(function* () {
          if ((yield* AllHosts) !== undefined && isAlone) return yield* declared()
          yield* refusing(verb, input)
          if (life.allHosts !== true) yield* oneHost
          return yield* own()
        })
      return { run }
    }
    return loaded(load)(undefined)
  }).pipe(Command.withDescription(verb.description), Command.withExamples(verb.examples), unlistedMode)
}

type Declared = ReturnType<typeof commandOf<Args, never, never, never, never>>

/**
 * Makes the commands of declared verbs, in their order. A command in `made` replaces the verb with the same name; all
 * other commands in `made` come last.
 */
export const commandsOf = <C extends Command.Command.Any = never>(
  verbs: ReadonlyArray<DeclaredVerb>,
  made: ReadonlyArray<C> = []
): ReadonlyArray<Declared | C> => {
  const named = new Map(made.map((command) => [command.name, command]))
  const declared = verbs.map(
    (verb) => named.get(nameOf(verb)) ?? commandOf<Args, never, never, never, never>(verb as never)
  )
  return [...declared, ...made.filter((command) => !declared.includes(command))]
}
