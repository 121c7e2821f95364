import { defineConfig } from "vitest/config"

/**
 * Tests that keep to themselves share a worker's modules, which takes half of their time away; whoever changes something global there puts it back.
 * The others start programs and terminals; each of their files has a process of its own.
 */
const together = ["test/core/**/*.test.ts", "test/matrix/**/*.test.ts", "test/plugins/**/*.test.ts"]

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: "forks",
    // One more than cores: programs and terminals are waited for much of the time, a tenth of the whole.
    maxWorkers: 3,
    expect: { requireAssertions: true },
    projects: [
      { extends: true, test: { name: "together", include: together, isolate: false } },
      { extends: true, test: { name: "apart", include: ["test/**/*.test.ts"], exclude: together } }
    ]
  }
})
