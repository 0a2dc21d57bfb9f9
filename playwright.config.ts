// Browser tests of Paceline. `cargo xtask test` names the browsers; started by hand, the last set-up's are used.
import { defineConfig } from "@playwright/test";
import { chromiumOptions, firefoxOptions } from "./tests/e2e/support/browsers";

const report = process.env.PACELINE_E2E_REPORT;

export default defineConfig({
  testDir: "tests/e2e",
  outputDir: "test-results",
  // A test that passes at the second try has found something: no retries. Time is measured: one test at a time.
  retries: 0,
  workers: 1,
  fullyParallel: false,
  forbidOnly: true,
  timeout: 60_000,
  expect: { timeout: 10_000 },
  reporter: report ? [["list"], ["json", { outputFile: report }]] : [["list"]],
  projects: [
    { name: "chromium", use: chromiumOptions() },
    { name: "firefox", use: firefoxOptions() },
  ],
});
