/** Views of several hosts, through a real sshd on loopback: the board in a terminal. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as BoardTerminal from "../../support/BoardTerminal.ts"
import { QUICK } from "../../support/Program.ts"
import * as Sandbox from "../../support/Sandbox.ts"
import * as SshHosts from "../../support/SshHosts.ts"
import * as Stage from "../../support/Stage.ts"

if (SshHosts.missing !== undefined)
  process.stderr.write(`test/world/e2e/HostViews: hosts are not tested: there is no ${SshHosts.missing}.\n`)

/** A machine with an agent, the host `cellar` with another one, the host `attic`, which cannot be reached, and the host `loft`, which never answers. */
const world = Effect.gen(function* () {
  const here = yield* Sandbox.make()
  here.configure({ name: "site", agents: { writer: { backend: { type: "command", shell: "cat" } } } })
  yield* here.up()
  const stage = yield* Stage.make
  const shop = stage.home({ name: "shop", agents: { builder: stage.agent("claude"), other: stage.agent("claude") } })
  yield* stage.up
  yield* shop.register
  const hosts = yield* SshHosts.make
  const machine = yield* hosts.machine()
  const frozen = yield* hosts.machine("exec cat > /dev/null")
  hosts.save({ cellar: `${machine.url}${stage.box.state}`, attic: "ssh://127.0.0.1:1", loft: frozen.url })
  return { here, hosts, machine, shop, stage }
})

const ASKED = "npm test 2>&1 | tail -5"

describe.skipIf(SshHosts.missing !== undefined)("views of several hosts", () => {
  it.live.skipIf(!BoardTerminal.hasPty)(
    "the board has the rows of all hosts, and a key acts on the host of its row",
    () =>
      Effect.gen(function* () {
        const { here, hosts, shop, stage } = yield* world
        yield* shop.tell("builder", { ask: ASKED })
        yield* shop.asked("builder")
        const { all, grid, ended, press, shows } = yield* BoardTerminal.terminal(
          `'${process.execPath}' '${QUICK}' --state '${here.state}' --all-hosts`,
          hosts.environment
        )
        yield* shows(/cellar:shop\/builder .*npm test/)
        yield* shows(/site\/writer/)
        yield* shows(/attic +does not answer: .*cannot be reached/)
        yield* press("a")
        yield* shows("1 of 1  cellar:shop/builder")
        yield* shows(ASKED)
        yield* Effect.sleep(400)
        yield* press("a")
        yield* shop.of("builder", 1, "tool.approved")
        yield* shows(/^ cellar: /)
        yield* shows(/loft +does not answer: .*within 3 s/)
        yield* press("/other\r")
        yield* press("s")
        yield* shows("to cellar:shop/other:")
        yield* press("hello from afar\r")
        yield* shop.answers("other", 1)
        yield* press("\r")
        yield* here.until("the conversation is open", Effect.sync(all), (text) => /\bother> /.test(text))
        yield* press("once more\r")
        yield* shop.answers("other", 2)
        yield* press("/quit\r")
        yield* here.until("the board is back", Effect.sync(all), (text) => text.split("\u001b[?1049h").length === 3)
        yield* press("\u001b")
        yield* shows(/site\/writer/)
        yield* stage.box.kill9
        yield* shows(/cellar +does not answer: /)
        assert.isFalse(
          grid.lines.some((line) => line.includes("cellar:shop/")),
          "its rows are not told as if they were known"
        )
        yield* stage.box.up()
        yield* shows(/cellar:shop\/builder/)
        assert.isFalse(grid.lines.some((line) => /cellar +does not answer/.test(line)))
        yield* press("q")
        assert.strictEqual(yield* ended, 0)
      })
  )
})
