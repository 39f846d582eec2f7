/**
 * Conformance: checks whether a program fulfils the contract of docs/exec-backend.md, for the program's author.
 *
 * Guarantees: Each check starts its own process, so a failed check does not affect the next. When a check ends, all
 * processes of the check have ended. The description of an unexpected exit includes the program's last line on standard
 * error.
 */
import { Duration, Effect, Queue, Result, Schema } from "effect"
import type { Environment } from "../process/ChildProcess.ts"
import * as RunProcess from "../process/RunProcess.ts"
import * as ExecRecord from "./ExecRecord.ts"

/** Prompts that the checks use. A model may need other prompts than the defaults. */
export interface Prompts {
  readonly hello: string
  /** Prompt that makes the program use a tool that needs an approval. */
  readonly asks: string
  /** Prompt that keeps the program busy for some seconds. */
  readonly long: string
}

export const PROMPTS: Prompts = {
  hello: "Say hello.",
  asks: "Run the command `true` with your tool, then say what it answered.",
  long: "Count slowly from one to one hundred, a number a line."
}

export interface Options {
  readonly argv: readonly [string, ...ReadonlyArray<string>]
  readonly cwd: string
  readonly env: Environment
  readonly patience: Duration.Duration
  readonly prompts: Prompts
}

export interface Outcome {
  readonly check: string
  readonly result: "ok" | "failed" | "skipped"
  /** Why the check failed or was skipped; "" if it passed. */
  readonly why: string
}

class Broken extends Schema.TaggedError<Broken>()("Broken", { message: Schema.String }) {}
/** The program did not do what the check requires, so the check has no result. */
class Untried extends Schema.TaggedError<Untried>()("Untried", { message: Schema.String }) {}

const broken = (message: string) => Effect.fail(new Broken({ message }))

type Heard = ExecRecord.Read | { readonly _tag: "Ended"; readonly words: string }

/** How long a check waits to see that the program does not act too early. */
const QUIET = "400 millis"
const MAX_RECORD = 8 * 1024 * 1024

const begun = Effect.fnUntraced(function* ({ argv, cwd, env }: Options) {
  const program = yield* RunProcess.make({
    store: "conformance",
    runId: `conformance-${process.pid}`,
    argv,
    cwd,
    env,
    keepInput: true,
    grace: Duration.seconds(2)
  }).pipe(Effect.mapError(({ message }) => new Broken({ message })))
  const heard = yield* Queue.unbounded<Heard>()
  let said = ""
  const complaints = RunProcess.drainPlaced(program.stderr, program.ended, 16_384, (lines) =>
    Effect.sync(() => void (said = lines.findLast(({ text }) => text.trim() !== "")?.text ?? said))
  )
  const records = RunProcess.drainPlaced(program.stdout, program.ended, MAX_RECORD, (lines) => {
    const all = lines.filter(({ text }) => text.trim() !== "")
    return Queue.offerAll(
      heard,
      all.map(({ text }) => ExecRecord.read(text))
    )
  })
  const whole = Effect.gen(function* () {
    yield* Effect.all([records, complaints], { concurrency: 2 })
    const { code, signal } = yield* program.exited
    const how = signal === null ? `exit code ${code}` : signal
    yield* Queue.offer(heard, { _tag: "Ended", words: `it ended (${how}${said === "" ? "" : `: ${said}`})` })
  })
  yield* Effect.forkScoped(whole)
  return { program, heard }
})

/** Starts a process of the program and exchanges records with it. */
const talk = Effect.fnUntraced(function* (options: Options, session: string | null) {
  const { cwd, patience } = options
  const { heard, program } = yield* begun(options)
  const tell = (told: ExecRecord.Told | { readonly type: string }) => program.write(`${JSON.stringify(told)}\n`)

  /** Waits for the next record. `what` describes the expected record in error messages. */
  const next = (what: string): Effect.Effect<ExecRecord.Said, Broken> =>
    Queue.take(heard).pipe(
      Effect.timeoutOrElse({
        duration: patience,
        orElse: () => broken(`it did not send ${what} within ${Duration.format(patience)}`)
      }),
      Effect.flatMap((one) => {
        switch (one._tag) {
          case "Said":
            return Effect.succeed(one.said)
          case "Unknown":
            return broken(`it sent a record of the type "${one.type}", which the contract does not define`)
          case "Wrong":
            return broken(`it wrote a line on its standard output that is not a record: ${one.why}`)
          case "Ended":
            return broken(`${one.words} before it sent ${what}`)
        }
      })
    )
  const resume = session === null ? undefined : { sessionId: session, fork: false }
  const spec = { runId: "conformance", agent: "conformance", turnId: "", prompt: "", cwd, env: {}, resume, mcp: {} }
  yield* tell(ExecRecord.start(spec, resume))
  const first = yield* next('"ready"')
  if (first.type === "failed") return yield* broken(`it could not start: ${first.message} (${first.remedy})`)
  if (first.type !== "ready") return yield* broken(`it sent "${first.type}" before "ready"`)
  if (first.version !== ExecRecord.VERSION)
    return yield* broken(
      `it uses version ${first.version} of the contract, but the current version is ${ExecRecord.VERSION}`
    )
  return { tell, next, heard, program, session: first.session ?? null }
})
type Talk = Effect.Success<ReturnType<typeof talk>>

interface Worked {
  readonly end: "done" | "interrupted"
  readonly output: string
  /** Status of each call that requested an approval. */
  readonly results: ReadonlyArray<ExecRecord.Named<"result">["status"]>
}

interface Turn {
  readonly id: string
  readonly text: string
  /** Whether calls that request an approval are allowed; by default true. */
  readonly allows?: boolean
  /** Record that is sent to the program once the turn has begun. */
  readonly once?: ExecRecord.Told
}

/** Runs a turn to its end, and checks each record against the contract. */
const turn = Effect.fnUntraced(function* ({ next, heard, tell }: Talk, { allows = true, id, once, text }: Turn) {
  yield* tell({ type: "turn", turn: id, text })
  const began = yield* next(`"began" of the turn ${id}`)
  if (began.type !== "began") return yield* broken(`it sent "${began.type}" before "began"`)
  if (began.turn !== id) return yield* broken(`it began the turn "${began.turn}", but was given "${id}"`)
  if (once !== undefined) yield* tell(once)
  const calls = new Map<string, boolean>()
  const results: Array<ExecRecord.Named<"result">["status"]> = []
  for (;;) {
    const said = yield* next(`the end of the turn ${id}`)
    if ("turn" in said && said.turn !== id)
      return yield* broken(`it sent "${said.type}" for the turn "${said.turn}" during the turn "${id}"`)
    switch (said.type) {
      case "call": {
        if (calls.has(said.call)) return yield* broken(`it made two calls with the id "${said.call}"`)
        const asks = said.ask !== undefined || said.questions !== undefined
        calls.set(said.call, asks)
        if (!asks) continue
        yield* Effect.sleep(QUIET)
        const early = yield* Queue.clear(heard)
        if (early.some((one) => one._tag === "Said" && one.said.type === "result" && one.said.call === said.call))
          return yield* broken(`it did not wait for the answer before the call "${said.call}"`)
        yield* Queue.offerAll(heard, early)
        yield* tell(
          ExecRecord.answer(said.call, allows ? { behavior: "allow" } : { behavior: "deny", message: "Not that." })
        )
        continue
      }
      case "progress":
      case "result": {
        const asked = calls.get(said.call)
        if (asked === undefined)
          return yield* broken(`it sent "${said.type}" for a call that it never made: "${said.call}"`)
        if (said.type === "progress") continue
        calls.delete(said.call)
        if (asked) results.push(said.status)
        continue
      }
      case "done":
      case "interrupted": {
        const worked: Worked = { end: said.type, output: said.output ?? "", results }
        return worked
      }
      case "error":
        return yield* broken(`its turn ended with an error (${said.error}): ${said.message}`)
      case "began":
      case "ready":
      case "failed":
        return yield* broken(`it sent "${said.type}" during a turn`)
      default:
        continue
    }
  }
})

const answered = Effect.fnUntraced(function* (talk: Talk, id: string, text: string) {
  const { end } = yield* turn(talk, { id, text })
  if (end !== "done") return yield* broken(`it sent "${end}" for a turn that was not interrupted`)
})

/** Returns the status of the first call that requested an approval. If no call did, the check is skipped. */
const asked = Effect.fnUntraced(function* (talk: Talk, allows: boolean, prompts: Prompts) {
  const { results } = yield* turn(talk, { id: "asks", text: prompts.asks, allows })
  const [first] = results
  if (first === undefined)
    return yield* new Untried({
      message: "it asked for no approval: give a prompt that makes it ask, with --asks TEXT"
    })
  return first
})

const CHECKS: ReadonlyArray<{
  readonly name: string
  readonly run: (options: Options) => Effect.Effect<void, Broken | Untried, Effect.Services<ReturnType<typeof talk>>>
}> = [
  { name: "is ready, and reports the contract's version", run: (options) => Effect.asVoid(talk(options, null)) },
  {
    name: "runs a turn, from began to done",
    run: (options) => Effect.flatMap(talk(options, null), (it) => answered(it, "first", options.prompts.hello))
  },
  {
    name: "takes one turn after the other",
    run: Effect.fnUntraced(function* (options) {
      const it = yield* talk(options, null)
      yield* answered(it, "first", options.prompts.hello)
      yield* answered(it, "second", options.prompts.hello)
    })
  },
  {
    name: "ignores records that it does not know",
    run: Effect.fnUntraced(function* (options) {
      const it = yield* talk(options, null)
      yield* it.tell({ type: "of a later version" })
      yield* answered(it, "first", options.prompts.hello)
    })
  },
  {
    name: "waits before a call that needs approval, and executes it when allowed",
    run: Effect.fnUntraced(function* (options) {
      const status = yield* asked(yield* talk(options, null), true, options.prompts)
      if (status === "denied") return yield* broken("it reported that a call was denied, although it was allowed")
    })
  },
  {
    name: "does not execute a denied call, and takes the next turn",
    run: Effect.fnUntraced(function* (options) {
      const it = yield* talk(options, null)
      const status = yield* asked(it, false, options.prompts)
      if (status !== "denied")
        return yield* broken(`it sent "${status}" for a call that was denied, instead of "denied"`)
      yield* answered(it, "next", options.prompts.hello)
    })
  },
  {
    name: "ends a turn that is interrupted, and takes the next one",
    run: Effect.fnUntraced(function* (options) {
      const it = yield* talk(options, null)
      const id = "long"
      const { end } = yield* turn(it, { id, text: options.prompts.long, once: { type: "interrupt", turn: id } })
      if (end === "done")
        return yield* new Untried({
          message: "the turn ended before the interrupt: give a prompt that keeps it busy, with --long TEXT"
        })
      yield* answered(it, "next", options.prompts.hello)
    })
  },
  {
    name: "ends by itself when it is told to",
    run: Effect.fnUntraced(function* (options) {
      const it = yield* talk(options, null)
      yield* it.tell({ type: "end" })
      yield* it.program.closeInput
      const status = yield* Effect.timeoutOrElse(it.program.exited, {
        duration: "3 seconds",
        orElse: () => broken("it was still running 3 s after it was told to end")
      })
      if (status.code !== 0)
        return yield* broken(`it ended with ${status.signal ?? `exit code ${status.code}`}, not with 0`)
    })
  },
  {
    name: "resumes a session that it named",
    run: Effect.fnUntraced(function* (options) {
      const session = yield* Effect.scoped(
        Effect.gen(function* () {
          const it = yield* talk(options, null)
          yield* answered(it, "first", options.prompts.hello)
          yield* it.tell({ type: "end" })
          yield* it.program.closeInput
          yield* Effect.timeoutOption(it.program.exited, "3 seconds")
          return it.session
        })
      )
      if (session === null)
        return yield* new Untried({ message: "it has no sessions: each run begins a new conversation" })
      const again = yield* talk(options, session)
      if (again.session !== session)
        return yield* broken(`it should have resumed "${session}", but reports the session "${again.session}"`)
      yield* answered(again, "second", options.prompts.hello)
    })
  },
  {
    name: "begins a new session if the requested one does not exist, and reports its name",
    run: Effect.fnUntraced(function* (options) {
      const unknown = "there-is-no-such-session"
      const it = yield* talk(options, unknown)
      if (it.session === unknown) return yield* broken("it reports that it resumed a session that never existed")
      yield* answered(it, "first", options.prompts.hello)
    })
  }
]

/** Runs all checks, one after another. `told` receives the outcome of each check when that check ends. */
export const suite = (options: Options, told: (outcome: Outcome) => Effect.Effect<void>) =>
  Effect.forEach(CHECKS, ({ name, run }) =>
    Effect.gen(function* () {
      const result = yield* Effect.result(Effect.scoped(run(options)))
      const outcome: Outcome = Result.isSuccess(result)
        ? { check: name, result: "ok", why: "" }
        : {
            check: name,
            result: result.failure._tag === "Untried" ? "skipped" : "failed",
            why: result.failure.message
          }
      yield* told(outcome)
      return outcome
    })
  )
