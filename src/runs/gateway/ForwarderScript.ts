/**
 * ForwarderScript: the first process of a confined run whose model is reachable only through the gateway, as a script
 * for `node -e SCRIPT -- SOCKET PORT COMMAND …`. It listens on the loopback interface of the run's own network,
 * forwards each connection to the run's socket, and starts the command. It ends when the command ends.
 *
 * Guarantees: The command starts when the port listens. The command uses the script's standard streams. Signals are
 * passed on to the command. The script keeps the run's route open, and reconnects if the gateway has restarted.
 */
export const FORWARDER_SCRIPT = String.raw`
const { spawn } = require("node:child_process")
const http = require("node:http")
const net = require("node:net")
const os = require("node:os")
const [socket, port, command, ...rest] = process.argv.slice(1)
const hold = () => {
  const held = http.get({ socketPath: socket, path: "/agentd/hold", agent: false }, (answer) => answer.resume())
  held.on("error", () => {})
  held.on("close", () => setTimeout(hold, 1000).unref())
}
const server = net.createServer((inner) => {
  const outer = net.connect(socket)
  const close = () => {
    inner.destroy()
    outer.destroy()
  }
  for (const end of [inner, outer]) end.on("error", close)
  inner.pipe(outer).pipe(inner)
})
const failed = (error) => {
  console.error(error.message)
  process.exit(127)
}
server.on("error", failed)
server.listen(Number(port), "127.0.0.1", () => {
  hold()
  const child = spawn(command, rest, { stdio: "inherit" })
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => child.kill(signal))
  // one without a listener would open a debugger's port
  for (const signal of ["SIGUSR1", "SIGUSR2"]) process.on(signal, () => child.kill(signal))
  child.on("error", failed)
  child.on("exit", (code, signal) => process.exit(code ?? 128 + (os.constants.signals[signal] ?? 0)))
})
`
