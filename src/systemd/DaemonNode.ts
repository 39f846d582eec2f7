/**
 * DaemonNode: the Node flags and variables for a daemon, which waits most of the time and should then use little
 * memory. The young generation is small, and malloc has one arena that returns free memory to the system. This includes
 * the blocks of 16 and 32 kB in which V8 compiles: without a cache of compiled code they alone would keep 20 MB. Blocks
 * of 8 kB are so frequent that returning them would make a start 7 % slower and save only 0.8 MB. No signal opens a
 * debugger's port. The launcher (scripts/agentd) does the same.
 *
 * Guarantees: programs that the daemon starts do not inherit the settings made here. A setting that the user made is
 * not changed.
 */

/**
 * Node flags that keep Node's compiled code of its own modules valid. Without the small young generation an idle daemon
 * uses 66 MB of private memory instead of 53 MB.
 */
const FLAGS = ["--max-semi-space-size=1", "--disable-sigusr1"]

/** Read by the C library when the process starts. */
const VARIABLES = { MALLOC_ARENA_MAX: "1", MALLOC_TRIM_THRESHOLD_: "131072", MALLOC_MMAP_THRESHOLD_: "16000" } as const

/** Variable with the names of the variables that were set here for the daemon. */
export const GIVEN = "AGENTD_GIVEN"

export const commandOf = ([node = "", ...args]: ReadonlyArray<string>): ReadonlyArray<string> => [
  node,
  ...FLAGS,
  ...args
]

/** The variables to set in addition to `env`. */
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
