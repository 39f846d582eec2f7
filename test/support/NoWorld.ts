/**
 * NoWorld: makes a unit test fail if it starts a process or opens a socket, even if the code under test handles the
 * error.
 */
import childProcess from "node:child_process"
import { syncBuiltinESMExports } from "node:module"
import net from "node:net"
import { afterAll, expect } from "vitest"

const guarded = Symbol.for("agentd/test/guarded")
/** Calls in the whole process: this module is loaded again for each test file. */
const shared = globalThis as { [of: symbol]: Array<string> | undefined }
const done = (shared[Symbol.for("agentd/test/done")] ??= [])

type Callable = (...args: Array<unknown>) => unknown

const guard = (on: object, name: string): void => {
  const owner = on as { [name: string]: Callable & { [guarded]?: true } }
  const real = owner[name]!
  if (real[guarded] === true) return
  const refusing = function (this: unknown, ...args: Array<unknown>): unknown {
    // tests of another vitest project can run in this process
    if (!/\/test\/unit\//.test(expect.getState().testPath ?? "")) return real.apply(this, args)
    done.push(name)
    throw new Error(`a unit test calls ${name}`)
  }
  owner[name] = Object.assign(refusing, { [guarded]: true as const })
}

for (const name of ["exec", "execFile", "execFileSync", "execSync", "fork", "spawn", "spawnSync"])
  guard(childProcess, name)
guard(net.Server.prototype, "listen")
guard(net.Socket.prototype, "connect")
syncBuiltinESMExports()

afterAll(() => {
  const all = [...new Set(done.splice(0))]
  if (all.length > 0) throw new Error(`a unit test calls ${all.join(", ")}: put its file beside test/unit`)
})
