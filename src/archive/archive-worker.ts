/**
 * Merges, encrypts and stores what the server has captured, on a thread of its own, so that the event loop waits neither for
 * the compression nor for the object store.
 */
import { errorText } from "../kernel/errors.ts";
import { archiveClient } from "./place.ts";
import { Uploader, type UploaderOptions } from "./uploader.ts";

/** A call of a method of the {@link Uploader}. */
export interface WorkerCall {
  readonly id: number;
  readonly method: "find" | "claim" | "uploadSegment" | "uploadBase" | "expire";
  readonly args: readonly unknown[];
}

/** The first message. */
export interface WorkerStart extends UploaderOptions {
  /** File with additional certificate authorities; null without one. */
  readonly extraCaPath: string | null;
}

/** The result of a call. */
export type WorkerReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string };

declare const self: {
  onmessage: ((event: MessageEvent<WorkerStart | WorkerCall>) => void) | null;
  postMessage(reply: WorkerReply): void;
};

let uploader: Uploader | null = null;

self.onmessage = async ({ data }) => {
  if (!("method" in data)) {
    uploader = new Uploader(archiveClient(data.extraCaPath), data);
    return;
  }
  const { id, method, args } = data;
  try {
    const run = uploader?.[method].bind(uploader) as (...args: readonly unknown[]) => Promise<unknown>;
    self.postMessage({ id, value: await run(...args) });
  } catch (error) {
    self.postMessage({ id, error: errorText(error) });
  }
};
