/** Installed: determines how this program was installed, and how it can be uninstalled. */
import { Effect } from "effect"
import * as fs from "node:fs"
import { basename, dirname, join } from "node:path"
import { Entry } from "../parse/Invocation.ts"

/** The way in which the program was installed. `root`: folder of the program's package. */
type Installation =
  | { readonly _tag: "Npm"; readonly root: string; readonly prefix: string }
  | { readonly _tag: "Clone"; readonly root: string }
  | { readonly _tag: "Other"; readonly root: string }

/**
 * Determines the way of installation. Pure. `script`: real path of the program. `hasSources`: returns true if a folder
 * contains agentd's sources.
 */
export const installationOf = (script: string, hasSources: (root: string) => boolean): Installation => {
  const root = dirname(dirname(script))
  const modules = dirname(root)
  const isNpms = basename(root) === "agentd" && basename(modules) === "node_modules"
  if (isNpms && basename(dirname(modules)) === "lib") return { _tag: "Npm", root, prefix: dirname(dirname(modules)) }
  return { _tag: hasSources(root) ? "Clone" : "Other", root }
}

export const installation = Effect.gen(function* () {
  const { command } = yield* Entry
  const script = command[1] ?? ""
  const real = fs.existsSync(script) ? fs.realpathSync(script) : script
  return installationOf(real, (root) => fs.existsSync(join(root, "src", "main.ts")))
})

/** A sentence that contains the command for uninstalling the program. */
export const removal = Effect.map(installation, (found) => {
  switch (found._tag) {
    case "Npm": {
      const modules = dirname(found.root)
      // before an upgrade, an older agentd saved a copy of the package in this folder
      const kept = fs.readdirSync(modules).filter((name) => name.startsWith(".agentd-"))
      const rest = kept.map((name) => ` && rm -rf '${join(modules, name)}'`).join("")
      return `To remove the program: npm rm -g --prefix '${found.prefix}' agentd${rest}`
    }
    case "Clone":
      return `The program runs from the clone ${found.root}: remove the clone. To remove a link to it: npm rm -g agentd`
    case "Other":
      return `The program is in ${found.root}. Remove it in the way in which it was installed.`
  }
})
