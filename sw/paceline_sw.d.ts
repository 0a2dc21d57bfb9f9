/** What the worker's shell needs of the built wasm's glue. */

export interface EngineShell {
  post(tab: number, message: object): void;
  /** Sets the one timer; `undefined` clears it. */
  set_timer(ms: number | undefined): void;
  send(request: object, options: { timeoutMs: number; headers: [string, string][]; later?: object[] }): Promise<object>;
  /** The engine lost its epoch or its store. */
  stopped(reason: string): void;
}

export interface EngineOptions {
  queue: string;
  instance: string;
  host: "shared-worker" | "service-worker" | "leader-tab";
  version: string;
  /** The functions of the app's worker that read answers. */
  dialects: string[];
}

export class Engine {
  static start(options: EngineOptions, shell: EngineShell): Promise<Engine>;
  message(tab: number, message: object, requests: object[], sizes: number[]): void;
  tab_left(tab: number): void;
  wake(): void;
  online(is_online: boolean): void;
  /** Starts nothing more, and calls `stopped` once what has left is over and stored. */
  retire(): void;
}

export default function init(input: { module_or_path: unknown }): Promise<unknown>;
