// A site that serves the client and the worker's shell around a fake engine, and an API with every kind of answer. Its API
// allows all origins, so that a page of the real site can call it too.
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, resolve } from "node:path";
import { ROOT } from "./browsers";

const TYPES: Record<string, string> = { ".js": "text/javascript", ".wasm": "application/wasm" };
const MIB = 1024 * 1024;

/** The paths under which the package is served, and what stands behind its engine there. The newer ones say that they are. */
const PACKAGES: Record<string, { engine: string; isNewer: boolean }> = {
  "paceline": { engine: "tests/fixtures/fake-engine", isNewer: false },
  "newer": { engine: "tests/fixtures/fake-engine", isNewer: true },
  "built": { engine: "target/wasm/pkg", isNewer: false },
  "built-newer": { engine: "target/wasm/pkg", isNewer: true },
};
/** The version of the newer ones. */
export const NEWER = "99.0.0";

/** A request as the API saw it. */
export interface Call {
  method: string;
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

export class FakeSite {
  /** All requests to the API but preflights, in order. */
  readonly calls: Call[] = [];
  private readonly held: (() => void)[] = [];

  private constructor(
    private readonly server: Server,
    readonly origin: string,
  ) {}

  static async start(): Promise<FakeSite> {
    const server = createServer();
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const site = new FakeSite(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    server.on("request", (request, response) => void site.answer(request, response));
    return site;
  }

  /** Answers what waits at `/api/held`. */
  release(): void {
    for (const answer of this.held.splice(0)) answer();
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A browser sends a request again by itself, a POST too, when a connection that it reuses closes without an answer.
    response.shouldKeepAlive = false;
    const url = new URL(request.url ?? "/", this.origin);
    const [, section, name = "", more = ""] = url.pathname.split("/");
    if (section === "api") return this.api(request, response, name, more);
    if (section === "app") return this.worker(response, name);
    const served = PACKAGES[section ?? ""];
    if (!served) return void response.setHeader("content-type", "text/html").end("<!doctype html><title>blank</title>");
    await new Promise((resolve) => setTimeout(resolve, Number(url.searchParams.get("delay_ms"))));
    const isEngine = name.startsWith("paceline_sw");
    const path = isEngine ? resolve(ROOT, served.engine, name) : join(ROOT, "sw", name);
    let body = await readFile(path).catch(() => (name.endsWith(".wasm") ? Buffer.alloc(8) : undefined));
    if (body && served.isNewer && name === "protocol.js") {
      body = Buffer.from(body.toString().replace(/VERSION = "[^"]*"/, `VERSION = "${NEWER}"`));
    }
    response.setHeader("service-worker-allowed", "/");
    response.writeHead(body ? 200 : 404, { "content-type": TYPES[extname(path)] ?? "text/plain" }).end(body);
  }

  /** The worker's files of an app. */
  private async worker(response: ServerResponse, name: string): Promise<void> {
    const body = await readFile(join(ROOT, "tests/fixtures/app-worker", name)).catch(() => undefined);
    response.setHeader("service-worker-allowed", "/");
    response.writeHead(body ? 200 : 404, { "content-type": "text/javascript" }).end(body);
  }

  private async api(request: IncomingMessage, response: ServerResponse, name: string, more: string): Promise<void> {
    response.setHeader("access-control-allow-origin", "*");
    response.setHeader("access-control-expose-headers", "*");
    if (request.method === "OPTIONS") {
      response.setHeader("access-control-allow-methods", "*").setHeader("access-control-allow-headers", "*");
      return void response.end();
    }
    const body = await text(request);
    const { method = "", url = "", headers } = request;
    this.calls.push({ method, path: url, headers, body });
    switch (name) {
      case "status":
        response.writeHead(Number(more), { "content-type": "text/plain", "x-kind": "status" });
        return void response.end(["204", "205", "304"].includes(more) ? undefined : `status ${more}`);
      case "echo":
        return void response.setHeader("content-type", "application/json").end(JSON.stringify({ method, headers, body }));
      case "redirect":
        return void response.writeHead(302, { location: "/api/echo" }).end();
      case "big":
        return void response.end(Buffer.alloc(9 * MIB, "x"));
      case "broken":
        response.writeHead(200, { "content-length": "100" }).write("begun");
        return void setTimeout(() => response.destroy(), 20);
      case "held":
        return void this.held.push(() => response.end("released"));
      default:
        response.destroy();
    }
  }
}

async function text(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
