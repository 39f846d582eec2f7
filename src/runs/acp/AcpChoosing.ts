/**
 * AcpChoosing: changes the model and the mode of a running session.
 *
 * Guarantees: the agent's report of its current model and mode always counts, no matter who chose them. A later daemon
 * knows each choice that the agent accepted. If the agent does not answer, the change fails after a timeout.
 */
import { Effect } from "effect"
import { BackendError, type Choosing } from "../Backend.ts"
import * as AcpChoices from "./AcpChoices.ts"
import * as Messages from "./AcpMessages.ts"
import type { AcpSession } from "./AcpSession.ts"
import type { Wire } from "./AcpWire.ts"

export interface Place {
  /** The current session; undefined if there is none yet. */
  readonly session: () => AcpSession | undefined
  readonly became: (session: AcpSession) => void
  /** Called when the model changes, with the model that answers from now on. */
  readonly uses: (model: string) => void
}

/** Timeout for the agent's answer to a request for another model or mode. */
const CHOICE = "10 seconds"

const refused = (message: string, remedy: string) => new BackendError({ message, remedy, fatal: false })

export class AcpChoosing {
  private readonly wire: Wire
  private readonly place: Place

  constructor(wire: Wire, place: Place) {
    this.wire = wire
    this.place = place
  }

  changed(update: unknown): void {
    const answer = Messages.read(Messages.SessionAnswer, update)
    const mode = Messages.read(Messages.ModeUpdate, update)?.currentModeId
    const session = this.place.session()
    if (session === undefined || answer === undefined) return
    const told = AcpChoices.updated(session.choices, answer)
    const choices = mode === undefined ? told : AcpChoices.inMode(told, mode)
    this.place.became({ ...session, choices })
    const model = AcpChoices.modelOf(choices)
    if (model !== "") this.place.uses(model)
  }

  readonly choose = ({ mode, model }: Choosing): Effect.Effect<void, BackendError> =>
    Effect.forEach(
      [
        ["model", model],
        ["mode", mode]
      ] as const,
      ([kind, name]) => (name === null ? Effect.void : this.chooseOne(kind, name)),
      { discard: true }
    )

  private readonly chooseOne = Effect.fnUntraced(
    { self: this },
    function* (this: AcpChoosing, kind: AcpChoices.Kind, name: string) {
      const session = this.place.session()
      if (session === undefined) return yield* refused("the run has no session yet", "try again in a moment")
      const { choices, id } = yield* AcpChoices.choose(this.wire, session.agent, session, kind, name).pipe(
        Effect.mapError(({ message, outcome }) =>
          refused(message, outcome._tag === "Fatal" ? outcome.remedy : "try again in a moment")
        ),
        Effect.timeoutOrElse({
          duration: CHOICE,
          orElse: () =>
            Effect.fail(refused(`${session.agent.name} has not answered within ${CHOICE}`, "try again in a moment"))
        })
      )
      const chosen = { ...session, choices }
      this.place.became(chosen)
      if (kind === "model") this.place.uses(id)
      yield* this.wire.note({ say: "session", session: { ...chosen, ...(kind === "model" ? { model: id } : {}) } })
    }
  )
}
