// The `test` of all specs: a running server, its judge, and tabs.
import { test as base, type Page } from "@playwright/test";
import type { BrowserKind } from "./browsers";
import { Profile } from "./faults";
import { startServer, type Server } from "./server";
import { Strict } from "./strict";

export { expect } from "@playwright/test";
export { UNLIKE_A_PERSONS_BROWSER } from "./browsers";
export { killSharedWorkers } from "./faults";

interface TestFixtures {
  strict: Strict;
  /** An account name that no other test has. */
  account: string;
  /** Opens pages of one context at `/blank`: two tabs of one browser, which share workers and storage. */
  openTabs(count: number): Promise<Page[]>;
  /** A browser of its own on a profile that outlives it, to be killed and started again. */
  profile: Profile;
}

interface WorkerFixtures {
  server: Server;
}

export const test = base.extend<TestFixtures, WorkerFixtures>({
  server: [
    async ({}, use) => {
      const server = await startServer();
      await use(server);
      await server.close();
    },
    { scope: "worker" },
  ],
  strict: async ({ server }, use) => use(new Strict(server.http)),
  account: async ({}, use, info) => use(`t-${info.testId.replace(/[^a-z0-9]/gi, "-")}`),
  openTabs: async ({ context, server }, use) => {
    await use(async (count) => {
      const tabs = await Promise.all(Array.from({ length: count }, () => context.newPage()));
      await Promise.all(tabs.map((tab) => tab.goto(`${server.http}/blank`)));
      return tabs;
    });
  },
  profile: async ({ browserName }, use) => {
    const profile = await Profile.create(browserName as BrowserKind);
    await use(profile);
    await profile.dispose();
  },
});
