/** Goals, rooms, the timeline, supervision, cost, alerts and config in Chromium, before a real daemon: by visible text, by keys, with axe. */
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import * as Stage from "../../support/Stage.ts"
import {
  browser,
  DESK,
  freePort,
  isMissing,
  linkOf,
  missing,
  openPage,
  PHONE,
  type Seen,
  type Size
} from "./Browser.ts"
import * as InPage from "./InPage.ts"
import { sample } from "../../support/Long.ts"

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")
/** A folder for pictures of each page, in each size and theme. */
const SHOTS = process.env["SHOTS"]

interface World {
  readonly shop: Stage.Project
  readonly browser: Browser
  readonly seen: Seen
}
class Work extends Context.Service<Work, World>()("test/world/web/Work") {}

/** Does its task, but for one named `bad`. */
const WORKER = `p=$(cat); sleep 0.1; case $p in *"Task bad"*) echo "no key for the vault" >&2; exit 3;; esac; echo done`

const shell = (script: string, more: object = {}) => ({
  backend: { type: "command", shell: script, readyAfter: "50ms", killGrace: "1 second" },
  backoff: { base: "100ms", cap: "200ms" },
  minRunInterval: "0ms",
  ...more
})

const PLAN = {
  tasks: [
    { id: "schema", title: "Write the new payment schema", description: "One table, with what was paid and when." },
    { id: "keys", title: "Move the keys to the vault" },
    { id: "client", title: "Generate the API client", dependsOn: ["schema"] },
    { id: "bad", title: "Verify webhooks by signature", dependsOn: ["schema", "keys"] },
    { id: "docs", title: "Document the change", dependsOn: ["client"] },
    { id: "switch", title: "Switch over and watch an hour", dependsOn: ["client", "bad", "docs"] }
  ]
}

const configOf = (stage: Stage.Stage, more: object = {}): Parameters<Stage.Stage["home"]>[0] => ({
  name: "shop",
  agents: {
    ann: shell(WORKER),
    ben: shell(WORKER),
    talker: stage.agent("acp"),
    listener: stage.agent("acp"),
    writer: stage.agent("model", { budget: { perMonth: { tokens: 20 } } }),
    doomed: shell("exit 3", { mode: "loop", prompt: "work", maxConsecutiveErrors: 1 })
  },
  channels: { review: { agents: ["talker", "listener"], topic: "the pricing page" } },
  goals: { workers: ["ann", "ben"], maxTaskErrors: 1 },
  prices: { m: { input: 3, output: 15 } },
  ...more
})

const world = Layer.effect(
  Work,
  Effect.gen(function* () {
    const stage = yield* Stage.make
    const port = yield* freePort
    stage.box.setUser({ http: { port }, orphanGrace: "0 seconds", budget: { perDay: { usd: 60 } } })
    const shop = stage.home(configOf(stage))
    const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { cwd: shop.root })
    git("init", "-q", "-b", "main")
    git("-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "-q", "--allow-empty", "-m", "begin")
    yield* stage.up
    yield* shop.register
    const plan = join(stage.box.folder, "plan.json")
    writeFileSync(plan, JSON.stringify(PLAN))
    for (const goal of ["Port the shop to the new payment API", "Send receipts by mail"])
      yield* stage.rpc((client) =>
        client.GoalSubmit({ request: { goal, plan, autoStart: false }, caller: shop.caller })
      )
    const chromium = yield* browser
    const link = yield* linkOf(shop)
    const seen = yield* Effect.promise(() => openPage(chromium, link))
    return { shop, browser: chromium, seen }
  })
)

const promise = <A>(run: () => Promise<A>) => Effect.promise(run)
const at = (page: Page, hash: string) => page.evaluate(`void (location.hash = ${JSON.stringify(hash)})`)
const has = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor()
const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { name, level: 1 }).waitFor()

/** Presses a key as long as the button it stands for is there: a press that comes too early counts for nothing. */
const pressAway = async (page: Page, key: string, button: string) => {
  const there = page.getByRole("button", { name: button })
  const isGone = () =>
    there.waitFor({ state: "detached", timeout: 1_000 }).then(
      () => true,
      () => false
    )
  await there.waitFor()
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press(key)
    if (await isGone()) return
  }
  assert.fail(`the button ${button} is there after 60 presses of ${key}: ${await page.locator("body").innerText()}`)
}

const violations = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(AXE)
  return page.evaluate(InPage.axe)
}

const themes = (size: Size): ReadonlyArray<"light" | "dark"> =>
  sample(["light", "dark"], [size === DESK ? "light" : "dark"])

const PAGES = [
  ["goals", "#/goals"],
  ["new-goal", "#/goals/new"],
  ["goal", "#/goal/shop/g1"],
  ["plan", "#/goal/shop/g2"],
  ["channels", "#/channels"],
  ["channel", "#/channel/shop/review"],
  ["timeline", "#/timeline"],
  ["tree", "#/tree"],
  ["cost", "#/cost"],
  ["alerts", "#/alerts"],
  ["config", "#/config"]
] as const

describe.skipIf(isMissing)(`pages of work${missing}`, () => {
  layer(world, { excludeTestServices: true })("before a daemon", (it) => {
    it.effect("a plan is approved as it was shown, by a key; the graph moves, and says what stands still and why", () =>
      Effect.gen(function* () {
        const { page } = (yield* Work).seen
        yield* promise(async () => {
          await heading(page, "Board")
          await page.keyboard.press("g")
          await page.keyboard.press("l")
          await heading(page, "Goals")
          // a window decides only once a person has clicked in it
          await page.locator("h1").click()
          await has(page, "Port the shop to the new payment API")
          await at(page, "#/goal/shop/g1")
          await has(page, "One table, with what was paid and when.")
          await pressAway(page, "a", "Approve the plan")
          await page.getByRole("img", { name: /[34] of 6 tasks done.* failed or blocked/ }).waitFor()
          await page.locator(".task.t-failed", { hasText: "Verify webhooks" }).waitFor()
          await page.locator(".task.t-failed").click()
          await page.locator("aside").getByText("no key for the vault").first().waitFor()
          await page.locator(".task.dim", { hasText: "Document the change" }).waitFor()
          await page.keyboard.press("Escape")
          await page.locator(".task.dim").first().waitFor({ state: "detached" })
          await page.getByRole("button", { name: "Try again" }).waitFor()
        })
      })
    )

    it.effect("what ends a goal wants its key twice, and the first press says what the second does", () =>
      Effect.gen(function* () {
        const { seen, shop } = yield* Work
        const { page } = seen
        yield* promise(async () => {
          await at(page, "#/goal/shop/g1")
          await has(page, "Move the keys to the vault")
          await page.keyboard.press("x")
          await has(page, "Press again to cancel the goal")
        })
        const { goal } = yield* shop.stage.rpc((client) => client.Goal({ name: "g1", from: 0, caller: shop.caller }))
        assert.strictEqual(goal.state, "blocked")
      })
    )

    it.effect("a room takes a post, and shows who has the floor and what was said", () =>
      Effect.gen(function* () {
        const { page } = (yield* Work).seen
        yield* promise(async () => {
          await at(page, "#/channel/shop/review")
          await heading(page, "#review")
          await has(page, "the pricing page")
          await page.keyboard.press("s")
          await page.keyboard.type("Please look at the pricing page.")
          await page.keyboard.press("Enter")
          await page.locator(".msg.mine", { hasText: "Please look at the pricing page." }).waitFor()
          await page.locator(".seats", { hasText: "listener" }).waitFor()
          assert.strictEqual(await page.getByRole("textbox", { name: "Post to review" }).inputValue(), "")
        })
      })
    )

    it.effect("the timeline filters, and a chosen rune lists what led to it", () =>
      Effect.gen(function* () {
        const { page } = (yield* Work).seen
        yield* promise(async () => {
          await at(page, "#/timeline")
          await page.locator(".rune-row .kind").first().waitFor()
          await page.keyboard.press("/")
          await page.keyboard.type("kind:plan.")
          await page.locator(".rune-row", { hasText: "plan.blocked" }).first().waitFor()
          await page.locator(".rune-row", { hasText: "worker.moved" }).first().waitFor({ state: "detached" })
          await page.locator(".rune-row", { hasText: "plan.blocked" }).first().click()
          const rail = page.getByRole("complementary", { name: "Rune" })
          await rail.getByText("plan.blocked").first().waitFor()
          await rail.getByRole("heading", { name: "What led to it" }).waitFor()
          await page.keyboard.press("Escape")
          await page.keyboard.press("Escape")
          await rail.waitFor({ state: "detached" })
        })
      })
    )

    it.effect("the timeline shows a time, which its address keeps", () =>
      Effect.gen(function* () {
        const { page } = (yield* Work).seen
        yield* promise(async () => {
          await at(page, "#/timeline")
          await page.locator(".rune-row .kind").first().waitFor()
          await page.getByRole("combobox", { name: "Time" }).selectOption("Last hour")
          await page.getByText(/\d+ runes of \d+/).waitFor()
          assert.match(page.url(), /last=1h/)
          // nothing was before the daemon
          await page.getByRole("combobox", { name: "Time" }).selectOption("From … to …")
          await page.getByLabel("To", { exact: true }).fill("2020-01-01T10:00")
          await has(page, "No rune matches")
          await page.getByLabel("From", { exact: true }).fill("2020-01-01T09:00")
          await page.getByLabel("To", { exact: true }).fill("")
          await page.locator(".rune-row .kind").first().waitFor()
          await page.keyboard.press("Escape")
          await page.keyboard.press("/")
          await page.keyboard.type("kind:plan.")
          await page.locator(".rune-row", { hasText: "worker.moved" }).first().waitFor({ state: "detached" })
          assert.include(decodeURIComponent(page.url()), "from=2020-01-01T09:00&q=kind:plan.")
          await page.reload()
          await page.locator(".rune-row", { hasText: "plan." }).first().waitFor()
          assert.strictEqual(await page.getByLabel("From", { exact: true }).inputValue(), "2020-01-01T09:00")
          assert.strictEqual(await page.getByLabel("Filter", { exact: true }).inputValue(), "kind:plan.")
        })
      })
    )

    it.effect("supervision, alerts and cost say what there is", () =>
      Effect.gen(function* () {
        const { seen, shop } = yield* Work
        const { page } = seen
        yield* shop.tell("writer", { say: "hello" })
        yield* promise(async () => {
          await at(page, "#/tree")
          await heading(page, "Supervision")
          await page.getByRole("cell", { name: "shop", exact: false }).first().waitFor()
          await at(page, "#/alerts")
          await has(page, /doomed has failed/)
          await has(page, "not sent: no address is configured")
          await at(page, "#/cost")
          await page.locator(".cost-table", { hasText: "writer" }).waitFor()
          await has(page, "From the cache")
          await page.getByRole("img", { name: /USD by day; the newest/ }).waitFor()
          // today of the limit, and what is near its end
          await has(page, "USD of 60")
          const limits = page.getByRole("region", { name: "Limits" })
          await limits.getByText("this machine").waitFor()
          await limits.getByText("15 of 20 tokens").waitFor()
          await limits
            .getByText(/^resets in/)
            .first()
            .waitFor()
          await page.getByRole("radio", { name: "Hours" }).click()
          await page.getByRole("img", { name: /USD by hour; the newest/ }).waitFor()
          await page.getByRole("radio", { name: "Cache" }).click()
          await page.getByRole("heading", { name: "Tokens by hour and kind" }).waitFor()
          await page.locator(".legend", { hasText: "not cached 10" }).waitFor()
          await page.locator(".legend", { hasText: "output 5" }).waitFor()
          await page.getByRole("radio", { name: "Tokens" }).click()
          await page.locator(".legend", { hasText: "m 15" }).waitFor()
        })
      })
    )

    it.effect("a changed config shows what it would do, the dangerous first, and is trusted by its hash", () =>
      Effect.gen(function* () {
        const { seen, shop } = yield* Work
        const { page } = seen
        yield* promise(async () => {
          await at(page, "#/config")
          await has(page, "The current text of every config is in force.")
        })
        const { agents } = configOf(shop.stage)
        shop.configure(
          configOf(shop.stage, { agents: { ...agents, ann: shell("curl example.org", { role: "builds" }) } })
        )
        yield* shop.stage.rpc((client) => client.Register({ config: shop.config, trust: null, caller: shop.caller }))
        yield* promise(async () => {
          await has(page, "shop: the file has changed and is not in force.")
          const first = page.locator(".effects li").first()
          assert.include(await first.innerText(), "agents.ann.backend.shell")
          await first.getByRole("img", { name: "needs you" }).waitFor()
          await page.locator(".diff .add", { hasText: "curl example.org" }).waitFor()
          // what is in force is kept: it asks no more, and can still be looked at
          await pressAway(page, "d", "Keep the version in force")
          await has(page, "No config waits for you.")
        })
        const aside = yield* shop.cli("config", "diff")
        assert.match(aside.stdout, /put this change aside .* ago\. You are asked again when the file changes/)
        const [kept] = yield* shop.log("config.kept")
        assert.match(String(kept?.payload["by"]), /page/)
        assert.notInclude((yield* shop.cli("waiting")).stdout, "agentd.jsonc")
        // another change asks anew
        shop.configure(
          configOf(shop.stage, { agents: { ...agents, ann: shell("curl example.net", { role: "builds" }) } })
        )
        yield* shop.stage.rpc((client) => client.Register({ config: shop.config, trust: null, caller: shop.caller }))
        yield* promise(async () => {
          await has(page, "shop: the file has changed and is not in force.")
          await page.locator(".diff .add", { hasText: "curl example.net" }).waitFor()
          if (SHOTS !== undefined) await pictures(page, [["config-changed", "#/config"]])
          await pressAway(page, "a", "Trust this file")
          await has(page, "The current text of every config is in force.")
        })
      })
    )

    it.effect("no page has anything that axe finds, on a desk and on a phone, light and dark; nor a fault", () =>
      Effect.gen(function* () {
        const { seen } = yield* Work
        const { faults, page } = seen
        yield* promise(async () => {
          const found: Array<string> = []
          for (const size of [DESK, PHONE]) {
            await page.setViewportSize(size)
            for (const [name, hash] of PAGES) {
              await at(page, hash)
              await page.locator("#main h1").waitFor()
              await page.locator(".skeleton").waitFor({ state: "detached" })
              // each size in one theme, each theme in one size; all of them with ALL=1
              for (const colorScheme of themes(size)) {
                await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
                for (const one of await violations(page)) found.push(`${name} at ${size.width}, ${colorScheme}: ${one}`)
              }
            }
          }
          await page.setViewportSize(DESK)
          if (SHOTS !== undefined) await pictures(page, PAGES)
          assert.deepStrictEqual(found, [])
          assert.deepStrictEqual(faults, [])
        })
      })
    )
  })
})

const pictures = async (page: Page, pages: ReadonlyArray<readonly [name: string, hash: string]>) => {
  for (const [width, height] of [
    [1440, 900],
    [1024, 768],
    [390, 844]
  ] as const) {
    await page.setViewportSize({ width, height })
    for (const [name, hash] of pages) {
      await at(page, hash)
      await page.locator("#main h1").waitFor()
      await page.waitForTimeout(500)
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme })
        await page.screenshot({ path: `${SHOTS}/${name}-${width}-${colorScheme}.png` })
      }
    }
  }
  await page.setViewportSize(DESK)
}
