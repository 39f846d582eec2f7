/**
 * FirstState: the state of a stream where its stored runes begin. This is the fold's initial state, or the state that
 * older runes had produced before they were deleted. Pure.
 */
import type { Beginning } from "./Beginning.ts"
import { type AnyFold, stateOf } from "./StreamFold.ts"

/**
 * The initial state if the fold is newer than the deletion. Throws if the kept state is of another version that the
 * fold cannot convert, or if it cannot be read.
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
