// The client as a page uses it, over the fake engine and over the built one.
import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { ROOT } from "./support/browsers";
import { expect, test, type EngineKind } from "./support/client";

const ENGINES: EngineKind[] = ["fake", "built"];

test("importing the client touches nothing of a browser", () => {
  const script = `import(${JSON.stringify(resolve(ROOT, "sw/client.js"))}).then((m) => console.log(typeof m.connect))`;

  expect(execFileSync(process.execPath, ["-e", script], { encoding: "utf8" }).trim()).toBe("function");
});

test("connecting without a SharedWorker rejects and does not throw", () => {
  const script = `import(${JSON.stringify(resolve(ROOT, "sw/client.js"))}).then(async ({ connect }) => {
    const queue = connect({ workerUrl: "http://localhost/worker.js" });
    const ready = await queue.ready.catch((error) => error.code);
    const sent = await queue.enqueue({ url: "http://localhost/" }).catch((error) => error.code);
    console.log(ready, sent);
  })`;

  expect(execFileSync(process.execPath, ["-e", script], { encoding: "utf8" }).trim()).toBe("not-connected not-connected");
});

for (const engine of ENGINES) {
  test.describe(`over the ${engine} engine`, () => {
    test.use({ engine });

    test("ready tells the host", async ({ open }) => {
      const page = await open();

      const ready = await page.evaluate(() => window.queue.ready);

      expect(ready).toEqual({
        host: "shared-worker",
        durable: engine === "built",
        version: "0.1.0",
        epoch: expect.any(Number),
        instance: expect.stringMatching(/^[0-9a-f-]{36}$/),
      });
    });

    test("done is the server's answer as a Response of this tab", async ({ open, fake }) => {
      const page = await open();

      const seen = await page.evaluate(async (api) => {
        const job = await window.queue.enqueue({ url: `${api}/echo`, method: "PATCH", body: { a: 1 } });
        const response = await job.done;
        const twin = response.clone();
        return {
          isResponse: response instanceof Response,
          ok: response.ok,
          status: response.status,
          type: response.headers.get("content-type"),
          url: response.url,
          redirected: response.redirected,
          twin: [twin.url, twin.status],
          text: await twin.text(),
          json: await response.json(),
        };
      }, `${fake.origin}/api`);

      expect(seen).toMatchObject({ isResponse: true, ok: true, status: 200, type: "application/json", redirected: false });
      expect(seen.url).toBe(`${fake.origin}/api/echo`);
      expect(seen.twin).toEqual([seen.url, 200]);
      expect(JSON.parse(seen.text)).toEqual(seen.json);
      expect(seen.json).toMatchObject({ method: "PATCH", body: '{"a":1}', headers: { "content-type": "application/json" } });
    });

    test("answers without a body have none", async ({ open, fake }) => {
      const page = await open();

      const bodies = await page.evaluate(async (api) => {
        const seen = [];
        for (const status of [204, 205]) {
          const response = await (await window.queue.enqueue({ url: `${api}/status/${status}`, method: "PUT" })).done;
          seen.push([response.status, response.body]);
        }
        return seen;
      }, `${fake.origin}/api`);

      expect(bodies).toEqual([[204, null], [205, null]]);
    });

    test("every kind of body arrives as fetch would send it", async ({ open, fake }) => {
      const page = await open();

      const seen = await page.evaluate(async (api) => {
        const form = new FormData();
        form.set("name", "Ada");
        form.set("file", new File(["text"], "a.txt", { type: "text/plain" }));
        const view = new Uint8Array([120, 65, 66, 120]).subarray(1, 3);
        const bodies = [[1, 2], "text", new Blob(["blob"], { type: "text/css" }), view, view.slice().buffer, new URLSearchParams({ a: "ü" }), form];
        const jobs = bodies.map((body) => window.queue.enqueue({ url: `${api}/echo`, method: "POST", body: body as any }));
        const answers = await Promise.all(jobs.map(async (job) => (await (await job).done).json()));
        return answers.map(({ headers, body }) => [headers["content-type"]?.replace(/boundary=.*/, ""), body]);
      }, `${fake.origin}/api`);

      expect(seen.slice(0, 6)).toEqual([
        ["application/json", "[1,2]"],
        ["text/plain;charset=UTF-8", "text"],
        ["text/css", "blob"],
        [undefined, "AB"],
        [undefined, "AB"],
        ["application/x-www-form-urlencoded;charset=UTF-8", "a=%C3%BC"],
      ]);
      expect(seen[6]![0]).toBe("multipart/form-data; ");
      expect(seen[6]![1]).toContain("Ada");
      const form = fake.calls.findLast(({ headers }) => String(headers["content-type"]).startsWith("multipart"))!;
      expect(form.body).toContain(String(form.headers["content-type"]).split("boundary=")[1]);
    });

    test("jobs after a form are sent after it", async ({ open, fake }) => {
      const page = await open();
      const before = fake.calls.length;

      await page.evaluate(async (api) => {
        const form = new FormData();
        form.set("n", "1");
        const jobs = [form, "2", "3"].map((body) => window.queue.enqueue({ url: `${api}/echo`, method: "POST", key: "one", body }));
        await Promise.all(jobs.map(async (job) => (await job).done));
      }, `${fake.origin}/api`);

      const bodies = fake.calls.slice(before).map(({ body }) => (body.length > 1 ? "form" : body));
      expect(bodies).toEqual(["form", "2", "3"]);
    });

    test("done of a refused job rejects with the status and the answer", async ({ open, fake }) => {
      const page = await open();

      const seen = await page.evaluate(async (api) => {
        const job = await window.queue.enqueue({ url: `${api}/status/404`, method: "DELETE" });
        const error: any = await job.done.catch((error) => error);
        return { ...(await thrown(job.done)), id: job.id, text: await error.response.text(), kind: error.response.headers.get("x-kind") };
      }, `${fake.origin}/api`);

      expect(seen).toMatchObject({ name: "PacelineError", code: "http", status: 404, text: "status 404", kind: "status" });
      expect(seen.jobId).toBe(seen.id);
    });

    test("nothing is unhandled when nobody looks at done", async ({ open, fake }) => {
      const page = await open();
      const unhandled: Error[] = [];
      page.on("pageerror", (error) => unhandled.push(error));

      await page.evaluate(async (api) => {
        await window.queue.enqueue({ url: `${api}/status/404` });
        await window.queue.enqueueMany([{ url: `${api}/status/404` }]);
        await window.queue.idle();
        await new Promise((resolve) => setTimeout(resolve));
      }, `${fake.origin}/api`);

      expect(unhandled).toEqual([]);
    });

    test("fetch resolves with any final answer", async ({ open, fake }) => {
      const page = await open();

      const seen = await page.evaluate(async (api) => {
        const missing = await window.queue.fetch(`${api}/status/404`);
        const sent = await window.queue.fetch(new Request(`${api}/echo`, { method: "PUT", body: "text", headers: { "x-a": "b" } }));
        const moved = await window.queue.fetch(`${api}/redirect`);
        return {
          missing: [missing.status, missing.ok, await missing.text()],
          sent: await sent.json(),
          moved: [moved.status, moved.redirected, moved.url],
        };
      }, `${fake.origin}/api`);

      expect(seen.missing).toEqual([404, false, "status 404"]);
      expect(seen.sent).toMatchObject({ method: "PUT", body: "text", headers: { "x-a": "b" } });
      expect(seen.moved).toEqual([200, true, `${fake.origin}/api/echo`]);
    });

    test("fetch rejects as fetch does, and typed where the queue refuses", async ({ open, fake }) => {
      const page = await open();

      const seen = await page.evaluate(async (api) => ({
        dropped: await thrown(window.queue.fetch(`${api}/drop`, { method: "POST", body: "x" })),
        moved: await thrown(window.queue.fetch(`${api}/redirect`, { method: "POST", body: "x" })),
        opaque: await thrown(window.queue.fetch(`${api}/echo`, { mode: "no-cors" })),
        manual: await thrown(window.queue.fetch(`${api}/echo`, { redirect: "manual" })),
        secret: await thrown(window.queue.fetch(`${api}/echo`, { headers: { Authorization: "x" } })),
        aborted: await thrown(window.queue.fetch(`${api}/echo`, { signal: AbortSignal.abort() })),
      }), `${fake.origin}/api`);

      const cause = engine === "fake" ? "retries-exhausted" : "outcome-unknown";
      expect(seen.dropped).toMatchObject({ name: "TypeError", cause });
      expect(seen.moved).toMatchObject({ name: "TypeError", cause });
      expect(seen.opaque).toMatchObject({ name: "PacelineError", code: "bad-job", field: "mode" });
      expect(seen.manual).toMatchObject({ name: "PacelineError", code: "bad-job", field: "redirect" });
      expect(seen.secret).toMatchObject({ name: "PacelineError", code: "secret-header" });
      expect(seen.aborted).toMatchObject({ name: "AbortError" });
    });

    test("an answer that is too large is cut off and says so", async ({ open, fake }) => {
      const page = await open();

      const seen = await page.evaluate(async (api) => {
        const response: any = await window.queue.fetch(`${api}/big`);
        return [response.truncated, (await response.arrayBuffer()).byteLength];
      }, `${fake.origin}/api`);

      expect(seen).toEqual([true, 8 * 1024 * 1024]);
    });

    test("an abort before the call hands in nothing", async ({ open, fake }) => {
      const page = await open();

      const error = await page.evaluate((api) => {
        const signal = AbortSignal.abort();
        return thrown(window.queue.enqueue({ id: "never", url: `${api}/echo` }, { signal }));
      }, `${fake.origin}/api`);

      expect(error).toMatchObject({ name: "PacelineError", code: "aborted", cause: "AbortError" });
      expect(await page.evaluate(async () => (await window.queue.jobs({ id: "never" })).length)).toBe(0);
    });

    test("an abort before the acceptance leaves nothing to send", async ({ open, fake }) => {
      const page = await open();
      const before = fake.calls.length;

      const error = await page.evaluate(async (api) => {
        await window.queue.hold();
        const abort = new AbortController();
        const accepted = window.queue.enqueue({ url: `${api}/echo` }, { signal: abort.signal });
        abort.abort();
        const error = await thrown(accepted);
        await window.queue.idle();
        await window.queue.resume();
        return error;
      }, `${fake.origin}/api`);

      expect(error).toMatchObject({ code: "aborted" });
      expect(fake.calls.length).toBe(before);
    });

    test("an abort while the job waits cancels it", async ({ open, fake }) => {
      const page = await open();

      const seen = await page.evaluate(async (api) => {
        await window.queue.hold();
        const abort = new AbortController();
        const job = await window.queue.enqueue({ url: `${api}/echo` }, { signal: abort.signal });
        abort.abort();
        const error = await thrown(job.done);
        await window.queue.idle();
        return { error, counts: window.queue.snapshot().counts };
      }, `${fake.origin}/api`);

      expect(seen.error).toMatchObject({ code: "aborted", cause: "AbortError" });
      expect(seen.counts).toMatchObject({ cancelled: 1, queued: 0, done: 0 });
    });

    test("an abort while the job is sent detaches the caller and the attempt goes on", async ({ open, fake }) => {
      const page = await open();
      const before = fake.calls.length;
      await page.evaluate(async (api) => {
        const abort = new AbortController();
        const job = await window.queue.enqueue({ url: `${api}/held`, method: "PUT" }, { signal: abort.signal });
        window.kept = { abort, job };
      }, `${fake.origin}/api`);
      await expect.poll(() => fake.calls.length).toBe(before + 1);

      const error = await page.evaluate(() => {
        window.kept.abort.abort();
        return thrown(window.kept.job.done);
      });

      expect(error).toMatchObject({ code: "aborted" });
      fake.release();
      await page.evaluate(() => window.queue.idle());
      expect(await page.evaluate(() => window.queue.snapshot().counts)).toMatchObject({ done: 1, cancelled: 0 });
    });

    test("one caller's abort leaves the job to the other caller", async ({ open, fake }) => {
      const page = await open();

      const seen = await page.evaluate(async (api) => {
        await window.queue.hold();
        const abort = new AbortController();
        const job = { id: "shared", url: `${api}/echo` };
        const first = await window.queue.enqueue(job, { signal: abort.signal });
        const second = await window.queue.enqueue(job);
        abort.abort();
        const error = await thrown(first.done);
        await window.queue.resume();
        return [error.code, (await second.done).status];
      }, `${fake.origin}/api`);

      expect(seen).toEqual(["aborted", 200]);
    });

    test("many jobs settle as one group", async ({ open, fake }) => {
      const page = await open();

      const seen = await page.evaluate(async (api) => {
        const jobs = [200, 404, 200].map((status) => ({ url: `${api}/status/${status}`, method: "PUT" }));
        const handle = await window.queue.enqueueMany(jobs, { group: "owner-change" });
        return { ...handle, settled: await handle.settled, none: await (await window.queue.enqueueMany([])).settled };
      }, `${fake.origin}/api`);

      expect(seen).toMatchObject({ group: "owner-change", total: 3, settled: { done: 2, failed: 1, cancelled: 0 } });
      expect(new Set(seen.ids).size).toBe(3);
      expect(seen.none).toEqual({ done: 0, failed: 0, cancelled: 0 });
    });

    test("cancel takes a job, a group, an id or several", async ({ open, fake }) => {
      const page = await open();

      const seen = await page.evaluate(async (api) => {
        await window.queue.hold();
        const job = (id: string) => ({ id, url: `${api}/echo` });
        const one = await window.queue.enqueue(job("one"));
        for (const id of ["two", "three", "four"]) await window.queue.enqueue(job(id));
        const group = await window.queue.enqueueMany([job("five"), job("six")], { group: "bulk" });
        const replies = [];
        for (const target of [one, "two", ["three", "four"], "bulk", "unknown"]) replies.push(await window.queue.cancel(target));
        return { replies, error: await thrown(one.done), settled: await group.settled };
      }, `${fake.origin}/api`);

      expect(seen.replies.map(({ cancelled }) => cancelled)).toEqual([1, 1, 2, 2, 0]);
      expect(seen.error).toMatchObject({ code: "cancelled", jobId: "one" });
      expect(seen.settled).toEqual({ done: 0, failed: 0, cancelled: 2 });
    });

    test("jobs are found again by id, with what they ask", async ({ open, fake }) => {
      const page = await open();
      const url = `${fake.origin}/api/echo`;

      const jobs = await page.evaluate(async (url) => {
        await window.queue.hold();
        await window.queue.enqueue({ id: "import-17:row-204", url, method: "PUT", meta: { row: 204 } });
        return window.queue.jobs({ id: "import-17:row-204" });
      }, url);

      expect(jobs).toHaveLength(1);
      expect(jobs[0]).toMatchObject({ id: "import-17:row-204", url, method: "PUT", meta: { row: 204 }, state: "queued" });
    });

    test("snapshots come in a later microtask and keep what is unchanged", async ({ open, fake }) => {
      const page = await open();

      const seen = await page.evaluate(async (api) => {
        await window.queue.ready;
        const snapshots: any[] = [];
        const stop = window.queue.subscribe((snapshot) => snapshots.push(snapshot));
        const early = snapshots.length;
        await Promise.resolve();
        const first = snapshots.length;
        await (await window.queue.enqueue({ url: `${api}/echo` })).done;
        await window.queue.idle();
        stop();
        const [before, after] = [snapshots[0], window.queue.snapshot()];
        return { early, first, isNew: before !== after, host: before.host === after.host, counts: after.counts.done };
      }, `${fake.origin}/api`);

      expect(seen).toEqual({ early: 0, first: 1, isNew: true, host: true, counts: 1 });
    });

    test("promises settle in the tab that asked", async ({ open, fake }) => {
      const tabs = [await open(), await open()];

      const seen = await Promise.all(tabs.map((tab, index) => tab.evaluate(async ([api, name]) => {
        const settled: string[] = [];
        window.queue.addEventListener("settled", ({ detail }) => settled.push(detail.id));
        const ids = Array.from({ length: 20 }, (_, at) => `${name}-${at}`);
        const jobs = ids.map((id) => window.queue.enqueue({ id, url: `${api}/echo`, method: "POST", body: { id } }));
        const bodies = await Promise.all(jobs.map(async (job) => JSON.parse((await (await (await job).done).json()).body).id));
        return { ids, bodies, settled: settled.toSorted() };
      }, [`${fake.origin}/api`, `tab${index}`] as const)));

      for (const { ids, bodies, settled } of seen) {
        expect(bodies).toEqual(ids);
        expect(settled).toEqual(ids.toSorted());
      }
    });

    test("a closed queue rejects what waits in its tab, and the job goes on", async ({ open, fake }) => {
      const page = await open();
      const other = await open();
      const before = fake.calls.length;

      const seen = await page.evaluate(async (api) => {
        await window.queue.hold();
        const job = await window.queue.enqueue({ url: `${api}/echo` });
        window.queue.close();
        return [await thrown(job.done), await thrown(window.queue.enqueue({ url: `${api}/echo` }))];
      }, `${fake.origin}/api`);

      expect(seen.map(({ code }) => code)).toEqual(["not-connected", "not-connected"]);
      await other.evaluate(async () => {
        await window.queue.resume();
        await window.queue.idle();
      });
      expect(fake.calls.length).toBe(before + 1);
    });
  });
}
