/** ConnectionLost: the errors for a daemon that does not answer, for all clients. Pure. */

/** The daemon ended before it answered. The command might have been carried out. */
export const lostAnswer = (socket: string) => ({
  reason: "lost",
  message: `The daemon at ${socket} stopped before it answered.`,
  remedy: "Start it again: agentd start. Its log shows what it has done: agentd log"
})

/** The daemon does not have the procedure. */
export const olderDaemon = (socket: string) => ({
  reason: "older",
  message: `The daemon at ${socket} is older than this client and does not support this command.`,
  remedy: "Restart it to run the installed version: agentd restart"
})

/** A state directory that is called like a status, which --state was probably taken for. */
const STATUS = /\/(done|failed|idle|open|paused|retrying|running|stopped|waiting|working)\/control\.sock$/

/**
 * The connection failed, and nothing was sent. `code`: the error of the connection, such as ENOENT; undefined if a
 * process listens and does not answer. `how`: what happened then.
 */
export const unanswered = (socket: string, code: string | undefined, how: string) => {
  // EAGAIN: a process listens on the socket, but does not accept the connection.
  if (code === undefined || code === "EAGAIN") {
    return {
      reason: "lost",
      message: `The daemon at ${socket} went away or does not answer: ${how}`,
      remedy: "See what it is doing: agentd status. If it hangs: agentd restart."
    }
  }
  if (code === "EACCES" || code === "EPERM") {
    return {
      reason: "forbidden",
      message: `The daemon at ${socket} belongs to another user.`,
      remedy: "Run this as the user that runs the daemon."
    }
  }
  return {
    reason: "not-running",
    message: `No daemon is running: nobody answers at ${socket}.`,
    remedy: STATUS.test(socket)
      ? "--state names a directory. To select rows by status, use --is instead: ps --is failed"
      : "Start it: agentd start. If it runs with another state directory, give the same --state DIR."
  }
}
