// Prints the hashes of the simulator's traces as wasm runs them: `node hash.mjs MODULE SEEDS`, one line a run, in the form
// of `paceline-sim --hashes`.

import { readFile } from "node:fs/promises";

const [path, seeds] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(await readFile(path), {});
const { trace_hash } = instance.exports;

for (let seed = 0n; seed < BigInt(seeds); seed += 1n) {
  for (let profile = 0; ; profile += 1) {
    const hash = BigInt.asUintN(64, trace_hash(profile, seed));
    if (hash === 0n) break;
    console.log(`${profile} ${seed} ${hash.toString(16).padStart(16, "0")}`);
  }
}
