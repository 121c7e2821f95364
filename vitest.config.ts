import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: "forks",
    maxWorkers: 2,
    // Tests in real terminals can look at a screen before it is written; what was tried again is named in the output, and
    // is to be mended: nothing may need this for good.
    retry: 1,
    expect: { requireAssertions: true }
  }
})
