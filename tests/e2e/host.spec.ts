// What the client does with the built engine alone: jobs that outlive their page, retries, events, budgets.
import { connect, expect, test } from "./support/client";
import { Strict } from "./support/strict";

test.use({ engine: "built" });

test("after a reload jobs are found by id, group and key, and settle in the page that asks again", async ({ open, fake }) => {
  const page = await open();
  const job = { id: "contact-42", url: `${fake.origin}/api/echo`, method: "PUT", key: "contact:42", group: "edits" };
  await page.evaluate(async (job) => {
    await window.queue.hold();
    await window.queue.enqueue(job);
  }, job);

  await page.reload();
  await connect(page);

  const seen = await page.evaluate(async (job) => {
    const found = [];
    for (const filter of [{ id: job.id }, { group: job.group }, { key: job.key }]) found.push(...(await window.queue.jobs(filter)));
    const again = await window.queue.enqueue(job);
    await window.queue.resume();
    return { found: found.map(({ id, state }) => [id, state]), status: (await again.done).status };
  }, job);
  expect(seen).toEqual({ found: Array(3).fill(["contact-42", "queued"]), status: 200 });
});

test("a job that settled before it is asked for again tells how", async ({ open, fake }) => {
  const page = await open();
  const jobs = [200, 404].map((status) => ({ id: `job-${status}`, url: `${fake.origin}/api/status/${status}`, method: "PUT" }));
  const before = fake.calls.length;
  await page.evaluate(async (jobs) => {
    for (const job of jobs) await (await window.queue.enqueue(job)).done.catch(() => {});
  }, jobs);

  await page.reload();
  await connect(page);

  const seen = await page.evaluate(async ([good, bad]) => {
    const response = await (await window.queue.enqueue(good!)).done;
    return { status: response.status, body: response.body, error: await thrown((await window.queue.enqueue(bad!)).done) };
  }, jobs);
  expect(seen).toMatchObject({ status: 200, body: null, error: { code: "http", status: 404, jobId: "job-404" } });
  expect(fake.calls.length).toBe(before + 2);
});

test("metrics are told when asked for, and as they change to a page that listens", async ({ open, fake }) => {
  const page = await open({ principal: "mira" });
  const other = await open();

  const seen = await page.evaluate(async (api) => {
    const isOver = new Promise<any>((resolve) => {
      window.queue.addEventListener("metrics", ({ detail }) => detail.queue.done === 2 && detail.queue.live === 0 && resolve(detail));
    });
    // Each of an address of its own: identical ones would go as one request.
    const jobs = [200, 200, 404].map((status, at) => ({ url: `${api}/status/${status}?${at}`, method: "PUT" }));
    const { settled } = await window.queue.enqueueMany(jobs);
    await settled;
    return { told: await isOver, asked: await window.queue.metrics() };
  }, `${fake.origin}/api`);
  const others = await other.evaluate(() => window.queue.metrics());

  const meter = {
    accepted: 3, done: 2, failed: 1, live: 0, unaccounted: 0, requests: 3, refused: 0, refusedPer1000: 0,
    answers: { 200: 2, 404: 1 }, failures: [{ code: "http", status: 404, jobs: 1 }], attempts: { jobs: 3, p50: 1, p95: 1, max: 1 },
  };
  expect(seen.told).toMatchObject({ queue: meter, own: meter, byBudget: { api: { ...meter, achievedPermille: null } } });
  expect(seen.asked).toMatchObject({ since: seen.told.since, queue: meter });
  expect(seen.asked.queue.waits.bulk!.jobs).toBe(3);
  expect(others).toMatchObject({ queue: meter, own: null });
});

test("retry sends a failed job again, and asks for force where that may double it", async ({ open, fake }) => {
  const page = await open();
  const before = fake.calls.length;

  const seen = await page.evaluate(async (api) => {
    const refused = await window.queue.enqueue({ id: "refused", url: `${api}/status/404`, method: "PUT" });
    const unknown = await window.queue.enqueue({ id: "unknown", url: `${api}/drop`, method: "POST", body: "x" });
    const codes = [(await thrown(refused.done)).code, (await thrown(unknown.done)).code];
    const retried = await window.queue.retry("refused");
    const error = await thrown(window.queue.retry(unknown));
    const forced = await window.queue.retry(unknown, { force: true });
    await window.queue.idle();
    return { codes, retried, error, forced };
  }, `${fake.origin}/api`);

  expect(seen).toMatchObject({
    codes: ["http", "outcome-unknown"],
    retried: { retried: 1, needsForce: 0 },
    error: { name: "PacelineError", code: "needs-force" },
    forced: { retried: 1, needsForce: 0 },
  });
  expect(fake.calls.length).toBe(before + 4);
});

test("events tell of a refusal, its pause and its end", async ({ open, site }) => {
  const strict = new Strict(site);
  await strict.put("events", { limits: [{ limit: 1, window_ms: 1_000, algorithm: "sliding-log" }], latency_ms: [0, 0] });
  const page = await open();

  const seen = await page.evaluate(async (url) => {
    const heard: Record<string, any> = {};
    for (const name of ["refused", "paused", "resumed"]) window.queue.addEventListener(name, ({ detail }: any) => (heard[name] ??= detail));
    const jobs = ["a", "b"].map((id) => window.queue.enqueue({ id, url: `${url}/${id}`, method: "PUT", body: "x" }));
    await Promise.all(jobs.map(async (job) => (await job).done));
    return { heard, now: Date.now() };
  }, `${site}/strict/events/api`);

  expect(seen.heard.refused).toMatchObject({ budget: "api", status: 429 });
  expect(seen.heard.paused).toMatchObject({ budget: "api", until: expect.any(Number), isEstimate: false });
  expect(seen.heard.resumed).toMatchObject({ budget: "api" });
  expect((await strict.report("events")).applied).toBe(2);
});

test("configured budgets are used and told", async ({ open, fake }) => {
  const page = await open({ budgets: [] });
  const budget = { id: "mine", match: [`${fake.origin}/*`], limits: ["100/1s"] };

  const seen = await page.evaluate(async ([budget, url]) => {
    const changed = new Promise((resolve) => window.queue.addEventListener("config-changed", () => resolve(true)));
    await window.queue.configure({ budgets: [budget] });
    await window.queue.hold("mine");
    await window.queue.enqueue({ id: "one", url });
    const [job] = await window.queue.jobs({ id: "one" });
    return { changed: await changed, budget: job!.budget, cause: job!.cause };
  }, [budget, `${fake.origin}/api/echo`] as const);

  expect(seen).toEqual({ changed: true, budget: "mine", cause: "held" });
});

test("several jobs by their ids are cancelled at once", async ({ open, fake }) => {
  const page = await open();

  const reply = await page.evaluate(async (url) => {
    await window.queue.hold();
    const { ids, settled } = await window.queue.enqueueMany(Array.from({ length: 50 }, () => ({ url })));
    const reply = await window.queue.cancel(ids);
    return { ...reply, settled: await settled };
  }, `${fake.origin}/api/echo`);

  expect(reply).toEqual({ cancelled: 50, alreadySent: 0, settled: { done: 0, failed: 0, cancelled: 50 } });
});

test("a read through fetch ends with its page, a read through enqueue does not", async ({ open, fake }) => {
  const page = await open();
  await page.evaluate(async (url) => {
    await window.queue.hold();
    window.queue.fetch(url).catch(() => {});
    await window.queue.enqueue({ id: "kept", url });
    while ((await window.queue.jobs()).length < 2);
  }, `${fake.origin}/api/echo`);

  await page.reload();
  await connect(page);

  const states = await page.evaluate(async () => (await window.queue.jobs()).map(({ id, state }) => (id === "kept" ? `${id} ${state}` : state)));
  expect(states.sort()).toEqual(["cancelled", "kept queued"]);
});

test("a fetch that waits too long is refused by the queue", async ({ open, fake }) => {
  const page = await open();

  const error = await page.evaluate(async (url) => {
    await window.queue.hold();
    return thrown(window.queue.fetch(url, { paceline: { maxWaitMs: 50 } }));
  }, `${fake.origin}/api/echo`);

  expect(error).toMatchObject({ name: "PacelineError", code: "expired" });
});

test("writes carry a key of the client's where the server takes one", async ({ open, fake }) => {
  const idempotency = { header: "Idempotency-Key" };
  const page = await open({ budgets: [{ id: "api", match: [`${fake.origin}/*`], limits: ["100/1s"], idempotency }] });

  const keys = await page.evaluate(async (url) => {
    const jobs = [{ url, method: "PATCH" }, { url, method: "PATCH", idempotencyKey: "mine" }, { url }];
    const answers = jobs.map(async (job) => (await (await window.queue.enqueue(job)).done).json());
    return (await Promise.all(answers)).map(({ headers }) => headers["idempotency-key"]);
  }, `${fake.origin}/api/echo`);

  expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/), "mine", undefined]);
});
