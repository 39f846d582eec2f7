/** Regressions: the worlds in which a bug was found, by seed. */

export interface Regression {
  readonly seed: number
  readonly minutes: number
  /** The former mistake. */
  readonly was: string
}

export const regressions: ReadonlyArray<Regression> = [
  { seed: 14, minutes: 10, was: "a daemon that was killed while its project's file was broken did not come back" },
  { seed: 120, minutes: 10, was: "a clock that was set back kept a mail, and the next attempt of a mail, for hours" },
  { seed: 112, minutes: 10, was: "a reload that made the wait between runs longer left its agent waiting for ever" },
  {
    seed: 2040,
    minutes: 7,
    was: "an agent was told of a post with the floor, and of the same post again with the next"
  },
  { seed: 86, minutes: 3, was: "a channel that took its aside back from a turn dropped what else the turn carried" },
  { seed: 508, minutes: 10, was: "a floor was over before its agent had heard its prompt: a signal of another turn" },
  {
    seed: 30005,
    minutes: 3,
    was: "what a model had answered with nothing was no part of its conversation in the next run"
  },
  { seed: 38_012, minutes: 2, was: "half an answer was posted with the signal that it was cut after" },
  { seed: 30011, minutes: 3, was: "an API was sent half a character, by which it refuses all of the conversation" },
  { seed: 30012, minutes: 3, was: "an API was sent a tool's name back that it does not take" },
  { seed: 30057, minutes: 3, was: "what a model's paused answer cost was told nobody" },
  {
    seed: 10_003,
    minutes: 3,
    was: "an old interrupt ended a dialog that the session's note told of, every ten seconds"
  },
  { seed: 10_031, minutes: 3, was: "a session that was forgotten was met again by its note, within ten seconds" },
  { seed: 10_037, minutes: 3, was: "a session that was met in a turn was shown as idle until the turn ended" },
  { seed: 10_036, minutes: 4, was: "a start was taken from the spool before it was in the log, and lost by a kill" },
  { seed: 10_131, minutes: 5, was: "an old interrupt ended a dialog that a notification told of" },
  {
    seed: 10_260,
    minutes: 3,
    was: "a closed plate took a session that had one: its starts were read in another order, by a clock that was set back"
  },
  { seed: 10_327, minutes: 1, was: "a session that two told of at once had two plates" },
  {
    seed: 60_244,
    minutes: 3,
    was: "what an agent had committed for a task was left out, where it was started again before the goal had looked"
  },
  {
    seed: 40_031,
    minutes: 1_440,
    was: "an agent waited for the day that its file had asked for, though a reload had ended the wait"
  },
  {
    seed: 40_072,
    minutes: 1_440,
    was: "an agent that rests between its runs had the floor while it rested, and never as a run began"
  },
  { seed: 15_025, minutes: 5, was: "a session that had ended was not met again, since a hook came after its end" },
  { seed: 15_072, minutes: 5, was: "a compaction was ended by an interrupt of before it" },
  { seed: 61_094, minutes: 1, was: "a start in the spool brought back a session that was forgotten after it" },
  { seed: 61_022, minutes: 6, was: "a task that was done was given out again: its agent left before git had answered" },
  { seed: 27_611, minutes: 5, was: "what an agent asked before its session had begun was a call of no turn" },
  {
    seed: 25_114,
    minutes: 3,
    was: "a point of a run lay before what was known with it: the next daemon looked for output that was gone, in a circle"
  },
  {
    seed: 27_525,
    minutes: 3,
    was: "a run's end left its turn open, where a power cut had taken what the run had told of its calls"
  },
  {
    seed: 38_074,
    minutes: 3,
    was: "an answer of thoughts alone was sent back, by which an API refuses all of the conversation"
  }
]
