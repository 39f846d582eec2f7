/**
 * States of the page that are no page of work: sessions of people, no token, a link that is used up, a token that was
 * taken back, names that mean nothing, the daemon away. Each says what is so and what to do, and has nothing that axe
 * finds. `SHOTS=folder`: a picture of each.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { request } from "node:http"
import { createRequire } from "node:module"
import { join } from "node:path"
import type { Page } from "playwright-core"
import * as Stage from "../../support/Stage.ts"
import { browser, DESK, freePort, isMissing, linkOf, missing, openPage, PHONE } from "./Browser.ts"
import * as InPage from "./InPage.ts"
import { isAll } from "../../support/Long.ts"

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")
const SHOTS = process.env["SHOTS"]

const promise = <A>(run: () => Promise<A>) => Effect.promise(run)
const at = (page: Page, hash: string) => page.evaluate(`void (location.hash = ${JSON.stringify(hash)})`)
const has = (page: Page, text: string | RegExp) => page.getByText(text).filter({ visible: true }).first().waitFor()

/** A hook of a person's own session, as Claude Code sends it. */
const hook = (socketPath: string, body: object) =>
  Effect.callback<number>((resume) => {
    const headers = { "content-type": "application/json" }
    const sent = request({ socketPath, path: "/hooks/claude", method: "POST", headers }, (response) => {
      response.resume().on("end", () => resume(Effect.succeed(response.statusCode ?? 0)))
    })
    sent.end(JSON.stringify(body))
  })

const LOOKS = [
  [DESK, "light"],
  [PHONE, "dark"],
  [DESK, "dark"],
  [PHONE, "light"]
] as const

/** Looks at what is shown: one state on a desk, the next on a phone; each in all ways with ALL=1, or for pictures. */
const looking = (found: Array<string>) => {
  let turn = 0
  return async (name: string, page: Page) => {
    await page.evaluate(AXE)
    const inAllWays = SHOTS !== undefined || isAll
    for (const [size, colorScheme] of inAllWays ? LOOKS : [LOOKS[turn++ % LOOKS.length]!]) {
      await page.setViewportSize(size)
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
      const violations = (await page.evaluate(InPage.axe)) as ReadonlyArray<string>
      for (const one of violations) found.push(`${name} at ${size.width}, ${colorScheme}: ${one}`)
      if (SHOTS !== undefined)
        await page.screenshot({ path: `${SHOTS}/state-${name}-${size.width}-${colorScheme}.png` })
    }
    await page.setViewportSize(DESK)
  }
}

describe.skipIf(isMissing)(`states of the page${missing}`, () => {
  it.live("each says what is so and what to do, and axe finds nothing in it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const stage = yield* Stage.make
        stage.box.setUser({ http: { port: yield* freePort }, orphanGrace: "0 seconds" })
        const shop = stage.home({ name: "shop", agents: { talker: stage.agent("acp") } })
        yield* stage.up
        yield* shop.register
        const chromium = yield* browser
        const found: Array<string> = []
        const look = looking(found)
        const link = yield* linkOf(shop)
        const seen = yield* promise(() => openPage(chromium, link))
        const { page } = seen

        const socket = join(stage.box.state, "http.sock")
        const event = (name: string, more: object = {}) =>
          hook(socket, { session_id: "s-1", cwd: shop.root, hook_event_name: name, ...more })
        assert.strictEqual(yield* event("SessionStart", { source: "startup" }), 202)
        assert.strictEqual(yield* event("UserPromptSubmit", { prompt: "fix the flaky cart test" }), 202)
        yield* promise(async () => {
          await page.locator('a.row[href^="#/session/"]').first().waitFor()
          await look("board-with-session", page)
          const href = await page.locator('a.row[href^="#/session/"]').first().getAttribute("href")
          await at(page, href ?? "")
          await page.getByRole("heading", { level: 1 }).waitFor()
          await has(page, "It runs in its own terminal")
          await has(page, "working")
          await look("session-working", page)
        })
        yield* event("Notification", { notification_type: "agent_needs_input", message: "Claude has a question" })
        yield* promise(async () => {
          await page.locator(".top").getByText("needs you").waitFor()
          await look("session-asks", page)
          await at(page, "#/session/none")
          await has(page, "This session has ended")
          await look("session-none", page)
          for (const [name, hash, says] of [
            ["agent", "#/agent/shop/nobody", "No agent is called shop/nobody"],
            ["goal", "#/goal/shop/g99", /g99/],
            ["channel", "#/channel/shop/none", /none/]
          ] as const) {
            await at(page, hash)
            await has(page, says)
            await page.locator(".empty-title").waitFor()
            await look(`unknown-${name}`, page)
          }
        })

        // no token: never one, a link that is used up, one that was taken back
        yield* promise(async () => {
          const none = await openPage(chromium, new URL(link).origin)
          await has(none.page, "This page has no access")
          await look("locked", none.page)
          const used = await openPage(chromium, link)
          await has(used.page, /used|valid once/)
          await look("locked-used", used.page)
          assert.deepStrictEqual([...none.faults, ...used.faults], [])
          await none.context.close()
          await used.context.close()
        })
        const viewer = yield* linkOf(shop, "--view")
        const view = yield* promise(() => openPage(chromium, viewer))
        yield* promise(async () => {
          await has(view.page, "view only")
          await at(view.page, "#/goals/new")
          await has(view.page, "This page can only show things.")
          await look("view-only", view.page)
        })
        const tokens = JSON.parse((yield* shop.cli("--json", "access", "ls")).stdout) as ReadonlyArray<{
          readonly id: string
          readonly right: string
        }>
        yield* shop.cli("access", "revoke", tokens.find(({ right }) => right === "view")?.id ?? "")
        yield* promise(async () => {
          await has(view.page, "This page no longer has access")
          await has(view.page, "agentd open")
          await look("locked-revoked", view.page)
          assert.deepStrictEqual(view.faults, [])
          await view.context.close()
        })

        // the daemon is away: what was shown stays; what was never read says so
        yield* promise(async () => {
          await at(page, "#/")
          await page.locator("a.row").first().waitFor()
          await page.evaluate(InPage.workerReady)
        })
        yield* stage.box.kill9
        yield* promise(async () => {
          await has(page, /The data is \d+ s old/)
          await look("away-board", page)
          await at(page, "#/cost")
          await has(page, "The daemon cannot be reached")
          await look("away-cost", page)
          await at(page, "#/goal/shop/g1")
          await has(page, "The daemon cannot be reached")
          await look("away-goal", page)
          const fresh = await seen.context.newPage()
          await fresh.goto(new URL(link).origin)
          await has(fresh, "The daemon cannot be reached")
          await look("away-fresh", fresh)
          await fresh.close()
          assert.deepStrictEqual(seen.faults, [])
        })
        assert.deepStrictEqual(found, [])
      })
    )
  )
})
