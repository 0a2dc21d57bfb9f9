// How long the store takes for what a host asks of it; figures in milliseconds, of one machine on one day.

const JOBS = 20_000;
const BATCH = 256;

/** Measures an enqueue of 2,000 jobs, a claim of 50, and starts with 20,000 jobs and 2,000 or 20,000 records. */
export async function measure({ TestStore }, prefix) {
  const store = new TestStore(`${prefix}:speed`, 60_000);
  const { epoch } = await store.open(1);
  const batches = Math.ceil(JOBS / BATCH);
  const enqueue = [];
  for (let first = 1; first <= batches; first += 8) {
    enqueue.push(await timed(() => store.add(epoch, first, Math.min(8, batches + 1 - first), 250)));
  }
  const claim = [];
  for (let round = 0; round < 40; round++) claim.push(await timed(() => store.put(epoch, 1 + round, 50, round)));
  const start = await starts(TestStore, prefix);
  for (let batch = 1; batch <= batches; batch++) await store.put(start.epoch, batch, 250, 7);
  const bodies = [];
  for (let batch = 1; batch <= 20; batch++) bodies.push(await timed(() => store.bodies(batch)));
  return {
    enqueue_2000_jobs: figures(enqueue),
    claim_50_records: figures(claim),
    start_20000_jobs_2000_records: start.figures,
    start_20000_jobs_20000_records: (await starts(TestStore, prefix)).figures,
    bodies_of_one_batch: figures(bodies),
  };
}

async function starts(TestStore, prefix) {
  const times = [];
  let epoch;
  for (let round = 0; round < 5; round++) {
    const fresh = new TestStore(`${prefix}:speed`, 60_000);
    times.push(await timed(async () => ({ epoch } = await fresh.open(1))));
    await fresh.close();
  }
  return { epoch, figures: figures(times) };
}

async function timed(body) {
  const started = performance.now();
  await body();
  return performance.now() - started;
}

function figures(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const round = (time) => Math.round(time * 10) / 10;
  return { median: round(sorted[Math.floor(sorted.length / 2)]), most: round(sorted.at(-1)), of: sorted.length };
}
