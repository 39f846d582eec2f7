/**
 * Version: which agentd this is, and which versions of the control protocol it speaks. Pure.
 */

/** As in package.json, which a bundle does not have beside it: a test compares the two. */
export const VERSION = "0.1.0"

/** The control protocol's version: one more with each change that a peer of before would misread. */
export const PROTOCOL = 2
/** The oldest version that the daemon answers. */
export const OLDEST_PROTOCOL = 1

/** The introduction that either side gives in its first frame. */
export interface Peer {
  readonly protocol: number
  readonly version: string
}

export const ourselves: Peer = { protocol: PROTOCOL, version: VERSION }

/** A client introduces itself with its process, too, so that the daemon need not search for who acts. */
export const introduction = (): Peer & { readonly pid: number } => ({ ...ourselves, pid: process.pid })

/** Why the daemon does not speak with a client of these versions; undefined where it does. */
export const mismatch = ({
  protocol,
  version
}: Peer): { readonly message: string; readonly remedy: string } | undefined => {
  const message = `The daemon is agentd ${VERSION} and speaks protocol ${PROTOCOL}; this command is of agentd ${version} and speaks ${protocol}.`
  if (protocol > PROTOCOL) return { message, remedy: "Restart the daemon, and it is the installed one: agentd restart" }
  if (protocol < OLDEST_PROTOCOL)
    return { message, remedy: `Use the command of agentd ${VERSION}; this one is at: command -v agentd` }
  return undefined
}
