/** Names: the arguments of verbs that act on agents. */
import { off, options, type Targets, words, type Wrong } from "./DeclaredVerb.ts"
import { ExitCode } from "./ExitCode.ts"

export const agents = words("Agents: a name in this project, project/agent, or a pattern such as 'shop/*'", "agent")

export const labels = options("label", "LABEL", "Act on all agents with this label in agentd.jsonc; repeatable", "l")

export const yes = off("Do not ask for confirmation", "y")

export const nobody = ({ labels, names }: Targets, verb: string): Wrong | undefined =>
  names.length + labels.length > 0
    ? undefined
    : {
        message: "Missing required argument: agent",
        remedy: `Specify the agent: agentd ${verb} AGENT. More: agentd ${verb} --help`,
        exitCode: ExitCode.usage
      }
