/**
 * KeeperFile: the files of the keeper's program, of which each keeper gets a copy of its own.
 * The bundle, which has no files beside it, puts their texts in place of this module
 * (`scripts/bundle.ts`).
 */
import * as fs from "node:fs"

const textOf = (name: string): string => fs.readFileSync(new URL(name, import.meta.url), "utf8")

export const files = (): { readonly [name: string]: string } => ({
  "keeper.mjs": textOf("./keeper.mjs"),
  "slot.sh": textOf("./slot.sh")
})
