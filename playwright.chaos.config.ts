// Chaos in a real browser: `cargo xtask chaos --rounds N --seed S` runs it.
import { defineConfig } from "@playwright/test";
import { chromiumOptions } from "./tests/e2e/support/browsers";

export default defineConfig({
  testDir: "tests/chaos",
  testMatch: "*.chaos.ts",
  outputDir: "test-results",
  retries: 0,
  workers: 1,
  timeout: 4 * 3_600_000,
  reporter: [["line"]],
  projects: [{ name: "chromium", use: chromiumOptions() }],
});
