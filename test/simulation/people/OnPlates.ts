/** OnPlates: what people ask of the board of sessions. Worlds without sessions are without. */
import { Effect, Exit } from "effect"
import type { PlateInfo } from "../../../src/domain/Messages.ts"
import { caller } from "../Daemon.ts"
import type { Order, Orders } from "./Order.ts"

/** Asks about a fitting row, as a person reads the board before asking; about none where none fits. */
const one = <A, E>(
  { client, people }: Order,
  fits: (row: PlateInfo) => boolean,
  ask: (row: PlateInfo) => Effect.Effect<A, E>
) =>
  Effect.flatMap(client.Plates({ all: people.is(0.5) }), (rows) => {
    const fitting = rows.filter(fits)
    return fitting.length === 0 ? Effect.undefined : ask(people.pick(fitting))
  })

export const onPlates = {
  plateShow: (order) => {
    const { client, people, run } = order
    const nameOf = ({ plateId, sessionId }: PlateInfo) => {
      if (people.is(0.3)) return plateId.slice(0, 3)
      return people.is(0.5) ? plateId : (sessionId ?? plateId)
    }
    run(
      one(
        order,
        () => true,
        (row) => client.Plate({ name: nameOf(row) })
      )
    )
  },
  plateForget: (order) => {
    const { client, people, run, world } = order
    run(
      one(
        order,
        ({ agent }) => agent === null,
        (row) => {
          const name = people.is(0.5) ? row.plateId : (row.sessionId ?? row.plateId)
          return client.ForgetPlate({ name, caller })
        }
      ),
      (exit) => {
        if (!Exit.isSuccess(exit) || exit.value === undefined) return
        // by a session's id it may have been another plate of the same session
        world.checker.plates.forgets(exit.value.message.split(" ", 1)[0]!)
      }
    )
  },
  plateAnswer: (order) => {
    const { client, people, run } = order
    run(
      one(
        order,
        ({ approval }) => approval !== null,
        (row) => {
          const isAllowed = people.is(0.6)
          const name = people.is(0.7) ? row.approval! : row.plateId
          const answer = (more: { readonly hash?: string; readonly answers?: ReadonlyArray<string> }) =>
            client.Answer({
              name,
              decision: isAllowed ? "allow" : "deny",
              reason: isAllowed || row.arguments === undefined ? "" : `not ${row.arguments}`,
              caller,
              ...more
            })
          if (!isAllowed) return answer({})
          return row.questions === undefined
            ? Effect.flatMap(client.Asked({ name, caller }), ({ hash }) => answer({ hash }))
            : answer({ answers: row.questions.map(() => "1") })
        }
      )
    )
  }
} satisfies Orders

export const PLATE_COMMANDS = Object.keys(onPlates) as ReadonlyArray<keyof typeof onPlates>
