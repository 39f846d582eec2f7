/**
 * ReadmeExample: a library's README shows the file that a test runs, with imports as a user
 * of the package writes them.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../..")

export const LIBRARIES = ["supervision", "event-log", "event-actor", "backends", "client"] as const
export type Library = (typeof LIBRARIES)[number]

/** Where each lies in src. */
export const FOLDER_OF: { readonly [L in Library]: string } = {
  supervision: "core/supervision",
  "event-log": "core/event-log",
  "event-actor": "core/event-actor",
  backends: "runs",
  client: "client"
}

const readmeIn = (folder: string): string => readFileSync(join(root, "src", folder, "README.md"), "utf8")

export const readme = (library: Library): string => readmeIn(FOLDER_OF[library])

/** The code that the README of a folder of src opens with. */
export const shownIn = (folder: string): string => /```ts\n([\s\S]*?)```/.exec(readmeIn(folder))![1]!

/** The code that a library's README opens with. */
export const shown = (library: Library): string => shownIn(FOLDER_OF[library])

/** `test/<folder>/example.ts` without its first comment, as it reads outside of this repository. */
export const run = (folder: string): string =>
  readFileSync(join(root, "test", folder, "example.ts"), "utf8")
    .replace(/^\/\*\*.*\*\/\n/, "")
    .replaceAll(/"\.\.\/\.\.\/src\/(.*)\.ts"/g, (_, path: string) => {
      const [library, folder] = Object.entries(FOLDER_OF).find(([, folder]) => path.startsWith(`${folder}/`)) ?? [
        "",
        ""
      ]
      return `"agentd/${library}${path.slice(folder.length)}"`
    })
