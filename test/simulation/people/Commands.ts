/** Commands: all that people ask of the daemon. */
import { onAgents } from "./OnAgents.ts"
import { onProjects } from "./OnProjects.ts"

export const commands = { ...onAgents, ...onProjects }
export type Command = keyof typeof commands
export const COMMANDS = Object.keys(commands) as ReadonlyArray<Command>
