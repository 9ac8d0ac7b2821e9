import { computed, effect, signal } from "@preact/signals";
import { pause, send, sessionHeaders } from "./api.ts";
import { refreshSession } from "./login.ts";
import { projectId, session } from "./session.ts";

/** Whether changes are pushed by the server; otherwise pages reload every few seconds. */
export const isLive = signal(false);

type Listener = { readonly areas: readonly string[]; readonly call: () => void };
const listeners = new Set<Listener>();

/** Calls back when something in one of the areas has changed on the server. Returns a function that stops it. */
export function onChange(areas: readonly string[], call: () => void): () => void {
  const listener = { areas, call };
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Consecutive failures after which pages reload every few seconds instead. */
const FAILURES_MAX = 3;
const POLL_MS = 10_000;
const RETRY_MS = 2_000;

function notify(areas: readonly string[] | null): void {
  for (const { areas: watched, call } of [...listeners]) {
    if (areas === null || watched.some((area) => areas.includes(area))) call();
  }
}

let connection: AbortController | null = null;

const userId = computed(() => session.value?.user_id);

/** Listens while a user is logged in and the page is visible. A hidden page keeps no connection open. */
export function followChanges(): void {
  const follow = (): void => {
    connection?.abort();
    connection = null;
    isLive.value = false;
    if (!session.peek() || document.hidden) return;
    connection = new AbortController();
    listen(connection.signal).catch(() => undefined);
  };
  document.addEventListener("visibilitychange", () => {
    follow();
    // Changes in the meantime were missed.
    if (!document.hidden && session.peek()) notify(null);
  });
  effect(() => {
    // Both values decide which stream is opened.
    void userId.value;
    void projectId.value;
    follow();
  });
}

async function listen(signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    try {
      // Without a wait: over the limit of streams, the page polls.
      const response = await send("/v1/changes", { headers: sessionHeaders(), signal }, 0);
      if (failures > 0) {
        // The server ends streams of people whose role has changed.
        await refreshSession();
        // Changes during the interruption were missed.
        notify(null);
      }
      failures = 0;
      isLive.value = true;
      await readStream(response, signal);
    } catch {
      // The stream's first event triggers the reload.
    }
    if (signal.aborted) return;
    isLive.value = false;
    failures += 1;
    await pause(failures > FAILURES_MAX ? POLL_MS : RETRY_MS, signal);
    if (failures > FAILURES_MAX && !signal.aborted) notify(null);
  }
}

async function readStream(response: Response, signal: AbortSignal): Promise<void> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  let text = "";
  while (!signal.aborted) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) readEvent(event);
  }
}

function readEvent(event: string): void {
  const data = event.split("\n").find((line) => line.startsWith("data:"));
  if (data === undefined) return;
  const { areas = {} } = JSON.parse(data.slice("data:".length)) as { areas?: Record<string, unknown> };
  notify(Object.keys(areas));
}
