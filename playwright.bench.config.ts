// Measurements in real browsers; `cargo xtask bench` runs them. Nothing here is a test: figures are printed, not judged.
import { defineConfig } from "@playwright/test";
import { chromiumOptions, firefoxOptions } from "./tests/e2e/support/browsers";

export default defineConfig({
  testDir: "tests/bench",
  testMatch: "*.bench.ts",
  outputDir: "test-results",
  retries: 0,
  workers: 1,
  timeout: 600_000,
  reporter: [["line"]],
  projects: [
    { name: "chromium", use: chromiumOptions() },
    { name: "firefox", use: firefoxOptions() },
  ],
});
