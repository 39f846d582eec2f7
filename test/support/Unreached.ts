/**
 * Unreached: the legal cells that the daemon never reaches, each with its reason. The list is shared by the tests of
 * the tables and the simulator. A cell that is not in it is reached by a test of its table. A cell that no simulated
 * world reaches is also a gap, which Coverage names.
 */

interface Reasons {
  readonly [cell: string]: string
}

export const unreached = {
  worker: {},
  turn: {
    "idle × steer → streaming":
      "a steer is told to the turn of a run that works on one (INV-RUN-FENCED); where none is active the message waits, and a start_turn takes it"
  },
  tool: {},
  agent: {
    "idle × kill_forced → terminated":
      "a forced kill follows the stop of the worker, which has ended an idle agent in its own append",
    "running_turn × kill_forced → terminated":
      "a forced kill follows the stop of the worker, which has interrupted the turn in its own append: the agent is idle by then"
  },
  conversation: {},
  goal: {},
  seat: {},
  plate: {
    "Starting × StatusNoted": "a note is looked for by the session's id, and a plate that has one has started"
  }
} as const satisfies { readonly [machine: string]: Reasons }

/** The reason why no daemon reaches the cell; undefined for a cell that a daemon can reach. */
export const whyNot = (machine: keyof typeof unreached, cell: string): string | undefined =>
  (unreached[machine] as Reasons)[cell]
