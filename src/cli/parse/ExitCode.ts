/**
 * ExitCode: the exit codes of `agentd` and their meanings, for scripts; the only table, which
 * help, documentation and code use.
 */
export const ExitCode = {
  ok: 0,
  failed: 1,
  usage: 2,
  notRunning: 3,
  problems: 4,
  undecided: 5,
  store: 74,
  taken: 75,
  config: 78,
  interrupted: 130
} as const

export const meanings: ReadonlyArray<readonly [code: number, meaning: string]> = [
  [ExitCode.ok, "done"],
  [ExitCode.failed, "refused or failed; the message says what to do"],
  [ExitCode.usage, "used wrongly"],
  [ExitCode.notRunning, "the daemon is not running or cannot be reached"],
  [ExitCode.problems, "verify or doctor found problems"],
  [ExitCode.undecided, "a person has to decide: a call was only shown, or a goal waits for one"],
  [ExitCode.store, "the store cannot be read or written"],
  [ExitCode.taken, "another daemon has the store"],
  [ExitCode.config, "a configuration is wrong"],
  [ExitCode.interrupted, "interrupted from the keyboard"]
]
