/**
 * DeclaredVerb: a verb as data: the daemon procedures that it calls, how its arguments become their payloads, and how
 * the replies are shown.
 *
 * Both entry points of the program use the declaration: the whole program makes a command from it (`DeclaredCommand`),
 * and the quick entry uses it to call the daemon without loading the whole program (`Quick`).
 *
 * Guarantees: a declaration is pure, and imports no values from npm packages; otherwise the bundler reports an error.
 * The quick entry does not decode replies, so their form on the wire and in the program must be the same; otherwise the
 * compiler reports an error.
 */
import type { Caller, Done } from "../../domain/Messages.ts"
import type { PayloadOf, PlainTag, Reply, Tag } from "../../api/rpc/ProcedureTypes.ts"
import type { Call } from "../../api/rpc/Wire.ts"
import type { TimeExpression } from "./TimeExpression.ts"
import { isPattern } from "../sessions/RowFilter.ts"
import { inWorld } from "./HintCommand.ts"
import { plain } from "../render/Output.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

/** Data that a view needs in addition to the reply. */
export interface World {
  /** The current time, in ms since the epoch. */
  readonly now: number
  readonly colour: boolean
  /** Width of the terminal in columns; null if the output is not a terminal, so that lines are not cut. */
  readonly columns: number | null
  /** The state directory that commands in hints must name; null for the default directory. */
  readonly world: string | null
}

interface Described {
  readonly description: string
  /** Name of the argument in help and usage; if omitted, the field's name. */
  readonly name?: string
  readonly alias?: string
  readonly metavar?: string
}

/** The syntax of an argument on the command line. */
export type Shape = Described &
  (
    | { readonly kind: "word" | "text"; readonly default?: "" }
    | { readonly kind: "maybe" | "maybeText" | "words" | "switch" | "option" | "options" }
    | { readonly kind: "pick" | "choice"; readonly of: ReadonlyArray<string>; readonly default?: string }
    | { readonly kind: "count"; readonly least: number; readonly most: number; readonly default?: number }
    /** A point in time. Only the whole program can parse it. */
    | { readonly kind: "moment" }
  )

export type Arg<A> = Shape & { readonly "~value"?: A }

/** An argument that is one word. With `default`, the word is optional. */
export const word = (
  description: string,
  rest: { readonly name?: string; readonly default?: "" } = {}
): Arg<string> => ({
  kind: "word",
  description,
  ...rest
})
export const maybeWord = (description: string, name?: string): Arg<string | undefined> => ({
  kind: "maybe",
  description,
  ...(name === undefined ? {} : { name })
})
/** An argument that takes all remaining words. */
export const words = (description: string, name: string): Arg<ReadonlyArray<string>> => ({
  kind: "words",
  description,
  name
})
/** An argument that is a text. If it is `-` or missing, the text is read from standard input. */
export const text = (description: string): Arg<string> => ({ kind: "text", description })
/** Like `text`, but if the argument is missing, standard input is not read. */
export const maybeText = (description: string): Arg<string | undefined> => ({ kind: "maybeText", description })
export const pick = <const A extends string>(of: ReadonlyArray<A>, description: string): Arg<A> => ({
  kind: "pick",
  of,
  description
})
export const off = (description: string, alias?: string): Arg<boolean> => ({
  kind: "switch",
  description,
  ...(alias === undefined ? {} : { alias })
})
export const option = (metavar: string, description: string): Arg<string | undefined> => ({
  kind: "option",
  metavar,
  description
})
/** An option that can be repeated. */
export const options = (
  name: string,
  metavar: string,
  description: string,
  alias?: string
): Arg<ReadonlyArray<string>> => ({
  kind: "options",
  name,
  metavar,
  description,
  ...(alias === undefined ? {} : { alias })
})
export const choice = <const A extends string>(of: ReadonlyArray<A>, fallback: A, description: string): Arg<A> => ({
  kind: "choice",
  of,
  default: fallback,
  description
})
/** An option with a past point in time, such as `10m` (ago) or a date. */
export const moment = (metavar: string, description: string): Arg<TimeExpression | undefined> => ({
  kind: "moment",
  metavar,
  description
})
interface Bounds {
  readonly least: number
  readonly most: number
  readonly alias?: string
}
export const count = (description: string, fallback: number, bounds: Bounds): Arg<number> => ({
  kind: "count",
  metavar: "N",
  description,
  default: fallback,
  ...bounds
})
export const maybeCount = (description: string, bounds: Bounds): Arg<number | undefined> => ({
  kind: "count",
  metavar: "N",
  description,
  ...bounds
})

export interface Args {
  readonly [field: string]: Arg<unknown>
}

export type Input<A extends Args> = { readonly [field in keyof A]: A[field] extends Arg<infer V> ? V : never }

/**
 * A request to the daemon: calls that run concurrently, and the function that combines their replies into one value.
 */
export interface Ask<V> {
  readonly calls: ReadonlyArray<Call>
  readonly value: (replies: ReadonlyArray<unknown>) => V
  /** True if the calls can be repeated without further effect. */
  readonly repeatable: boolean
}

const one = <V>(call: Call, repeatable: boolean): Ask<V> => ({
  calls: [call],
  value: ([reply]) => reply as V,
  repeatable
})

/** Calls a procedure that only reads. */
export const read = <T extends PlainTag>(tag: T, payload: PayloadOf<T>): Ask<Reply<T>> =>
  one({ tag, payload, stream: false }, true)

/** Calls a procedure that only reads and replies with a stream of values. */
export const readAll = <T extends PlainTag>(tag: T, payload: PayloadOf<T>): Ask<ReadonlyArray<Reply<T>>> =>
  one({ tag, payload, stream: true }, true)

/** Calls a procedure that changes something. The call is never sent again. */
export const send = <T extends PlainTag>(tag: T, payload: PayloadOf<T>): Ask<Reply<T>> =>
  one({ tag, payload, stream: false }, false)

/**
 * Like `read`, for a reply whose form on the wire is different. Only the whole program can decode it, not the quick
 * entry.
 */
export const readDecoded = <T extends Tag>(tag: T, payload: PayloadOf<T>): Ask<Reply<T>> =>
  one({ tag, payload, stream: false }, true)

type Replies<R> = { readonly [name in keyof R]: R[name] extends Ask<infer V> ? V : never }

/** Combines several asks into one. All their calls run concurrently. */
export const all = <const R extends { readonly [name: string]: Ask<unknown> }>(asks: R): Ask<Replies<R>> => {
  const names = Object.keys(asks)
  return {
    calls: names.flatMap((name) => asks[name]!.calls),
    value: (replies) => {
      let at = 0
      const values = names.map((name) => {
        const { calls, value } = asks[name]!
        return [name, value(replies.slice(at, (at += calls.length)))] as const
      })
      return Object.fromEntries(values) as Replies<R>
    },
    repeatable: names.every((name) => asks[name]!.repeatable)
  }
}

export const map = <A, B>(ask: Ask<A>, f: (value: A) => B): Ask<B> => ({
  ...ask,
  value: (replies) => f(ask.value(replies))
})

export interface Wrong {
  readonly message: string
  readonly remedy: string
  readonly exitCode: number
}

export interface Targets {
  readonly names: ReadonlyArray<string>
  /** Select only items with all of these labels. If no names are given, all items with these labels are selected. */
  readonly labels: ReadonlyArray<string>
}

export type Kind = "agent" | "channel" | "conversation" | "goal" | "project" | "session"

/** Settings of a verb that can act on several items, because its argument `name` or `names` can contain patterns. */
export interface Several<I> {
  readonly kind: Kind
  /**
   * The action as a phrase for the question before it, such as "stops". If it returns a phrase, items selected by a
   * pattern need confirmation. Undefined: the verb ends no work.
   */
  readonly ends?: (input: I) => string | undefined
  /** True: the verb acts only on closed conversations. Used only with the kind "conversation". */
  readonly closed?: boolean
  /** True: the verb always needs confirmation, even if every item is named in full. */
  readonly always?: boolean
  /**
   * The action of a verb that changes something, as a phrase such as "stops". Outside of all projects, a name without
   * its project then needs confirmation.
   */
  readonly changes?: (input: I) => string | undefined
}

/** The selected names and labels, from the arguments `name` or `names`, and `labels`. */
export const targetsOf = (input: { readonly [field: string]: unknown }): Targets => {
  const { labels = [], name, names } = input as Partial<Targets> & { readonly name?: string }
  return { names: names ?? (name === undefined || name === "" ? [] : [name]), labels }
}

/** True if the verb acts on a single item: the one with exactly this name, or the default item if no name is given. */
export const isOne = (input: { readonly [field: string]: unknown }): boolean => {
  const { labels, names } = targetsOf(input)
  return labels.length === 0 && names.length < 2 && !names.some(isPattern)
}

/**
 * The action that the user must confirm because a name lacks its project and the current folder is in no project;
 * undefined if no confirmation is needed for this reason.
 */
export const doesOutside = (
  several: Several<never> | undefined,
  input: { readonly [field: string]: unknown },
  { config }: Caller
): string | undefined =>
  config !== null || targetsOf(input).names.every((name) => name.includes("/") || isPattern(name))
    ? undefined
    : several?.changes?.(input as never)

/** The first of several names; "" if there is none. */
export const oneOf = ([name = ""]: ReadonlyArray<string>): string => name

type Quick<A extends Args> = boolean | ((input: Input<A>, json: boolean) => boolean)

interface Form<A extends Args, V> {
  /** The words of the verb, such as `["channel", "ls"]`. */
  readonly path: readonly [string] | readonly [string, string]
  readonly description: string
  readonly examples: ReadonlyArray<{ readonly command: string; readonly description: string }>
  readonly args: A
  readonly several?: Several<Input<A>>
  /** Corrects the arguments, for a verb in which a word can be used instead of a flag. */
  readonly meant?: (input: Input<A>) => Input<A>
  /** The error if the arguments cannot be used together although each of them is valid; otherwise undefined. */
  readonly wrong?: (input: Input<A>, caller: Caller) => Wrong | undefined
  readonly rpc: (input: Input<A>, caller: Caller, world: Pick<World, "now">) => Ask<V>
  /** The error if the reply shows that an argument names nothing; otherwise undefined. */
  readonly absent?: (value: V) => Wrong | undefined
  /**
   * Further output lines with text from agents or users. Commands in these lines are printed unchanged, without
   * `--state`.
   */
  readonly verbatim?: (value: V, world: World) => ReadonlyArray<string>
  /**
   * "lines": `--json` prints each element of the value on a separate line. If omitted, `--json` prints the whole value
   * on one line.
   */
  readonly json?: "lines"
  /** Selects the part of the value that `--json` prints. If omitted, the whole value is printed. */
  readonly value?: (value: V) => unknown
  /** Whether the quick entry can run the verb; if omitted, it can. */
  readonly quick?: Quick<A>
  /**
   * Timeout in ms for a verb whose answer is not essential. After the timeout, the verb prints nothing and exits with
   * code 0.
   */
  readonly fleeting?: number
}

interface Viewed<A extends Args, V> extends Form<A, V> {
  /** The reply as output lines. Commands in these lines get `--state` if the state directory is not the default one. */
  readonly view: (value: V, world: World) => ReadonlyArray<string>
}

interface Declaration<A extends Args, V> extends Viewed<A, V> {
  readonly quick: Quick<A>
}

/**
 * A declaration without the types of its arguments and reply, so that all verbs have the same type. Types were checked
 * before.
 */
export interface DeclaredVerb extends Omit<
  Declaration<Args, unknown>,
  "several" | "meant" | "wrong" | "rpc" | "absent" | "view" | "verbatim" | "value" | "quick"
> {
  readonly several?: Several<never>
  readonly value?: (value: never) => unknown
  readonly meant?: (input: never) => unknown
  readonly wrong?: (input: never, caller: Caller) => Wrong | undefined
  readonly rpc: (input: never, caller: Caller, world: Pick<World, "now">) => Ask<unknown>
  readonly absent?: (value: never) => Wrong | undefined
  readonly view: (value: never, world: World) => ReadonlyArray<string>
  readonly verbatim?: (value: never, world: World) => ReadonlyArray<string>
  readonly quick: boolean | ((input: never, json: boolean) => boolean)
}

export const declare = <const A extends Args, V>(verb: Viewed<A, V>): Declaration<A, V> => ({ quick: true, ...verb })

/** Declares a verb whose output is the message with which the daemon reports the finished action. */
export const act = <const A extends Args, V extends Pick<Done, "message">>(verb: Form<A, V>): Declaration<A, V> =>
  declare({ ...verb, view: said })

export const linesOf = (verb: DeclaredVerb, value: unknown, world: World, json: boolean): ReadonlyArray<string> => {
  if (json) {
    const printed = verb.value === undefined ? value : verb.value(value as never)
    return verb.json === "lines" ? (printed as ReadonlyArray<unknown>).map((one) => jsonOf(one)) : [jsonOf(printed)]
  }
  return [
    ...verb.view(value as never, world).map((line) => inWorld(line, world.world)),
    ...(verb.verbatim?.(value as never, world) ?? [])
  ]
}

export const said = ({ message }: Pick<Done, "message">): ReadonlyArray<string> => [plain(message)]
