/** Incidents that others had, by their names: a daemon that hangs while it says that it runs. */
import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Sandbox from "../support/Sandbox.ts"

const shell = (script: string, more: object = {}) => ({
  backend: { type: "command", shell: script, readyAfter: "50ms", ...more },
  minRunInterval: "0ms"
})

describe("wedged reconciler", () => {
  it.live("a confined run that puts pipes in the places of git's files wedges neither its next run nor another's", () =>
    Effect.gen(function* () {
      const box = yield* Sandbox.make()
      const plant =
        'cat > /dev/null; [ -e w ] || { mkdir -p w/worktrees/x; mkfifo w/worktrees/x/gitdir; echo "gitdir: w/worktrees/x" > .git; }'
      box.configure({ agents: { a: shell(plant, { sandbox: "on" }), b: shell("cat", { sandbox: "on" }) } })
      yield* box.up()
      for (const [agent, seq] of [
        ["a", 0],
        ["a", 1],
        ["b", 0]
      ] as const) {
        yield* box.cli("send", agent, "hello")
        yield* box.untilAgent(agent, "has worked", ({ inbox, sessionSeq, state }) => {
          return inbox === 0 && sessionSeq > seq && state === "BuildingPrompt"
        })
      }
    })
  )
})
