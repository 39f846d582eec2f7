/**
 * InitialState: the state of a stream before its first stored rune. This is the fold's initial state, or the state that
 * was saved when older runes were deleted. Pure.
 */
import type { BaselineFile } from "./BaselineFile.ts"
import { type AnyFold, stateOf } from "./StreamFold.ts"

/**
 * Returns the state before the first stored rune: the initial state, if the fold did not exist when the runes were
 * deleted. Throws if the saved state cannot be read, or if the fold cannot convert its version.
 */
export const firstState = (beginning: BaselineFile | undefined, stream: string, fold: AnyFold): unknown => {
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
