/**
 * `agentd config diff|keep [PROJECT]`: shows the effects and the text of a changed agentd.jsonc, or rejects the change.
 * Neither command puts the change into force.
 */
import * as ConfigRows from "./ConfigRows.ts"
import { act, declare, maybeWord, read, send } from "../parse/DeclaredVerb.ts"
import { age, plain } from "../render/Output.ts"

const project = maybeWord("A project's name; default: the project of this folder", "PROJECT")

export const diff = declare({
  path: ["config", "diff"],
  description: "Show what a changed agentd.jsonc would do, dangerous changes first; nothing is put into force",
  examples: [
    { command: "agentd config diff", description: "Show the change in the project of this folder" },
    { command: "agentd config diff shop --json", description: "Print the change, and the hash to pass to agentd trust" }
  ],
  args: { project },
  rpc: ({ project }, caller) => read("ConfigChange", { name: project ?? "", caller }),
  view: ({ config, hash, kept, project, problems, ...change }, { colour, now }) => {
    if (hash === null)
      return [
        `${plain(config)} has errors and is not used:`,
        ...problems.map((problem) => `  ${plain(problem)}`),
        `Fix the file. Until then, the last usable version stays in force.`
      ]
    if (!change.waits) return [`${plain(config)} is already in force: no change waits for approval.`]
    return [
      ...ConfigRows.change({ config, ...change }, colour),
      ...(kept === undefined
        ? []
        : [
            `${plain(kept.by)} put this change aside ${age(Math.max(0, now - kept.at))} ago. You are asked again when the file changes.`
          ]),
      `Nothing was put into force. To review the change and put it into force: agentd trust ${plain(project)}   To put exactly this text into force: agentd trust ${plain(hash)}`,
      ...(kept === undefined ? [`To keep the version in force: agentd config keep ${plain(project)}`] : [])
    ]
  }
})

export const keep = act({
  path: ["config", "keep"],
  description: "Keep the version in force, and put the change aside until agentd.jsonc changes again",
  examples: [
    { command: "agentd config keep", description: "Put the change aside in the project of this folder" },
    {
      command: "agentd config diff shop && agentd config keep shop",
      description: "Show the change first, then put it aside"
    }
  ],
  args: { project },
  rpc: ({ project }, caller) => send("ConfigKeep", { name: project ?? "", caller })
})
