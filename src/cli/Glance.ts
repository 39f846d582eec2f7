/** Glance: all that the board shows, asked of the daemon at once. */
import { Effect } from "effect"
import type { Client } from "../rpc/ControlClient.ts"
import { boardOf } from "./Board.ts"

export const glance = (client: Client) =>
  Effect.map(
    Effect.all(
      {
        plates: client.Plates({ all: false }),
        agents: client.Agents(),
        calls: client.Calls(),
        conversations: client.Conversations()
      },
      { concurrency: "unbounded" }
    ),
    boardOf
  )
