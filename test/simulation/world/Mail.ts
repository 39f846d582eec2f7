/**
 * Mail: the server that takes the daemon's mails, or does not: it refuses for now or for
 * good, hangs, and takes a mail whose sender never hears that it did.
 */
import { Effect } from "effect"
import type { MailerShape } from "../../../src/alerts/Mailer.ts"
import { SendError } from "../../../src/alerts/SendError.ts"
import * as Smtp from "../../../src/alerts/Smtp.ts"
import { type Touch, untouched } from "../Boundaries.ts"
import { type Lurks, never, type Strikes, unseen } from "./Strikes.ts"
import type { Chance } from "../Chance.ts"
import type { Swarm } from "../Swarm.ts"
import type { Universe } from "../Universe.ts"

export interface Letter {
  readonly messageId: string
  readonly subject: string
  readonly text: string
  readonly at: number
}

export const MAIL_MOODS = ["takes", "refuses", "hangs", "isLost", "rejects"] as const
export type MailMood = (typeof MAIL_MOODS)[number]

export class Mail {
  readonly letters: Array<Letter> = []
  isUnruly = true
  touch: Touch = untouched
  strikes: Strikes = unseen
  lurks: Lurks = never
  private readonly universe: Universe
  private readonly chance: Chance
  private readonly swarm: Swarm
  private readonly taken: (letter: Letter) => void

  constructor(universe: Universe, chance: Chance, swarm: Swarm, taken: (letter: Letter) => void) {
    this.universe = universe
    this.chance = chance
    this.swarm = swarm
    this.taken = taken
  }

  private take(message: Parameters<MailerShape["send"]>[1]): void {
    const { messageId = "", subject, text } = message
    const letter = { messageId, subject, text, at: this.universe.now }
    this.letters.push(letter)
    this.universe.note(`mail ${messageId} ${subject}`)
    this.taken(letter)
  }

  readonly mailer: MailerShape = {
    host: () => "lab",
    probe: () => Effect.succeed("the lab's server answers"),
    send: (mail, message) =>
      Effect.suspend(() => {
        const mood = this.lurks("noMail") ? "refuses" : this.isUnruly ? this.chance.weighed(this.swarm.mail) : "takes"
        const pause = Effect.sleep(this.chance.skewed(1, 3_000))
        const lost = new SendError({ message: "the line dropped", remedy: "wait", class: "transient" })
        const receipt = { to: Smtp.recipients(mail), rejected: [], response: "250 taken" }
        const take = Effect.suspend(() => {
          this.take(message)
          return this.touch("mail: taken") ? Effect.void : Effect.never
        })
        if (!this.touch("mail: before")) return Effect.never
        if (mood !== "takes") this.strikes("noMail")
        switch (mood) {
          case "takes":
            return pause.pipe(Effect.andThen(take), Effect.andThen(pause), Effect.as(receipt))
          case "isLost":
            return pause.pipe(Effect.andThen(take), Effect.andThen(pause), Effect.andThen(Effect.fail(lost)))
          case "hangs":
            return Effect.andThen(Effect.sleep(120_000), Effect.fail(lost))
          case "refuses":
            return Effect.andThen(
              pause,
              Effect.fail(new SendError({ message: "451 later", remedy: "wait", class: "transient" }))
            )
          case "rejects":
            return Effect.andThen(
              pause,
              Effect.fail(new SendError({ message: "550 no such box", remedy: "mend the address", class: "permanent" }))
            )
        }
      })
  }
}
