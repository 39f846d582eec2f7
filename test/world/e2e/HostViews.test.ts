/** Views of several hosts, through a real sshd on loopback: the board in a terminal, and the page. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import * as BoardTerminal from "../../support/BoardTerminal.ts"
import { QUICK } from "../../support/Program.ts"
import * as SshHosts from "../../support/SshHosts.ts"
import * as Stage from "../../support/Stage.ts"
import { browser, freePort, isMissing, linkOf, missing, openPage, PHONE } from "../web/Browser.ts"
import * as InPage from "../web/InPage.ts"

if (SshHosts.missing !== undefined)
  process.stderr.write(`test/world/e2e/HostViews: hosts are not tested: there is no ${SshHosts.missing}.\n`)

/**
 * A machine with an agent, the host `cellar` with two others, and hosts that do not answer: `attic` cannot be reached,
 * `loft` says nothing, and `vault` refuses the key.
 */
const world = Effect.gen(function* () {
  const hosts = yield* SshHosts.make
  const machine = yield* hosts.machine()
  const frozen = yield* hosts.machine("exec cat > /dev/null")
  const stage = yield* Stage.make
  const shop = stage.home({ name: "shop", agents: { builder: stage.agent("claude"), other: stage.agent("claude") } })
  yield* stage.up
  yield* shop.register
  const here = yield* Stage.make
  here.box.setUser({ http: { port: yield* freePort }, orphanGrace: "0 seconds" })
  const saved = {
    cellar: `${machine.url}${stage.box.state}`,
    attic: "ssh://127.0.0.1:1",
    loft: frozen.url,
    vault: `ssh://stranger@127.0.0.1:${machine.port}`
  }
  for (const config of [undefined, join(here.box.folder, "config")]) hosts.save(saved, config)
  Object.assign(here.box.environment, { PATH: hosts.environment["PATH"], SSH_AUTH_SOCK: "" })
  const site = here.home({ name: "site", agents: { writer: here.agent("claude") } })
  yield* here.up
  yield* site.register
  return { here, hosts, shop, site, stage }
})

/** Number of programs on this machine that connect, or try to connect, to a host. */
const dialsOf = ({ folder }: SshHosts.SshHosts): number =>
  execFileSync("ps", ["-eo", "args="], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(`${folder}/ssh_config`) && line.includes("dial-stdio")).length

/** Where pictures of the page are kept, if somebody wants to look at it. */
const PICTURES = process.env["AGENTD_PICTURES"]

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
          `'${process.execPath}' '${QUICK}' --state '${here.box.state}' --all-hosts`,
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
        yield* here.box.until("the conversation is open", Effect.sync(all), (text) => /\bother> /.test(text))
        yield* press("once more\r")
        yield* shop.answers("other", 2)
        yield* press("/quit\r")
        yield* here.box.until("the board is back", Effect.sync(all), (text) => text.split("\u001b[?1049h").length === 3)
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

  it.live.skipIf(isMissing)(`the page lists what runs on the other hosts, while it is open${missing}`, () =>
    Effect.gen(function* () {
      const { hosts, shop, site, stage } = yield* world
      yield* shop.tell("builder", { ask: ASKED })
      yield* shop.asked("builder")
      const link = yield* linkOf(site)
      const { context, faults, page } = yield* Effect.flatMap(browser, (chromium) =>
        Effect.promise(() => openPage(chromium, link))
      )
      const there = page.getByRole("region", { name: /^Other hosts/ })
      yield* Effect.promise(async () => {
        await there.getByText("cellar:shop/builder").waitFor()
        await there.getByText("1 needs you").waitFor()
        await page.getByText("1 on other hosts").waitFor()
        await there.getByText(/^agentd --host cellar approve /).waitFor()
        await there.getByText("agentd attach cellar:shop/other").waitFor()
        await there.getByText(/attic/).waitFor()
        await there.getByText(/within 3 s/).waitFor()
        await there.getByText("refused: the key needs your agent").waitFor()
        await page.locator(".list").getByText("site/").first().waitFor()
        if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, "page-hosts.png") })
        await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"))
        assert.deepStrictEqual(await page.evaluate(InPage.axe), [])
        await page.setViewportSize(PHONE)
        if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, "page-hosts-phone.png") })
      })
      const { callId } = yield* shop.asked("builder")
      yield* shop.answer(callId, "allow")
      yield* Effect.promise(() => there.getByText("1 needs you").waitFor({ state: "detached" }))
      yield* stage.box.kill9
      yield* Effect.promise(() => there.getByText(/^does not answer: .*No daemon|^does not answer: .*ended/).waitFor())
      const dials = Effect.sync(() => dialsOf(hosts))
      assert.isAbove(yield* dials, 0)
      yield* Effect.promise(() => context.close())
      yield* site.until("no connection is left", dials, (count) => count === 0)
      assert.deepStrictEqual(faults, [])
    })
  )
})
