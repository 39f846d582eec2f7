/**
 * DaemonNode: how Node is started for a daemon, which waits most of the time and is to hold little memory while it
 * does: a small young generation, and one arena of malloc that gives back what is free, also the pieces of 16 and 32 kB
 * that V8 compiles in: without a cache of compiled code these alone would keep 20 MB. Those of 8 kB are so many that a
 * start would take a fifteenth longer, for 0.8 MB. No signal opens a debugger's port. The launcher (scripts/agentd) does the same by itself.
 *
 * Guarantees: nothing that the daemon starts inherits the settings that it was given here, and a setting of the
 * user's own stands.
 */

/**
 * Flags that leave valid the compiled code that Node brings of its own modules. Without the small young generation an
 * idle daemon holds 66 MB of its own instead of 53.
 */
const FLAGS = ["--max-semi-space-size=1", "--disable-sigusr1"]

/** Read by the C library as the process begins. */
const VARIABLES = { MALLOC_ARENA_MAX: "1", MALLOC_TRIM_THRESHOLD_: "131072", MALLOC_MMAP_THRESHOLD_: "16000" } as const

/** Names the variables that the daemon was given. */
export const GIVEN = "AGENTD_GIVEN"

/** `command`: Node, and its arguments. */
export const commandOf = ([node = "", ...args]: ReadonlyArray<string>): ReadonlyArray<string> => [
  node,
  ...FLAGS,
  ...args
]

/** The variables that are set besides `env`. */
export const variablesFor = (env: { readonly [name: string]: string | undefined }): Record<string, string> => {
  const added = Object.entries(VARIABLES).filter(([name]) => env[name] === undefined)
  return { ...Object.fromEntries(added), [GIVEN]: added.map(([name]) => name).join(" ") }
}

/** Takes out of `env` what was given to this process alone. */
export const forget = (env: Record<string, string | undefined>): void => {
  const names: ReadonlyArray<string> = Object.keys(VARIABLES)
  for (const name of (env[GIVEN] ?? "").split(" ")) if (names.includes(name)) delete env[name]
  delete env[GIVEN]
}
