/**
 * Stand: what the bench of the page stands on: Chromium, the pages of one word, of raw lines and of raw server-sent
 * events beside which it is measured, and the scripts that measure in a page.
 *
 * Times in a page are wall-clock ms where they are compared with those of another process, else ms since the page was
 * asked for.
 */
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { BrowserContext, Page } from "playwright-core"

export interface Peers {
  readonly origin: string
  /** Sends a text to the pages of raw events. */
  readonly push: (text: string) => void
  readonly close: () => Promise<void>
}

const html = (body: string): string => `<!doctype html><html lang="en"><meta charset="utf-8"><title>peer</title>${body}`

/** `/` has one word, `/lines` so many lines, `/raw` shows the events of `/events` and has as many lines below. */
export const peers = async (lines: number): Promise<Peers> => {
  const open = new Set<ServerResponse>()
  const all = Array.from({ length: lines }, (_, n) => `<p>line ${n}, which says this and that of something</p>`).join(
    ""
  )
  const script = `const show = document.querySelector("b")
new EventSource("/events").onmessage = ({ data }) => { show.textContent = data }`
  const server = createServer(({ url }, response) => {
    if (url === "/events") {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": \n\n")
      open.add(response)
      response.on("close", () => open.delete(response))
      return
    }
    response.setHeader("content-type", url === "/raw.js" ? "text/javascript" : "text/html")
    if (url === "/raw.js") response.end(script)
    else if (url === "/raw") response.end(html(`<b>none</b>${all}<script src="/raw.js"></script>`))
    else response.end(html(url === "/lines" ? all : "<p>word</p>"))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    push: (text) => open.forEach((response) => response.write(`data: ${text}\n\n`)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}

/** In a page from its beginning: when that which is looked for was painted. */
export const paintedAt = (selector: string): string => `globalThis.painted = new Promise((resolve) => {
  const look = () => {
    if (document.querySelector(${JSON.stringify(selector)}) === null) return
    watch.disconnect()
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel()
      port1.onmessage = () => resolve(performance.now())
      port2.postMessage(0)
    })
  }
  const watch = new MutationObserver(look)
  watch.observe(document, { childList: true, subtree: true })
  look()
})`

export interface Paint {
  readonly first: number
  readonly shown: number
}

/** Opens a page, and says when it was painted first, and when what is looked for was. */
export const painted = async (context: BrowserContext, url: string, selector: string): Promise<Paint> => {
  const page = await context.newPage()
  await page.addInitScript(paintedAt(selector))
  await page.goto(url)
  const paint = await page.evaluate<Paint>(`painted.then(async (shown) => {
    for (;;) {
      const [entry] = performance.getEntriesByName("first-contentful-paint")
      if (entry !== undefined) return { first: entry.startTime, shown }
      await new Promise((resolve) => requestAnimationFrame(resolve))
    }
  })`)
  await page.close()
  return paint
}

/** Begins to wait until the expression holds after a change of the page; \`seen\` is when. */
export const watching = (page: Page, holds: string): Promise<unknown> =>
  page.evaluate(`void (globalThis.seen = new Promise((resolve) => {
    const look = () => {
      if (!(${holds})) return
      watch.disconnect()
      resolve(Date.now())
    }
    const watch = new MutationObserver(look)
    watch.observe(document.body, { childList: true, subtree: true, characterData: true, attributes: true })
    look()
  }))`)

export const seen = (page: Page): Promise<number> =>
  page.evaluate<number>(
    `Promise.race([seen, new Promise((_, fail) => setTimeout(() => fail(Error("never seen")), 20000))])`
  )

/** Scrolls to and fro, in steps of a frame, near the top, until it is told to stop. */
export const sway = (page: Page, box: string, sways: boolean): Promise<unknown> =>
  page.evaluate(`void (() => {
    globalThis.sways = ${sways}
    const box = ${box}
    const move = (time) => {
      if (!globalThis.sways) return void (box.scrollTop = 0)
      box.scrollTop = 60 + 60 * Math.sin(time / 150)
      requestAnimationFrame(move)
    }
    requestAnimationFrame(move)
  })()`)

/** Frames, ms each, while it is scrolled down and up again by so many pixels a frame. */
export const frames = (page: Page, box: string, step: number, ms: number): Promise<ReadonlyArray<number>> =>
  page.evaluate<ReadonlyArray<number>>(`new Promise((resolve) => {
    const box = ${box}
    const took = []
    let [last, by] = [undefined, ${step}]
    const begin = performance.now()
    const move = (time) => {
      if (last !== undefined) took.push(time - last)
      last = time
      if (time - begin > ${ms}) return resolve(took)
      const before = box.scrollTop
      box.scrollTop += by
      if (box.scrollTop === before) by = -by
      requestAnimationFrame(move)
    }
    requestAnimationFrame(move)
  })`)
