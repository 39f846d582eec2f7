/** `agentd set AGENT --model M --mode M`: chooses the model and the mode of an agent, beside its file. */
import { declare, off, option, said, send, word } from "./DeclaredVerb.ts"
import { ExitCode } from "./ExitCode.ts"

const nothing = {
  message: "There is nothing to set.",
  remedy: "Give --model, --mode, or --reset alone for what agentd.jsonc says.",
  exitCode: ExitCode.usage
}

export const set = declare({
  path: ["set"],
  description: "Choose an agent's model or mode, until you choose another; a restart keeps it",
  examples: [
    { command: "agentd set builder --mode plan", description: "Claude Code plans, and asks before it begins" },
    { command: "agentd set builder --model opus", description: "As the agent calls it" },
    { command: "agentd set builder --reset", description: "As agentd.jsonc says again" }
  ],
  args: {
    agent: word("Its name in this project, or project/agent"),
    model: option("MODEL", "The model, as the agent calls it"),
    mode: option("MODE", "The mode of the agent's own"),
    reset: off("Forget what was chosen before")
  },
  wrong: ({ mode, model, reset }) => (model === undefined && mode === undefined && !reset ? nothing : undefined),
  rpc: ({ agent, mode, model, reset }, caller) =>
    send("Set", { name: agent, model: model ?? null, mode: mode ?? null, reset, caller }),
  view: said,
  quick: true
})
