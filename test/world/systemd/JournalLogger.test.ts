/** JournalLogger: priorities where standard error is the journal's stream, and the usual log elsewhere. */
import { assert, describe, it } from "@effect/vitest"
import { Cause } from "effect"
import { spawnSync } from "node:child_process"
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { messageIds } from "../../../src/domain/LogEvent.ts"
import { sender } from "../../../src/systemd/JournalEntry.ts"
import { text } from "../../../src/systemd/JournalLogger.ts"
import { hasUserManager } from "./Manager.ts"

const MODULE = resolve(import.meta.dirname, "../../../src/systemd/JournalLogger.ts")
const SCRIPT = `
import { Effect } from "effect"
import * as JournalLogger from ${JSON.stringify(MODULE)}
await Effect.runPromise(Effect.provide(
  Effect.andThen(Effect.logError("two\\nlines"), Effect.andThen(Effect.logWarning("a warning"), Effect.logInfo("news"))),
  JournalLogger.layer(process.env)
))`

/** An event, and a line that is none. */
const EVENTS = `
import { Effect } from "effect"
import * as JournalLogger from ${JSON.stringify(MODULE)}
import * as LogEvent from ${JSON.stringify(resolve(MODULE, "../../domain/LogEvent.ts"))}
const failed = LogEvent.noted("agent.failed", { agent: "shop/ada", conversation: "shop-1" })
await Effect.runPromise(Effect.provide(
  Effect.andThen(failed(Effect.logError("ada stopped\\nAGENTD_AGENT=evil")), Effect.logError("no event")),
  JournalLogger.layer(process.env)
))`

const ENTRY = [
  "MESSAGE=ada stopped AGENTD_AGENT=evil",
  `MESSAGE_ID=${messageIds["agent.failed"]}`,
  "PRIORITY=3",
  "SYSLOG_IDENTIFIER=agentd",
  "AGENTD_EVENT=agent.failed",
  "AGENTD_AGENT=shop/ada",
  "AGENTD_CONVERSATION=shop-1"
]

/**
 * Output of a process whose standard error is a file; `names`: whether JOURNAL_STREAM says so. `logger`: the script of
 * the program of that name, which runs in a folder of its own; `noted`: what it has written there.
 */
const written = (names: boolean, script = SCRIPT, logger?: string) => {
  const folder = mkdtempSync(join(tmpdir(), "agentd-journal-"))
  const [bin, note] = [join(folder, "bin"), join(folder, "noted")]
  mkdirSync(bin)
  if (logger !== undefined)
    writeFileSync(join(bin, "logger"), `#!/bin/sh\n${logger.replaceAll("NOTE", note)}\n`, { mode: 0o755 })
  const descriptor = openSync(join(folder, "log"), "a")
  const { dev, ino } = fstatSync(descriptor)
  const { status, stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    cwd: resolve(import.meta.dirname, "../../.."),
    env: { JOURNAL_STREAM: names ? `${dev}:${ino}` : `${dev}:${ino + 1}`, PATH: `${bin}:/usr/bin:/bin` },
    stdio: ["ignore", "pipe", descriptor],
    encoding: "utf8"
  })
  closeSync(descriptor)
  const error = readFileSync(join(folder, "log"), "utf8")
  const noted = existsSync(note) ? readFileSync(note, "utf8") : undefined
  rmSync(folder, { recursive: true })
  assert.strictEqual(status, 0, error)
  return { stdout, error, noted }
}

describe("the daemon's log", () => {
  it("has each line's priority in the journal", () => {
    assert.strictEqual(written(true).error, "<3>two\n<3>lines\n<4>a warning\n<6>news\n")
  })

  it("has an event with fields besides its line, and no other line", () => {
    const { error, noted } = written(true, EVENTS, 'echo "$*" >> NOTE; cat >> NOTE')
    assert.strictEqual(error, "<3>ada stopped\n<3>AGENTD_AGENT=evil\n<3>no event\n")
    assert.strictEqual(noted, ["--journald", ...ENTRY, ""].join("\n"))
    assert.isUndefined(written(false, EVENTS, "cat >> NOTE").noted)
  })

  it.each([
    ["fails", "exit 1"],
    ["reads nothing", "exec 0<&-; sleep 0.1"],
    ["hangs", "exec sleep 60"]
  ])("goes on where the program for it %s", (_, logger) => {
    const { error } = written(true, `${EVENTS}\nprocess.exit(0)`, logger)
    assert.strictEqual(error, "<3>ada stopped\n<3>AGENTD_AGENT=evil\n<3>no event\n")
  })

  it("is the usual one where standard error is another stream", () => {
    const { error, stdout } = written(false)
    assert.notInclude(error + stdout, "<3>")
    assert.include(error + stdout, "a warning")
  })

  it("has the cause of a failure, and what is no text", () => {
    assert.match(
      text("Error", ["it failed", { code: 7 }], Cause.fail(new Error("why"))),
      /^<3>it failed \{"code":7\} .*why/
    )
    assert.strictEqual(text("Info", "news", Cause.empty), "<6>news")
  })
})

if (!hasUserManager) console.warn("SKIPPED: entries in a real journal (no systemd of the user's here)")

describe.skipIf(!hasUserManager)("a real journal", () => {
  it("has the fields, and is searched by them", async () => {
    sender(process.env["PATH"])([...ENTRY.slice(0, -1), `AGENTD_CONVERSATION=test-${process.pid}`, ""].join("\n"))
    const find = () =>
      spawnSync(
        "journalctl",
        ["--output=json", "AGENTD_EVENT=agent.failed", `AGENTD_CONVERSATION=test-${process.pid}`],
        {
          encoding: "utf8"
        }
      ).stdout.trim()
    while (find() === "") await new Promise((resume) => setTimeout(resume, 100))
    const { AGENTD_AGENT, MESSAGE, MESSAGE_ID, PRIORITY } = JSON.parse(find())
    assert.deepStrictEqual(
      { AGENTD_AGENT, MESSAGE, MESSAGE_ID, PRIORITY },
      {
        AGENTD_AGENT: "shop/ada",
        MESSAGE: "ada stopped AGENTD_AGENT=evil",
        MESSAGE_ID: messageIds["agent.failed"],
        PRIORITY: "3"
      }
    )
  })
})
