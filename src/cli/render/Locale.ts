/** Locale: determines from the environment which characters this terminal can show. */
import { Config, Effect, Option } from "effect"
import { isAsciiOnly } from "./Ascii.ts"

const NAMES = ["TERM", "LC_ALL", "LC_CTYPE", "LANG"]

const variables = Config.all(
  NAMES.map((name) =>
    Config.String(name).pipe(
      Config.option,
      Config.map((value) => [name, Option.getOrUndefined(value)] as const)
    )
  )
)

export const asciiOnly: Effect.Effect<boolean> = variables.pipe(
  Effect.map((all) => {
    const values = new Map(all)
    return isAsciiOnly((name) => values.get(name))
  }),
  Effect.orElseSucceed(() => false)
)
