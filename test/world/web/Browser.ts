/**
 * Browser: Chromium for the tests of the page, and a daemon whose page it opens. Everything the page says on its
 * console, and every dialog, is kept: a test fails by it.
 *
 * Without Chromium the tests are skipped, and say so.
 */
import { Effect, type Scope } from "effect"
import { existsSync } from "node:fs"
import { createServer } from "node:net"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"
import { PATIENCE } from "../../support/Patience.ts"
import type * as Stage from "../../support/Stage.ts"

/** Debian's; another one by `AGENTD_CHROMIUM`. */
const PROGRAM = process.env["AGENTD_CHROMIUM"] ?? "/usr/bin/chromium"

export const isMissing = !existsSync(PROGRAM)
/** In the name of what is skipped. */
export const missing = isMissing ? ` (NOT TESTED: there is no Chromium at ${PROGRAM})` : ""
if (isMissing) console.warn(`test/world/web: the page is not tested: there is no Chromium at ${PROGRAM}.`)

/** A name that leads to this machine, and is none that the daemon knows. */
export const STRANGE = "agentd.example.com"

export const browser: Effect.Effect<Browser, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() =>
    chromium.launch({
      executablePath: PROGRAM,
      args: ["--no-sandbox", `--host-resolver-rules=MAP ${STRANGE} 127.0.0.1`]
    })
  ),
  (browser) => Effect.promise(() => browser.close())
)

/** A port that nobody listens on. */
export const freePort: Effect.Effect<number> = Effect.callback((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as { readonly port: number }
    server.close(() => resume(Effect.succeed(port)))
  })
})

/** A request that failed is the daemon's answer, and no fault of the page. */
const isOfNetwork = (text: string): boolean => text.startsWith("Failed to load resource")

export interface Seen {
  readonly page: Page
  readonly context: BrowserContext
  /** Errors and warnings of the page, and dialogs that it opened. */
  readonly faults: ReadonlyArray<string>
}

export interface Size {
  readonly width: number
  readonly height: number
}
export const DESK: Size = { width: 1440, height: 900 }
export const PHONE: Size = { width: 390, height: 844 }

interface Device {
  /** Of a phone: a finger, and no mouse. */
  readonly hasTouch?: boolean
  readonly isMobile?: boolean
  readonly colorScheme?: "light" | "dark"
}

/** A page of a browser of its own: it shares no token with the others. */
export const openPage = async (
  browser: Browser,
  url: string,
  viewport: Size = DESK,
  device: Device = {}
): Promise<Seen> => {
  const context = await browser.newContext({ viewport, ...device })
  context.setDefaultTimeout(Math.min(60_000, PATIENCE))
  const page = await context.newPage()
  const faults: Array<string> = []
  page.on("console", (message) => {
    const text = message.text()
    if (["error", "warning"].includes(message.type()) && !isOfNetwork(text)) faults.push(text)
  })
  page.on("pageerror", ({ message }) => faults.push(message))
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  await page.goto(url)
  return { page, context, faults }
}

/** The link that `agentd open` prints. */
export const linkOf = (project: Stage.Project, ...flags: ReadonlyArray<string>) =>
  Effect.map(project.cli("open", "--print", ...flags), ({ stderr, stdout }) => {
    const link = /^http\S+$/m.exec(stdout)?.[0]
    if (link === undefined) throw new Error(`no link: ${stdout}${stderr}`)
    return link
  })
