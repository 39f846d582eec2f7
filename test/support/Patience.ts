/**
 * Patience: how long a test waits for an event before it gives up. A test never
 * asserts a time: the limit only ends a run that hangs, so it is far above what
 * the slowest machine takes with sixteen busy programs beside it.
 */
export const PATIENCE = 240_000
