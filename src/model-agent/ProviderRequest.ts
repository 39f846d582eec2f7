/**
 * ProviderRequest: asks the provider for one answer, with retries.
 *
 * Guarantees: a request that can succeed later is retried, at most `retries` times. The wait between retries grows up
 * to a limit. If the provider requests a short wait, that wait is used. A notice announces each retry. Text that was
 * already emitted is not emitted again. The usage is returned with the answer. For a request that fails or is
 * interrupted, the usage is emitted immediately.
 */
import { Duration, Effect, Schedule, Stream } from "effect"
import type * as Config from "../config/BackendConfig.ts"
import type { RunEvent } from "../runs/Backend.ts"
import { type ModelRequest, passes, type Provider, type ProviderError, type ProviderEvent } from "./Provider.ts"
import { ReplayFilter, type Told } from "../runs/ReplayFilter.ts"
import * as Backoff from "../core/supervision/Backoff.ts"

type Said = Extract<ProviderEvent, { _tag: "Answer" }>

/** An answer, with its usage that the caller must emit. */
export interface Answer extends Said {
  readonly usage: ReadonlyArray<RunEvent>
}

export interface AskOptions {
  readonly provider: Provider
  readonly request: ModelRequest
  readonly retries: number
  /** Delay before the first retry. */
  readonly pause: Duration.Duration
  readonly price?: Config.ModelBackend["price"] | undefined
  readonly model: string
  /** The size of the model's context window, tokens. */
  readonly window?: number | undefined
  readonly emit: (event: RunEvent) => Effect.Effect<void>
  /** Keeps the text that was emitted, for the code that handles an interruption. */
  readonly retelling: ReplayFilter
}

/**
 * Longest wait within a turn, ms. If the provider requests a longer wait, the run ends, and the next run begins after
 * that wait.
 */
export const LONGEST_WAIT = 60_000
const CAP = 30_000

const STARTS_OVER = "the answer starts over"

const eventOf = (told: Told): RunEvent =>
  told._tag === "Text" ? { _tag: "Delta", stream: "assistant", text: told.text } : { _tag: "Notice", text: STARTS_OVER }

/** Retry schedule with growing waits. A notice announces each wait. The schedule's input is the error. */
const schedule = ({ retries, pause, emit }: AskOptions) =>
  Backoff.waits({ base: Duration.toMillis(pause), factor: 2, cap: CAP, jitter: 0 }).pipe(
    Schedule.setInputType<ProviderError>(),
    Schedule.while(({ input }) => passes(input) && (input.retryAfter ?? 0) <= LONGEST_WAIT),
    Schedule.upTo({ times: retries }),
    Schedule.jittered,
    Schedule.modifyDelay(({ duration, input }) =>
      Effect.succeed(Duration.millis(Math.max(Duration.toMillis(duration), input.retryAfter ?? 0)))
    ),
    Schedule.tap(({ attempt, duration, input }) => {
      const wait = Math.ceil(Duration.toSeconds(duration))
      const text = `${input.message}; try ${attempt + 1} of ${retries + 1} in ${wait} s`
      return emit({ _tag: "Notice", text, retries: {} })
    })
  )

export const ask = (options: AskOptions): Effect.Effect<Answer, ProviderError> => {
  const { emit, model, price, provider, request, retelling } = options
  const once = Effect.suspend(() => {
    const spent = { input: 0, output: 0, priced: 0, read: 0, written: 0 }
    let answer: Said | undefined
    const usage = (): ReadonlyArray<RunEvent> => {
      if (spent.input === 0 && spent.output === 0) return []
      const usd = price === undefined ? undefined : (spent.priced * price.input + spent.output * price.output) / 1e6
      return [
        {
          _tag: "Usage",
          inputTokens: spent.input,
          outputTokens: spent.output,
          ...(spent.read === 0 ? {} : { cacheRead: spent.read }),
          ...(spent.written === 0 ? {} : { cacheWrite: spent.written }),
          model,
          usd,
          context: { used: spent.input, ...(options.window === undefined ? {} : { window: options.window }) }
        }
      ]
    }
    const tell = (all: ReadonlyArray<Told>) => Effect.forEach(all, (told) => emit(eventOf(told)), { discard: true })
    retelling.again()
    return Stream.runForEach(provider.ask(request), (event) => {
      switch (event._tag) {
        case "Text":
          return tell(retelling.take(event.text))
        case "Thought":
          return emit({ _tag: "Delta", stream: "thinking", text: event.text })
        case "Usage":
          spent.input += event.inputTokens
          spent.output += event.outputTokens
          spent.priced += event.priced
          spent.read += event.cacheRead ?? 0
          spent.written += event.cacheWrite ?? 0
          return Effect.void
        case "Windows":
          return emit(event)
        case "Answer":
          answer = event
          return tell(retelling.end())
      }
    }).pipe(
      Effect.flatMap(() =>
        answer === undefined
          ? Effect.die(new Error("a provider ended without an answer"))
          : Effect.succeed({ ...answer, usage: usage() })
      ),
      Effect.onError(() => Effect.forEach(usage(), emit, { discard: true }))
    )
  })
  return Effect.retry(once, schedule(options))
}
