// The shell of the worker: what it keeps, what it refuses, and how a host ends and the next one takes over.
import { chromium, type Page } from "@playwright/test";
import { launchOptions, UNLIKE_A_PERSONS_BROWSER } from "./support/browsers";
import { connect, expect, test, type EngineKind } from "./support/client";
import { killSharedWorkers } from "./support/faults";

const ENGINES: EngineKind[] = ["fake", "built"];
const WASM_DELAY_MS = 1_500;

for (const engine of ENGINES) {
  test.describe(`over the ${engine} engine`, () => {
    test.use({ engine });

    test("tabs that connect while the wasm loads are served", async ({ openPage, fake, site }) => {
      const tabs = [await openPage(), await openPage(), await openPage()];
      const before = fake.calls.length;

      const seen = await Promise.all(tabs.map((tab) => tab.evaluate(async ([api, wasmUrl]) => {
        const client: string = "/paceline/client.js";
        const { connect } = await import(client);
        const start = performance.now();
        const queue = connect({ wasmUrl });
        const job = queue.enqueue({ url: `${api}/echo`, method: "POST", body: "x" });
        const { instance } = await queue.ready;
        const welcomedMs = performance.now() - start;
        return { instance, welcomedMs, status: (await (await job).done).status };
      }, [`${fake.origin}/api`, `${site}/paceline/paceline_sw_bg.wasm?delay_ms=${WASM_DELAY_MS}`] as const)));

      // The fault: the first to connect had to wait for the wasm.
      expect(Math.max(...seen.map(({ welcomedMs }) => welcomedMs))).toBeGreaterThan(WASM_DELAY_MS * 0.9);
      expect(seen.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(new Set(seen.map(({ instance }) => instance)).size).toBe(1);
      expect(fake.calls.length).toBe(before + 3);
    });

    test("what is no message costs its sender an error and the host goes on", async ({ openPage, open, fake }) => {
      const raw = await openPage();
      const other = await open();
      const { instance } = await other.evaluate(() => window.queue.ready);

      const errors = await raw.evaluate(async () => {
        const garbage = [null, "hello", 7, [], {}, { paceline: 2, id: 1, type: "hello" }, { paceline: 1, type: "hello" },
          { paceline: 1, id: "x", type: "hello" }, { paceline: 1, id: 3 }, { paceline: 1, id: 4, type: "no-such" }];
        return window.kept.exchange(garbage, garbage.length);
      });

      expect(errors.map(({ type, code, field, re }: any) => [type, code, field, re])).toEqual([
        ["error", "protocol", "message", undefined],
        ["error", "protocol", "message", undefined],
        ["error", "protocol", "message", undefined],
        ["error", "protocol", "paceline", undefined],
        ["error", "protocol", "paceline", undefined],
        ["error", "protocol", "paceline", 1],
        ["error", "protocol", "id", undefined],
        ["error", "protocol", "id", undefined],
        ["error", "protocol", "type", 3],
        ["error", "protocol", "type", 4],
      ]);
      const status = await other.evaluate(async (api) => (await window.queue.fetch(`${api}/echo`)).status, `${fake.origin}/api`);
      expect(status).toBe(200);
      expect((await other.evaluate(() => window.queue.ready)).instance).toBe(instance);
    });

    test("a raw enqueue is checked, accepted and settled without the client", async ({ openPage, fake }) => {
      const page = await openPage();

      const replies = await page.evaluate(async (api) => window.kept.exchange([
        { paceline: 1, id: 1, type: "enqueue", job: { url: "nowhere" } },
        { paceline: 1, id: 2, type: "enqueue", job: { url: `${api}/echo`, headers: { Cookie: "a" } } },
        { paceline: 1, id: 3, type: "enqueue" },
        { paceline: 1, id: 4, type: "enqueue-many", jobs: [{ url: `${api}/echo` }, { url: `${api}/echo`, lane: "x" }] },
        { paceline: 1, id: 5, type: "enqueue", job: { id: "mine", url: `${api}/echo`, method: "POST", body: { a: 1 } } },
      ], 6), `${fake.origin}/api`);

      expect(replies.slice(0, 4)).toMatchObject([
        { re: 1, type: "error", code: "bad-job", field: "job.url", got: "nowhere" },
        { re: 2, type: "error", code: "secret-header", field: "job.headers.Cookie" },
        { re: 3, type: "error", code: "bad-job", field: "job" },
        { re: 4, type: "error", code: "bad-job", field: "jobs[1].lane", index: 1 },
      ]);
      expect(replies[4]).toMatchObject({ re: 5, type: "accepted", job: { id: "mine" } });
      expect(replies[5]).toMatchObject({ type: "settled", job: { id: "mine", state: "done" }, response: { status: 200 } });
      expect(fake.calls.at(-1)).toMatchObject({ method: "POST", body: '{"a":1}' });
    });

    test("the host holds the queue's lock and one for its life", async ({ open }) => {
      const page = await open();

      const seen = await page.evaluate(async () => {
        const { instance } = await window.queue.ready;
        const { held = [] } = await navigator.locks.query();
        return { instance, locks: held.map(({ name, mode }) => `${name} ${mode}`) };
      });

      expect(seen.locks).toEqual(expect.arrayContaining(["paceline:default exclusive", `paceline-host:default:${seen.instance} exclusive`]));
    });

    test("a host that loses its lock stops at once and the next one has to wait for it", async ({ open, fake }) => {
      const tab = await open();
      await keepJobs(tab, `${fake.origin}/api/echo`, true);
      const before = fake.calls.length;

      await tab.evaluate(async () => {
        const { instance } = await window.queue.ready;
        const stolen = new Promise<void>((held) => {
          navigator.locks.request("paceline:default", { steal: true }, () => {
            held();
            return new Promise<void>((release) => (window.kept.release = release));
          });
        });
        await stolen;
        // Granted once the host that lost the lock is gone.
        await navigator.locks.request(`paceline-host:default:${instance}`, { mode: "shared" }, () => {});
      });

      expect(fake.calls.length).toBe(before);
      await tab.evaluate(() => window.kept.release());
      const changed = await tab.evaluate(() => window.kept.changed);
      expect(changed.now).not.toBe(changed.before);
      await tab.evaluate(() => window.queue.resume());
      expect(await tab.evaluate(() => window.kept.statuses())).toEqual([200, 200, { done: 2, failed: 0, cancelled: 0 }]);
    });

    test("a worker that cannot be loaded is a typed error", async ({ openPage }) => {
      const page = await openPage();

      const seen = await page.evaluate(async () => {
        const client: string = "/paceline/client.js";
        const { connect } = await import(client);
        const queue = connect({ workerUrl: "/paceline/no-such-worker.js" });
        const happened = new Promise<any>((resolve) => queue.addEventListener("error", ({ detail }: any) => resolve(detail.message)));
        return { ready: await thrown(queue.ready), event: await happened };
      });

      expect(seen.ready).toMatchObject({ name: "PacelineError", code: "not-connected" });
      expect(seen.event).toContain("no-such-worker.js");
    });

    test("a killed host is noticed and its jobs settle in the next one", async ({ open, browser, browserName, fake }) => {
      test.skip(browserName === "firefox", "Firefox has no command that ends a worker");
      const tabs = [await open(), await open()];
      const before = fake.calls.length;
      for (const tab of tabs) await keepJobs(tab, `${fake.origin}/api/held`);
      await expect.poll(() => fake.calls.length).toBeGreaterThan(before);

      expect(await killSharedWorkers(browser, "worker.js")).toBe(1);

      for (const tab of tabs) {
        const changed = await tab.evaluate(() => window.kept.changed);
        expect(changed.now).not.toBe(changed.before);
      }
      const release = setInterval(() => fake.release(), 20);
      const statuses = await Promise.all(tabs.map((tab) => tab.evaluate(() => window.kept.statuses())));
      clearInterval(release);
      expect(statuses).toEqual([[200, 200, { done: 2, failed: 0, cancelled: 0 }], [200, 200, { done: 2, failed: 0, cancelled: 0 }]]);
    });

    test("a raw enqueue to the service worker is answered", async ({ openPage, fake }) => {
      const page = await openPage();

      const replies = await page.evaluate(async (api) => {
        const registration = await navigator.serviceWorker.register("/paceline/worker.js?queue=raw", { type: "module", scope: "/" });
        const worker = registration.active ?? registration.installing ?? registration.waiting!;
        await new Promise<void>((active) => {
          const check = () => worker.state === "activated" && active();
          worker.addEventListener("statechange", check);
          check();
        });
        const replies: any[] = [];
        const all = new Promise<void>((resolve) => {
          navigator.serviceWorker.addEventListener("message", ({ data }) => {
            if (data.re !== undefined || data.type === "settled") replies.push(data);
            if (replies.length === 3) resolve();
          });
          navigator.serviceWorker.startMessages();
        });
        const active = registration.active!;
        active.postMessage({ something: "of the app" });
        active.postMessage({ paceline: 1, id: 7, type: "enqueue", job: { url: "bad" } });
        active.postMessage({ paceline: 1, id: 8, type: "enqueue", job: { id: "raw", url: `${api}/echo`, method: "PUT", body: "x" } });
        await all;
        return replies;
      }, `${fake.origin}/api`);

      expect(replies).toMatchObject([
        { paceline: 1, re: 7, type: "error", code: "bad-job", field: "job.url" },
        { paceline: 1, re: 8, type: "accepted", job: { id: "raw" } },
        { paceline: 1, type: "settled", job: { id: "raw", state: "done" } },
      ]);
      expect(fake.calls.at(-1)).toMatchObject({ method: "PUT", body: "x" });
    });

    test("a page that comes back from the cache of pages goes on", async ({ browserName, fake, site }) => {
      test.skip(browserName === "firefox", "Playwright cannot tell whether Firefox cached a page");
      const browser = await chromium.launch({ ...launchOptions("chromium"), ignoreDefaultArgs: UNLIKE_A_PERSONS_BROWSER });
      const page = await (await browser.newContext()).newPage();
      // Any document of the site that may be stored; `/blank` of the real server may not, and so is never cached.
      await page.goto(`${site}/paceline/protocol.js`);
      await connect(page);
      await page.evaluate(async (api) => {
        await window.queue.hold();
        const job = await window.queue.enqueue({ url: `${api}/echo` });
        window.kept = { job, persisted: new Promise((resolve) => addEventListener("pageshow", ({ persisted }) => resolve(persisted))) };
      }, `${fake.origin}/api`);

      await page.goto(`${site}/blank`);
      await page.goBack({ waitUntil: "commit" });

      expect(await page.evaluate(() => window.kept.persisted)).toBe(true);
      const status = await page.evaluate(async () => {
        await window.queue.resume();
        return (await window.kept.job.done).status;
      });
      expect(status).toBe(200);
      await browser.close();
    });
  });
}

test.describe("over an engine with faults", () => {
  test("a request that traps every host is given up alone", async ({ open, fake }) => {
    const tabs = [await open(), await open()];
    for (const tab of tabs) await keepJobs(tab, `${fake.origin}/api/echo`, true);

    const error = await tabs[0]!.evaluate(() => thrown(window.queue.enqueue({ id: "poison", url: "http://127.0.0.1/", meta: "trap" })));

    expect(error).toMatchObject({ code: "host-crashed", message: "unreachable", jobId: "poison" });
    for (const tab of tabs) {
      expect(await tab.evaluate(() => window.kept.crashed)).toEqual({ message: "unreachable" });
      expect(await tab.evaluate(() => window.kept.statuses())).toEqual([200, 200, { done: 2, failed: 0, cancelled: 0 }]);
    }
  });

  test("a host that restarts under a live port is greeted again and gets what it forgot", async ({ open, fake }) => {
    const tab = await open();
    await keepJobs(tab, `${fake.origin}/api/echo`, true);

    const reborn = await tab.evaluate((url) => {
      const job = window.queue.enqueue({ url, method: "PUT", meta: "reborn" }).then(async ({ done }) => (await done).status);
      return window.queue.resume().then(() => job);
    }, `${fake.origin}/api/echo`);

    expect((await tab.evaluate(() => window.kept.changed)).now).toBe("reborn");
    expect(reborn).toBe(200);
    expect(await tab.evaluate(() => window.kept.statuses())).toEqual([200, 200, { done: 2, failed: 0, cancelled: 0 }]);
  });

  test("a trap leaves the locks to the next host, which knows the jobs of all tabs", async ({ open, openPage, fake }) => {
    const tab = await open();
    const raw = await openPage();
    await keepJobs(tab, `${fake.origin}/api/echo`, true);

    await raw.evaluate(() => window.kept.exchange([{ paceline: 1, id: 1, type: "enqueue", job: { url: "http://127.0.0.1/", meta: "trap" } }], 1));

    const changed = await tab.evaluate(() => window.kept.changed);
    expect(changed.now).not.toBe(changed.before);
    expect(await tab.evaluate(() => window.kept.crashed)).toEqual({ message: "unreachable" });
    expect(await tab.evaluate(() => window.kept.statuses())).toEqual([200, 200, { done: 2, failed: 0, cancelled: 0 }]);
    const hosts = await tab.evaluate(async () => ((await navigator.locks.query()).held ?? []).filter(({ name }) => name?.startsWith("paceline-host")));
    expect(hosts).toHaveLength(1);
  });

  test("a host that traps whenever it starts is given up", async ({ open }) => {
    const page = await open({ name: "traps" });

    const seen = await page.evaluate(async () => {
      const accepted = thrown(window.queue.enqueue({ url: "http://127.0.0.1/" }));
      return [await thrown(window.queue.ready), await accepted];
    });

    expect(seen).toMatchObject([{ code: "host-crashed", message: "unreachable" }, { code: "host-crashed", message: "unreachable" }]);
  });

  test("a store that cannot be opened is the error of all that asked", async ({ open }) => {
    const page = await open({ name: "broken" });

    const seen = await page.evaluate(async () => {
      const accepted = thrown(window.queue.enqueue({ url: "http://127.0.0.1/" }));
      return [await thrown(window.queue.ready), await accepted];
    });

    expect(seen).toMatchObject([{ code: "storage" }, { code: "storage" }]);
  });

  test("wasm that is not there is named", async ({ open, site }) => {
    const page = await open({ wasmUrl: `${site}/paceline/nowhere` });

    const error = await page.evaluate(() => thrown(window.queue.ready));

    expect(error).toMatchObject({ code: "host-crashed" });
    expect(error.message).toContain("404");
  });

  test("the host hears that a tab is gone", async ({ open }) => {
    const tab = await open();
    const doomed = await open();
    await doomed.evaluate(() => window.queue.ready);
    await tab.evaluate(async () => {
      window.kept = new Promise((resolve) => window.queue.addEventListener("storage", ({ detail }) => resolve(detail.message)));
      await new Promise<void>((resolve) => window.queue.subscribe(() => resolve()));
    });

    await doomed.close({ runBeforeUnload: false });

    expect(await tab.evaluate(() => window.kept)).toMatch(/^tab \d+ left$/);
  });

  test("a service worker answers while another host owns the queue", async ({ open }) => {
    const page = await open();

    const reply = await page.evaluate(async () => {
      await window.queue.ready;
      const registration = await navigator.serviceWorker.register("/paceline/worker.js?queue=default", { type: "module", scope: "/" });
      const worker = registration.installing ?? registration.active!;
      await new Promise<void>((active) => {
        const check = () => worker.state === "activated" && active();
        worker.addEventListener("statechange", check);
        check();
      });
      const answered = new Promise<any>((resolve) => {
        navigator.serviceWorker.addEventListener("message", ({ data }) => data.re === 1 && resolve(data));
        navigator.serviceWorker.startMessages();
      });
      registration.active!.postMessage({ paceline: 1, id: 1, type: "enqueue", job: { url: "http://127.0.0.1/" } });
      return answered;
    });

    expect(reply).toMatchObject({ type: "error", code: "not-connected", message: "another host owns the queue" });
  });
});

/** Hands in two single jobs and a bulk of two, and keeps what a test asks for later. */
async function keepJobs(tab: Page, url: string, isHeld = false): Promise<void> {
  await tab.evaluate(async ([url, isHeld]) => {
    const { queue } = window;
    const before = (await queue.ready).instance;
    const on = (name: any) => new Promise<any>((resolve) => queue.addEventListener(name, ({ detail }: any) => resolve(detail)));
    const changed = on("host-changed").then(({ instance }) => ({ before, now: instance }));
    const crashed = on("host-crashed");
    if (isHeld) await queue.hold();
    const job = () => ({ url, method: "PUT" });
    const singles = [await queue.enqueue(job()), await queue.enqueue(job())];
    const bulk = await queue.enqueueMany([job(), job()]);
    const statuses = async () => [...(await Promise.all(singles.map(async ({ done }) => (await done).status))), await bulk.settled];
    window.kept = { changed, crashed, statuses };
  }, [url, isHeld] as const);
}

test("an answer counts from when it arrived, also where its context was busy", async ({ openPage, fake }) => {
  const page = await openPage();

  const { at, busyUntil } = await page.evaluate(async (url) => {
    const transport: string = "/paceline/transport.js";
    const { send } = await import(transport);
    const request = { method: "POST", url, headers: {}, body: "x" };
    const sent = send(request, { timeoutMs: 10_000, headers: [] });
    const busyUntil = performance.now() + 500;
    while (performance.now() < busyUntil);
    const { at } = await sent;
    return { at, busyUntil };
  }, `${fake.origin}/api/echo`);

  expect(at).toBeLessThan(busyUntil);
});
