/**
 * ReadmeExample: reads the example in a library's README, and the file that a test runs, with its imports as users of
 * the package write them.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../..")

export const LIBRARIES = ["supervision", "event-log", "event-actor", "backends", "client"] as const
export type Library = (typeof LIBRARIES)[number]

/** The folder of each library in src. */
export const FOLDER_OF: { readonly [L in Library]: string } = {
  supervision: "core/supervision",
  "event-log": "core/event-log",
  "event-actor": "core/event-actor",
  backends: "runs",
  client: "client"
}

const readmeIn = (folder: string): string => readFileSync(join(root, "src", folder, "README.md"), "utf8")

export const readme = (library: Library): string => readmeIn(FOLDER_OF[library])

/** The first code block in the README of a folder of src. */
export const shownIn = (folder: string): string => /```ts\n([\s\S]*?)```/.exec(readmeIn(folder))![1]!

/** The first code block in a library's README. */
export const shown = (library: Library): string => shownIn(FOLDER_OF[library])

/** `test/world/<folder>/example.ts` without its first comment, with the imports that a user of the package writes. */
export const run = (folder: string): string =>
  readFileSync(join(root, "test/world", folder, "example.ts"), "utf8")
    .replace(/^\/\*\*.*\*\/\n/, "")
    .replaceAll(/"\.\.\/\.\.\/\.\.\/src\/(.*)\.ts"/g, (_, path: string) => {
      const [library, folder] = Object.entries(FOLDER_OF).find(([, folder]) => path.startsWith(`${folder}/`)) ?? [
        "",
        ""
      ]
      return `"agentd/${library}${path.slice(folder.length)}"`
    })
    .replace('"agentd/client/Client"', '"agentd/client/effect"')
    .replace('"agentd/client/Promises"', '"agentd/client"')
