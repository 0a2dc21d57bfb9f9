// Pages that are connected to a queue, for tests of the client. The queue is `window.queue` there.
import { test as base, type Page } from "@playwright/test";
import type { ConnectOptions, Queue } from "../../../sw/paceline";
import { FakeSite } from "./fake";
import { startServer, type Server } from "./server";

export { expect } from "@playwright/test";

/** What a test asserts of an error, in a form that leaves the page. */
export interface Thrown {
  name: string;
  message: string;
  code?: string;
  field?: string;
  expected?: string;
  got?: string;
  index?: number;
  status?: number;
  jobId?: string;
  cause?: string;
}

declare global {
  interface Window {
    queue: Queue;
    /** Whatever a test keeps in its page. */
    kept: any;
  }
  /** The error that a promise rejects with. */
  function thrown(promise: Promise<unknown>): Promise<Thrown>;
}

/** Which engine stands behind the page: the fake one, or the built one. */
export type EngineKind = "fake" | "built";

interface Options {
  engine: EngineKind;
}

interface Fixtures {
  /** An address of the engine's site. */
  site: string;
  /** Opens a page of the test's context, unconnected. */
  openPage(): Promise<Page>;
  /** Opens a page and connects it. */
  open(options?: ConnectOptions): Promise<Page>;
}

interface WorkerFixtures {
  fake: FakeSite;
  addresses: (engine: EngineKind) => Promise<string>;
}

/** No limit is in the way of a test that is not about limits. */
const UNLIMITED = [{ id: "api", match: ["http*"], limits: ["10000/1s"], maxInFlight: 100 }];

export const test = base.extend<Options & Fixtures, WorkerFixtures>({
  engine: ["fake", { option: true }],
  fake: [
    async ({}, use) => {
      const fake = await FakeSite.start();
      await use(fake);
      await fake.close();
    },
    { scope: "worker" },
  ],
  addresses: [
    async ({ fake }, use) => {
      let server: Server | undefined;
      await use(async (engine) => {
        if (engine === "fake") return fake.origin;
        server ??= await startServer();
        return server.http;
      });
      await server?.close();
    },
    { scope: "worker" },
  ],
  site: async ({ addresses, engine }, use) => use(await addresses(engine)),
  openPage: async ({ context, site }, use) => {
    await context.addInitScript(defineHelpers);
    await use(async () => {
      const page = await context.newPage();
      await page.goto(`${site}/blank`);
      return page;
    });
  },
  open: async ({ openPage }, use) => {
    await use(async (options) => {
      const page = await openPage();
      await connect(page, options);
      return page;
    });
  },
});

/** Loads the client in a page and connects it, without waiting for the host. */
export async function connect(page: Page, options: ConnectOptions = {}): Promise<void> {
  await page.evaluate(async (options) => {
    const client: string = "/paceline/client.js";
    const { connect } = await import(client);
    window.queue = connect(options);
  }, { budgets: UNLIMITED, ...options });
}

/** Defines `thrown`, and `kept.exchange`, which posts raw messages to the host and collects what it says. */
function defineHelpers(): void {
  window.kept = {
    exchange: (messages: unknown[], count: number) => new Promise((resolve) => {
      const { port } = new SharedWorker("/paceline/worker.js?queue=default", { name: "paceline:default", type: "module" });
      const heard: any[] = [];
      port.onmessage = ({ data }) => {
        if (data.name !== "hosting") heard.push(data);
        if (heard.length === count) resolve(heard);
      };
      for (const message of messages) port.postMessage(message);
    }),
  };
  globalThis.thrown = async (promise) => {
    try {
      await promise;
    } catch (error: any) {
      const { name, message, code, field, expected, got, index, status, jobId, cause } = error;
      return { name, message, code, field, expected, got, index, status, jobId, cause: cause?.name === "PacelineError" ? cause.code : cause?.name };
    }
    throw new Error("it did not reject");
  };
}
