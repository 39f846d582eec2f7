/** StatusLine: the text. */
import { assert, describe, it } from "@effect/vitest"
import { text } from "../../../src/app/StatusLine.ts"

describe("the line that systemctl status shows", () => {
  it.each([
    [{ agents: 0, busy: 0, needs: 0 }, "0 agents"],
    [{ agents: 1, busy: 0, needs: 0 }, "1 agent"],
    [{ agents: 3, busy: 0, needs: 1 }, "3 agents, 1 needs you"],
    [{ agents: 3, busy: 2, needs: 4 }, "3 agents, 2 at work, 4 need you: agentd waiting"]
  ])("%o → %s", (of, line) => assert.strictEqual(text(of), line))
})
