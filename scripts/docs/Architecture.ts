/** Architecture: generates the table in docs/architecture.md: the folders of src in their layers. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { layers } from "../../test/support/Layers.ts"
import { cell, table } from "./Markdown.ts"

const src = join(import.meta.dirname, "../../src")

/** The layers, from the top down. Folders that do not exist yet are omitted. */
const rooms = (): string =>
  table(
    ["folders", "what is there", "the rule"],
    layers
      .map((layer) => ({ ...layer, folders: layer.folders.filter((folder) => existsSync(join(src, folder))) }))
      .filter(({ folders }) => folders.length > 0)
      .map(({ because, folders, holds }) =>
        [folders.map((folder) => `\`${folder}\``).join(" "), holds, because].map(cell)
      )
  )

const PLACE = /(<!-- layers -->\n)[^]*?(<!-- \/layers -->)/

/** The page with the current table. */
export const render = (page: string): string => {
  if (!PLACE.test(page)) throw new Error("docs/architecture.md has no place for layers")
  return page.replace(PLACE, (_, begin: string, end: string) => `${begin}\n${rooms()}\n\n${end}`)
}
