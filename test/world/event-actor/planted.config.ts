/** The tests of actors with one fault planted: `PLANT` is its place in the list; none, where that is empty. */
import { join } from "node:path"
import { defineConfig } from "vitest/config"
import { faults } from "./Faults.ts"

const fault = faults[Number(process.env["PLANT"])]

export default defineConfig({
  root: join(import.meta.dirname, "../../.."),
  plugins: [
    {
      name: "plant",
      enforce: "pre",
      transform: (code, id) =>
        fault !== undefined && id.endsWith(`/src/core/event-actor/${fault.file}`)
          ? code.replace(fault.from, () => fault.to)
          : undefined
    }
  ],
  test: {
    include: ["CommitScope", "Random", "Promises", "Timers", "StateMachineActor", "AgentLife", "Joining"].map(
      (name) => `test/{event-actor,unit/event-actor}/${name}.test.ts`
    ),
    bail: 1,
    // a module as it is without the fault is not to be taken for it
    fsModuleCache: false,
    testTimeout: 20_000
  }
})
