/**
 * Patience: how long a test waits for an event before it gives up, in ms. A test never asserts a time: the limit only
 * ends a test that hangs. It is far above what the slowest machine needs while sixteen busy programs run.
 */
export const PATIENCE = 240_000
