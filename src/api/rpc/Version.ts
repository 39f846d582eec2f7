/** Version: the version of this agentd, and the versions of the control protocol that it supports. Pure. */

/** The version in package.json, repeated here because a bundle has no package.json. A test compares the two. */
export const VERSION = "0.1.0"

/** Version of the control protocol: increased with each change that an older peer would misread. */
export const PROTOCOL = 2
export const OLDEST_PROTOCOL = 1

/** The versions that either side sends in its first frame. */
export interface Peer {
  readonly protocol: number
  readonly version: string
}

export const ourselves: Peer = { protocol: PROTOCOL, version: VERSION }

/**
 * The introduction of a client. It also contains the process id, so that the daemon need not search for the caller's
 * process.
 */
export const introduction = (): Peer & { readonly pid: number } => ({ ...ourselves, pid: process.pid })

/** Why the daemon cannot talk to a client with these versions; undefined if it can. */
export const mismatch = ({
  protocol,
  version
}: Peer): { readonly message: string; readonly remedy: string } | undefined => {
  const message = `The daemon is agentd ${VERSION} and speaks protocol ${PROTOCOL}; this command is of agentd ${version} and speaks ${protocol}.`
  if (protocol > PROTOCOL) return { message, remedy: "Restart the daemon to run the installed version: agentd restart" }
  if (protocol < OLDEST_PROTOCOL)
    return { message, remedy: `Use the command of agentd ${VERSION}. To find this one: command -v agentd` }
  return undefined
}
