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

export const readme = (library: Library): string =>
  readFileSync(join(root, "src", FOLDER_OF[library], "README.md"), "utf8")

/** The code that the README opens with. */
export const shown = (library: Library): string => /```ts\n([\s\S]*?)```/.exec(readme(library))![1]!

/** `test/<library>/example.ts` without its first comment, as it reads outside of this repository. */
export const run = (library: Library): string =>
  readFileSync(join(root, "test", library, "example.ts"), "utf8")
    .replace(/^\/\*\*.*\*\/\n/, "")
    .replaceAll(/"\.\.\/\.\.\/src\/(.*)\.ts"/g, (_, path: string) => {
      const [library, folder] = Object.entries(FOLDER_OF).find(([, folder]) => path.startsWith(`${folder}/`)) ?? [
        "",
        ""
      ]
      return `"agentd/${library}${path.slice(folder.length)}"`
    })
