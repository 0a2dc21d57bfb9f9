// Limits that count only some requests, against a server that counts only those.
import type { Job } from "../../sw/paceline";
import { expect, test } from "./support/test";

const WRITES = { limit: 10, window_ms: 1_000, algorithm: "sliding-log" };

test("reads pass writes that a limit of their own holds up", async ({ openTabs, strict, account, server }) => {
  await strict.put(account, { limits: [WRITES], cost: { GET: 0 }, latency_ms: [20, 60], idempotency: true });
  const [tab] = await openTabs(1);
  const api = `${server.https}/strict/${account}/api`;

  const { settled, shown } = await tab!.evaluate(async (api) => {
    const client: string = "/paceline/client.js";
    const { connect } = await import(client);
    const writes = { limit: 10, window: "1s", counts: { methods: ["POST"] } };
    const idempotency = { header: "Idempotency-Key" };
    const queue = connect({ budgets: [{ id: "api", match: [`${api}/*`], limits: ["200/1s", writes], maxInFlight: 10, idempotency }] });
    const jobs: Job[] = Array.from({ length: 60 }, (_, n) => (
      n < 30 ? { method: "POST", url: `${api}/notes`, body: { n } } : { method: "GET", url: `${api}/notes/${n}` }
    ));
    const bulk = await queue.enqueueMany(jobs);
    const shown: Record<string, unknown>[] = [];
    queue.subscribe(({ byBudget }: any) => shown.push(byBudget["api#POST"]));
    return { settled: await bulk.settled, shown };
  }, api);

  expect(settled).toEqual({ done: 60, failed: 0, cancelled: 0 });
  const report = await strict.report(account);
  expect(report).toMatchObject({ accepted: 60, rejected: 0, duplicated: 0 });
  expect(report.windows[0]!.max_seen).toBe(10);
  const last = (method: string) => Math.max(...report.requests.filter((request) => request.method === method).map(({ at_ms }) => at_ms));
  // The writes take three windows; no read waits for them.
  expect(last("GET")).toBeLessThan(last("POST") - 1_000);
  expect(shown).toContainEqual(expect.objectContaining({ cause: "rate", rule: expect.anything() }));
});
