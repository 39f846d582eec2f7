/** Names: how verbs are told which agents they are about. */
import { off, words, type Wrong } from "./DeclaredVerb.ts"
import { ExitCode } from "./ExitCode.ts"

/** Agents, one or several. */
export const agents = words("Names in this project, project/agent, or patterns: builder, 'shop/*'", "agent")

export const yes = off("Do not ask", "y")

/** The fault where no agent is named. */
export const nobody = ({ names }: { readonly names: ReadonlyArray<string> }, verb: string): Wrong | undefined =>
  names.length > 0
    ? undefined
    : {
        message: "Missing required argument: agent",
        remedy: `Say which: agentd ${verb} AGENT. More: agentd ${verb} --help`,
        exitCode: ExitCode.usage
      }
