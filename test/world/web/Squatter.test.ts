/**
 * A program on the daemon's port while the daemon is away, and a page in Chromium that is open meanwhile, is loaded
 * anew, and is opened by a later link: nothing is given to the program, and nothing of its stays.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { once } from "node:events"
import { createServer } from "node:http"
import * as Stage from "../../support/Stage.ts"
import { browser, freePort, isMissing, linkOf, missing, openPage } from "./Browser.ts"
import * as InPage from "./InPage.ts"

const HOSTILE = `<!doctype html><title>hostile</title><p>Enter your password</p>`
const WORKER = `self.addEventListener("install", () => self.skipWaiting())
self.addEventListener("fetch", (event) => event.respondWith(new Response("planted")))`

/** Answers every path with a page, and scripts with a worker that answers for all; keeps what it heard. */
const squatting = (port: number, heard: Array<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer((request, response) => {
        heard.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`)
        request.on("data", (chunk) => heard.push(String(chunk)))
        const isScript = request.url?.includes(".js") === true
        response.setHeader("content-type", isScript ? "text/javascript" : "text/html")
        response.end(isScript ? WORKER : HOSTILE)
      })
      server.listen(port, "127.0.0.1")
      await once(server, "listening")
      return server
    }),
    (server) =>
      Effect.promise(async () => {
        server.closeAllConnections()
        server.close()
        await once(server, "close")
      })
  )

describe.skipIf(isMissing)(`a program on the daemon's port${missing}`, () => {
  it.live("gets no secret from a page, is shown by none, and leaves nothing for the next link", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const stage = yield* Stage.make
        const port = yield* freePort
        stage.box.setUser({ http: { port }, orphanGrace: "0 seconds" })
        const shop = stage.home({ name: "shop", agents: { talker: stage.agent("acp") } })
        yield* stage.up
        yield* shop.register
        const chromium = yield* browser
        const link = yield* linkOf(shop)
        const { context, page } = yield* Effect.promise(() => openPage(chromium, link))
        const row = page.locator("a.row", { hasText: "talker" })
        yield* Effect.promise(async () => {
          await row.waitFor()
          await page.evaluate(InPage.workerReady)
          await page.waitForFunction("caches.match('/build').then((kept) => kept !== undefined)")
        })
        yield* stage.box.kill9
        const heard: Array<string> = []
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* squatting(port, heard)
            yield* Effect.promise(async () => {
              await page.locator(".strip.foreign").waitFor()
              await row.waitFor()
              // loaded anew it is agentd's page all the same, and shows nothing of the program's
              await page.reload()
              await page.locator(".strip.foreign").waitFor()
              assert.notInclude(await page.content(), "password")
              const other = await context.newPage()
              await other.goto(new URL(link).origin)
              await other.locator(".strip.foreign").waitFor()
              await other.close()
              // what a script of the program's would leave, had it come in
              await page.evaluate(
                "navigator.serviceWorker.register('/evil.js', { scope: '/evil/' }).then(() => undefined)"
              )
            })
          })
        )
        assert.isAbove(heard.length, 0)
        // the browser asks nobody for the worker anew
        assert.deepStrictEqual(
          heard.filter((text) => text.startsWith("GET /worker.js")),
          []
        )
        const code = link.split("#open=")[1]!
        assert.isFalse(heard.some((text) => text.includes(code) || /bearer/i.test(text)))
        yield* stage.up
        yield* Effect.promise(async () => {
          await page.locator(".strip").waitFor({ state: "detached" })
          await row.waitFor()
          await page.waitForFunction("navigator.serviceWorker.getRegistrations().then((all) => all.length === 1)")
        })
        const { stdout } = yield* shop.cli("doctor")
        assert.match(stdout, /fail +http +a browser had a service worker that is not agentd's.*evil\.js/)
        const next = yield* linkOf(shop)
        assert.notStrictEqual(new URL(next).host, new URL(link).host)
        yield* Effect.promise(async () => {
          const again = await context.newPage()
          await again.goto(next)
          await again.locator("a.row", { hasText: "talker" }).waitFor()
        })
      })
    )
  )
})
