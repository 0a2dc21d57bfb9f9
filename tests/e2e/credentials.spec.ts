// Credentials: asked for, used, renewed, and nowhere on the disk.
import type { Page } from "@playwright/test";
import { expect, killSharedWorkers, test } from "./support/test";

const LIMITS = [{ limit: 50, window_ms: 1_000, algorithm: "sliding-log" }];

/** Connects a page whose app gives the token that `window.kept` has now. */
async function connect(tab: Page, api: string, token: string): Promise<void> {
  await tab.evaluate(async ([api, token]) => {
    const client: string = "/paceline/client.js";
    const { connect } = await import(client);
    window.kept = { token, asked: [] as string[], needed: [] as string[] };
    window.queue = connect({
      principal: "ann",
      credentials: async (budget: string) => {
        window.kept.asked.push(budget);
        return { Authorization: window.kept.token };
      },
      budgets: [{ id: "api", match: [`${api}/*`], limits: ["50/1s"], idempotency: { header: "Idempotency-Key" } }],
    });
    window.queue.addEventListener("credentials-needed", ({ detail }) => window.kept.needed.push(detail.wanted));
    await window.queue.ready;
  }, [api, token] as const);
}

function handIn(tab: Page, api: string, group: string): Promise<number> {
  return tab.evaluate(async ([api, group]) => {
    const jobs = Array.from({ length: 20 }, (_, n) => ({ method: "POST", url: `${api}/notes`, body: { note: `${group} ${n}` } }));
    return (await window.queue.enqueueMany(jobs, { group })).total;
  }, [api, group] as const);
}

const idle = (tab: Page) => tab.evaluate(() => window.queue.idle());

/** Everything in every database of the page's origin, as text. */
function dump(tab: Page): Promise<string> {
  return tab.evaluate(async () => {
    const wait = <T>(request: IDBRequest<T>) => new Promise<T>((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    const all: unknown[] = [];
    for (const { name } of await indexedDB.databases()) {
      const db = await wait(indexedDB.open(name!));
      for (const store of db.objectStoreNames) {
        const objects = db.transaction(store).objectStore(store);
        all.push(await wait(objects.getAll()), await wait(objects.getAllKeys()));
      }
      db.close();
    }
    return JSON.stringify(all, (_, value) => (value instanceof Uint8Array ? new TextDecoder().decode(value) : value));
  });
}

test("a page gives credentials, renews them after a 401, and none is stored", async ({ page, server, strict, account }) => {
  await strict.put(account, { limits: LIMITS, authorization: "Bearer first-s3cret" });
  const api = `${server.http}/strict/${account}/api`;
  await page.goto(`${server.http}/blank`);
  await connect(page, api, "Bearer first-s3cret");
  await handIn(page, api, "one");
  await idle(page);
  expect(await page.evaluate(() => window.kept.asked)).toEqual(["api"]);

  await strict.patch(account, { authorization: "Bearer second-s3cret" });
  await page.evaluate(() => (window.kept.token = "Bearer second-s3cret"));
  await handIn(page, api, "two");
  await idle(page);

  const report = await strict.report(account);
  expect(report).toMatchObject({ applied: 40, duplicated: 0 });
  expect(report.requests.some(({ status }) => status === 401)).toBe(true);
  expect(await page.evaluate(() => window.kept)).toMatchObject({ asked: ["api", "api"], needed: [] });
  const stored = await dump(page);
  expect(stored).toContain("/notes");
  expect(stored).not.toContain("s3cret");
});

test("wrong credentials hold the budget in sight until the app gives others", async ({ page, server, strict, account }) => {
  await strict.put(account, { limits: LIMITS, authorization: "Bearer good" });
  const api = `${server.http}/strict/${account}/api`;
  await page.goto(`${server.http}/blank`);
  await connect(page, api, "Bearer bad");
  await handIn(page, api, "one");
  await expect.poll(() => page.evaluate(() => window.kept.needed)).toEqual(["refused"]);
  const held = () => page.evaluate(() => window.queue.snapshot().byBudget["api"]?.held);
  await expect.poll(held).toEqual(["credentials"]);
  const refused = (await strict.report(account)).requests.length;

  await page.evaluate(() => window.queue.setCredentials("api", { Authorization: "Bearer good" }));
  await idle(page);

  expect(refused).toBe(1);
  expect(await strict.report(account)).toMatchObject({ applied: 20, duplicated: 0 });
});

test("a host that starts anew asks the page again", async ({ page, server, strict, account, browserName, browser }) => {
  test.skip(browserName !== "chromium", "only Chromium's workers can be killed alone");
  await strict.put(account, { limits: LIMITS, authorization: "Bearer s3cret" });
  const api = `${server.http}/strict/${account}/api`;
  await page.goto(`${server.http}/blank`);
  await connect(page, api, "Bearer s3cret");
  await handIn(page, api, "one");
  await idle(page);
  expect(await killSharedWorkers(browser!)).toBe(1);

  await handIn(page, api, "two");
  await idle(page);

  const report = await strict.report(account);
  expect(report).toMatchObject({ applied: 40, duplicated: 0 });
  expect(report.requests.every(({ status }) => status === 200)).toBe(true);
});
