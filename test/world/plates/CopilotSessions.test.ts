/** The board through the records of Copilot CLI, as 1.0.102 wrote them, by a session whose process is alive. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { TestClock } from "effect/testing"
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { PlateInfo } from "../../../src/domain/Messages.ts"
import { type Board, child, run, until } from "./World.ts"

const records = readFileSync(join(import.meta.dirname, "../../fixtures/hooks/copilot.jsonl"), "utf8")
  .trim()
  .split("\n")

const NOW = Date.parse("2026-12-01T06:00:00Z")
/** When the process opened the session: later than its start, even though the clock of the test runs ahead of it. */
const OPENED = NOW + 24 * 3_600_000
const ID = "9eeac7b6-725e-4e83-80e4-866204bd7f28"

class Session {
  readonly folder: string
  readonly events: string
  readonly config: string

  constructor(config: string, pid: number) {
    this.config = config
    this.folder = join(config, "session-state", ID)
    this.events = join(this.folder, "events.jsonl")
    mkdirSync(this.folder, { recursive: true })
    writeFileSync(
      join(config, "open-sessions-state.json"),
      JSON.stringify({ [ID]: { schemaVersion: 1, working: false } })
    )
    writeFileSync(join(this.folder, "workspace.yaml"), `id: ${ID}\ncwd: /home/user/project\nclient_name: github/cli\n`)
    const lock = join(this.folder, `inuse.${pid}.lock`)
    writeFileSync(lock, String(pid))
    utimesSync(lock, OPENED / 1_000, OPENED / 1_000)
  }

  writes(from: number, to: number, at = OPENED + 1_000): void {
    const timestamp = new Date(at).toISOString()
    for (const record of records.slice(from, to)) {
      appendFileSync(
        this.events,
        `${JSON.stringify({ ...JSON.parse(record), timestamp })}
`
      )
    }
  }
}

const story = (name: string, body: (board: Board, config: string) => Effect.Effect<void, unknown, Scope.Scope>) =>
  it.effect(name, () => {
    const config = mkdtempSync(join(tmpdir(), "agentd-copilot-"))
    return run(({ board }) => Effect.andThen(TestClock.setTime(NOW), body(board, config)), {
      copilotFolder: config
    }).pipe(Effect.ensuring(Effect.sync(() => rmSync(config, { recursive: true, force: true }))))
  })

const rows = (board: Board) => Effect.andThen(TestClock.adjust("5 seconds"), board.rows)

const is = (board: Board, status: PlateInfo["status"], detail?: string) =>
  until(
    `${status} ${detail ?? ""}`,
    rows(board),
    ([row]) => row?.status === status && (detail === undefined || row.detail === detail)
  )

/** The number of records that exist, and the row then. */
const STEPS: ReadonlyArray<readonly [to: number, status: PlateInfo["status"], detail?: string]> = [
  [4, "Running", "Copilot CLI: works"],
  // Esc
  [6, "Idle"],
  [8, "Running"],
  [10, "Error"],
  [14, "Running", "Copilot CLI: runs bash"],
  [15, "AwaitingApproval", "Copilot CLI: asks to use bash"],
  [16, "Running"],
  [18, "Idle"],
  [23, "AwaitingApproval"],
  // Esc in the dialog
  [26, "Idle"],
  [30, "AwaitingInput", "Copilot CLI: asks a question"],
  [33, "Running", "Copilot CLI: works"],
  [34, "Idle"],
  [46, "Running", "Copilot CLI: runs task"],
  [51, "Idle"]
]

describe("a session of Copilot CLI", () => {
  story("is found before its first prompt, and each record changes its row as the screen changed", (board, config) =>
    Effect.gen(function* () {
      const pid = yield* child
      const session = new Session(config, pid)
      const [row] = yield* is(board, "Idle", "Copilot CLI: waits for a prompt")
      assert.deepStrictEqual([row!.pid, row!.cwd, row!.sessionId], [pid, "/home/user/project", ID])
      let from = 0
      for (const [to, status, detail] of STEPS) {
        session.writes(from, to)
        const [row] = yield* is(board, status, detail)
        assert.strictEqual(row!.restsOn?.signal, "session")
        from = to
      }
      process.kill(pid, "SIGKILL")
      yield* is(board, "Closed")
    })
  )

  story("found in mid-turn it has the state of its last turn", (board, config) =>
    Effect.gen(function* () {
      const session = new Session(config, yield* child)
      session.writes(0, 23)
      yield* is(board, "AwaitingApproval", "Copilot CLI: asks to use bash")
      assert.lengthOf(yield* board.rows, 1)
    })
  )

  story("the records of a process that is gone do not count for the one that resumes the session", (board, config) =>
    Effect.gen(function* () {
      const session = new Session(config, yield* child)
      session.writes(0, 23, NOW - 60_000)
      yield* is(board, "Idle", "Copilot CLI: waits for a prompt")
    })
  )

  story("a file of 200 MB costs its end only", (board, config) =>
    Effect.gen(function* () {
      const session = new Session(config, yield* child)
      writeFileSync(session.events, "")
      truncateSync(session.events, 200_000_000)
      appendFileSync(session.events, "\n")
      session.writes(0, 23)
      yield* is(board, "AwaitingApproval", "Copilot CLI: asks to use bash")
    })
  )

  story("a lock of a process that is gone, a broken index and broken records make no row", (board, config) =>
    Effect.gen(function* () {
      const session = new Session(config, 4_194_303)
      session.writes(0, 23)
      yield* rows(board)
      writeFileSync(join(config, "open-sessions-state.json"), "{ broken")
      yield* rows(board)
      writeFileSync(join(config, "open-sessions-state.json"), '{"../../etc": {}, "a": 1}')
      assert.lengthOf(yield* rows(board), 0)
      const real = new Session(config, yield* child)
      appendFileSync(real.events, 'broken\n[]\n{"type":"of.next.year","timestamp":"2026-12-03T06:30:00Z","data":7}\n')
      yield* is(board, "AwaitingApproval")
    })
  )
})
