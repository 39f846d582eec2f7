/**
 * DialStdio: the program behind `agentd dial-stdio`, which `ssh` runs on the machine of the daemon. It connects its
 * standard input and output with the daemon's socket.
 *
 * Guarantees: the first line says whether the daemon was reached, and why not. The daemon finds this process at the
 * other end of its socket, so nothing that the far side says about itself decides who calls.
 */
import { connect } from "node:net"
import * as Account from "../config/Account.ts"
import { placesOf } from "../config/Places.ts"
import { unanswered } from "../api/rpc/ConnectionLost.ts"
import { ourselves } from "../api/rpc/Version.ts"
import { MARK } from "../runs/HostConnection.ts"

/** Exit code for a daemon that cannot be reached. */
const UNAVAILABLE = 69

/** Runs until either side ends. `args`: `[--state DIR] dial-stdio`. `env`: the variables that locate the socket. */
export const dial = (args: ReadonlyArray<string>, env: { readonly [name: string]: string | undefined }): void => {
  const { socket } = placesOf(
    { home: env["HOME"] || Account.home(), stateHome: env["XDG_STATE_HOME"], runtime: env["XDG_RUNTIME_DIR"] },
    args[0] === "--state" ? args[1] : undefined
  )
  const { stdin, stdout } = process
  const greet = (more: object): void => void stdout.write(`${MARK}${JSON.stringify({ ...ourselves, ...more })}\n`)
  const connection = connect(socket)
  let isOpen = false
  connection.on("connect", () => {
    isOpen = true
    greet({})
    stdin.pipe(connection)
    connection.pipe(stdout)
  })
  connection.on("error", (error: NodeJS.ErrnoException) => {
    process.exitCode = UNAVAILABLE
    if (!isOpen) greet({ error: unanswered(socket, error.code, error.message) })
  })
  connection.on("close", () => stdin.destroy())
  stdout.on("error", () => connection.destroy())
}
