// The suite in a worker of either kind; it answers each message `{ id, call, args }` on the port that it came from.
import { call } from "./calls.js";

const listen = (port) => (port.onmessage = (event) => answer(port, event.data));

if ("onconnect" in globalThis) {
  globalThis.onconnect = (event) => listen(event.ports[0]);
} else {
  listen(globalThis);
}

async function answer(port, { id, name, args }) {
  const message = await call(name, args).then((value) => ({ id, value }), (error) => ({ id, error: String(error?.stack ?? error) }));
  port.postMessage(message);
}
