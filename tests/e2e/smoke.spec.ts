// The instruments themselves: server, browsers, and the faults that other tests rely on.
import { expect, killSharedWorkers, test } from "./support/test";

test("blank page loads over both addresses", async ({ page, server }) => {
  for (const origin of [server.http, server.https]) {
    const response = await page.goto(`${origin}/blank`);

    expect(response?.status()).toBe(200);
    expect(await page.evaluate(() => location.origin)).toBe(origin);
  }
});

test("worker wasm compiles", async ({ openTabs }) => {
  const [tab] = await openTabs(1);

  const exports = await tab!.evaluate(async () => {
    const module = await WebAssembly.compileStreaming(fetch("/paceline/paceline_sw_bg.wasm"));
    return WebAssembly.Module.exports(module).length;
  });

  expect(exports).toBeGreaterThan(0);
});

test("tabs of one context share a SharedWorker", async ({ openTabs }) => {
  const tabs = await openTabs(2);

  const url = await tabs[0]!.evaluate(counterUrl);
  const answers = [];
  for (const tab of tabs) answers.push(await tab.evaluate(connectToCounter, url));

  expect(answers).toEqual([1, 2]);
});

test("stored data survives a killed browser", async ({ profile, server }) => {
  const before = await (await profile.launch()).newPage();
  await before.goto(`${server.http}/blank`);
  await before.evaluate(store, "kept");

  expect(await profile.kill()).toBeGreaterThan(0);

  const after = await (await profile.launch()).newPage();
  await after.goto(`${server.http}/blank`);
  expect(await after.evaluate(stored)).toEqual(["kept"]);
});

test("killed SharedWorker is gone and a later tab starts a new one", async ({ browser, browserName, openTabs }) => {
  test.skip(browserName === "firefox", "Firefox has no command that ends a worker");
  const [tab] = await openTabs(1);
  const url = await tab!.evaluate(counterUrl);
  expect(await tab!.evaluate(connectToCounter, url)).toBe(1);
  expect(await tab!.evaluate(connectToCounter, url)).toBe(2);

  expect(await killSharedWorkers(browser, url)).toBe(1);

  expect(await tab!.evaluate(connectToCounter, url)).toBe(1);
});

/** The URL of a worker that answers how many have connected to it. */
function counterUrl(): string {
  const code = "let n = 0; onconnect = (event) => event.ports[0].postMessage(++n);";
  return URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
}

function connectToCounter(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const worker = new SharedWorker(url, "counter");
    worker.onerror = () => reject(new Error("the worker did not start"));
    worker.port.onmessage = (event) => resolve(event.data);
  });
}

/** Resolves once the value is on disk. */
function store(value: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("smoke", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("values");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const transaction = opening.result.transaction("values", "readwrite", { durability: "strict" });
      transaction.objectStore("values").put(value, 1);
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    };
  });
}

function stored(): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("smoke", 1);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const reading = opening.result.transaction("values").objectStore("values").getAll();
      reading.onsuccess = () => resolve(reading.result);
      reading.onerror = () => reject(reading.error);
    };
  });
}
