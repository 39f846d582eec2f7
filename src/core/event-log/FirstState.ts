/**
 * FirstState: the state of a stream where its runes begin: the fold's own, or, where older runes were deleted, what they
 * had made. Pure.
 */
import type { Beginning } from "./Beginning.ts"
import { type AnyFold, stateOf } from "./StreamFold.ts"

/**
 * A fold that is newer than what was deleted begins with its own. A throw: what is kept is of another version, or
 * cannot be read.
 */
export const firstState = (beginning: Beginning | undefined, stream: string, fold: AnyFold): unknown => {
  const version = beginning?.version(fold.name)
  if (beginning?.head(stream) === undefined || version === undefined) return fold.initial
  const json = beginning.json(stream, fold.name)
  if (version === fold.version) return json === undefined ? fold.initial : stateOf(fold, JSON.parse(json))
  if (fold.fromOlder === undefined) {
    throw new Error(
      `its older runes were deleted, and their state was kept by agentd's version ${version} of it, which this one cannot read`
    )
  }
  return json === undefined ? fold.initial : fold.fromOlder(JSON.parse(json), version)
}
