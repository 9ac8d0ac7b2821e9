import type { ApiArea } from "../../kernel/http/api.ts";
import { changeRoutes } from "./routes.ts";
import { ChangeStreams, type StreamDeps } from "./streams.ts";

/** What the streams of changes provide to the server. */
export interface ChangesArea extends ApiArea {
  /** Ends all streams. Call when the server stops. */
  readonly stop: () => void;
}

/** Builds the area: a stream of changes, with which pages stay up to date. */
export function createChanges(kernel: StreamDeps): ChangesArea {
  const streams = new ChangeStreams(kernel);
  return {
    stop: () => streams.stop(),
    parts: [{ name: "Changes", description: "A stream of changes, for pages that stay up to date." }],
    routes: (api) => changeRoutes(api, streams),
  };
}
