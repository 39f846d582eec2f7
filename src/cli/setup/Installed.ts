/** Installed: how this program came to where it is, and how it goes again. */
import { Effect } from "effect"
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { Entry } from "../parse/Invocation.ts"
import * as Plan from "./UpgradePlan.ts"

export const installation = Effect.gen(function* () {
  const { command } = yield* Entry
  const script = command[1] ?? ""
  const real = fs.existsSync(script) ? fs.realpathSync(script) : script
  return Plan.installationOf(real, (root) => fs.existsSync(join(root, "src", "main.ts")))
})

/** The sentence that says how the program goes, as it must be typed. */
export const removal = Effect.map(installation, (found) => {
  switch (found._tag) {
    case "Npm": {
      const modules = dirname(found.root)
      const kept = fs.readdirSync(modules).filter((name) => name.startsWith(".agentd-"))
      const rest = kept.map((name) => ` && rm -rf '${join(modules, name)}'`).join("")
      return `The program: npm rm -g --prefix '${found.prefix}' agentd${rest}`
    }
    case "Clone":
      return `The program runs from a clone, ${found.root}: remove that; a link to it goes by: npm rm -g agentd`
    case "Other":
      return `The program, in ${found.root}, goes by the way that it came.`
  }
})
