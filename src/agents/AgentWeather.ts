/**
 * AgentWeather: the weather of the provider that one agent asks: whether it may ask now, and
 * what came of asking. An agent that asks no provider has fair weather.
 */
import { Effect } from "effect"
import { accountOf } from "./AccountOf.ts"
import type { BackendConfig } from "../config/BackendConfig.ts"
import type { Account, Forecast, News, Standing } from "../domain/Weather.ts"

export interface AgentWeather {
  /** If not, `wake` is called as soon as it is worth asking again. */
  readonly admits: (wake: () => void) => boolean
  readonly tell: (news: News) => Effect.Effect<void>
  /** Undefined where nothing is amiss. */
  readonly trouble: () => Standing | undefined
}

export const fair: AgentWeather = { admits: () => true, tell: () => Effect.void, trouble: () => undefined }

/** `who`: the agent, beyond doubt. */
export const make = (forecast: Forecast, who: string, backend: () => BackendConfig): AgentWeather => {
  let [known, account]: [BackendConfig | undefined, Account | undefined] = [undefined, undefined]
  const of = (): Account | undefined => {
    const now = backend()
    if (now !== known) [known, account] = [now, accountOf(now)]
    return account
  }
  return {
    admits: (wake) => {
      const asked = of()
      return asked === undefined || forecast.admits(asked, who, wake)
    },
    tell: (news) =>
      Effect.suspend(() => {
        const asked = of()
        return asked === undefined ? Effect.void : forecast.tell(asked, who, news)
      }),
    trouble: () => {
      const asked = of()
      const standing = asked === undefined ? undefined : forecast.standing(asked)
      return standing?.state === "Available" ? undefined : standing
    }
  }
}
