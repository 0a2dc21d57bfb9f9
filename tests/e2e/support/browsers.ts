// How the browsers of the tests are started. Read tests/README.md before changing a flag.
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { LaunchOptions, PlaywrightTestOptions, PlaywrightWorkerOptions } from "@playwright/test";

export type BrowserKind = "chromium" | "firefox";
type Use = Partial<PlaywrightTestOptions & PlaywrightWorkerOptions>;

export const ROOT = resolve(__dirname, "../../..");

/**
 * Playwright starts Chromium with these, and so turns off the back-forward cache and the throttling of hidden tabs. A test
 * about either starts its browser with them in `ignoreDefaultArgs`.
 */
export const UNLIKE_A_PERSONS_BROWSER = [
  "--disable-back-forward-cache",
  "--disable-background-timer-throttling",
  "--disable-backgrounding-occluded-windows",
  "--disable-renderer-backgrounding",
];

/** Options of a launch, as a test that starts its own browser needs them. */
export function launchOptions(kind: BrowserKind): LaunchOptions {
  return kind === "chromium" ? chromiumLaunch() : firefoxLaunch();
}

export function chromiumOptions(): Use {
  return { browserName: "chromium", launchOptions: chromiumLaunch(), ignoreHTTPSErrors: true };
}

/** Stock Firefox cannot emulate media features: what Playwright would set by default is switched off. */
export function firefoxOptions(): Use {
  return {
    browserName: "firefox",
    launchOptions: firefoxLaunch(),
    ignoreHTTPSErrors: true,
    contextOptions: { colorScheme: null, reducedMotion: null, forcedColors: null, contrast: null },
    colorScheme: null,
  };
}

function chromiumLaunch(): LaunchOptions {
  return {
    executablePath: browserPath("chromium"),
    args: [
      // Only root needs it, and only root gets it.
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
      // The context option does not reach workers, which fetch from the HTTPS address too.
      "--ignore-certificate-errors",
    ],
  };
}

function firefoxLaunch(): LaunchOptions {
  const executablePath = browserPath("firefox");
  // Playwright's own build speaks another protocol than a stock one.
  const stock = executablePath !== undefined && !executablePath.includes("ms-playwright");
  return stock ? { executablePath, channel: "moz-firefox" } : { executablePath };
}

function browserPath(kind: BrowserKind): string | undefined {
  const named = process.env[`PACELINE_${kind.toUpperCase()}`];
  if (named) return named;
  const found = resolve(ROOT, "target/browsers.json");
  return existsSync(found) ? JSON.parse(readFileSync(found, "utf8"))[kind] : undefined;
}
