// How near to the ideal a bulk comes, and how long a click waits meanwhile.
//
// The ideal of a bulk is (jobs / limit - 1) windows: a full window at once, then one each window. A share is that ideal
// over the wall time from the call of `enqueueMany` to its settling, both in the tab.
import type { Page } from "@playwright/test";
import type { Job } from "../../sw/paceline";
import type { Strict } from "../e2e/support/strict";
import { test } from "../e2e/support/test";

interface Plan {
  name: string;
  address: "http" | "https";
  jobs: number;
  limit: number;
  latency: [number, number];
  maxInFlight?: number;
  slow?: true;
}

const PLANS: Plan[] = [
  { name: "500 jobs at 50/s, 20-120 ms, HTTP/2", address: "https", jobs: 500, limit: 50, latency: [20, 120] },
  { name: "500 jobs at 50/s, 20-120 ms, HTTP/1.1", address: "http", jobs: 500, limit: 50, latency: [20, 120] },
  { name: "3,000 jobs at 300/s, 20-120 ms, HTTP/2", address: "https", jobs: 3_000, limit: 300, latency: [20, 120] },
  { name: "2,000 jobs at 10/s, 300 ms, 4 in flight", address: "http", jobs: 2_000, limit: 10, latency: [300, 300], maxInFlight: 4, slow: true },
];

for (const plan of PLANS) {
  test(plan.name, async ({ openTabs, strict, account, server, browserName }) => {
    test.skip(plan.slow === true && !process.env.PACELINE_BENCH_SLOW, "takes four minutes; PACELINE_BENCH_SLOW=1 runs it");
    const { limit, jobs, latency, maxInFlight } = plan;
    await strict.put(account, { limits: [{ limit, window_ms: 1_000, algorithm: "sliding-log" }], latency_ms: latency });
    const [tab] = await openTabs(1);
    // The page is of the API's origin, so that no preflight doubles the requests.
    await tab!.goto(`${server[plan.address]}/blank`);
    const api = `${server[plan.address]}/strict/${account}/api`;
    await connect(tab!, api, limit, maxInFlight);

    const wallMs = await bulk(tab!, api, jobs);

    const report = await strict.report(account);
    const idealMs = (jobs / limit - 1) * 1_000;
    const bareMs = limit >= 300 ? await bareFetches(tab!, strict, account, api, plan) : undefined;
    print(browserName, plan.name, {
      share: (idealMs / wallMs).toFixed(3),
      seconds: (wallMs / 1_000).toFixed(1),
      refused: report.rejected,
      most_in_a_window: `${report.windows[0]!.max_seen} of ${limit}`,
      duplicated: report.duplicated,
      ...(bareMs === undefined ? {} : { share_of_bare_fetches: (idealMs / bareMs).toFixed(3), times_bare: (bareMs / wallMs).toFixed(3) }),
    });
  });
}

/**
 * The same requests by the same rule without a queue, a store or a tab: as many chains of plain fetches in a SharedWorker as
 * the limit has units, each going on one window after its answer. What the browser itself can do on this machine.
 */
async function bareFetches(tab: Page, strict: Strict, account: string, api: string, { jobs, limit, latency }: Plan): Promise<number> {
  await strict.put(account, { limits: [{ limit, window_ms: 1_000, algorithm: "sliding-log" }], latency_ms: latency });
  const source = `onconnect = async ({ ports: [port] }) => {
    const begun = performance.now();
    const init = { method: "PATCH", body: '{"owner":"Mira"}', headers: { "content-type": "application/json" }, cache: "no-store" };
    let sent = 0;
    const chain = async () => {
      while (sent < ${jobs}) {
        const response = await fetch(${JSON.stringify(`${api}/contacts/`)} + sent++, init);
        const next = performance.now() + 1_001;
        await response.arrayBuffer();
        if (sent < ${jobs}) await new Promise((resolve) => setTimeout(resolve, next - performance.now()));
      }
    };
    await Promise.all(Array.from({ length: ${limit} }, chain));
    port.postMessage(performance.now() - begun);
  };`;
  return tab.evaluate((source) => {
    const worker = new SharedWorker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    return new Promise<number>((resolve) => (worker.port.onmessage = ({ data }) => resolve(data)));
  }, source);
}

test("a click during a bulk of 2,000", async ({ openTabs, strict, account, server, browserName }) => {
  await strict.put(account, { limits: [{ limit: 100, window_ms: 1_000, algorithm: "sliding-log" }], latency_ms: [20, 120] });
  const [tab] = await openTabs(1);
  const api = `${server.https}/strict/${account}/api`;
  await connect(tab!, api, 100, 4);

  const waits = await tab!.evaluate(async (api) => {
    const jobs: Job[] = Array.from({ length: 2_000 }, (_, n) => ({ method: "PATCH", url: `${api}/contacts/${n}`, body: { owner: "Mira" } }));
    await window.queue.enqueueMany(jobs, { group: "bulk" });
    const starts: number[] = [];
    for (let n = 0; n < 30; n += 1) {
      await new Promise((resolve) => setTimeout(resolve, 120));
      starts.push(performance.timeOrigin + performance.now());
      const job = await window.queue.enqueue({ method: "PATCH", url: `${api}/clicks/${n}`, body: { n } });
      await job.done;
    }
    return starts;
  }, api);

  const { requests } = await strict.report(account);
  const { now_ms } = await strict.report(account);
  const offset = Date.now() - (now_ms as number);
  const arrived = requests.filter(({ path }) => path.startsWith("/clicks/"));
  const delays = arrived.map((request, n) => request.arrived_ms + offset - waits[n]!).sort((a, b) => a - b);
  print(browserName, "a click during a bulk of 2,000 (room in the budget, 4 in flight)", {
    p50_ms: delays[Math.floor(delays.length / 2)]!.toFixed(0),
    p95_ms: delays[Math.floor(delays.length * 0.95)]!.toFixed(0),
    max_ms: delays.at(-1)!.toFixed(0),
  });
});

async function connect(tab: Page, api: string, limit: number, maxInFlight?: number): Promise<void> {
  await tab.evaluate(async ([api, limit, maxInFlight]) => {
    const client: string = "/paceline/client.js";
    const { connect } = await import(client);
    window.queue = connect({ budgets: [{ id: "api", match: [`${api}/*`], limits: [`${limit}/1s`], maxInFlight, idempotency: { header: "Idempotency-Key" } }] });
    await window.queue.ready;
  }, [api, limit, maxInFlight] as const);
}

function bulk(tab: Page, api: string, count: number): Promise<number> {
  return tab.evaluate(async ([api, count]) => {
    const jobs: Job[] = Array.from({ length: count }, (_, n) => ({ method: "PATCH", url: `${api}/contacts/${n}`, body: { owner: "Mira" } }));
    const begun = performance.now();
    const bulk = await window.queue.enqueueMany(jobs, { group: "bulk" });
    await bulk.settled;
    return performance.now() - begun;
  }, [api, count] as const);
}

function print(browser: string, what: string, figures: Record<string, unknown>): void {
  const text = Object.entries(figures).map(([name, value]) => `${name}=${value}`).join(" ");
  console.log(`\nbench ${browser}: ${what}: ${text}`);
}
