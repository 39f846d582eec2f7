/**
 * KeeperFile: the text of the keeper's program, of which each keeper gets a copy of its own.
 * The bundle, which has no files beside it, puts the text itself in place of this module
 * (`scripts/bundle.ts`).
 */
import * as fs from "node:fs"

export const program = (): string => fs.readFileSync(new URL("./keeper.mjs", import.meta.url), "utf8")
