/** Features: the daemon's services that procedures call. A client loads only their types. */
import type { Access } from "../../access/Access.ts"
import type { Agents } from "../../projects/service/Agents.ts"
import type { Channels } from "../../channels/Channels.ts"
import type { Goals } from "../../goals/Goals.ts"
import type { Plates } from "../../plates/Plates.ts"
import type { Schedules } from "../../schedules/Schedules.ts"
import type { DaemonControl } from "./DaemonControl.ts"
import type { DaemonQueries } from "./DaemonQueries.ts"
import type { LiveBoard } from "../../board/LiveBoard.ts"

export interface Features {
  readonly access: Access["Service"]
  readonly agents: Agents["Service"]
  readonly channels: Channels["Service"]
  readonly goals: Goals["Service"]
  readonly plates: Plates["Service"]
  readonly schedules: Schedules["Service"]
  readonly daemon: DaemonControl["Service"]
  readonly inquiries: DaemonQueries
  readonly board: LiveBoard
}
