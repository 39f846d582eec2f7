/** EndReasons: messages that tell the user why a run ended, for ends that do not count as errors. Pure. */
export const ENDINGS = {
  quota: "its quota is used up",
  unavailable: "its provider was unavailable",
  auth: "its login was refused",
  overflow: "its context was full",
  held: "its session is open in another process",
  lost: "the reason is unknown",
  taken: "agentd ended, which is not the agent's fault"
} as const
