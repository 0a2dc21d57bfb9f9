// A site of its own for the store's tests: a blank page, the files of this directory and the suite's wasm, built first.
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../support/browsers";

const TYPES: Record<string, string> = { ".js": "text/javascript", ".wasm": "application/wasm" };

export class StoreSite {
  private constructor(
    private readonly server: Server,
    readonly origin: string,
  ) {}

  static async start(): Promise<StoreSite> {
    const wasm = await build();
    const directories: Record<string, string> = { store: resolve(ROOT, "tests/e2e/store"), "store-conformance": wasm };
    const server = createServer(async (request, response) => {
      const [, directory = "", file = ""] = new URL(request.url ?? "/", "http://site").pathname.split("/");
      if (directory === "blank") return response.setHeader("content-type", "text/html").end("<!doctype html><title>blank</title>");
      const path = join(directories[directory] ?? "/nowhere", file);
      const body = await readFile(path).catch(() => undefined);
      response.writeHead(body ? 200 : 404, { "content-type": TYPES[extname(path)] ?? "text/plain" }).end(body);
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    return new StoreSite(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }
}

/** Builds the suite's wasm, or finds it built; answers its directory. `PACELINE_STORE_WASM` names one that is there. */
async function build(): Promise<string> {
  if (process.env.PACELINE_STORE_WASM) return process.env.PACELINE_STORE_WASM;
  const args = ["run", "--quiet", "--package", "paceline-store-conformance", "--bin", "build-store-conformance"];
  const { stdout } = await promisify(execFile)("cargo", args, { cwd: ROOT });
  return stdout.trim();
}
