import type { WorkerCall, WorkerReply, WorkerStart } from "./archive-worker.ts";

/** Calls the methods of an uploader in its worker. */
export class UploaderThread {
  private worker: Worker | null = null;
  private readonly calls = new Map<number, PromiseWithResolvers<unknown>>();
  private nextId = 1;

  constructor(private readonly start: WorkerStart) {}

  /** Calls a method. @throws Error with its message */
  call<T>(method: WorkerCall["method"], ...args: readonly unknown[]): Promise<T> {
    this.worker ??= this.begin();
    const id = this.nextId++;
    const pending = Promise.withResolvers<unknown>();
    this.calls.set(id, pending);
    const call: WorkerCall = { id, method, args };
    this.worker.postMessage(call);
    return pending.promise as Promise<T>;
  }

  end(): void {
    this.worker?.terminate();
    this.worker = null;
    this.fail("the server stops");
  }

  private begin(): Worker {
    const worker = new Worker(new URL("./archive-worker.ts", import.meta.url));
    worker.onmessage = (event: MessageEvent<WorkerReply>) => {
      const reply = event.data;
      const pending = this.calls.get(reply.id);
      this.calls.delete(reply.id);
      if ("error" in reply) pending?.reject(new Error(reply.error));
      else pending?.resolve(reply.value);
    };
    worker.onerror = (event) => {
      this.worker = null;
      this.fail(event.message);
    };
    worker.unref();
    worker.postMessage(this.start);
    return worker;
  }

  private fail(message: string): void {
    for (const { reject } of this.calls.values()) reject(new Error(message));
    this.calls.clear();
  }
}
