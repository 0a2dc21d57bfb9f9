// What a spec can ask of the store, in a page or a worker.
import init, * as store from "/store-conformance/paceline_store_conformance.js";
import { run } from "./claims.js";
import { measure } from "./speed.js";

const calls = {
  run,
  measure,

  /** Opens and adds batches of 256 jobs; answers the epoch. */
  async enqueue({ TestStore }, queue, batches) {
    const handle = new TestStore(queue, 5_000);
    const { epoch } = await handle.open(1);
    await handle.add(epoch, 1, batches, 256);
    return epoch;
  },

  async reopen({ TestStore }, queue) {
    return new TestStore(queue, 5_000).open(1);
  },

  /** Adds batches of a mebibyte until one is refused; answers why, and which batches were stored before. */
  async overfill({ TestStore }, queue) {
    const handle = new TestStore(queue, 5_000);
    const { epoch } = await handle.open(1);
    const answered = [];
    for (let batch = 1; batch <= 64; batch++) {
      const refused = await handle.addBody(epoch, batch, noise(1 << 20)).then(() => undefined, (error) => error);
      if (refused) return { code: refused.code, answered };
      answered.push(batch);
    }
    throw new Error("64 MiB were stored");
  },
};

/** Bytes that no database can squeeze. */
function noise(length) {
  const bytes = new Uint8Array(length);
  for (let from = 0; from < length; from += 65_536) crypto.getRandomValues(bytes.subarray(from, from + 65_536));
  return bytes;
}

export async function call(name, args) {
  await init({ module_or_path: "/store-conformance/paceline_store_conformance_bg.wasm" });
  return calls[name](store, ...args);
}
