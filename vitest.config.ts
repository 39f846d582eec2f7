import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    // most of them wait: for processes, sockets, disks
    maxWorkers: 3,
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 30_000
  }
})
