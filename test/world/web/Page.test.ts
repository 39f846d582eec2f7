/** The page in Chromium, before a real daemon: by its visible text, its keys, and what it does not do. */
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { createRequire } from "node:module"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import * as Stage from "../../support/Stage.ts"
import * as InPage from "./InPage.ts"
import { browser, DESK, freePort, isMissing, linkOf, missing, openPage, PHONE, type Seen, STRANGE } from "./Browser.ts"

const HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

interface World {
  readonly shop: Stage.Project
  readonly browser: Browser
  readonly origin: string
  /** The page of a person who may act. */
  readonly seen: Seen
}
class Shop extends Context.Service<Shop, World>()("test/world/web/Shop") {}

const question = {
  questions: [
    {
      question: "Which region takes the canary?",
      header: "Region",
      multiSelect: false,
      options: [
        { label: "eu-west", description: "small" },
        { label: "us-east", description: "large" }
      ]
    }
  ]
}

const world = Layer.effect(
  Shop,
  Effect.gen(function* () {
    const stage = yield* Stage.make
    const port = yield* freePort
    stage.box.setUser({ http: { port }, orphanGrace: "0 seconds" })
    const shop = stage.home({
      name: "shop",
      agents: {
        approved: stage.agent("acp"),
        denied: stage.agent("claude"),
        chooser: stage.agent("claude"),
        asker: stage.agent("acp", { may: ["ask"] }),
        talker: stage.agent("acp"),
        editor: stage.agent("model", { worktree: true, approvals: { mode: "full_access" } }),
        failing: stage.agent("acp", { backend: { argv: ["/nowhere/acp"] }, maxConsecutiveErrors: 1 })
      }
    })
    writeFileSync(join(shop.root, "total.ts"), "one\ntwo\nthree\n")
    yield* git(shop.root, "init", "-q", "-b", "main")
    yield* git(shop.root, "add", "total.ts")
    yield* git(shop.root, "-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "-qm", "begin")
    yield* stage.up
    yield* shop.register
    const chromium = yield* browser
    const link = yield* linkOf(shop)
    const seen = yield* Effect.promise(() => openPage(chromium, link))
    return { shop, browser: chromium, origin: new URL(link).origin, seen }
  })
)

const git = (cwd: string, ...args: ReadonlyArray<string>) => Effect.sync(() => execFileSync("git", args, { cwd }))

const promise = <A>(run: () => Promise<A>) => Effect.promise(run)

/** Goes to a place of the page. */
const at = (page: Page, hash: string) => page.evaluate(`void (location.hash = ${JSON.stringify(hash)})`)
const has = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor()
const row = (page: Page, name: string) => page.locator("a.row", { hasText: name })
/** Presses a key until the text is there: a press that comes before its thing was in sight for a moment counts for nothing. */
const pressUntil = async (page: Page, key: string, text: string) => {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press(key)
    const isThere = await page
      .getByText(text)
      .first()
      .waitFor({ timeout: 1_000 })
      .then(
        () => true,
        () => false
      )
    if (isThere) return
  }
  assert.fail(`60 presses of ${key} bring no ${text}`)
}
/** A click that presses nothing: a window decides only once a person has clicked in it. */
const clickIn = (page: Page) => page.locator("h1").first().click()
const main = (page: Page) => page.locator("#main").innerText()

/** Violations that axe finds, as WCAG 2.2 AA and its best practice have it. */
const violations = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(AXE)
  return page.evaluate(InPage.axe)
}

describe.skipIf(isMissing)(`the page${missing}`, () => {
  layer(world, { excludeTestServices: true })("before a daemon", (it) => {
    it.effect("a link opens it once, and is gone from the address; without a token it says how to get one", () =>
      Effect.gen(function* () {
        const { browser, origin, seen, shop } = yield* Shop
        const link = yield* linkOf(shop)
        yield* promise(async () => {
          await has(seen.page, "Board")
          await row(seen.page, "talker").waitFor()
          assert.notInclude(seen.page.url(), "open=")
          const first = await openPage(browser, link)
          await row(first.page, "talker").waitFor()
          const second = await openPage(browser, link)
          await has(second.page, "This page has no access")
          await has(second.page, "agentd open")
          const none = await openPage(browser, `${origin}/#/needs`)
          await has(none.page, "This page has no access")
          assert.notInclude(await none.page.content(), "talker")
          for (const { context } of [first, second, none]) await context.close()
        })
      })
    )

    it.effect("the board moves, filters and folds by keys; letters in a dialog are no commands", () =>
      Effect.gen(function* () {
        const { page } = (yield* Shop).seen
        yield* promise(async () => {
          await at(page, "#/")
          await row(page, "talker").waitFor()
          await page.keyboard.press("/")
          await page.keyboard.type("talker")
          await row(page, "editor").waitFor({ state: "detached" })
          await page.keyboard.press("Enter")
          await page.locator("a.row.on", { hasText: "talker" }).waitFor()
          await page.locator("aside.peek").getByText("started by the project's file").waitFor()
          await page.keyboard.press("f")
          await row(page, "talker").waitFor({ state: "detached" })
          await page.keyboard.press("f")
          await page.keyboard.press("Escape")
          await row(page, "editor").waitFor()
          // r e s t a r t … would restart it, were it heard
          const acts: Array<string> = []
          page.on("request", (request) => {
            if (/\/v1\/(Restart|Stop|Interrupt)$/.test(request.url())) acts.push(request.url())
          })
          await page.keyboard.press("Control+k")
          await page.keyboard.type("rr xx ii")
          await has(page, "Nothing has this name.")
          await page.keyboard.press("Escape")
          await page.keyboard.press("?")
          await page.getByRole("dialog", { name: "Keys" }).waitFor()
          await page.keyboard.press("r")
          await page.keyboard.press("r")
          await page.keyboard.press("Escape")
          await page.getByRole("dialog").waitFor({ state: "detached" })
          assert.deepStrictEqual(acts, [])
          await page.keyboard.press("g")
          await page.keyboard.press("a")
          await page.getByRole("heading", { name: "Needs you" }).waitFor()
        })
      })
    )

    it.effect(
      "calls are approved and denied by keyboard, whole, one after another; a key for the one before does nothing",
      () =>
        Effect.gen(function* () {
          const { seen, shop } = yield* Shop
          const { page } = seen
          const made = join(shop.root, "approved", "made")
          const not = join(shop.root, "denied", "made")
          yield* promise(() => at(page, "#/needs"))
          yield* promise(() => clickIn(page))
          yield* shop.tell("approved", { ask: `touch '${made}' # \u202e${HOSTILE}` })
          const { callId } = yield* shop.asked("approved")
          yield* promise(async () => {
            const answers: Array<string> = []
            page.on("request", (request) => {
              if (request.url().endsWith("/v1/Answer")) answers.push(request.postData() ?? "")
            })
            // in the moment in which it is drawn
            await page.evaluate(InPage.pressAtOnce("a", "Approve once"))
            await has(page, /touch '.*made' # \\u\{202e\}<img src=x/)
            assert.deepStrictEqual(answers, [])
            await pressUntil(page, "a", "Nothing waits for you")
            assert.strictEqual(answers.length, 1)
            assert.include(answers[0], callId)
            assert.match(answers[0]!, /"hash":"[0-9a-f]{64}"/)
          })
          yield* shop.answers("approved", 1)
          assert.isTrue(existsSync(made))

          yield* shop.tell("denied", { ask: `touch '${not}'` })
          yield* shop.asked("denied")
          yield* promise(async () => {
            await has(page, "Approve once")
            await page.keyboard.press("d")
            await page.keyboard.type("not on a Friday")
            await pressUntil(page, "Enter", "Nothing waits for you")
          })
          const [answer] = yield* shop.answers("denied", 1)
          assert.include(String(answer), "not on a Friday")
          assert.isFalse(existsSync(not))
        })
    )

    it.effect("what is typed into a window that nobody has clicked in decides nothing, and the page says why", () =>
      Effect.gen(function* () {
        const { browser, shop } = yield* Shop
        const link = yield* linkOf(shop)
        const { origin } = new URL(link)
        const made = join(shop.root, "approved", "typed")
        yield* shop.tell("approved", { ask: `touch '${made}'` })
        const { callId } = yield* shop.asked("approved")
        const elsewhere = createServer((_, response) =>
          response
            .setHeader("content-type", "text/html")
            .end(`<body><script>onkeydown = () => location.assign("${origin}/#/needs/${callId}")</script>elsewhere`)
        )
        yield* promise(async () => {
          const { context, page } = await openPage(browser, link)
          const acts: Array<string> = []
          context.on("request", (request) => {
            const [, verb = ""] = /\/v1\/(\w+)$/.exec(request.url()) ?? []
            if (/^(Answer|Send|Dismiss|Stop|Register|Interrupt|Restart|Start)$/.test(verb)) acts.push(verb)
          })
          await row(page, "talker").waitFor()
          await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve))
          const { port } = elsewhere.address() as { readonly port: number }
          const refuses = async (press: () => Promise<void>) => {
            await page.evaluate("document.querySelector('.toast')?.classList.add('old')")
            await press()
            const said = page.locator(".toast:not(.old)")
            await said.getByText("Click in this window first.").waitFor()
            await said.getByText("a key that was meant for another window must not decide anything here").waitFor()
          }
          await page.goto(`http://127.0.0.1:${port}/`)
          await page.getByText("elsewhere").waitFor()
          await page.keyboard.press("b")
          // the link of a notice opens the right question
          await has(page, `touch '${made}'`)
          await page.waitForTimeout(500)
          const approve = page.getByRole("button", { name: "Approve once" })
          for (const key of ["a", "Enter", " "]) {
            await at(page, `#/needs/${callId}`)
            await approve.waitFor()
            if (key !== "a") await approve.focus()
            await page.waitForTimeout(400)
            await refuses(() => page.keyboard.press(key))
          }
          // a click that no hand has made is none
          await at(page, `#/needs/${callId}`)
          await approve.waitFor()
          await page.evaluate("dispatchEvent(new Event('pointerdown'))")
          await page.waitForTimeout(400)
          await refuses(() => page.keyboard.press("a"))
          await at(page, "#/agent/shop/talker")
          const box = page.getByLabel("Message to shop/talker")
          await box.waitFor()
          await box.focus()
          await page.keyboard.type("for another window")
          await refuses(() => page.keyboard.press("Enter"))
          assert.strictEqual(await box.inputValue(), "for another window")
          await box.fill("")
          await at(page, `#/needs/${callId}`)
          await approve.waitFor()
          await clickIn(page)
          // whatever takes the focus takes the hand
          await page.evaluate("dispatchEvent(new Event('blur'))")
          await page.waitForTimeout(400)
          await refuses(() => page.keyboard.press("a"))
          assert.deepStrictEqual(acts, [])
          await at(page, `#/needs/${callId}`)
          await clickIn(page)
          await pressUntil(page, "a", "Nothing waits for you")
          assert.deepStrictEqual(acts, ["Answer"])
          await context.close()
        })
        elsewhere.close()
        yield* shop.answers("approved", 2)
        assert.isTrue(existsSync(made))
      })
    )

    it.effect("a call is approved only once its end was in sight; nothing of it is beside the screen", () =>
      Effect.gen(function* () {
        const { seen, shop } = yield* Shop
        const { page } = seen
        const made = join(shop.root, "approved", "long")
        yield* promise(() => at(page, "#/needs"))
        const lines = Array.from({ length: 120 }, (_, n) => `# line ${n} ${"word ".repeat(n === 60 ? 200 : 1)}`)
        yield* shop.tell("approved", { ask: [...lines, `touch '${made}' # \u202e`].join("\n") })
        yield* shop.asked("approved")
        const approve = page.getByRole("button", { name: "Approve once" })
        const goOn = page.getByRole("button", { name: "Read to the end first" })
        yield* promise(async () => {
          await goOn.waitFor()
          await clickIn(page)
          const answers: Array<string> = []
          page.on("request", (request) => request.url().endsWith("/v1/Answer") && answers.push(request.url()))
          // a key goes on in the text
          await page.keyboard.press("a")
          await page.waitForTimeout(500)
          await goOn.waitFor()
          assert.isAbove(await page.evaluate("document.querySelector('.stage').scrollTop"), 100)
          const beside =
            "[...document.querySelectorAll('.one *')].some((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== 'visible')"
          assert.isFalse(await page.evaluate(beside))
          for (let presses = 0; presses < 40 && (await goOn.count()) > 0; presses++) await goOn.click()
          await approve.waitFor()
          assert.deepStrictEqual(answers, [])
          await has(page, "\\u{202e}")
          await pressUntil(page, "a", "Nothing waits for you")
        })
        yield* shop.answers("approved", 3)
        assert.isTrue(existsSync(made))
      })
    )

    it.effect("questions are answered by a number, and in own words", () =>
      Effect.gen(function* () {
        const { seen, shop } = yield* Shop
        const { page } = seen
        yield* promise(() => at(page, "#/needs"))
        yield* promise(() => clickIn(page))
        yield* shop.tell("chooser", { tool: ["AskUserQuestion", question] })
        yield* promise(async () => {
          await has(page, "Which region takes the canary?")
          await pressUntil(page, "2", "Nothing waits for you")
        })
        const [chosen] = yield* shop.answers("chooser", 1)
        assert.include(String(chosen), "us-east")

        yield* shop.tell("asker", { mcp: ["ask_person", { question: "Which branch?" }] })
        yield* promise(async () => {
          await has(page, "Which branch?")
          await page.keyboard.press("s")
          await page.keyboard.type("the one called main")
          await page.keyboard.press("Enter")
          await has(page, "Nothing waits for you")
        })
        yield* shop.until("the answer is told", shop.log("inbox.received"), (runes) =>
          runes.some(({ payload }) => JSON.stringify(payload).includes("the one called main"))
        )
      })
    )

    it.effect("an agent's conversation is there and goes on; what it says is text", () =>
      Effect.gen(function* () {
        const { seen, shop } = yield* Shop
        const { page } = seen
        yield* shop.tell("talker", { run: "echo from-the-tool" }, { say: `first ${HOSTILE}` })
        yield* shop.answers("talker", 1)
        yield* promise(async () => {
          await at(page, "#/agent/shop/talker")
          await has(page, /first <img src=x onerror="alert\(1\)">/)
          await page.locator("details.tool").first().waitFor()
          await page.getByLabel("The worker machine is in").waitFor()
          await clickIn(page)
          await page.locator("aside.rail").getByText("started by the project's file").waitFor()
          await page.keyboard.press("s")
          await page.keyboard.type('do: [{"say":"and second"}]')
          await page.keyboard.press("Enter")
          await has(page, /^and second$/)
          assert.strictEqual(await page.locator("#main img").count(), 0)
          await page.keyboard.press("Escape")
          await page.keyboard.press("Escape")
          await page.getByRole("heading", { name: "Board" }).waitFor()
        })
      })
    )

    it.effect("what ends work wants its key twice, and says so first", () =>
      Effect.gen(function* () {
        const { seen, shop } = yield* Shop
        const { page } = seen
        yield* shop.tell("talker", { stuck: true })
        // a row says what its agent does now
        yield* shop.row(
          "talker",
          "runs a command",
          ({ detail, word }) => word === "working" && detail.startsWith("runs sleep 300")
        )
        yield* promise(async () => {
          await at(page, "#/agent/shop/talker")
          await page.locator(".top").getByText("working").waitFor()
          await clickIn(page)
          await page.keyboard.press("i")
          await has(page, "Press i again to interrupt shop/talker: its current work is cut short.")
        })
        assert.strictEqual((yield* shop.row("talker", "still works", () => true)).word, "working")
        yield* promise(() => page.keyboard.press("i"))
        yield* shop.row("talker", "is idle", ({ word }) => word === "idle")
      })
    )

    it.effect("comments on lines of its changes go to an agent as one message", () =>
      Effect.gen(function* () {
        const { seen, shop } = yield* Shop
        const { page } = seen
        yield* shop.tell("editor", { tool: ["edit", { path: "total.ts", old: "two", new: "2" }] })
        yield* shop.answers("editor", 1)
        yield* promise(async () => {
          await at(page, "#/agent/shop/editor")
          await page.locator("details.tool[open]").getByText("+2").waitFor()
          await page.keyboard.press("v")
          await page.locator(".code.add", { hasText: "2" }).click()
          await page.keyboard.type("why not in words?")
          await page.keyboard.press("Enter")
          await page.locator(".code.del", { hasText: "two" }).click()
          await page.keyboard.type("keep it")
          await page.keyboard.press("Enter")
          await has(page, "2 comments")
          await page.getByRole("button", { name: "Send as one message" }).click()
          await page.getByText("2 comments").waitFor({ state: "detached" })
        })
        const texts = yield* shop.until(
          "the comments are told",
          Effect.map(shop.log("inbox.received"), (runes) => runes.map(({ payload }) => JSON.stringify(payload))),
          (texts) => texts.some((text) => text.includes("2 comments on your changes"))
        )
        const told = texts.find((text) => text.includes("2 comments on your changes"))!
        assert.include(told, "total.ts:2\\n    +2\\nwhy not in words?")
        assert.include(told, "total.ts:2 (as it was)\\n    -two\\nkeep it")
      })
    )

    it.effect("who may view sees all, and is offered nothing that acts", () =>
      Effect.gen(function* () {
        const { browser, shop } = yield* Shop
        const link = yield* linkOf(shop, "--view")
        const { context, faults, page } = yield* promise(() => openPage(browser, link))
        yield* promise(async () => {
          await row(page, "talker").waitFor()
          await has(page, "view only")
          await at(page, "#/agent/shop/talker")
          await has(page, "This page can only show things.")
          assert.strictEqual(await page.getByRole("button", { name: /Interrupt|Restart|Stop|Send/ }).count(), 0)
          assert.strictEqual(await page.locator("textarea").count(), 0)
          assert.deepStrictEqual(faults, [])
        })
        // a token that is taken back opens nothing, at once
        const tokens = JSON.parse((yield* shop.cli("--json", "access", "ls")).stdout) as ReadonlyArray<{
          readonly id: string
          readonly right: string
        }>
        const { id = "" } = tokens.find(({ right }) => right === "view") ?? {}
        yield* shop.cli("access", "revoke", id)
        yield* promise(async () => {
          await has(page, "This page no longer has access")
          assert.notInclude(await page.locator("body").innerText(), "talker")
          await context.close()
        })
      })
    )

    it.effect("no page has anything that axe finds, on a desk, light and dark, and on a phone", () =>
      Effect.gen(function* () {
        const { seen, shop } = yield* Shop
        const { page } = seen
        yield* shop.tell("approved", { ask: "touch hi" })
        yield* shop.asked("approved")
        yield* promise(async () => {
          const found: Array<string> = []
          const look = async (name: string) => {
            // a phone has the same colours
            const schemes =
              page.viewportSize()?.width === PHONE.width ? (["dark"] as const) : (["light", "dark"] as const)
            for (const colorScheme of schemes) {
              await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
              for (const one of await violations(page)) found.push(`${name}, ${colorScheme}: ${one}`)
            }
          }
          for (const size of [DESK, PHONE]) {
            await page.setViewportSize(size)
            const agents = ["talker", "editor", "approved"].map((name) => `#/agent/shop/${name}`)
            await at(page, "#/")
            const who = await row(page, "approved").locator(".who").boundingBox()
            assert.isAbove(who?.width ?? 0, 60, "a row says who it is")
            for (const hash of ["#/", "#/needs", ...agents]) {
              await at(page, hash)
              await page.locator("#main h1").waitFor()
              await look(`${hash} at ${size.width}`)
            }
          }
          await page.setViewportSize(DESK)
          await at(page, "#/agent/shop/editor")
          await page.getByRole("button", { name: "Changes" }).click()
          await page.locator(".code.add").first().waitFor()
          await look("changes")
          await page.keyboard.press("Control+k")
          await page.getByRole("dialog").waitFor()
          await look("palette")
          await page.keyboard.press("Escape")
          await page.emulateMedia({ colorScheme: null })
          assert.deepStrictEqual(found, [])
        })
      })
    )

    it.effect("a page of another port gets nothing, nor does one under another name", () =>
      Effect.gen(function* () {
        const { browser, shop } = yield* Shop
        const link = yield* linkOf(shop)
        const { origin } = new URL(link)
        const port = Number(new URL(origin).port)
        yield* promise(async () => {
          // the victim has a page of its own in this very browser
          const victim = await openPage(browser, link)
          await row(victim.page, "talker").waitFor()
          await victim.page.evaluate(InPage.workerReady)
          const server = createServer((_, response) => {
            response.setHeader("content-type", "text/html").end("<!doctype html><title>hostile</title><body></body>")
          })
          await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
          const { port: own } = server.address() as { readonly port: number }
          const attack = (page: Page): Promise<ReadonlyArray<string>> => page.evaluate(InPage.attack(origin))
          const hostile = await victim.context.newPage()
          await hostile.goto(`http://127.0.0.1:${own}/`)
          assert.deepStrictEqual(await attack(hostile), [])
          // a name that was turned to this machine is the daemon's own origin for the browser, and not for the daemon
          await hostile.goto(`http://${STRANGE}:${own}/`)
          assert.deepStrictEqual(await attack(hostile), [])
          const direct = await hostile.goto(`http://${STRANGE}:${port}/`)
          assert.notStrictEqual(direct?.status(), 200)
          assert.notInclude(await hostile.content(), "talker")
          await new Promise<void>((resolve) => {
            server.closeAllConnections()
            server.close(() => resolve())
          })
          await victim.context.close()
        })
        const { word } = yield* shop.row("talker", "goes on", () => true)
        assert.notStrictEqual(word, "done")
      })
    )

    it.effect("the board stands in the page when it comes: it is painted without the stream", () =>
      Effect.gen(function* () {
        const { page } = (yield* Shop).seen
        yield* promise(async () => {
          await at(page, "#/")
          await page.evaluate(InPage.workerReady)
          await page.route("**/board", (route) => route.abort())
          await page.reload()
          await row(page, "talker").waitFor()
          await has(page, "The daemon does not answer.")
          await page.unroute("**/board")
          await page.getByText("The daemon does not answer.").waitFor({ state: "detached" })
        })
      })
    )

    it.effect("as many pages as a person has open are live, and when one of them goes", () =>
      Effect.gen(function* () {
        const { browser, shop } = yield* Shop
        const link = yield* linkOf(shop)
        const { context, page: first } = yield* promise(() => openPage(browser, link))
        const others = yield* promise(async () => {
          await row(first, "talker").waitFor()
          // a browser opens six connections to one daemon, and a stream keeps one
          const pages = []
          for (let n = 0; n < 7; n++) {
            const page = await context.newPage()
            await page.goto(new URL(link).origin + (n % 2 === 0 ? "/" : "/#/agent/shop/editor"))
            await has(page, "editor")
            pages.push(page)
          }
          return pages
        })
        yield* promise(() => first.close())
        yield* shop.cli("stop", "failing")
        const seen = row(others[6]!, "failing").getByText("stopped by")
        yield* promise(async () => {
          await others[6]!.bringToFront()
          await seen.waitFor()
        })
        yield* shop.cli("start", "failing")
        yield* promise(async () => {
          await seen.waitFor({ state: "detached" })
          // acts have a connection, too
          await at(others[6]!, "#/agent/shop/talker")
          await clickIn(others[6]!)
          await others[6]!.locator("textarea").first().fill("one of many")
          await others[6]!.keyboard.press("Control+Enter")
          await has(others[6]!, /^one of many$/)
          await context.close()
        })
      })
    )

    it.effect("the daemon's end clears nothing, and its return goes on in place", () =>
      Effect.gen(function* () {
        const { origin, seen, shop } = yield* Shop
        const { page } = seen
        yield* promise(async () => {
          await at(page, "#/")
          await row(page, "talker").waitFor()
          await page.evaluate("globalThis.isThis = true")
        })
        yield* shop.stage.box.kill9
        yield* promise(async () => {
          await has(page, "The daemon")
          await has(page, /The data is \d+ s old/)
          await row(page, "talker").waitFor()
          assert.include(await main(page), "agentd start")
          // loaded anew it knows nothing, and says nothing of it
          const other = await seen.context.newPage()
          await other.goto(origin)
          await has(other, "The daemon cannot be reached")
          assert.notMatch(await main(other), /Nothing waits|The data is/)
          await other.close()
        })
        yield* shop.stage.up
        yield* promise(async () => {
          await page.getByText("The data is").waitFor({ state: "detached" })
          await row(page, "talker").waitFor()
          assert.isTrue(await page.evaluate("globalThis.isThis === true"))
        })
        yield* shop.tell("talker", { say: "after the return" })
        yield* promise(async () => {
          await at(page, "#/agent/shop/talker")
          await has(page, /^after the return$/)
        })
        assert.deepStrictEqual(seen.faults, [])
      })
    )
  })
})
