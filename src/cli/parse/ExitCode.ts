/** ExitCode: the exit codes of `agentd` with their meanings. Help, documentation and code all use this table. */
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
  [ExitCode.failed, "rejected or failed; the message says how to fix it"],
  [ExitCode.usage, "wrong usage: an invalid command, flag or argument"],
  [ExitCode.notRunning, "the daemon is not running or cannot be reached"],
  [ExitCode.problems, "verify or doctor found problems"],
  [ExitCode.undecided, "you must decide: a call was only shown, or a goal waits for your decision"],
  [ExitCode.store, "the store cannot be read or written"],
  [ExitCode.taken, "another daemon uses the store"],
  [ExitCode.config, "a config file is invalid"],
  [ExitCode.interrupted, "interrupted from the keyboard"]
]
