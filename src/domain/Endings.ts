/** Endings: why a run ended without counting as an error, in the words that people read. Pure. */
export const ENDINGS = {
  quota: "its quota is used up",
  unavailable: "its provider could not be had",
  auth: "its login was refused",
  overflow: "its context was full",
  held: "its conversation is open elsewhere",
  lost: "nobody knows how",
  taken: "agentd ended, which is no fault of its own"
} as const
