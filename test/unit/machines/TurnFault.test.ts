/** Tests of what counts as a fault of an agent's turn. */
import { assert, it } from "@effect/vitest"
import { countedAs } from "../../../src/agents/machines/TurnFault.ts"

const failed = (error_type: string, message: string) => ({
  kind: "turn.error",
  payload: {
    turn_id: "t1",
    error_type,
    message,
    event: { _tag: "stream_error", turnId: "t1", errorType: error_type, message, retry: true }
  }
})

it("a turn in which agentd ended is no fault, by the words of older logs as well", () => {
  for (const message of ["agentd ended while it ran", "agentd was stopped while it ran"])
    assert.strictEqual(countedAs("error", failed("crash", message)), "interrupted", message)
  assert.strictEqual(countedAs("error", failed("crash", "exit code 3")), "error")
})
