/** EndReasons: texts that tell the user why a run ended when its end does not count as an error. Pure. */
export const ENDINGS = {
  quota: "its quota is used up",
  unavailable: "its provider was unavailable",
  auth: "its login was refused",
  overflow: "its context was full",
  held: "its session is open in another process",
  lost: "the reason is unknown",
  taken: "agentd ended, which is not the agent's fault"
} as const
