// Rounds of random faults under load, judged by what the server saw: nothing lost, nothing applied twice, no limit broken.
import { test as base, expect } from "@playwright/test";
import { Profile } from "../e2e/support/faults";
import { FakeSite } from "../e2e/support/fake";
import { startServer } from "../e2e/support/server";
import { Strict, type Report, type Scenario } from "../e2e/support/strict";
import { Random } from "./random";
import { World } from "./world";

const ROUNDS = Number(process.env.PACELINE_CHAOS_ROUNDS ?? "20");
const SEED = Number(process.env.PACELINE_CHAOS_SEED ?? "1");
const ACCOUNT = "chaos";
const LIMIT = 100;
const SCENARIO: Scenario = {
  limits: [{ limit: LIMIT, window_ms: 1_000, algorithm: "sliding-log" }],
  latency_ms: [5, 40],
  idempotency: true,
};
/** So many jobs a round that a fault meets some on their way, and the budget still has room for the next owner. */
const JOBS = [10, 60] as const;

/** Repeats beyond a tenth of the attempts wait for up to a minute: the retry budget. */
const MOST_WAIT_MS = 120_000;

/** A fault; it tells what happened, or nothing where there was nothing to happen to. */
type Fault = (world: World) => Promise<string | undefined>;

base("rounds of chaos", async () => {
  const server = await startServer();
  const site = await FakeSite.start();
  const profile = await Profile.create("chromium");
  const strict = new Strict(server.http);
  const random = new Random(SEED);
  const world = new World(profile, site, `${server.https}/strict/${ACCOUNT}/api`, random);
  const offline: Fault = async () => {
    await strict.patch(ACCOUNT, { faults: [{ every: 1, kind: "reset" }] });
    await new Promise((resolve) => setTimeout(resolve, 300 + random.below(1_200)));
    await strict.patch(ACCOUNT, { faults: [] });
    return "the server cannot be reached for a while";
  };
  const faults: Fault[] = [
    (world) => world.close(), (world) => world.crash(), (world) => world.reload(), (world) => world.killWorkers(),
    (world) => world.stopServiceWorkers(), (world) => world.killBrowser(), (world) => world.newerVersion(),
    (world) => world.freeze(500 + random.below(3_000)), offline,
  ];
  const took: number[] = [];
  try {
    await strict.put(ACCOUNT, SCENARIO);
    await world.launch();
    for (let round = 1; round <= ROUNDS; round += 1) {
      if (random.below(2) === 0) await world.openTab();
      const { told, ms } = await play(round, world, strict, random.pick(faults), random);
      if (ms !== undefined) took.push(ms);
      console.log(`round ${round}: ${told}${ms === undefined ? "" : `; the next request after ${ms} ms`}`);
    }
    await world.idle();
    await judge(world, await strict.report(ACCOUNT));
    took.sort((a, b) => a - b);
    console.log(`${ROUNDS} rounds, seed ${SEED}: lost 0, applied twice 0, over the limit 0; ${world.accepted.size} jobs accepted;`
      + ` ${took.length} owners replaced: next request after ${took[took.length >> 1]} ms (p50), ${took.at(-1)} ms (most)`);
  } finally {
    await profile.dispose();
    await site.close();
    await server.close();
  }
});

/** Hands in jobs, lets a fault happen among them, and waits until something arrives again. */
async function play(round: number, world: World, strict: Strict, fault: Fault, random: Random): Promise<{ told: string; ms?: number }> {
  const before = await strict.report(ACCOUNT);
  const count = JOBS[0] + random.below(JOBS[1] - JOBS[0]);
  const handing = world.handIn(count);
  if (random.below(3) > 0) await handing;
  const first = before.accepted + 1 + random.below(count / 2);
  if (random.below(2) > 0) await strict.until(ACCOUNT, ({ accepted }) => accepted >= first, { timeoutMs: MOST_WAIT_MS });
  const instance = await world.instance();
  const told = (await fault(world)) ?? "nothing of that kind is there";
  const at = Date.now();
  const seen = (await strict.report(ACCOUNT)).applied;
  await handing;
  const isNew = (await world.instance()) !== instance;
  if (seen >= world.accepted.size) return { told };
  await arrives(strict, seen, `round ${round}: ${told}`);
  return isNew ? { told, ms: Date.now() - at } : { told };
}

/** Waits until more has been applied; polls more often than `until`, because the time is told. */
async function arrives(strict: Strict, seen: number, what: string): Promise<void> {
  const deadline = Date.now() + MOST_WAIT_MS;
  while ((await strict.report(ACCOUNT)).applied <= seen) {
    if (Date.now() > deadline) throw new Error(`nothing more arrives within ${MOST_WAIT_MS} ms: ${what}`);
  }
}

async function judge(world: World, report: Report): Promise<void> {
  const arrived = new Map<string, number>();
  for (const { body, status } of report.requests) {
    if (status < 300) arrived.set(String(body), (arrived.get(String(body)) ?? 0) + 1);
  }
  expect([...world.accepted].filter((body) => !arrived.has(body)), "lost").toEqual([]);
  expect([...arrived.keys()].filter((body) => !world.asked.has(body)), "never asked for").toEqual([]);
  expect(await world.unwell(), "jobs that failed").toEqual([]);
  expect(report.duplicated, "applied twice").toBe(0);
  expect(report.windows[0]!.max_seen, "most in a window").toBeLessThanOrEqual(LIMIT);
}
