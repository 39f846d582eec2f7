/**
 * KeeperFile: the files that the keeper's program consists of. Each keeper gets its own copy. The bundle has no
 * separate files, so `scripts/bundle.ts` replaces this module with their texts.
 */
import * as fs from "node:fs"

const textOf = (name: string): string => fs.readFileSync(new URL(name, import.meta.url), "utf8")

export const files = (): { readonly [name: string]: string } => ({
  "keeper.mjs": textOf("./keeper.mjs"),
  "slot.sh": textOf("./slot.sh")
})
