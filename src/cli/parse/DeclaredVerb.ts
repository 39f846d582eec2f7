/**
 * DeclaredVerb: a verb that reads or sends, as data: the procedures that it asks, how its
 * arguments become their payloads, and how the replies look.
 *
 * Both entries of the program read the one declaration: the whole program makes its command of
 * it (`DeclaredCommand`), the quick entry speaks the protocol by it (`QuickEntry`).
 *
 * Guarantees: a declaration is pure, and imports no value of a package: the bundler refuses one
 * that does. A reply that the quick entry takes as it is has the same form on the wire and in
 * the program: the compiler refuses a procedure of which that is not so.
 */
import type { Caller, Done } from "../../domain/Messages.ts"
import type { PayloadOf, PlainTag, Reply, Tag } from "../../api/rpc/ProcedureTypes.ts"
import type { Moment } from "./Moment.ts"
import { isPattern } from "../sessions/Choose.ts"
import { inWorld } from "./Hint.ts"
import { plain } from "../render/Output.ts"
import { json as jsonOf } from "../render/TerminalDoor.ts"

/** The surroundings of a view beside the reply. */
export interface World {
  /** ms since the epoch */
  readonly now: number
  readonly colour: boolean
  /** Of the terminal; null when the output goes elsewhere: nothing is cut. */
  readonly columns: number | null
  /** The state folder that commands in hints have to name; null in the user's own world. */
  readonly world: string | null
}

interface Described {
  readonly description: string
  /** As help and usage call it, where that is not the field's name. */
  readonly name?: string
  readonly alias?: string
  readonly metavar?: string
}

/** How an argument is given on the command line. */
export type Shape = Described &
  (
    | { readonly kind: "word" | "text"; readonly default?: "" }
    | { readonly kind: "maybe" | "maybeText" | "words" | "switch" | "option" | "options" }
    | { readonly kind: "pick" | "choice"; readonly of: ReadonlyArray<string>; readonly default?: string }
    | { readonly kind: "count"; readonly least: number; readonly most: number; readonly default?: number }
    /** Only the whole program reads it. */
    | { readonly kind: "moment" }
  )

export type Arg<A> = Shape & { readonly "~value"?: A }

/** A word that must be given; with `default` it may be left out. */
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
/** All words that are left. */
export const words = (description: string, name: string): Arg<ReadonlyArray<string>> => ({
  kind: "words",
  description,
  name
})
/** A word; `-` or none: what comes on standard input. */
export const text = (description: string): Arg<string> => ({ kind: "text", description })
/** The same where leaving it out means something else. */
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
/** A flag that may be given more than once. */
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
/** A point in time: `10m` ago, or a date. */
export const moment = (metavar: string, description: string): Arg<Moment | undefined> => ({
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
  /** The reply comes as many values. */
  readonly stream: boolean
}

/** Calls, all at once, and what their replies come to. */
export interface Ask<V> {
  readonly calls: ReadonlyArray<Call>
  readonly value: (replies: ReadonlyArray<unknown>) => V
  /** Asking twice does no more than asking once. */
  readonly repeatable: boolean
}

const one = <V>(call: Call, repeatable: boolean): Ask<V> => ({
  calls: [call],
  value: ([reply]) => reply as V,
  repeatable
})

/** A procedure that changes nothing. */
export const read = <T extends PlainTag>(tag: T, payload: PayloadOf<T>): Ask<Reply<T>> =>
  one({ tag, payload, stream: false }, true)

/** The same of one that answers with many values. */
export const readAll = <T extends PlainTag>(tag: T, payload: PayloadOf<T>): Ask<ReadonlyArray<Reply<T>>> =>
  one({ tag, payload, stream: true }, true)

/** A procedure that does something: once it was sent, it is never sent again. */
export const send = <T extends PlainTag>(tag: T, payload: PayloadOf<T>): Ask<Reply<T>> =>
  one({ tag, payload, stream: false }, false)

/** The same of a procedure whose reply has another form on the wire: only the whole program, which decodes it, may ask. */
export const readDecoded = <T extends Tag>(tag: T, payload: PayloadOf<T>): Ask<Reply<T>> =>
  one({ tag, payload, stream: false }, true)

type Replies<R> = { readonly [name in keyof R]: R[name] extends Ask<infer V> ? V : never }

/** Several procedures, called at once. */
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

/** Why the arguments cannot be meant, with what is meant instead. */
export interface Wrong {
  readonly message: string
  readonly remedy: string
  readonly exitCode: number
}

/** The things that a verb is told to act on. */
export interface Targets {
  readonly names: ReadonlyArray<string>
  /** Groups: only what is of all of them. Without a name: all that is. */
  readonly labels: ReadonlyArray<string>
}

export type Kind = "agent" | "channel" | "conversation" | "goal" | "project" | "session"

/** A verb on a thing that takes several of them: its `name`, or its `names`, may be patterns. */
export interface Several<I> {
  readonly kind: Kind
  /** Ends their work: "stops". A person is asked where a pattern says of whom. Not there: it ends nothing. */
  readonly ends?: (input: I) => string | undefined
  /** True: of conversations, only closed ones are meant. */
  readonly closed?: boolean
  /** A person is asked also where each is named. */
  readonly always?: boolean
  /** Ends or changes what may be another project's: outside every project a person is asked where a bare name says of whom. */
  readonly changes?: (input: I) => string | undefined
}

/** The names that were given, wherever they stand. */
export const targetsOf = (input: { readonly [field: string]: unknown }): Targets => {
  const { labels = [], name, names } = input as Partial<Targets> & { readonly name?: string }
  return { names: names ?? (name === undefined || name === "" ? [] : [name]), labels }
}

/** Whether the verb is given to one thing, by its very name, or to what it means without one. */
export const isOne = (input: { readonly [field: string]: unknown }): boolean => {
  const { labels, names } = targetsOf(input)
  return labels.length === 0 && names.length < 2 && !names.some(isPattern)
}

/** The action that a person confirms first: outside every project, on a thing given by a bare name. */
export const doesOutside = (
  several: Several<never> | undefined,
  input: { readonly [field: string]: unknown },
  { config }: Caller
): string | undefined =>
  config !== null || targetsOf(input).names.every((name) => name.includes("/") || isPattern(name))
    ? undefined
    : several?.changes?.(input as never)

/** The one name; empty: none. */
export const oneOf = ([name = ""]: ReadonlyArray<string>): string => name

type Quick<A extends Args> = boolean | ((input: Input<A>, json: boolean) => boolean)

interface Form<A extends Args, V> {
  /** The words that name it: `["channel", "ls"]`. */
  readonly path: readonly [string] | readonly [string, string]
  readonly description: string
  readonly examples: ReadonlyArray<{ readonly command: string; readonly description: string }>
  readonly args: A
  readonly several?: Several<Input<A>>
  /** Arguments as they are meant, where a word may stand in the place of a flag. */
  readonly meant?: (input: Input<A>) => Input<A>
  /** Arguments that each can be read, and exclude each other. */
  readonly wrong?: (input: Input<A>, caller: Caller) => Wrong | undefined
  readonly rpc: (input: Input<A>, caller: Caller, world: Pick<World, "now">) => Ask<V>
  /** Further lines, word for word: others have written them. */
  readonly verbatim?: (value: V, world: World) => ReadonlyArray<string>
  /** `--json` prints the value; `lines`: each of its values on a line. */
  readonly json?: "lines"
  /** The part of the value that `--json` prints; left out: all of it. */
  readonly value?: (value: V) => unknown
  /** Whether the quick entry may answer; default: it may. */
  readonly quick?: Quick<A>
  /** An answer that may be missing: where none comes within so many ms, nothing is printed, and nothing is wrong. */
  readonly fleeting?: number
}

interface Viewed<A extends Args, V> extends Form<A, V> {
  /** As lines, whose hints are ours: in a world of its own they name it. */
  readonly view: (value: V, world: World) => ReadonlyArray<string>
}

interface Declaration<A extends Args, V> extends Viewed<A, V> {
  readonly quick: Quick<A>
}

/** A declaration whose arguments and reply are checked, and known to itself alone. */
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

/** A verb whose answer is the daemon's words for what was carried out. */
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

/** The daemon's words for a command that was carried out. */
export const said = ({ message }: Pick<Done, "message">): ReadonlyArray<string> => [plain(message)]
