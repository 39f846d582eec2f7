/** Commands: all that people ask of the daemon. */
import { onAgents, onCalls } from "./OnAgents.ts"
import { onChannels } from "./OnChannels.ts"
import { onGoals } from "./OnGoals.ts"
import { onLog } from "./OnLog.ts"
import { onElsewhere, onMistakes } from "./Mistakes.ts"
import { onPlates } from "./OnPlates.ts"
import { onArchives, onProjects } from "./OnProjects.ts"

export const commands = {
  ...onAgents,
  ...onProjects,
  ...onChannels,
  ...onArchives,
  ...onLog,
  ...onGoals,
  ...onPlates,
  ...onMistakes,
  ...onCalls,
  ...onElsewhere
}
export type Command = keyof typeof commands
export const COMMANDS = Object.keys(commands) as ReadonlyArray<Command>
/** Commands that people ask in every world; of channels and goals they ask where there are some. */
export const EVERYWHERE = Object.keys({ ...onAgents, ...onProjects }) as ReadonlyArray<Command>
