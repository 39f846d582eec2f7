/**
 * Command lines of the documents, each run as it stands there, in order, in a bare home with scripted agents.
 *
 * A block `sh` is run, and of `console` its lines with `$ `, whose output has to be as the page shows it: `…` stands for
 * anything. A command that asks is run again with `--yes`, once it has refused to go on without a person. Blocks that
 * cannot be run here have the language `shell`: each is named below, with the reason.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PATIENCE } from "../../support/Patience.ts"
import * as Home from "./Home.ts"
import * as Pages from "./Pages.ts"
import * as Stages from "./Stages.ts"
import { long } from "../../support/Long.ts"

/** Prints each command with what it said. */
const SHOWS = process.env["SHOW"] === "1"

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")

/** Texts that differ each time: times of day, durations, ids of processes, names of runs. */
const VARIES: ReadonlyArray<readonly [shown: RegExp, is: string]> = [
  [/\d\d:\d\d:\d\d/g, String.raw`\d\d:\d\d:\d\d`],
  [/\b\d+(?:ms|s|m)\b/g, String.raw`\d+(?:ms|s|m)`],
  [/(?<=\\\(pid )\d+/g, String.raw`\d+`],
  [/(?<=rune )\d+/g, String.raw`\d+`],
  [/\s+/g, String.raw`\s+`]
]

/** The output as the page shows it: blanks of any width, `…` for anything. */
const asShown = (shown: string): RegExp => {
  const parts = shown
    .trim()
    .split("…")
    .map((part) => VARIES.reduce((text, [varies, is]) => text.replaceAll(varies, is), escaped(part)))
  return new RegExp(`^\\s*${parts.join("[^]*?")}\\s*$`)
}

const ran = (home: Home.Home, command: { readonly text: string }, at: string) =>
  Effect.gen(function* () {
    const text = yield* Stages.filled(home, command.text)
    if (Stages.STAYS.test(text)) return yield* home.interrupted(text)
    const ended = yield* home.run(text)
    if (/--yes/.test(ended.err) && ended.code === 2) {
      assert.match(command.text, /asks|stop --daemon/, `${at}: it asks, and the page does not say so`)
      return yield* home.run(text.replace(/(?=\s*(#.*)?$)/, " --yes"))
    }
    return ended
  })

/** Commands that only look: what they show may come a moment later. */
const LOOKS =
  /^agentd (ps|log --(text|runs|messages|channel)|waiting|why|status|alert ls|goal (show|ls)|channel (show|ls)|project ls)\b/

/** The words of a command that waits on a slow machine are on no page. */
const PATIENCE_TOLD = "Waiting for the daemon to read its log …\n"

/** True of the machine, not of the page: its pid 1 may reap nothing. */
const MACHINE_TOLD = /^Warning: \d+ ended processes were not reaped .*\n/gm

const said = ({ err, out }: Home.Ended): string => (out + err).replace(PATIENCE_TOLD, "").replace(MACHINE_TOLD, "")

/** The first output that is as the page shows it, else the last one. */
const untilShown = (home: Home.Home, command: { readonly text: string; readonly shown?: string }, at: string) =>
  Effect.gen(function* () {
    const deadline = Date.now() + PATIENCE / 4
    for (;;) {
      const ended = yield* ran(home, command, at)
      const isShown = command.shown === undefined || asShown(command.shown).test(said(ended))
      if (isShown || !LOOKS.test(command.text) || Date.now() > deadline) return ended
      yield* Effect.sleep(100)
    }
  })

const block = (home: Home.Home, { language, line, page, text }: Pages.Block) =>
  Effect.gen(function* () {
    const isConsole = language === "console"
    const commands = isConsole ? Pages.shownIn({ line, text }) : Pages.commandsOf({ line, text })
    for (const command of commands) {
      const at = `${page}:${command.line}`
      const ended = yield* untilShown(home, command, at)
      if (SHOWS) console.log(`${at} $ ${command.text} → ${ended.code}\n${ended.out}${ended.err}`)
      assert.strictEqual(ended.code, Stages.codeOf(command.text), `${at}: ${command.text}\n${ended.out}${ended.err}`)
      if (command.shown !== undefined) assert.match(said(ended), asShown(command.shown), `${at}: ${said(ended)}`)
    }
  })

const runs = ({ language }: Pages.Block) => language === "sh" || language === "console"

describe.concurrent("the documents' command lines", () => {
  for (const stage of Stages.all) {
    ;(stage.isLong === true ? long.live : it.live)(stage.name, () =>
      Effect.gen(function* () {
        const home = yield* Home.make
        yield* stage.before?.(home) ?? Effect.void
        for (const page of stage.pages) for (const one of Pages.blocksOf(page).filter(runs)) yield* block(home, one)
      }).pipe(Effect.scoped)
    )
  }

  it("each page with commands is run", () => {
    const played = Stages.all.flatMap(({ pages }) => pages)
    const pages = Pages.PAGES.filter((page) => Pages.blocksOf(page).some(runs))
    assert.deepStrictEqual(pages.toSorted(), played.filter((page) => pages.includes(page)).toSorted())
  })

  it("what is not run is named, with the reason", () => {
    const blocks = Pages.PAGES.flatMap((page) => Pages.blocksOf(page).filter(({ language }) => language === "shell"))
    const named = blocks.map(({ page, text }) => `${page}: ${text.split("\n")[0]!.replace(/\s*#.*/, "")}`)
    assert.deepStrictEqual(named.toSorted(), Object.keys(Stages.NOT_RUN).toSorted())
  })
})
