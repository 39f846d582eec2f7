/**
 * Bench of another machine's daemon, through a real sshd on loopback: `ps --host` beside a local `ps` and an `ssh` that
 * only starts `dial-stdio` there, over the same kept connection; and calls over a held connection beside local ones.
 */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Exit, Scope } from "effect"
import { call } from "../../src/api/rpc/ControlClient.ts"
import { type Host, parse } from "../../src/config/Host.ts"
import { commandOf } from "../../src/runs/HostConnection.ts"
import { setup } from "../../test/support/Program.ts"
import * as SshHosts from "../../test/support/SshHosts.ts"
import { type Bench, folder, interleave, type Measure, type Subject } from "./Bench.ts"
import { crewOf, dismissed } from "./Installed.ts"

const [ROUNDS, CALLS, AGENTS] = [11, 200, 10] as const

const measures: ReadonlyArray<Measure> = [
  { what: "ps", unit: "ms", better: "less" },
  { what: "100 calls, held connection", unit: "ms", better: "less" }
]

const [FAR, PARTS, HERE] = ["over a host", "local ps, and ssh dial-stdio", "local"] as const

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

/** Time of 100 calls one after the other, over one connection, without the time to connect. */
const held = (address: string): Promise<number> =>
  call(address, (client) =>
    Effect.gen(function* () {
      yield* client.Agents()
      const begin = performance.now()
      for (let n = 0; n < CALLS; n++) yield* client.Agents()
      return ((performance.now() - begin) * 100) / CALLS
    })
  ).pipe(Effect.provide(NodeServices.layer), Effect.runPromise)

export const bench: Bench = {
  name: "hosts",
  isLong: true,
  run: async () => {
    if (SshHosts.missing !== undefined) throw new Error(`there is no ${SshHosts.missing}`)
    setup()
    const scope = Effect.runSync(Scope.make())
    const within = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) =>
      Effect.runPromise(Effect.provideService(effect, Scope.Scope, scope))
    const hosts = await within(SshHosts.make)
    const machine = await within(hosts.machine())
    const crew = await crewOf(folder(), join(machine.folder, "bin", "agentd"), AGENTS)
    const url = `${machine.url}${crew.state}`
    // the ssh of the tests has the key of the machine
    process.env["PATH"] = hosts.environment["PATH"]
    const ps = (...daemon: ReadonlyArray<string>) => Effect.runPromise(hosts.cli(...daemon, "ps"))
    const [ssh = "", ...args] = commandOf(parse(url) as Host, ["dial-stdio"], false)
    const dial = async () => execFileSync(ssh, args, { stdio: ["ignore", "ignore", "inherit"], env: hosts.environment })
    const subjects: ReadonlyArray<Subject> = [
      {
        subject: FAR,
        round: async () => ({
          ps: await timed(() => ps("--host", url)),
          "100 calls, held connection": await held(url)
        })
      },
      {
        subject: PARTS,
        round: async () => ({
          ps: await timed(async () => {
            await ps("--state", crew.state)
            await dial()
          })
        })
      },
      {
        subject: HERE,
        round: async () => ({
          ps: await timed(() => ps("--state", crew.state)),
          "100 calls, held connection": await held(join(crew.state, "control.sock"))
        })
      }
    ]
    try {
      return await interleave(measures, subjects, ROUNDS)
    } finally {
      await dismissed(crew)
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  },
  aims: [{ what: "ps", of: FAR, to: { subject: PARTS }, atMost: 1.3 }]
}
