// Faults that happen for real. Each proves that it happened, or throws: a fault test without its fault proves nothing.
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { chromium, firefox, type Browser, type BrowserContext, type LaunchOptions } from "@playwright/test";
import { chromiumOptions, firefoxOptions, launchOptions, type BrowserKind } from "./browsers";

const GONE_LIMIT_MS = 10_000;
const POLL_MS = 20;

/** A browser profile on disk that outlives its browser. */
export class Profile {
  private context: BrowserContext | undefined;

  private constructor(
    readonly kind: BrowserKind,
    readonly dir: string,
    private readonly extra: LaunchOptions,
  ) {}

  static async create(kind: BrowserKind, extra: LaunchOptions = {}): Promise<Profile> {
    return new Profile(kind, await mkdtemp(join(tmpdir(), "paceline-profile-")), extra);
  }

  /** Starts a browser on the profile; the one before must be closed or killed. */
  async launch(): Promise<BrowserContext> {
    if (this.context) throw new Error("the profile has a browser already");
    const { contextOptions, launchOptions: _, browserName: __, ...use } =
      this.kind === "chromium" ? chromiumOptions() : firefoxOptions();
    const type = this.kind === "chromium" ? chromium : firefox;
    this.context = await type.launchPersistentContext(this.dir, {
      ...use,
      ...contextOptions,
      ...launchOptions(this.kind),
      ...this.extra,
    });
    return this.context;
  }

  /** Kills every process of the browser with SIGKILL; returns how many there were, once all are gone. */
  async kill(): Promise<number> {
    const context = this.context;
    if (!context) throw new Error("the profile has no browser to kill");
    const closed = new Promise<void>((resolve) => context.once("close", () => resolve()));
    const pids = await processesOf(this.dir);
    if (pids.length === 0) throw new Error(`no process runs on ${this.dir}: nothing was killed`);
    for (const pid of pids) killIfThere(pid);
    await waitUntil(async () => (await processesOf(this.dir)).length === 0, "the browser's processes are gone");
    await closed;
    this.context = undefined;
    return pids.length;
  }

  async dispose(): Promise<void> {
    await this.context?.close();
    this.context = undefined;
    await rm(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Closes every SharedWorker of a Chromium whose URL contains `part`; returns how many, once they are gone. */
export async function killSharedWorkers(browser: Browser, part = ""): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const workers = async () => {
    const { targetInfos } = await session.send("Target.getTargets");
    return targetInfos.filter((target) => target.type === "shared_worker" && target.url.includes(part));
  };
  try {
    const doomed = await workers();
    if (doomed.length === 0) throw new Error(`no SharedWorker with "${part}" in its URL: nothing was killed`);
    for (const { targetId } of doomed) await session.send("Target.closeTarget", { targetId });
    const ids = new Set(doomed.map((target) => target.targetId));
    await waitUntil(async () => !(await workers()).some((target) => ids.has(target.targetId)), "the worker is gone");
    return doomed.length;
  } finally {
    await session.detach();
  }
}

/** Browsers name their profile directory on the command line of each process that matters. */
export async function processesOf(dir: string, part = ""): Promise<number[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-ww", "-o", "pid=,stat=,args="], { maxBuffer: 1 << 26 });
  return stdout
    .split("\n")
    .filter((line) => line.includes(dir) && line.includes(part))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, stat]) => !stat!.startsWith("Z"))
    .map(([pid]) => Number(pid));
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function waitUntil(holds: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + GONE_LIMIT_MS;
  while (!(await holds())) {
    if (Date.now() >= deadline) throw new Error(`not within ${GONE_LIMIT_MS} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
