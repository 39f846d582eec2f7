/** The page approves a call for longer than once: a rule is chosen, its change is seen, and only then it is kept. */
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import * as Stage from "../../support/Stage.ts"
import * as InPage from "./InPage.ts"
import { browser, freePort, isMissing, linkOf, missing, openPage, PHONE } from "./Browser.ts"

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** Where pictures of the page are kept, if somebody wants to look at it. */
const PICTURES = process.env["AGENTD_PICTURES"]

const COMMAND = "npm test 2>&1 | tail -5"

describe.skipIf(isMissing)(`a call on the page${missing}`, () => {
  it.live("is approved for longer by keys, after the change of the file was shown", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      stage.box.setUser({ http: { port: yield* freePort }, orphanGrace: "0 seconds" })
      const shop = stage.home({
        name: "shop",
        agents: { builder: stage.agent("claude"), other: stage.agent("claude") }
      })
      yield* stage.up
      yield* shop.register
      const [chromium, link] = [yield* browser, yield* linkOf(shop)]
      const { faults, page } = yield* Effect.promise(() => openPage(chromium, link))
      const picture = async (name: string) => {
        if (PICTURES === undefined) return
        mkdirSync(PICTURES, { recursive: true })
        await page.screenshot({ path: join(PICTURES, `${name}.png`) })
      }
      yield* shop.tell("builder", { ask: COMMAND })
      yield* shop.asked("builder")
      yield* shop.tell("other", { ask: COMMAND })
      yield* shop.asked("other")
      yield* Effect.promise(async () => {
        await page.evaluate("void (location.hash = '#/needs')")
        await page.locator("h1").first().click()
        await page.getByRole("button", { name: "Decide alone" }).first().click()
        await page.getByRole("heading", { name: "Asks to run Bash" }).waitFor()
        await picture("page-asks")
        await page.waitForTimeout(400)
        await page.keyboard.press("l")
        const everyone = page.getByRole("button", { name: "for everyone here", exact: true })
        await everyone.waitFor()
        for (const scope of ["for this run", "for this agent", "always in this project"])
          await page.getByRole("button", { name: scope, exact: true }).waitFor()
        await page.getByText("Kept in the state of the run").waitFor()
        await picture("page-run")
        await page.keyboard.press("2")
        await page.getByRole("button", { name: "always in this project", exact: true }).click()
        await page.getByText(/Written into .*config\.jsonc/).waitFor()
        await picture("page-project")
        await everyone.click()
        await page.getByText(/Written into .*agentd\.jsonc/).waitFor()
        await page.getByText('"allow": "npm test **"').waitFor()
        await picture("page-everyone")
        await page.evaluate(AXE)
        assert.deepStrictEqual(await page.evaluate(InPage.axe), [])
        await page.setViewportSize(PHONE)
        await picture("phone-everyone")
        assert.notInclude(readFileSync(shop.config, "utf8"), "allow")
        await page.getByRole("button", { name: "Read to the end first" }).waitFor()
        for (let presses = 0; presses < 20; presses++) {
          await page.waitForTimeout(400)
          await page.keyboard.press("a")
          if (await page.getByText("Nothing waits for you").isVisible()) break
        }
        await page.getByText("Nothing waits for you").waitFor()
      })
      expect(readFileSync(shop.config, "utf8")).toContain('{ "allow": "npm test **" }')
      const runes = yield* shop.log("tool.approved")
      expect(runes.map(({ payload }) => payload["approver"])).toEqual([expect.any(String), "rules"])
      expect(runes[0]!.payload["event"]).toMatchObject({ scope: "everyone", rules: [{ command: "npm test **" }] })
      const told = (yield* shop.why("builder")).lines.map(({ text }) => text).join("\n")
      expect(told).toMatch(/Bash: npm test .*: approved by .+, for everyone here: npm test \*\*/)
      const ruled = (yield* shop.why("other")).lines.map(({ text }) => text).join("\n")
      expect(ruled).toMatch(/allowed by a rule that was added: .*allow "npm test \*\*" \(agentd\.jsonc:\d+\)/)
      assert.deepStrictEqual(faults, [])
    }).pipe(Effect.scoped)
  )

  it.live("of one kind are one question with a row each: all at once, or one alone", () =>
    Effect.gen(function* () {
      const stage = yield* Stage.make
      stage.box.setUser({ http: { port: yield* freePort }, orphanGrace: "0 seconds" })
      const names = ["builder", "other", "third"]
      const shop = stage.home({
        name: "shop",
        agents: Object.fromEntries(names.map((name) => [name, stage.agent("claude")]))
      })
      const scripts = { build: "true", lint: "true", docs: "true" }
      writeFileSync(join(shop.root, "package.json"), JSON.stringify({ scripts }))
      yield* stage.up
      yield* shop.register
      const [chromium, link] = [yield* browser, yield* linkOf(shop)]
      const { faults, page } = yield* Effect.promise(() => openPage(chromium, link))
      for (const [n, name] of names.entries()) {
        yield* shop.tell(name, { ask: `npm run ${Object.keys(scripts)[n]}` })
        yield* shop.asked(name)
      }
      const press = async (key: string, until: string) => {
        for (let presses = 0; presses < 20; presses++) {
          await page.waitForTimeout(400)
          await page.keyboard.press(key)
          if (await page.getByText(until).first().isVisible()) return
        }
        await page.getByText(until).first().waitFor()
      }
      yield* Effect.promise(async () => {
        await page.evaluate("void (location.hash = '#/needs')")
        await page.getByRole("heading", { name: "3 calls: npm run …" }).waitFor()
        await page.getByText("(shop/builder, shop/other, shop/third)").first().waitFor()
        if (PICTURES !== undefined) await page.screenshot({ path: join(PICTURES, "page-batch.png") })
        await page.evaluate(AXE)
        assert.deepStrictEqual(await page.evaluate(InPage.axe), [])
        await page.getByRole("button", { name: "Decide alone" }).nth(2).click()
        await page.getByRole("heading", { name: "Asks to run Bash" }).waitFor()
        await press("a", "2 calls: npm run …")
        await press("a", "Nothing waits for you")
      })
      const runes = yield* shop.log("tool.approved")
      expect(runes.map(({ actor }) => actor.split("/")[1])).toEqual(["third", "builder", "other"])
      expect(runes.map(({ payload }) => payload["approver"])).not.toContain("rules")
      assert.deepStrictEqual(faults, [])
    }).pipe(Effect.scoped)
  )
})
