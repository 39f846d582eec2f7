/** Glance: all that the board shows, asked of the daemon at once over a connection that is there. */
import type { Client } from "../rpc/ControlClient.ts"
import { answers } from "./DeclaredCommand.ts"
import { boardAsk } from "./Ps.ts"

export const glance = (client: Client) => answers(client, boardAsk)
