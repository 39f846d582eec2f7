/**
 * Speech: what an agent says in channels: it ends its turn with a signal, waits, forgets the
 * signal, has nothing to say, speaks through its tools, or speaks where nobody asked it.
 *
 * Each text is a word of its own (`[w7-2]`), so that it is known wherever it comes to light.
 */
import type { Utterance } from "../../../src/domain/ChannelMessages.ts"
import type { Chance } from "../Chance.ts"

export const ANSWERS = ["completes", "nothing", "forgets", "waitsMessage", "waitsPerson", "waitsTime"] as const
export type AnswerMood = (typeof ANSWERS)[number]

/** How agents talk in a seed's world. */
export interface Talk {
  readonly answers: { readonly [mood in AnswerMood]: number }
  /** The probability that an agent speaks through its tools in a turn; and where it has no floor. */
  readonly voices: number
  readonly interjects: number
}

/** Asks the daemon to let the run speak; nothing where there is no daemon. */
export type Voice = (runId: string, channel: string, utterance: Utterance) => void

const FLOOR = /You have the floor in the channel #([a-z0-9_-]+)\./
const ASIDE = /In the channel #([a-z0-9_-]+), where you have the floor,/

export class Speech {
  private readonly runId: string
  private readonly pid: number
  private readonly chance: Chance
  private readonly talk: Talk | undefined
  private words = 0
  private channel: string | undefined = undefined

  constructor(runId: string, pid: number, chance: Chance, talk: Talk | undefined) {
    this.runId = runId
    this.pid = pid
    this.chance = chance
    this.talk = talk
  }

  private word(): string {
    return `[w${this.pid}-${++this.words}]`
  }

  /** Begins a turn; `voice` is the agent's speech before the turn's end. */
  begin(text: string, unruly: boolean, voice: Voice | undefined, later: (ms: number, run: () => void) => void): void {
    const { chance, talk } = this
    this.channel = (FLOOR.exec(text) ?? ASIDE.exec(text))?.[1]
    if (talk === undefined || !unruly || voice === undefined) return
    const channel = this.channel ?? chance.pick(["", "review", "lobby"])
    if (!chance.is(this.channel === undefined ? talk.interjects : talk.voices)) return
    const utterance = chance.pick<() => Utterance>([
      () => ({ _tag: "Post", text: `${this.word()} by the way` }),
      () => ({ _tag: "Post", text: `${this.word()} by the way` }),
      () => ({ _tag: "TurnComplete" }),
      () => ({ _tag: "Wait", reason: "the build", until: chance.pick(["message", "person", 1 + chance.below(90)]) })
    ])
    for (let left = 1 + chance.below(2); left > 0; left--)
      later(chance.skewed(1, 2_000), () => voice(this.runId, channel, utterance()))
  }

  /** The last text of its turn, after what it has said in it. */
  answer(said: string, unruly: boolean): string {
    const { chance, channel, talk } = this
    if (talk === undefined || channel === undefined) {
      // the words of a channel where no channel is
      return talk !== undefined && unruly && chance.is(talk.interjects)
        ? `${said}${this.word()} done\nTURN_COMPLETE`
        : `${said}done`
    }
    // the talk comes to an end
    if (!unruly) return "TURN_COMPLETE"
    const text = `${said}${this.word()} so I say`
    switch (chance.weighed(talk.answers)) {
      case "completes":
        return `${text}\nTURN_COMPLETE`
      case "nothing":
        return "TURN_COMPLETE"
      case "forgets":
        return text
      case "waitsMessage":
        return `${text}\nWAIT: for the others, until message`
      case "waitsPerson":
        return `${text}\nWAIT: for a decision, until person`
      case "waitsTime":
        return `WAIT: for the build, until ${1 + chance.below(200)}s`
    }
  }
}
