// Edits that go together: what the strict server sees of them, and what their askers hear.
import type { Page } from "@playwright/test";
import type { Server } from "./support/server";
import { expect, test } from "./support/test";

/** Opens a tab whose queue is held, and which knows the account's address. */
async function connect(tab: Page, server: Server, account: string): Promise<string> {
  const api = `${server.http}/strict/${account}/api`;
  await tab.goto(`${server.http}/blank`);
  await tab.evaluate(async (api) => {
    const client: string = "/paceline/client.js";
    const { connect } = await import(client);
    window.queue = connect({ budgets: [{ id: "api", match: [`${api}/*`], limits: ["50/1s"] }] });
    await window.queue.ready;
  }, api);
  return api;
}

test("five patches while held become one request with the last values", async ({ openTabs, server, strict, account }) => {
  await strict.put(account, { limits: [{ limit: 50, window_ms: 1_000, algorithm: "sliding-log" }], latency_ms: [10, 20] });
  const tabs = await openTabs(2);
  const api = await connect(tabs[0]!, server, account);
  await connect(tabs[1]!, server, account);
  await tabs[0]!.evaluate(() => window.queue.hold());
  const patch = (tab: Page, body: object) => tab.evaluate(async ([url, body]) => {
    const job = await window.queue.enqueue({ method: "PATCH", url, key: "contact:42", body });
    (window.kept ??= []).push(job.done);
  }, [`${api}/contacts/42`, body] as const);
  await patch(tabs[0]!, { name: "A", city: "Bern" });
  await patch(tabs[1]!, { name: "B" });
  await patch(tabs[0]!, { phone: "1" });
  await patch(tabs[1]!, { phone: "2" });
  await patch(tabs[0]!, { name: "C" });

  await tabs[0]!.evaluate(() => window.queue.resume());
  const statuses = await Promise.all(tabs.map((tab) => tab.evaluate(async () => {
    const responses: Response[] = await Promise.all(window.kept);
    return responses.map(({ status }) => status);
  })));

  expect(statuses).toEqual([[200, 200, 200], [200, 200]]);
  const { requests } = await strict.report(account);
  expect(requests.map(({ method, body }) => [method, JSON.parse(String(body))])).toEqual([
    ["PATCH", { name: "C", city: "Bern", phone: "2" }],
  ]);
});

test("patches that are no JSON objects queue one behind the other", async ({ page, server, strict, account }) => {
  await strict.put(account, { latency_ms: [10, 20] });
  const api = await connect(page, server, account);

  const states = await page.evaluate(async (url) => {
    await window.queue.hold();
    const jobs = ["[1]", "{broken", '{"a":1}'].map((body) => window.queue.enqueue({ method: "PATCH", url, key: "k", body }));
    const handles = await Promise.all(jobs);
    await window.queue.resume();
    return Promise.all(handles.map(async ({ done }) => (await done).status));
  }, `${api}/contacts/42`);

  expect(states).toEqual([200, 200, 200]);
  expect((await strict.report(account)).requests).toHaveLength(3);
});

test("identical waiting reads are one request that answers both", async ({ page, server, strict, account }) => {
  await strict.put(account, { latency_ms: [10, 20] });
  const api = await connect(page, server, account);

  const texts = await page.evaluate(async (url) => {
    await window.queue.hold();
    const handles = await Promise.all([window.queue.enqueue({ url }), window.queue.enqueue({ url })]);
    await window.queue.resume();
    return Promise.all(handles.map(async ({ done }) => (await done).text()));
  }, `${api}/contacts/42`);

  expect(texts[0]).toBe(texts[1]);
  expect((await strict.report(account)).requests).toHaveLength(1);
});

test("a creation and its removal while held cancel out for both callers", async ({ page, server, strict, account }) => {
  await strict.put(account, {});
  const api = await connect(page, server, account);

  const codes = await page.evaluate(async (url) => {
    await window.queue.hold();
    const made = await window.queue.enqueue({ method: "POST", url, key: "k", body: { a: 1 } });
    const gone = await window.queue.enqueue({ method: "DELETE", url: `${url}/new`, key: "k" });
    await window.queue.resume();
    return Promise.all([made, gone].map(({ done }) => done.then(() => "done", (error) => error.code)));
  }, `${api}/contacts`);

  expect(codes).toEqual(["cancelled-out", "cancelled-out"]);
  expect((await strict.report(account)).requests).toHaveLength(0);
});

test("a waiting job moves to another lane, and a drain tells what is left", async ({ page, server, strict, account }) => {
  await strict.put(account, { latency_ms: [10, 20] });
  const api = await connect(page, server, account);

  const seen = await page.evaluate(async (api) => {
    await window.queue.hold();
    // Two requests at once would arrive in any order.
    await window.queue.configure({ budgets: [{ id: "api", match: [`${api}/*`], limits: ["50/1s"], maxInFlight: 1 }] });
    const bulk = await window.queue.enqueueMany(["a", "b"].map((name) => ({ method: "POST", url: `${api}/${name}` })));
    const moved = await window.queue.prioritise(bulk.ids[1]!, "interactive");
    const early = await window.queue.drain({ timeoutMs: 100 });
    await window.queue.resume();
    return { moved, early, late: await window.queue.drain() };
  }, api);

  expect(seen).toEqual({ moved: { moved: 1, alreadySent: 0 }, early: { left: 2 }, late: { left: 0 } });
  const { requests } = await strict.report(account);
  expect(requests.map(({ path }) => path.split("/").at(-1))).toEqual(["b", "a"]);
});
