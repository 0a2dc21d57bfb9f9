// The entry to register or to import into an app's own service worker: the same host as in the SharedWorker.
import "./worker.js";
