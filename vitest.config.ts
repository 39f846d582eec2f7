import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import { PATIENCE } from "./test/support/Patience.ts"

/** Files that change what all code of their process shares, or count what is left of it: each has a process of its own. */
const alone = [
  "test/patterns.test.ts",
  "test/simulation/*.test.ts",
  "test/world/systemd/Notify.test.ts",
  "test/world/supervision/Supervisor.test.ts",
  // they make a browser of it
  "test/world/web/Glimpse.test.ts",
  "test/world/web/Streams.test.ts",
  "test/attack/ForeignText.test.ts"
]

const include = ["test/**/*.test.ts"]
/** Tests that start no process, open no socket and sleep no second. */
const unit = ["test/unit/**/*.test.ts"]

export default defineConfig({
  test: {
    // most tests wait: for processes, sockets, disks
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    tags: [{ name: "long", description: "More of the same, for npm run test:long." }],
    testTimeout: 3 * PATIENCE,
    hookTimeout: 3 * PATIENCE,
    projects: [
      { extends: true, test: { name: "unit", include: unit, isolate: false, setupFiles: ["test/support/NoWorld.ts"] } },
      // what these import is loaded once a process and not once a file: no module of src has a state of its own
      {
        extends: true,
        test: { name: "shared", include, exclude: [...alone, ...unit], isolate: false, globalSetup: ["test/support/Program.ts"] }
      },
      { extends: true, test: { name: "alone", include: alone } }
    ]
  }
})
