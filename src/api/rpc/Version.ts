/** Version: the version of this program, and the versions of the control protocol that it supports. Pure. */
import { isFar } from "../../config/Host.ts"
import { VERSION } from "../../config/Version.ts"

export { VERSION }

/**
 * Version of the control protocol. It is increased with each change that an older client or daemon would misunderstand.
 */
export const PROTOCOL = 2
export const OLDEST_PROTOCOL = 1

/** The versions that client and daemon each send in their first frame. */
export interface Peer {
  readonly protocol: number
  readonly version: string
}

export const ourselves: Peer = { protocol: PROTOCOL, version: VERSION }

/**
 * The frame that introduces a client. It contains the process id, so that the daemon need not search for the caller's
 * process. On another machine the id would be that of a stranger, so it is left out.
 */
export const introduction = (address: string): Peer & { readonly pid?: number } =>
  isFar(address) ? ourselves : { ...ourselves, pid: process.pid }

/** The reason why the daemon cannot talk to a client with these versions; undefined if it can. */
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
