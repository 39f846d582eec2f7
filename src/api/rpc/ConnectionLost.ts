/**
 * ConnectionLost: the error for a daemon that ends before it has answered. The command might have been carried out.
 * Pure.
 */
export const lostAnswer = (socket: string) => ({
  reason: "lost",
  message: `The daemon at ${socket} stopped before it answered.`,
  remedy: "Start it again: agentd start. Its log shows what it has done: agentd log"
})
