/** Endings: texts that tell the user why a run ended when its end does not count as an error. Pure. */
export const ENDINGS = {
  quota: "its quota is used up",
  unavailable: "its provider could not be had",
  auth: "its login was refused",
  overflow: "its context was full",
  held: "its conversation is open elsewhere",
  lost: "nobody knows how",
  taken: "agentd ended, which is no fault of its own"
} as const
