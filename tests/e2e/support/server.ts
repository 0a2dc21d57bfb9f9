// The demo binary without its page: strict server, blank page and built worker, on ports of its own.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { ROOT } from "./browsers";

const START_LIMIT_MS = 20_000;

export interface Server {
  /** `http://127.0.0.1:PORT`, HTTP/1.1. */
  http: string;
  /** `https://127.0.0.1:PORT`, HTTP/2, another origin with a certificate made at start. */
  https: string;
  close(): Promise<void>;
}

export async function startServer(extraArgs: string[] = []): Promise<Server> {
  const child = spawn(binary(), ["--serve-only", "--addr", "127.0.0.1:0", "--tls-addr", "127.0.0.1:0", ...extraArgs], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [http, https] = await addresses(child);
  return { http, https, close: () => close(child) };
}

function binary(): string {
  const path = process.env.PACELINE_DEMO ?? resolve(ROOT, "target/release/paceline-demo");
  if (!existsSync(path)) throw new Error(`${path} is not there; run: cargo xtask build`);
  return path;
}

function addresses(child: ChildProcess): Promise<[string, string]> {
  return new Promise((found, fail) => {
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      fail(new Error(`the demo did not say \`listening\` within ${START_LIMIT_MS} ms`));
    }, START_LIMIT_MS);
    child.once("error", fail);
    child.once("exit", (code, signal) => fail(new Error(`the demo ended before it listened: ${signal ?? code}`)));
    // Read on after the first line, or a full pipe would stop the server.
    createInterface({ input: child.stdout! }).on("line", (line) => {
      const match = /^listening (http:\S+) (https:\S+)/.exec(line);
      if (!match) return;
      clearTimeout(late);
      found([origin(match[1]!), origin(match[2]!)]);
    });
  });
}

function origin(address: string): string {
  return new URL(address).origin;
}

async function close(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}
