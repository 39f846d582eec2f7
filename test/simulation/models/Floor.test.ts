import { assert, it } from "@effect/vitest"
import { explore, say } from "./Explore.ts"
import { floorModel } from "./FloorModel.ts"

it("small", () => {
  const began = performance.now()
  const found = explore(
    floorModel({
      agents: ["pm", "dev"],
      ends: ["done", "says"],
      leaves: ["stopped"],
      person: ["post"],
      tools: false,
      crash: false,
      refuses: false,
      unread: 2,
      reports: 1,
      most: 50_000
    })
  )
  process.stdout.write(JSON.stringify(found, null, 1) + `${performance.now() - began}\n`)
  assert.strictEqual(say(found), "")
})
