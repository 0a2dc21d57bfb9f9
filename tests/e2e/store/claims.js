// Claims that only a browser can try: what the IndexedDB store makes of a database that breaks, blocks or is not its own.
// Runs in a page, a dedicated worker or a SharedWorker; every patch is undone before the next claim.

const claims = {
  async a_store_that_is_not_ours_survives_an_upgrade({ name, store }) {
    await withDatabase(name, 1, (db) => db.createObjectStore("foreign").put("kept", "key"));

    await store.open(1);

    const [names, kept] = await look(name, async (db) => [[...db.objectStoreNames], await read(db, "foreign", "key")]);
    equal(kept, "kept");
    ok(names.includes("cards") && names.includes("foreign"), `stores are ${names}`);
  },

  async an_empty_database_that_someone_else_made_is_laid_out({ name, store }) {
    await withDatabase(name, 1, () => {});

    const { epoch } = await store.open(1);

    await store.add(epoch, 1, 1, 3);
    equal((await store.bodies(1)).length, 3);
  },

  async a_newer_schema_is_refused_and_not_touched({ name, store }) {
    await withDatabase(name, 99, (db) => db.createObjectStore("future").put({ v: 7 }, "key"));

    const error = await rejection(store.open(1));

    equal([error.code, error.found], ["too-new", 99]);
    const seen = await look(name, async (db) => [db.version, [...db.objectStoreNames], await read(db, "future", "key")]);
    equal(seen, [99, ["future"], { v: 7 }]);
  },

  async a_meta_record_of_a_newer_schema_is_refused({ name, store }) {
    await store.open(1);
    await change(name, "meta", async (meta) => meta.put({ v: 1, meta: { epoch: 5, schema: 3, birth: 1 } }, "meta"));

    equal((await rejection(store.open(1))).code, "too-new");

    equal((await look(name, (db) => read(db, "meta", "meta"))).meta.epoch, 5);
  },

  async records_that_do_not_parse_are_set_aside_and_the_rest_loads({ name, store, again }) {
    const { epoch } = await store.open(1);
    await store.add(epoch, 1, 3, 4);
    for (const batch of [1, 2, 3]) await store.put(epoch, batch, 2, 77);
    await change(name, "records", (records) => records.put({ v: 1, record: { state: "melted" } }, 256));
    await change(name, "cards", (cards) => cards.put({ v: 1, cards: "nonsense" }, 2));
    await change(name, "groups", (groups) => groups.put("no record", "group"));
    await change(name, "budgets", (budgets) => budgets.put({ v: 9, budget: {} }, "crm"));

    const found = await again().open(1);

    // The job whose record does not parse may have been sent: it has one that says so.
    equal([found.quarantined, found.batches, found.jobs, found.records], [4, [1, 3], 8, 4]);
    equal((await look(name, (db) => read(db, "records", 256))).record.state, "sending");
    const set_aside = await look(name, (db) => all(db, "quarantine"));
    const named = set_aside.map(({ found, key }) => `${found.store} ${key}`).sort();
    equal(named, ["bodies 2", "budgets crm", "cards 2", "groups group", "records 256", "records 512", "records 513"]);
    equal(set_aside.find(({ found }) => found.store === "cards").value, { v: 1, cards: "nonsense" });
    const later = again();
    const { epoch: next, quarantined } = await later.open(1);
    equal(quarantined, 0);
    await later.add(next, 2, 1, 1);
  },

  async fields_of_a_later_version_are_passed_over({ name, store, again }) {
    const { epoch } = await store.open(1);
    await store.add(epoch, 1, 1, 2);
    await store.put(epoch, 1, 1, 77);
    await change(name, "records", async (records) => {
      const record = await done(records.get(256));
      record.extra = { record: true };
      record.record.mood = "hopeful";
      records.put(record, 256);
    });
    await change(name, "cards", async (cards) => {
      const batch = await done(cards.get(1));
      for (const card of batch.cards) card.weight = 12.5;
      cards.put(batch, 1);
    });

    const found = await again().open(1);

    equal([found.quarantined, found.jobs, found.records], [0, 2, 1]);
  },

  async a_meta_record_that_does_not_parse_starts_an_epoch_nobody_had({ name, store, again }) {
    const { epoch } = await store.open(1);
    await store.add(epoch, 1, 1, 2);
    await change(name, "meta", (meta) => meta.put("melted", "meta"));

    equal((await rejection(store.put(epoch, 1, 1, 5))).code, "stale-epoch");
    const found = await again().open(1_000_000);

    equal([found.epoch, found.jobs, found.quarantined], [1_000_000, 2, 1]);
    equal((await rejection(store.put(epoch, 1, 1, 5))).code, "stale-epoch");
  },

  async a_connection_that_died_is_opened_anew({ store }) {
    const { epoch } = await store.open(1);
    const [database] = await watchTransactions(() => store.add(epoch, 1, 1, 2)).then((calls) => calls.map((c) => c.db));
    database.close();
    ok(throws(() => database.transaction(["meta"], "readonly")), "the connection is dead");

    const calls = await watchTransactions(() => store.add(epoch, 2, 1, 2));

    ok(calls.at(-1).db !== database, "another connection was used");
    equal((await store.open(1)).batches, [1, 2]);
  },

  async a_commit_whose_answer_was_lost_is_not_stored_twice({ store }) {
    const { epoch } = await store.open(1);
    let lost = 0;
    const undo = patch(IDBTransaction.prototype, "addEventListener", (genuine) => function (type, listener) {
      if (type === "complete" && lost === 0) return genuine.call(this, type, () => lost++);
      if (type === "abort" && lost === 0) return genuine.call(this, "complete", listener);
      return genuine.call(this, type, listener);
    });

    await store.add(epoch, 1, 1, 2).finally(undo);

    equal(lost, 1);
    equal((await store.open(1)).batches, [1]);
  },

  async a_database_that_stays_broken_is_an_error_after_three_tries({ store }) {
    const { epoch } = await store.open(1);
    let tries = 0;
    const undo = patch(IDBDatabase.prototype, "transaction", () => function () {
      tries++;
      throw new DOMException("Connection to Indexed Database server lost", "UnknownError");
    });

    const error = await rejection(store.add(epoch, 1, 1, 2)).finally(undo);

    equal([error.code, tries], ["transient", 3]);
    ok(error.message.includes("server lost"), error.message);
    await store.add(epoch, 1, 1, 2);
  },

  async a_commit_that_nobody_waits_for_is_stored_whole({ store }) {
    const { epoch } = await store.open(1);

    store.addAndForget(epoch, 1);

    await store.add(epoch, 2, 1, 2);
    equal([(await store.bodies(1)).length, (await store.open(1)).batches], [2, [1, 2]]);
  },

  async a_full_disk_while_writing_leaves_nothing({ store }) {
    const { epoch } = await store.open(1);
    let thrown = 0;
    const undo = patch(IDBObjectStore.prototype, "add", (genuine) => function (...args) {
      if (this.name !== "bodies" || args[1] !== 2) return genuine.apply(this, args);
      thrown++;
      throw new DOMException("no room", "QuotaExceededError");
    });

    const error = await rejection(store.add(epoch, 1, 2, 2)).finally(undo);

    equal([thrown, error.code], [1, "full"]);
    ok(error.message.includes("no room"), error.message);
    equal((await store.open(1)).batches, []);
  },

  async a_full_disk_while_committing_leaves_nothing({ store }) {
    const { epoch } = await store.open(1);
    let aborted = 0;
    const undo = patch(IDBObjectStore.prototype, "add", (genuine) => function (...args) {
      const request = genuine.apply(this, args);
      if (this.name === "bodies") {
        aborted++;
        Object.defineProperty(this.transaction, "error", { value: new DOMException("no room", "QuotaExceededError") });
        this.transaction.abort();
      }
      return request;
    });

    const error = await rejection(store.add(epoch, 1, 1, 2)).finally(undo);

    equal([aborted, error.code], [1, "full"]);
    equal((await store.open(1)).batches, []);
  },

  async an_aborted_transaction_is_an_error_and_leaves_nothing({ store }) {
    const { epoch } = await store.open(1);
    let aborted = 0;
    const undo = patch(IDBObjectStore.prototype, "add", (genuine) => function (...args) {
      const request = genuine.apply(this, args);
      if (this.name === "bodies") {
        aborted++;
        this.transaction.abort();
      }
      return request;
    });

    const error = await rejection(store.add(epoch, 1, 1, 2)).finally(undo);

    equal([aborted, error.code], [3, "transient"]);
    equal((await store.open(1)).batches, []);
    equal(await store.bodies(1), null);
  },

  async a_body_that_cannot_be_cloned_is_refused_and_leaves_nothing({ store }) {
    const { epoch } = await store.open(1);

    const error = await rejection(store.addBody(epoch, 1, { call: () => {} }));

    equal(error.code, "invalid");
    equal((await store.open(1)).batches, []);
  },

  async a_body_is_any_value_that_can_be_cloned({ store, again }) {
    const { epoch } = await store.open(1);
    const blob = new Blob(["text"], { type: "text/plain" });
    const body = { blob, bytes: new Uint8Array([1, 2, 3]), map: new Map([["a", { b: [undefined, null, 1n] }]]) };

    await store.addBody(epoch, 1, body);

    const [read] = await again().bodies(1);
    equal([await read.blob.text(), read.blob.type, [...read.bytes]], ["text", "text/plain", [1, 2, 3]]);
    equal(read.map.get("a").b, [undefined, null, 1n]);
  },

  async bodies_that_do_not_parse_are_as_good_as_none({ name, store }) {
    const { epoch } = await store.open(1);
    await store.add(epoch, 1, 1, 2);
    await change(name, "bodies", (bodies) => bodies.put({ v: 1, bodies: "melted" }, 1));

    equal(await store.bodies(1), null);
  },

  async every_write_is_strict_and_no_read_is({ store }) {
    const calls = await watchTransactions(async () => {
      const { epoch } = await store.open(1);
      await store.add(epoch, 1, 1, 2);
      await store.put(epoch, 1, 1, 5);
      await store.bodies(1);
    });

    const asked = calls.map(({ mode, durability }) => `${mode} ${durability}`);
    equal(asked, ["readwrite strict", "readonly default", "readwrite strict", "readwrite strict", "readonly default"]);
  },

  async nothing_of_the_page_stays_patched({ store }) {
    const before = [indexedDB.open, IDBDatabase.prototype.transaction, IDBFactory.prototype.open];

    await store.open(1);

    const after = [indexedDB.open, IDBDatabase.prototype.transaction, IDBFactory.prototype.open];
    ok(before.every((method, index) => method === after[index]), "the methods are the browser's own");
    ok(!Object.hasOwn(indexedDB, "open"), "indexedDB has no method of its own");
  },

  async an_open_that_is_blocked_fails_in_time_and_works_later({ name, impatient }) {
    const holder = await withDatabase(name, 1, () => {}, { keep: true });
    let asked = 0;
    holder.onversionchange = () => asked++;

    const error = await rejection(impatient.open(1));

    equal([error.code, asked], ["blocked", 1]);
    holder.close();
    equal((await impatient.open(1)).epoch, 1);
  },

  async an_open_that_nobody_waits_for_closes_what_it_opened({ name, impatient }) {
    const holder = await withDatabase(name, 1, () => {}, { keep: true });
    holder.onversionchange = () => {};
    equal((await rejection(impatient.open(1))).code, "blocked");

    holder.close();

    await look(name, () => {});
    equal(await remove(name), "deleted");
  },

  async a_deletion_by_another_is_let_through_and_told({ name, store }) {
    const { epoch } = await store.open(1_000);
    await store.add(epoch, 1, 1, 2);

    equal(await remove(name), "deleted");

    equal([...store.lost()], ["version-change"]);
    equal((await rejection(store.put(epoch, 1, 1, 5))).code, "stale-epoch");
    const reborn = await store.open(2_000);
    equal([reborn.epoch, reborn.birth, reborn.jobs], [1, 2_000, 0]);
  },

  async an_upgrade_by_a_newer_version_is_let_through_and_told({ name, store }) {
    const { epoch } = await store.open(1);

    await withDatabase(name, 50, () => {});

    equal([...store.lost()], ["version-change"]);
    const error = await rejection(store.add(epoch, 1, 1, 2));
    equal([error.code, error.found], ["too-new", 50]);
  },

  async a_browser_without_storage_is_told({ store }) {
    const genuine = Object.getOwnPropertyDescriptor(globalThis, "indexedDB") ?? { value: indexedDB, configurable: true };
    Object.defineProperty(globalThis, "indexedDB", { value: undefined, configurable: true });

    const error = await rejection(store.open(1)).finally(() => Object.defineProperty(globalThis, "indexedDB", genuine));

    equal(error.code, "unavailable");
    equal((await store.open(1)).epoch, 1);
  },

  async a_store_that_was_closed_opens_by_itself({ name, store }) {
    const { epoch } = await store.open(1);
    await store.close();
    equal(await remove(`${name}:no such`), "deleted");

    await store.add(epoch, 1, 1, 2);

    equal((await store.bodies(1)).length, 2);
  },
};

/** Tries the shared suite and then every claim above; answers `{ name, ok, error }` for each. */
export async function run({ conformance, TestStore }, prefix) {
  const thrown = [];
  const note = (event) => thrown.push(event.message);
  globalThis.addEventListener("error", note);
  const verdicts = await conformance(prefix);
  for (const [name, claim] of Object.entries(claims)) {
    const queue = `${prefix}:${name}`;
    const make = (patienceMs) => () => new TestStore(queue, patienceMs);
    const kit = { name: `paceline:${queue}`, store: make(5_000)(), impatient: make(300)(), again: make(5_000) };
    const error = await claim(kit).then(() => undefined, (reason) => String(reason?.stack ?? reason));
    verdicts.push({ name, ok: error === undefined, error });
  }
  globalThis.removeEventListener("error", note);
  verdicts.push({ name: "no_event_handler_throws", ok: thrown.length === 0, error: thrown.join() });
  return verdicts;
}

function ok(condition, what) {
  if (!condition) throw new Error(`expected: ${what}`);
}

function equal(got, expected) {
  const [a, b] = [got, expected].map((value) => show(value));
  if (a !== b) throw new Error(`expected ${b}, got ${a}`);
}

function show(value) {
  return JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? `${inner}n` : inner === undefined ? "undefined" : inner));
}

function throws(call) {
  try {
    call();
    return false;
  } catch {
    return true;
  }
}

async function rejection(promise) {
  const value = await promise.then((answer) => ({ answer }), (error) => ({ error }));
  if (!value.error) throw new Error(`expected an error, got ${show(value.answer)}`);
  return value.error;
}

function patch(object, name, make) {
  const genuine = object[name];
  object[name] = make(genuine);
  return () => (object[name] = genuine);
}

/** Notes every transaction that is begun while `body` runs. */
async function watchTransactions(body) {
  const calls = [];
  const undo = patch(IDBDatabase.prototype, "transaction", (genuine) => function (stores, mode, options) {
    calls.push({ db: this, mode, durability: options?.durability ?? "default" });
    return genuine.call(this, stores, mode, options);
  });
  await body().finally(undo);
  return calls;
}

function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function withDatabase(name, version, upgrade, { keep = false } = {}) {
  const request = indexedDB.open(name, version);
  request.onupgradeneeded = () => upgrade(request.result);
  const db = await done(request);
  if (!keep) db.close();
  return db;
}

async function look(name, body) {
  const db = await done(indexedDB.open(name));
  try {
    return await body(db);
  } finally {
    db.close();
  }
}

function change(name, store, body) {
  return look(name, async (db) => {
    const transaction = db.transaction(store, "readwrite");
    const complete = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    });
    await body(transaction.objectStore(store));
    await complete;
  });
}

function read(db, store, key) {
  return done(db.transaction(store).objectStore(store).get(key));
}

function all(db, store) {
  return done(db.transaction(store).objectStore(store).getAll());
}

function remove(name) {
  return new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase(name);
    request.onsuccess = () => resolve("deleted");
    request.onblocked = () => resolve("blocked");
    request.onerror = () => reject(request.error);
  });
}
