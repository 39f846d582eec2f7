/** Agreement: what the daemon says of its agents is what the log on the disk says. */
import type { AgentInfo } from "../../../src/domain/Messages.ts"
import type { Tables } from "./Tables.ts"
import type { Verdicts } from "./Check.ts"

const agreement = "what is said of an agent is what the log says"

/** `isQuiet`: nothing is on its way, so that the newest rune is what it rests on. */
export const compare = (rows: ReadonlyArray<AgentInfo>, tables: Tables, verdicts: Verdicts, isQuiet: boolean): void => {
  for (const { agent, consecutiveErrors, conversation, restsOn, state, totalErrors } of rows) {
    const said = JSON.stringify({ state, consecutiveErrors, totalErrors })
    const lives = tables.workers.get(`${conversation} worker/${agent}`)
    const logged = isQuiet ? lives?.newest : lives?.at.get(restsOn)
    if (logged !== said && restsOn > 0)
      verdicts.broken(agreement, `${agent}: said ${said} by rune ${restsOn}, logged ${logged ?? "nothing"}`)
  }
}
