/**
 * Bench of the page, in Chromium, before the daemon as it is installed with 1,000 agents, and before one with 100,000
 * runes: its size; when it is painted; from a rune's own time to the text in the page, at rest and while it is
 * scrolled; frames while its lists are scrolled; the daemon's memory and connections while 20 pages are open, each in a
 * browser of its own. Beside it a page of one word, one of raw lines, and one of raw server-sent events, all from a
 * bare node:http server.
 *
 * Runs where it is named; the 20 pages stay open for 3 minutes, or so many as `MINUTES` says. Without Chromium nothing
 * is measured, and it says so.
 */
import { execFileSync, spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { gzipSync } from "node:zlib"
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core"
import { type Aim, type Bench, folder, median, quantile, type Row } from "./Bench.ts"
import { historyOf, phaseOf } from "./History.ts"
import { type Crew, crewOf, dismissed, installed } from "./Installed.ts"
import * as Stand from "./Stand.ts"

const PROGRAM = process.env["AGENTD_CHROMIUM"] ?? "/usr/bin/chromium"
const MINUTES = Number(process.env["MINUTES"] ?? 3)
const ROWS = 1_000
const RUNES = 100_000
const PAGES = 20
const ROUNDS = 5
const UPDATES = 25
const JUMPS = 25
/** ms, and pixels a frame: some seven screens a second. */
const SCROLL = 5_000
const SPEED = 120

const OURS = "agentd's page"
const WORD = "a page of one word"
const LINES = "a page of raw lines"
const EVENTS = "a page of raw events"
const [FIRST, LAST] = ["after the first quarter", "at the end"]

type Samples = Readonly<Record<string, ReadonlyArray<number>>>

/** Rows of a measure of which less is better; the first subject is ours. */
const rowsOf = (what: string, unit: string, subjects: Samples): ReadonlyArray<Row> => {
  const [ours = []] = Object.values(subjects)
  return Object.entries(subjects).map(([subject, samples]) => ({
    what,
    subject,
    unit,
    median: median(samples),
    samples,
    ratios: samples.map((sample, round) => sample / (ours[round] ?? Number.NaN))
  }))
}

const p95 = (samples: ReadonlyArray<number>): number => quantile(samples, 0.95)

/** Bytes that a browser loads, as HTTP packs them. */
const sizes = (dist: string): ReadonlyArray<Row> => {
  const web = join(dist, "web")
  const packed = readdirSync(web).map((name) => gzipSync(readFileSync(join(web, name)), { level: 9 }).length)
  return rowsOf("all files, compressed", "kB", { [OURS]: [packed.reduce((sum, size) => sum + size, 0) / 1_000] })
}

/** Of a program beside the pages. */
interface Token {
  readonly origin: string
  readonly token: string
}

const tokenOf = (command: string, state: string): Token => {
  const made = ["--state", state, "--json", "access", "new", "bench", "--act"]
  const { address, token } = JSON.parse(execFileSync(command, made, { encoding: "utf8" })) as {
    readonly address: string
    readonly token: string
  }
  return { origin: address, token }
}

/** A browser of its own, whose page was let in by a link; its origin. */
const contextOf = async (browser: Browser, command: string, state: string) => {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  const printed = execFileSync(command, ["--state", state, "open", "--print"], { encoding: "utf8" })
  const link = /^http\S+$/m.exec(printed)![0]
  const page = await context.newPage()
  await page.goto(link)
  await page.locator("a.row").first().waitFor()
  await page.close()
  return { context, origin: new URL(link).origin }
}

const boardIn = async (context: BrowserContext, origin: string): Promise<Page> => {
  const page = await context.newPage()
  await page.goto(origin)
  await page.locator("a.row").first().waitFor()
  await page.evaluate("navigator.serviceWorker.ready.then(() => undefined)")
  return page
}

const paints = async (context: BrowserContext, ours: string, peer: string): Promise<ReadonlyArray<Row>> => {
  const found: { [name: string]: Array<Stand.Paint> } = { [OURS]: [], [WORD]: [] }
  for (let round = -1; round < ROUNDS * 5; round++) {
    const all = [
      [OURS, ours, "a.row"],
      [WORD, peer, "p"]
    ] as const
    for (const [name, url, selector] of round % 2 === 0 ? all : all.toReversed()) {
      const paint = await Stand.painted(context, url, selector)
      if (round >= 0) found[name]!.push(paint)
    }
  }
  const of = (pick: (paint: Stand.Paint) => number): Samples =>
    Object.fromEntries(Object.entries(found).map(([name, paints]) => [name, paints.map(pick)]))
  return [
    ...rowsOf(
      "first paint",
      "ms",
      of(({ first }) => first)
    ),
    ...rowsOf(
      "its rows painted",
      "ms",
      of(({ shown }) => shown)
    )
  ]
}

/** When runes say that they were written, as they come. */
const runesOf = async ({ origin, token }: Token) => {
  const at = new Map<number, number>()
  const headers = { authorization: `Bearer ${token}` }
  const { body } = await fetch(`${origin}/events?kinds=inbox.received`, { headers })
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader()
  const read = async () => {
    let rest = ""
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const events = (rest + value).split("\n\n")
      rest = events.pop()!
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1]
        if (data === undefined) continue
        const rune = JSON.parse(data) as { readonly eventId: number; readonly at: number }
        at.set(rune.eventId, rune.at)
      }
    }
  }
  const reading = read().catch(() => undefined)
  return { at, end: () => reader.cancel().then(() => reading) }
}

/** Asks a verb; answers the rune that it led to. */
const verb = async ({ origin, token }: Token, name: string, payload: object): Promise<number> => {
  // a connection that is kept may end while it is used again, and an act is not done twice
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", connection: "close" }
  const answer = await fetch(`${origin}/v1/${name}`, { method: "POST", headers, body: JSON.stringify(payload) })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${name}: ${text}`)
  return (JSON.parse(text) as { readonly eventId: number }).eventId
}

const send = (token: Token, name: string) => verb(token, "Send", { name, text: "say it again", how: "queue" })

/** The row of an agent that holds a message and is stopped. */
const asks = (name: string): string =>
  `[...document.querySelectorAll("a.row")].some((row) => row.querySelector("b")?.textContent === "${name}" && row.querySelector('[aria-label="needs you"]') !== null)`

/** From the time that a rune bears, or at which an event was written, to its text in the page, ms; p95 of each round. */
const updates = async (token: Token, ours: Page, raw: Page, push: (text: string) => void) => {
  const runes = await runesOf(token)
  const rows: Array<Row> = []
  const agent = `agent${ROWS / 2}`
  const name = `shop${ROWS}/${agent}`
  await verb(token, "Stop", { name })
  for (const how of ["at rest", "scrolled"] as const) {
    await Stand.sway(ours, `document.querySelector(".virtual")`, how === "scrolled")
    await Stand.sway(raw, "document.scrollingElement", how === "scrolled")
    const found: { [name: string]: Array<number> } = { [OURS]: [], [EVENTS]: [] }
    for (let round = 0; round < ROUNDS; round++) {
      const took: { [name: string]: Array<number> } = { [OURS]: [], [EVENTS]: [] }
      for (let n = 0; n < UPDATES; n++) {
        await ours.bringToFront()
        await Stand.watching(ours, asks(agent))
        const rune = await send(token, name)
        const shown = await Stand.seen(ours)
        while (!runes.at.has(rune)) await wait(1)
        took[OURS]!.push(shown - runes.at.get(rune)!)
        await Stand.watching(ours, `!${asks(agent)}`)
        await verb(token, "Dismiss", { name, held: true })
        await Stand.seen(ours)

        await raw.bringToFront()
        const text = `${how} ${round} ${n}`
        await Stand.watching(raw, `document.querySelector("b").textContent === "${text}"`)
        const written = Date.now()
        push(text)
        took[EVENTS]!.push((await Stand.seen(raw)) - written)
      }
      // stamps are whole ms
      for (const [name, all] of Object.entries(took)) found[name]!.push(Math.max(0.5, p95(all)))
    }
    rows.push(...rowsOf(`rune to text p95, ${how}`, "ms", found))
  }
  for (const page of [ours, raw]) await Stand.sway(page, "document.scrollingElement", false)
  await runes.end()
  return rows
}

const framesOf = async (what: string, subjects: ReadonlyArray<readonly [name: string, page: Page, box: string]>) => {
  const found: { [name: string]: Array<number> } = Object.fromEntries(subjects.map(([name]) => [name, []]))
  for (let round = 0; round < ROUNDS; round++)
    for (const [name, page, box] of subjects) {
      await page.bringToFront()
      found[name]!.push(p95(await Stand.frames(page, box, SPEED, SCROLL)))
    }
  return rowsOf(`frame p95, ${what}`, "ms", found)
}

/** From a jump to anywhere in the timeline until all runes in sight are there, and are the right ones. */
const jumps = async (page: Page): Promise<ReadonlyArray<Row>> => {
  const took: Array<number> = []
  for (let n = 0; n < JUMPS; n++) {
    const place = Math.floor(((n * 7_919) % JUMPS) * (RUNES / JUMPS) * 0.99)
    await Stand.watching(
      page,
      `document.querySelector(".rune-row.ghost") === null && [...document.querySelectorAll(".rune-row .id")].some(({ textContent }) => textContent === "${place + 3}")`
    )
    const from = await page.evaluate<number>(
      `(document.querySelector(".runes-scroll").scrollTop = ${place * 26}, Date.now())`
    )
    took.push((await Stand.seen(page)) - from)
  }
  return rowsOf("jump to its runes p95", "ms", { [OURS]: [p95(took)] })
}

const timeline = async (browser: Browser, command: string, lines: Page): Promise<ReadonlyArray<Row>> => {
  const place = await historyOf(RUNES)
  const { environment: env, project: cwd, state } = place
  const daemon = spawn(command, ["--state", state, "up"], { cwd, env, stdio: "ignore" })
  try {
    while ((await phaseOf(place)) !== "ready") await wait(50)
    const { context, origin } = await contextOf(browser, command, state)
    const page = await context.newPage()
    await page.goto(`${origin}/#/timeline`)
    await page.locator(".rune-row .id").first().waitFor()
    const box = `document.querySelector(".runes-scroll")`
    const rows = await framesOf("100,000 runes scrolled", [
      [OURS, page, box],
      [LINES, lines, "document.scrollingElement"]
    ])
    const jumped = await jumps(page)
    await context.close()
    return [...rows, ...jumped]
  } finally {
    await dismissed({ daemon, state, project: cwd })
  }
}

interface Look {
  /** MB of the daemon, with its share of what it shares. */
  readonly memory: number
  readonly connections: number
}

const lookAt = (pid: number): Look => {
  const memory = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1]) / 1024
  const files = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`)
    } catch {
      return ""
    }
  })
  return { memory, connections: files.filter((file) => file.startsWith("socket:")).length }
}

const pidOf = (command: string, state: string): number => {
  const status = execFileSync(command, ["--state", state, "--json", "status"], { encoding: "utf8" })
  return (JSON.parse(status) as { readonly daemon: { readonly pid: number } }).daemon.pid
}

/** The daemon while many look and its agents work. */
const many = async (browser: Browser, command: string, { state }: Crew, token: Token): Promise<ReadonlyArray<Row>> => {
  const pid = pidOf(command, state)
  const contexts: Array<BrowserContext> = []
  for (let n = 0; n < PAGES; n++) {
    const { context, origin } = await contextOf(browser, command, state)
    contexts.push(context)
    await boardIn(context, origin)
  }
  const begun = performance.now()
  const looks: Array<Look> = []
  const whole = MINUTES * 60_000
  for (let n = 0; performance.now() - begun < whole; n++) {
    await send(token, `shop${ROWS}/agent${n % ROWS}`)
    await wait(1_000)
    if (n % 5 === 0) looks.push(lookAt(pid))
  }
  for (const context of contexts) await context.close()
  // a collection makes the least of a span say more than its last
  const span = Math.max(1, Math.floor(looks.length / 4))
  const least = (part: ReadonlyArray<Look>, of: (look: Look) => number) => [Math.min(...part.map(of))]
  const parts = { [FIRST!]: looks.slice(0, span), [LAST!]: looks.slice(-span) }
  const of = (pick: (look: Look) => number): Samples =>
    Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, least(part, pick)]))
  return [
    ...rowsOf(
      `memory with ${PAGES} pages`,
      "MB",
      of(({ memory }) => memory)
    ),
    ...rowsOf(
      `sockets with ${PAGES} pages`,
      "",
      of(({ connections }) => connections)
    )
  ]
}

/** Says what is measured as soon as it is: the whole takes long. */
const told = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> => {
  for (const { median, subject, unit, what } of rows)
    console.error(`  ${what}, ${subject}: ${median.toFixed(1)} ${unit}`)
  return rows
}

const run = async (): Promise<ReadonlyArray<Row>> => {
  if (!existsSync(PROGRAM)) {
    console.warn(`page: NOT MEASURED: there is no Chromium at ${PROGRAM}.`)
    return []
  }
  const at = folder()
  const command = installed(at)
  const crew = await crewOf(at, command, ROWS)
  const peers = await Stand.peers(ROWS)
  const browser = await chromium.launch({ executablePath: PROGRAM, args: ["--no-sandbox"] })
  try {
    const token = tokenOf(command, crew.state)
    const { context, origin } = await contextOf(browser, command, crew.state)
    const board = await boardIn(context, origin)
    const raw = await context.newPage()
    await raw.goto(`${peers.origin}/raw`)
    const lines = await context.newPage()
    await lines.goto(`${peers.origin}/lines`)
    const rows = [
      ...told(sizes(join(at, "lib", "agentd", "dist"))),
      ...told(await paints(context, origin, peers.origin)),
      ...told(await updates(token, board, raw, peers.push)),
      ...told(
        await framesOf("1,000 rows scrolled", [
          [OURS, board, `document.querySelector(".virtual")`],
          [LINES, lines, "document.scrollingElement"]
        ])
      ),
      ...told(await timeline(browser, command, lines))
    ]
    if (process.env["PICTURES"] !== undefined)
      await board.screenshot({ path: join(process.env["PICTURES"], "board.png") })
    await context.close()
    return [...rows, ...(await many(browser, command, crew, token))]
  } finally {
    await browser.close()
    await peers.close()
    await dismissed(crew)
  }
}

const aims: ReadonlyArray<Aim> = [
  { what: "all files, compressed", of: OURS, atMost: 150 },
  { what: "first paint", of: OURS, to: { subject: WORD }, atMost: 5 },
  { what: "its rows painted", of: OURS, to: { subject: WORD }, atMost: 5 },
  { what: "rune to text p95, at rest", of: OURS, atMost: 50 },
  { what: "rune to text p95, scrolled", of: OURS, atMost: 50 },
  { what: "frame p95, 1,000 rows scrolled", of: OURS, atMost: 33 },
  { what: "frame p95, 100,000 runes scrolled", of: OURS, atMost: 33 },
  { what: `memory with ${PAGES} pages`, of: LAST!, to: { subject: FIRST! }, atMost: 1.1 },
  { what: `sockets with ${PAGES} pages`, of: LAST!, to: { subject: FIRST! }, atMost: 1 }
]

export const bench: Bench = { name: "page", isLong: true, run, aims }
