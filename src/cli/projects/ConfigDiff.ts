/**
 * `agentd config diff|keep [PROJECT]`: shows the effects and the text of a changed agentd.jsonc, or rejects the change.
 * Neither puts anything into force.
 */
import * as ConfigRows from "./ConfigRows.ts"
import { act, declare, maybeWord, read, send } from "../parse/DeclaredVerb.ts"
import { age, plain } from "../render/Output.ts"

const project = maybeWord("A project's name; none: the project of this folder", "PROJECT")

export const diff = declare({
  path: ["config", "diff"],
  description: "Show what a changed agentd.jsonc would do, dangerous parts first; changes nothing",
  examples: [
    { command: "agentd config diff", description: "Of this folder's project" },
    { command: "agentd config diff shop --json", description: "With the hash that agentd trust takes" }
  ],
  args: { project },
  rpc: ({ project }, caller) => read("ConfigChange", { name: project ?? "", caller }),
  view: ({ config, hash, kept, project, problems, ...change }, { colour, now }) => {
    if (hash === null)
      return [
        `${plain(config)} has an error and is not used:`,
        ...problems.map((problem) => `  ${plain(problem)}`),
        `Fix it; until then the last good version stays in force.`
      ]
    if (!change.waits) return [`${plain(config)} is in force: no change waits.`]
    return [
      ...ConfigRows.change({ config, ...change }, colour),
      ...(kept === undefined
        ? []
        : [
            `${plain(kept.by)} put this aside ${age(Math.max(0, now - kept.at))} ago: you are asked again when the file changes.`
          ]),
      `Nothing was put into force. To do so: agentd trust ${plain(project)}   or exactly this: agentd trust ${plain(hash)}`,
      ...(kept === undefined ? [`To keep what is in force: agentd config keep ${plain(project)}`] : [])
    ]
  }
})

export const keep = act({
  path: ["config", "keep"],
  description: "Keep what is in force: ask about agentd.jsonc only when it changes again",
  examples: [
    { command: "agentd config keep", description: "Of this folder's project" },
    { command: "agentd config diff shop && agentd config keep shop", description: "Look at it first" }
  ],
  args: { project },
  rpc: ({ project }, caller) => send("ConfigKeep", { name: project ?? "", caller })
})
