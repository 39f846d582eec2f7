/**
 * DaemonNode: Node flags and environment variables for a daemon. A daemon waits most of the time, and should then use
 * little memory. The young generation is small, and malloc has one arena that returns free memory to the system. This
 * includes the blocks of 16 and 32 kB in which V8 compiles: without a compile cache, these blocks alone would occupy 20
 * MB. Blocks of 8 kB are so frequent that returning them would make a start 7 % slower and save only 0.8 MB. No signal
 * opens a debugger port. The launcher (scripts/agentd) uses the same settings.
 *
 * Guarantees: programs that the daemon starts do not inherit these settings. A variable that the user has set is not
 * changed.
 */

/**
 * Node flags with which Node's precompiled code of its own modules stays valid. Without the small young generation, an
 * idle daemon uses 66 MB of private memory instead of 53 MB.
 */
const FLAGS = ["--max-semi-space-size=1", "--disable-sigusr1"]

/** Variables that the C library reads when the process starts. */
const VARIABLES = { MALLOC_ARENA_MAX: "1", MALLOC_TRIM_THRESHOLD_: "131072", MALLOC_MMAP_THRESHOLD_: "16000" } as const

/** Variable that lists the names of the variables that were set only for the daemon. */
export const GIVEN = "AGENTD_GIVEN"

export const commandOf = ([node = "", ...args]: ReadonlyArray<string>): ReadonlyArray<string> => [
  node,
  ...FLAGS,
  ...args
]

/** The environment variables to set for a daemon in addition to those in `env`. */
export const variablesFor = (env: { readonly [name: string]: string | undefined }): Record<string, string> => {
  const added = Object.entries(VARIABLES).filter(([name]) => env[name] === undefined)
  return { ...Object.fromEntries(added), [GIVEN]: added.map(([name]) => name).join(" ") }
}

/** Removes from `env` the variables that were set for this process only. */
export const forget = (env: Record<string, string | undefined>): void => {
  const names: ReadonlyArray<string> = Object.keys(VARIABLES)
  for (const name of (env[GIVEN] ?? "").split(" ")) if (names.includes(name)) delete env[name]
  delete env[GIVEN]
}
