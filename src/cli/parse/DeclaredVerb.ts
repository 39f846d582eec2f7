/**
 * DeclaredVerb: a verb as data: the daemon procedures that it calls, how its arguments become their payloads, and how
 * the replies are shown.
 *
 * Both entry points of the program use this declaration: the full program makes a command from it (`DeclaredCommand`),
 * and the quick entry calls the daemon without loading the full CLI (`QuickEntry`).
 *
 * Guarantees: a declaration is pure, and imports no value from a package; otherwise the bundler fails. The quick entry
 * uses replies without decoding them, so a reply must have the same form on the wire and in the program. The compiler
 * reports an error for any other procedure.
 */
import type { Caller, Done } from "../../domain/Messages.ts"
import type { PayloadOf, PlainTag, Reply, Tag } from "../../api/rpc/ProcedureTypes.ts"
import type { TimeExpression } from "./TimeExpression.ts"
import { isPattern } from "../sessions/RowFilter.ts"
import { inWorld } from "./HintCommand.ts"
import { plain } from "../render/Output.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

/** Facts that a view needs in addition to the reply. */
export interface World {
  /** ms since the epoch */
  readonly now: number
  readonly colour: boolean
  /** Width of the terminal in columns; null: the output is not a terminal, and lines are not cut. */
  readonly columns: number | null
  /** State directory that commands in hints must name; null: the default directory. */
  readonly world: string | null
}

interface Described {
  readonly description: string
  /** Name in help and usage. If omitted, the field's name. */
  readonly name?: string
  readonly alias?: string
  readonly metavar?: string
}

/** The form of an argument on the command line. */
export type Shape = Described &
  (
    | { readonly kind: "word" | "text"; readonly default?: "" }
    | { readonly kind: "maybe" | "maybeText" | "words" | "switch" | "option" | "options" }
    | { readonly kind: "pick" | "choice"; readonly of: ReadonlyArray<string>; readonly default?: string }
    | { readonly kind: "count"; readonly least: number; readonly most: number; readonly default?: number }
    /** A point in time, which only the full program can parse. */
    | { readonly kind: "moment" }
  )

export type Arg<A> = Shape & { readonly "~value"?: A }

/** With `default` the word is optional. */
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
/** Takes all remaining words. */
export const words = (description: string, name: string): Arg<ReadonlyArray<string>> => ({
  kind: "words",
  description,
  name
})
/** If the argument is `-` or missing, the text is read from standard input. */
export const text = (description: string): Arg<string> => ({ kind: "text", description })
/** Like `text`, for a verb in which a missing text does not mean standard input. */
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
/** Can be repeated. */
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
/** A past point in time: `10m` (ago), or a date. */
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

export interface Call {
  readonly tag: string
  readonly payload: unknown
  /** Whether the reply is a stream of values. */
  readonly stream: boolean
}

/** Concurrent calls, and the function that combines their replies into one value. */
export interface Ask<V> {
  readonly calls: ReadonlyArray<Call>
  readonly value: (replies: ReadonlyArray<unknown>) => V
  /** Whether repeating the calls has no further effect. */
  readonly repeatable: boolean
}

const one = <V>(call: Call, repeatable: boolean): Ask<V> => ({
  calls: [call],
  value: ([reply]) => reply as V,
  repeatable
})

/** Calls a procedure that changes nothing. */
export const read = <T extends PlainTag>(tag: T, payload: PayloadOf<T>): Ask<Reply<T>> =>
  one({ tag, payload, stream: false }, true)

/** Calls a procedure that changes nothing and replies with a stream of values. */
export const readAll = <T extends PlainTag>(tag: T, payload: PayloadOf<T>): Ask<ReadonlyArray<Reply<T>>> =>
  one({ tag, payload, stream: true }, true)

/** Calls a procedure that does something: once sent, the call is never repeated. */
export const send = <T extends PlainTag>(tag: T, payload: PayloadOf<T>): Ask<Reply<T>> =>
  one({ tag, payload, stream: false }, false)

/**
 * Like `read`, for a reply whose form on the wire differs. Only the full program decodes the reply, not the quick
 * entry.
 */
export const readDecoded = <T extends Tag>(tag: T, payload: PayloadOf<T>): Ask<Reply<T>> =>
  one({ tag, payload, stream: false }, true)

type Replies<R> = { readonly [name in keyof R]: R[name] extends Ask<infer V> ? V : never }

/** Combines several asks into one; all calls are concurrent. */
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
  /** Only items with all of these labels. Without names: all items with these labels. */
  readonly labels: ReadonlyArray<string>
}

export type Kind = "agent" | "channel" | "conversation" | "goal" | "project" | "session"

/** A verb that can act on several items: its `name` or `names` can be patterns. */
export interface Several<I> {
  readonly kind: Kind
  /**
   * The action for the question before it, such as "stops". If not undefined, a name pattern needs confirmation.
   * Undefined: the verb ends no work.
   */
  readonly ends?: (input: I) => string | undefined
  /** True: the verb acts only on closed conversations. Only for the kind "conversation". */
  readonly closed?: boolean
  /** True: the verb needs confirmation even if every item is named in full. */
  readonly always?: boolean
  /**
   * The action of a verb that changes something, such as "stops". Outside of all projects, a name without its project
   * then needs confirmation.
   */
  readonly changes?: (input: I) => string | undefined
}

/** The names and labels in the arguments, from the field `name` or `names` and the field `labels`. */
export const targetsOf = (input: { readonly [field: string]: unknown }): Targets => {
  const { labels = [], name, names } = input as Partial<Targets> & { readonly name?: string }
  return { names: names ?? (name === undefined || name === "" ? [] : [name]), labels }
}

/** Whether the verb acts on one item: the item with this exact name, or the default item if there is no name. */
export const isOne = (input: { readonly [field: string]: unknown }): boolean => {
  const { labels, names } = targetsOf(input)
  return labels.length === 0 && names.length < 2 && !names.some(isPattern)
}

/**
 * The action that a person must confirm because, outside of all projects, an item has a name without its project.
 * Undefined: no such confirmation is needed.
 */
export const doesOutside = (
  several: Several<never> | undefined,
  input: { readonly [field: string]: unknown },
  { config }: Caller
): string | undefined =>
  config !== null || targetsOf(input).names.every((name) => name.includes("/") || isPattern(name))
    ? undefined
    : several?.changes?.(input as never)

/** The first name; "" if there is none. */
export const oneOf = ([name = ""]: ReadonlyArray<string>): string => name

type Quick<A extends Args> = boolean | ((input: Input<A>, json: boolean) => boolean)

interface Form<A extends Args, V> {
  /** The words of the verb: `["channel", "ls"]`. */
  readonly path: readonly [string] | readonly [string, string]
  readonly description: string
  readonly examples: ReadonlyArray<{ readonly command: string; readonly description: string }>
  readonly args: A
  readonly several?: Several<Input<A>>
  /** Corrects the arguments, for a verb in which a word can replace a flag. */
  readonly meant?: (input: Input<A>) => Input<A>
  /** The error if arguments that are valid alone exclude each other; otherwise undefined. */
  readonly wrong?: (input: Input<A>, caller: Caller) => Wrong | undefined
  readonly rpc: (input: Input<A>, caller: Caller, world: Pick<World, "now">) => Ask<V>
  /** Further output lines with texts from agents or users. Commands in these lines do not get the state directory. */
  readonly verbatim?: (value: V, world: World) => ReadonlyArray<string>
  /**
   * Default: `--json` prints the value on one line. "lines": `--json` prints each element of the value on its own line.
   */
  readonly json?: "lines"
  /** Selects the part of the value that `--json` prints. If omitted, `--json` prints the whole value. */
  readonly value?: (value: V) => unknown
  /** Whether the quick entry can run the verb. Default: true. */
  readonly quick?: Quick<A>
  /** Timeout in ms, for a verb whose answer is optional. After it, the verb prints nothing and exits with code 0. */
  readonly fleeting?: number
}

interface Viewed<A extends Args, V> extends Form<A, V> {
  /** The reply as output lines. Commands in these lines get `--state` if the state directory is not the default one. */
  readonly view: (value: V, world: World) => ReadonlyArray<string>
}

interface Declaration<A extends Args, V> extends Viewed<A, V> {
  readonly quick: Quick<A>
}

/** A type-checked declaration without the types of its arguments and reply, so that all verbs have one type. */
export interface DeclaredVerb extends Omit<
  Declaration<Args, unknown>,
  "several" | "meant" | "wrong" | "rpc" | "view" | "verbatim" | "value" | "quick"
> {
  readonly several?: Several<never>
  readonly value?: (value: never) => unknown
  readonly meant?: (input: never) => unknown
  readonly wrong?: (input: never, caller: Caller) => Wrong | undefined
  readonly rpc: (input: never, caller: Caller, world: Pick<World, "now">) => Ask<unknown>
  readonly view: (value: never, world: World) => ReadonlyArray<string>
  readonly verbatim?: (value: never, world: World) => ReadonlyArray<string>
  readonly quick: boolean | ((input: never, json: boolean) => boolean)
}

export const declare = <const A extends Args, V>(verb: Viewed<A, V>): Declaration<A, V> => ({ quick: true, ...verb })

/** Declares a verb whose output is the daemon's message about the finished action. */
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
