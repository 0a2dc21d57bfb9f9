// What chaos happens to: one browser profile, one to five tabs with hosts of any kind, and what they handed in.
import type { BrowserContext, CDPSession, Page } from "@playwright/test";
import type { ConnectOptions, Job } from "../../sw/paceline";
import type { FakeSite } from "../e2e/support/fake";
import { killSharedWorkers, processesOf, type Profile } from "../e2e/support/faults";
import type { Random } from "./random";

export type Kind = NonNullable<ConnectOptions["host"]>;
export const KINDS: Kind[] = ["shared-worker", "leader-tab", "service-worker"];
const MOST_TABS = 5;
/** Served by the site: this build, and the same one that says that it is newer. */
const PACKAGES = ["built", "built-newer"] as const;
const TIME_OUT_MS = 1_000;

interface Tab {
  page: Page;
  kind: Kind;
}

export class World {
  tabs: Tab[] = [];
  /** The bodies of all jobs that a page has handed in, and of those that it was told are stored. */
  readonly asked = new Set<string>();
  readonly accepted = new Set<string>();
  private context: BrowserContext | undefined;
  private handed = 0;

  constructor(
    private readonly profile: Profile,
    private readonly site: FakeSite,
    private readonly api: string,
    private readonly random: Random,
  ) {}

  /** Starts the browser, with a tab. */
  async launch(): Promise<void> {
    this.context = await this.profile.launch();
    this.tabs = [];
    await this.openTab();
  }

  /** Opens a tab with a host of any kind, unless there are enough. A scope has one service worker: of the first version. */
  async openTab(version: (typeof PACKAGES)[number] = "built"): Promise<void> {
    if (this.tabs.length >= MOST_TABS) return;
    const kinds = version === "built" ? KINDS : KINDS.filter((kind) => kind !== "service-worker");
    const tab = { page: await this.context!.newPage(), kind: this.random.pick(kinds) };
    await this.connect(tab, version);
    this.tabs.push(tab);
  }

  /** Hands in creates from any tab. Resolves once they are accepted, or the tab is gone. */
  async handIn(count: number): Promise<void> {
    const { page } = this.random.pick(this.tabs);
    const round = (this.handed += 1);
    const bodies = Array.from({ length: count }, (_, n) => `${round}-${n}`);
    for (const body of bodies) this.asked.add(body);
    const jobs: Job[] = bodies.map((body) => ({ id: body, method: "POST", url: `${this.api}/notes`, body, timeoutMs: TIME_OUT_MS }));
    const accepted = await page.evaluate((jobs) => window.queue.enqueueMany(jobs).then(() => true), jobs).catch(() => false);
    if (accepted) for (const body of bodies) this.accepted.add(body);
  }

  /** Names the host that serves the tabs now. */
  async instance(): Promise<string> {
    return this.tabs[0]!.page.evaluate(async () => (await window.queue.ready).instance);
  }

  /** Resolves once no job is unsettled. */
  async idle(): Promise<void> {
    await this.tabs[0]!.page.evaluate(() => window.queue.idle());
  }

  /** The states that jobs are in that have not ended well. */
  async unwell(): Promise<unknown[]> {
    return this.tabs[0]!.page.evaluate(async () => {
      const failed = await window.queue.jobs({ state: "failed", limit: 100 });
      const cancelled = await window.queue.jobs({ state: "cancelled", limit: 100 });
      return [...failed, ...cancelled];
    });
  }

  async close(): Promise<string> {
    const tab = this.take();
    await tab.page.close();
    return this.replaced(`a tab (${tab.kind}) closes`);
  }

  async crash(): Promise<string> {
    const tab = this.take();
    const crashed = tab.page.waitForEvent("crash");
    const session = await this.session(tab.page);
    session.send("Page.crash").catch(() => {});
    await crashed;
    await tab.page.close();
    return this.replaced(`a tab (${tab.kind}) crashes`);
  }

  async reload(): Promise<string> {
    const tab = this.random.pick(this.tabs);
    await tab.page.reload();
    await this.connect(tab, "built");
    return `a tab (${tab.kind}) reloads`;
  }

  async killWorkers(): Promise<string | undefined> {
    const killed = await killSharedWorkers(this.context!.browser()!, "worker.js").catch(() => 0);
    return killed > 0 ? `${killed} SharedWorkers are killed` : undefined;
  }

  async stopServiceWorkers(): Promise<string | undefined> {
    const { page } = this.tabs[0]!;
    const hosts = () => page.evaluate(async () => {
      const { held = [] } = await navigator.locks.query();
      return held.map(({ name }) => name!).filter((name) => name.startsWith("paceline-host:"));
    });
    const session = await this.session(page);
    await session.send("ServiceWorker.enable");
    const before = await hosts();
    await session.send("ServiceWorker.stopAllWorkers");
    await session.detach();
    const after = await hosts();
    return before.some((host) => !after.includes(host)) ? "the service worker is stopped" : undefined;
  }

  async killBrowser(): Promise<string> {
    const killed = await this.profile.kill();
    await this.launch();
    return `the browser is killed (${killed} processes) and started again`;
  }

  async newerVersion(): Promise<string> {
    await this.openTab("built-newer");
    return "a tab of a newer version opens";
  }

  /** Stops one process that runs pages or workers, as a system does with what nobody looks at, and lets it go on. */
  async freeze(ms: number): Promise<string> {
    const renderers = await processesOf(this.profile.dir, "--type=renderer");
    const pid = this.random.pick(renderers);
    process.kill(pid, "SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, ms));
    process.kill(pid, "SIGCONT");
    return `one of ${renderers.length} renderers stands still for ${ms} ms`;
  }

  private take(): Tab {
    const tab = this.random.pick(this.tabs);
    this.tabs = this.tabs.filter((other) => other !== tab);
    return tab;
  }

  private async replaced(what: string): Promise<string> {
    if (this.tabs.length === 0) await this.openTab();
    return what;
  }

  private session(page: Page): Promise<CDPSession> {
    return this.context!.newCDPSession(page);
  }

  private async connect({ page, kind }: Tab, version: string): Promise<void> {
    await page.goto(`${this.site.origin}/blank`);
    await page.evaluate(async ([version, host, api]) => {
      const client: string = `/${version}/client.js`;
      const { connect } = await import(client);
      const budget = { id: "api", match: [`${api}/*`], limits: ["100/1s"], idempotency: { header: "Idempotency-Key" } };
      window.queue = connect({ host, budgets: [budget] });
      await window.queue.ready;
    }, [version, kind, this.api] as const);
  }
}
