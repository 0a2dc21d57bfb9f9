// One suite for every kind of host: what a page may rely on wherever the scheduler runs.
import type { BrowserContext, Page } from "@playwright/test";
import type { ConnectOptions } from "../../sw/paceline";
import { connect, expect, test, type EngineKind } from "./support/client";
import { NEWER } from "./support/fake";

const ENGINES: EngineKind[] = ["fake", "built"];
const KINDS: NonNullable<ConnectOptions["host"]>[] = ["shared-worker", "leader-tab", "service-worker"];

for (const engine of ENGINES) {
  for (const kind of KINDS) {
    test.describe(`${kind} host over the ${engine} engine`, () => {
      test.use({ engine });

      test("one host serves all tabs, and each hears of its own jobs", async ({ openPage, fake }) => {
        const tabs = [await openPage(), await openPage(), await openPage()];
        for (const tab of tabs) await connect(tab, { host: kind });
        const before = fake.calls.length;

        const seen = await Promise.all(tabs.map((tab, at) => run(tab, `${fake.origin}/api/echo`, `tab ${at}`)));

        expect(seen.map(({ host }) => host)).toEqual([kind, kind, kind]);
        expect(new Set(seen.map(({ instance }) => instance)).size).toBe(1);
        expect(seen.map(({ body }) => body)).toEqual(["tab 0", "tab 1", "tab 2"]);
        expect(fake.calls.length).toBe(before + 3);
      });

      test("the host goes on when the first tab closes", async ({ openPage, fake }) => {
        const [first, second] = [await openPage(), await openPage()];
        await connect(first!, { host: kind });
        await run(first!, `${fake.origin}/api/echo`, "before");
        await connect(second!, { host: kind });
        await run(second!, `${fake.origin}/api/echo`, "before");

        await first!.close();

        const { body, host } = await run(second!, `${fake.origin}/api/echo`, "after");
        expect({ body, host }).toEqual({ body: "after", host: kind });
      });

      test("the host goes on when the first tab goes to another page", async ({ openPage, fake }) => {
        const [first, second] = [await openPage(), await openPage()];
        await connect(first!, { host: kind });
        await run(first!, `${fake.origin}/api/echo`, "before");
        await connect(second!, { host: kind });
        await run(second!, `${fake.origin}/api/echo`, "before");

        await first!.goto(`${first!.url()}?elsewhere`);

        expect((await run(second!, `${fake.origin}/api/echo`, "after")).body).toBe("after");
      });

      test("a tab that reloads finds a host again", async ({ openPage, fake }) => {
        const page = await openPage();
        await connect(page, { host: kind });
        await run(page, `${fake.origin}/api/echo`, "before");

        await page.reload();
        await connect(page, { host: kind });

        expect((await run(page, `${fake.origin}/api/echo`, "after")).body).toBe("after");
      });
    });
  }

  test.describe(`two kinds of host over the ${engine} engine`, () => {
    test.use({ engine });

    test("make one sender, and the tab of the second speaks with the first", async ({ openPage, fake }) => {
      const [first, second] = [await openPage(), await openPage()];
      await connect(first!, { host: "shared-worker" });
      const owner = await run(first!, `${fake.origin}/api/echo`, "first");

      await connect(second!, { host: "leader-tab" });
      const guest = await run(second!, `${fake.origin}/api/echo`, "second");

      expect([guest.host, guest.instance, guest.body]).toEqual(["shared-worker", owner.instance, "second"]);
      await first!.close();
      // The browser ends the worker a little after its last page, and until then it serves: what it leaves half done is repeated.
      const heir = () => run(second!, `${fake.origin}/api/echo`, "third", "PUT");
      await expect.poll(async () => (await heir()).host).toBe("leader-tab");
      expect((await heir()).body).toBe("third");
    });
  });

  test.describe(`two versions of a host over the ${engine} engine`, () => {
    const [old, fresh] = engine === "fake" ? ["paceline", "newer"] : ["built", "built-newer"];

    for (const kind of KINDS.filter((kind) => kind !== "service-worker")) {
      test(`as ${kind}: the newer takes over once the older has finished`, async ({ openPage, fake }) => {
        const [older, newer] = [await openPage(), await openPage()];
        await connectTo(older, old!, kind);
        const before = await run(older, `${fake.origin}/api/echo`, "older");
        // An address of its own: other tests of this browser are held up at the same site.
        const held = `/api/held/${engine}-${kind}`;
        const arrivals = () => fake.calls.filter(({ path }) => path === held).length;
        const finishing = older.evaluate(async (url) => (await (await window.queue.enqueue({ url, method: "POST", body: "x" })).done).status, `${fake.origin}${held}`);
        await expect.poll(arrivals).toBe(1);

        await connectTo(newer, fresh!, kind);
        const told = await older.evaluate(() => window.kept.upgrade);
        fake.release();
        const after = await run(newer, `${fake.origin}/api/echo`, "newer");

        expect(told).toEqual({ version: NEWER });
        expect(await finishing).toBe(200);
        expect(after.instance).not.toBe(before.instance);
        const again = await run(older, `${fake.origin}/api/echo`, "older again");
        expect([again.instance, again.body]).toEqual([after.instance, "older again"]);
        expect(arrivals()).toBe(1);
      });
    }
  });
}

test.describe("a service worker that the browser stops", () => {
  test.use({ engine: "built" });
  test.skip(({ browserName }) => browserName !== "chromium", "only Chromium's debugger can stop a service worker");

  test("is rung by an open tab when its next job is due", async ({ openPage, context, fake }) => {
    const page = await openPage();
    await connect(page, { host: "service-worker" });
    const { due, instance } = await page.evaluate(async (url) => {
      const due = Date.now() + 3_000;
      const job = await window.queue.enqueue({ url, method: "POST", body: "x", notBefore: due });
      window.kept.done = job.done.then(() => Date.now());
      return { due, instance: (await window.queue.ready).instance };
    }, `${fake.origin}/api/echo`);
    await expect.poll(() => page.evaluate(() => window.queue.snapshot().nextWakeAt ?? 0)).toBeGreaterThan(0);

    await stopServiceWorkers(context, page);

    const doneAt: number = await page.evaluate(() => window.kept.done);
    const after = await page.evaluate(async () => (await window.queue.ready).instance);
    expect(after).not.toBe(instance);
    expect(doneAt).toBeGreaterThanOrEqual(due);
    expect(doneAt).toBeLessThan(due + 1_000);
  });

  test("is not woken when it has nothing to do, and serves the next job", async ({ openPage, context, fake }) => {
    const page = await openPage();
    await connect(page, { host: "service-worker" });
    const before = await run(page, `${fake.origin}/api/echo`, "before");
    await expect.poll(() => page.evaluate(() => window.queue.snapshot().counts.done)).toBe(1);

    await stopServiceWorkers(context, page);

    const isHeld = await page.evaluate(async () => (await navigator.locks.query()).held!.some(({ name }) => name === "paceline:default"));
    expect(isHeld).toBe(false);
    const after = await run(page, `${fake.origin}/api/echo`, "after");
    expect([after.host, after.body]).toEqual(["service-worker", "after"]);
    expect(after.instance).not.toBe(before.instance);
  });
});

/** Stops every service worker of a Chromium; resolves once the host's lock is free, or another host has it. */
async function stopServiceWorkers(context: BrowserContext, page: Page): Promise<void> {
  const hosts = () => page.evaluate(async () => (await navigator.locks.query()).held!.map(({ name }) => name!).filter((name) => name.startsWith("paceline-host:")));
  const [host] = await hosts();
  if (!host) throw new Error("no host is there: nothing was stopped");
  const session = await context.newCDPSession(page);
  await session.send("ServiceWorker.enable");
  await session.send("ServiceWorker.stopAllWorkers");
  await expect.poll(hosts).not.toContain(host);
}

/** Connects a page with the package under another path; `kept.upgrade` is what it is told of a newer version. */
function connectTo(page: Page, directory: string, host: ConnectOptions["host"]): Promise<void> {
  return page.evaluate(async ([directory, host]) => {
    const client: string = `/${directory}/client.js`;
    const { connect } = await import(client);
    window.queue = connect({ host, budgets: [{ id: "api", match: ["http*"], limits: ["10000/1s"], maxInFlight: 100 }] });
    window.kept.upgrade = new Promise((resolve) => window.queue.addEventListener("upgrade-available", (event) => resolve((event as CustomEvent).detail)));
  }, [directory, host] as const);
}

/** Sends one job and tells who sent it and what came back. */
function run(page: Page, url: string, body: string, method = "POST"): Promise<{ host: string; instance: string; body: string }> {
  return page.evaluate(async ([url, body, method]) => {
    const job = await window.queue.enqueue({ url, method, body });
    const answer = await (await job.done).json();
    const { host, instance } = await window.queue.ready;
    return { host, instance, body: answer.body };
  }, [url, body, method] as const);
}
