import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import { PATIENCE } from "./test/support/Patience.ts"

export default defineConfig({
  test: {
    // most tests wait: for processes, sockets, disks
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    include: ["test/**/*.test.ts"],
    testTimeout: 3 * PATIENCE,
    hookTimeout: 3 * PATIENCE
  }
})
