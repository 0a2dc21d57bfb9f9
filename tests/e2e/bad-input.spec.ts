// Bad input: a typed error that names the field and what was expected there, and nothing else is touched.
import { expect, test, type EngineKind } from "./support/client";

const ENGINES: EngineKind[] = ["fake", "built"];

for (const engine of ENGINES) {
  test.describe(`over the ${engine} engine`, () => {
    test.use({ engine });

    test("bad jobs are refused with a typed error that names the field", async ({ open, fake }) => {
      const good = { url: "http://127.0.0.1/x", method: "POST" };
      const cases: [string, object, { code?: string; field: string; got: string }][] = [
        ["no url", { method: "POST" }, { field: "url", got: "nothing" }],
        ["a relative url", { ...good, url: "/contacts" }, { field: "url", got: "/contacts" }],
        ["a url of another scheme", { ...good, url: "ftp://host/x" }, { field: "url", got: "ftp://host/x" }],
        ["a url that is none", { ...good, url: "http://" }, { field: "url", got: "http://" }],
        ["a url with a password", { ...good, url: "http://me:secret@host/" }, { field: "url", got: "http://host" }],
        ["an unknown method", { ...good, method: "BREW" }, { field: "method", got: "BREW" }],
        ["an unknown lane", { ...good, lane: "fast" }, { field: "lane", got: "fast" }],
        ["an unknown kind", { ...good, kind: "merge" }, { field: "kind", got: "merge" }],
        ["a cost of none", { ...good, cost: 0 }, { field: "cost", got: "0" }],
        ["a wait that is no number", { ...good, maxWaitMs: "soon" }, { field: "maxWaitMs", got: "soon" }],
        ["a key that is too long", { ...good, key: "k".repeat(256) }, { field: "key", got: "k".repeat(80) }],
        ["an id that is a number", { ...good, id: 7 }, { field: "id", got: "7" }],
        ["a body with GET", { ...good, method: "GET", body: "x" }, { field: "body", got: "x" }],
        ["a header that is none", { ...good, headers: { "x y": "1" } }, { field: "headers.x y", got: "x y" }],
        ["a secret", { ...good, headers: { authorization: "Bearer 1" } }, { code: "secret-header", field: "headers.authorization", got: "authorization" }],
        ["a check of a read", { ...good, method: "GET", check: {} }, { field: "check", got: "an object" }],
        ["a check elsewhere", { ...good, check: { url: "http://localhost/x", exists: { status: [200] } } }, { field: "check.url", got: "http://localhost/x" }],
        ["a check that writes", { ...good, check: { method: "PUT", url: good.url } }, { field: "check.method", got: "PUT" }],
        ["a check that tells nothing", { ...good, check: { url: good.url } }, { field: "check.exists", got: "nothing" }],
        ["a check by no pointer", { ...good, check: { url: good.url, exists: { pointer: "total" } } }, { field: "check.exists.pointer", got: "total" }],
        ["a check that comes too late", { ...good, check: { url: good.url, exists: { status: [200] }, afterMs: 1e9 } }, { field: "check.afterMs", got: "1000000000" }],
        ["a cookie", { ...good, headers: { Cookie: "a=b" } }, { code: "secret-header", field: "headers.Cookie", got: "Cookie" }],
      ];
      const page = await open();
      const before = fake.calls.length;

      const errors = await page.evaluate(
        (jobs) => Promise.all(jobs.map((job) => thrown(window.queue.enqueue(job as any)))),
        cases.map(([, job]) => job),
      );

      for (const [index, [what, , { code = "bad-job", field, got }]] of cases.entries()) {
        expect.soft(errors[index], what).toMatchObject({ name: "PacelineError", code, field, got });
        expect.soft(errors[index]!.message, what).toContain(`expected ${errors[index]!.expected}`);
      }
      expect((await page.evaluate(() => window.queue.jobs())).length).toBe(0);
      expect(fake.calls.length).toBe(before);
    });

    test("bodies that cannot be sent are refused by field", async ({ open }) => {
      const page = await open();

      const errors = await page.evaluate(async () => {
        const circle: any = {};
        circle.circle = circle;
        const bodies = [() => 1, { f: () => 1 }, [Symbol("s")], { n: 1n }, circle, document.body, new Map(), 5, new ReadableStream()];
        const refused = [];
        for (const body of bodies) {
          refused.push(await thrown(window.queue.enqueue({ url: "http://127.0.0.1/", method: "POST", body: body as any })));
        }
        const big = new Blob([new Uint8Array(16 * 1024 * 1024 + 1)]);
        refused.push(await thrown(window.queue.enqueue({ url: "http://127.0.0.1/", method: "POST", body: big })));
        return refused;
      });

      expect(errors.map(({ code, field }) => `${code} ${field}`)).toEqual(Array(10).fill("bad-job body"));
    });

    test("one bad job refuses all of its request and is named by its index", async ({ open, fake }) => {
      const page = await open();
      const before = fake.calls.length;

      const error = await page.evaluate((api) => {
        const jobs = [{ url: `${api}/echo` }, { url: `${api}/echo` }, { url: `${api}/echo`, lane: "no" }];
        return thrown(window.queue.enqueueMany(jobs as any));
      }, `${fake.origin}/api`);

      expect(error).toMatchObject({ code: "bad-job", field: "lane", index: 2, got: "no" });
      await page.evaluate(() => window.queue.idle());
      expect(fake.calls.length).toBe(before);
    });

    test("hosts that do not exist yet are refused by field", async ({ openPage }) => {
      const page = await openPage();

      const error = await page.evaluate(async () => {
        const client: string = "/paceline/client.js";
        const { connect } = await import(client);
        return thrown((async () => connect({ host: "memory" }))());
      });

      expect(error).toMatchObject({ code: "bad-job", field: "host", expected: "auto, shared-worker, service-worker, leader-tab", got: "memory" });
    });
  });
}

test.describe("over the built engine only", () => {
  test.use({ engine: "built" });

  test("what only the host can know is refused by field too", async ({ open, fake }) => {
    const page = await open({ budgets: [{ id: "small", match: [`${fake.origin}/*`], limits: ["5/1s"] }] });

    const errors = await page.evaluate(async (url) => [
      await thrown(window.queue.enqueue({ url, budget: "nobody" })),
      await thrown(window.queue.enqueue({ url, cost: 6 })),
      await thrown(window.queue.enqueueMany([{ url }, { url, cost: 6 }])),
    ], `${fake.origin}/api/echo`);

    expect(errors).toMatchObject([
      { code: "unknown-budget", field: "budget", got: "nobody" },
      { code: "never-fits", field: "cost", got: "6" },
      { code: "never-fits", field: "cost", got: "6", index: 1 },
    ]);
  });

  test("a budget that is none is the error of ready", async ({ open, fake }) => {
    const page = await open({ budgets: [{ id: "b", limits: ["many"] }] });

    const errors = await page.evaluate(async (url) => [
      await thrown(window.queue.ready),
      await thrown(window.queue.enqueue({ url })),
    ], `${fake.origin}/api/echo`);

    expect(errors).toMatchObject(Array(2).fill({ code: "bad-job", field: "budgets[0].limits[0]", got: "many" }));
  });
});
