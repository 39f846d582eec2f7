/** `agentd config diff [PROJECT]`: what a changed agentd.jsonc would do, and how its text differs; nothing is put into force. */
import * as ConfigRows from "./ConfigRows.ts"
import { declare, maybeWord, read } from "./DeclaredVerb.ts"
import { plain } from "./Output.ts"

export const diff = declare({
  path: ["config", "diff"],
  description: "Show what a changed agentd.jsonc would do, the dangerous first; nothing is put into force",
  examples: [
    { command: "agentd config diff", description: "Of this folder's project" },
    { command: "agentd config diff shop --json", description: "With the hash that agentd trust takes" }
  ],
  args: { project: maybeWord("A project's name; none: the project of this folder", "PROJECT") },
  rpc: ({ project }, caller) => read("ConfigChange", { name: project ?? "", caller }),
  view: ({ config, hash, project, problems, ...change }, { colour }) => {
    if (hash === null)
      return [
        `${plain(config)} cannot be used, and counts for nothing:`,
        ...problems.map((problem) => `  ${plain(problem)}`),
        `Mend it; until then what was in force before stays in force.`
      ]
    if (!change.waits) return [`${plain(config)} is in force as it stands: nothing waits.`]
    return [
      ...ConfigRows.change({ config, ...change }, colour),
      `Nothing was put into force. To do so: agentd trust ${plain(project)}   or exactly this: agentd trust ${plain(hash)}`
    ]
  },
  quick: true
})
