import type { ApiArea } from "../../kernel/http/api.ts";
import { changeRoutes } from "./routes.ts";
import { ChangeStreams, type StreamDeps } from "./streams.ts";

/** What the streams of changes offer to the rest of the house. */
export interface ChangesArea extends ApiArea {
  /** Ends all streams: the server stops. */
  readonly stop: () => void;
}

/** Builds the area: pages that show what others change. */
export function createChanges(kernel: StreamDeps): ChangesArea {
  const streams = new ChangeStreams(kernel);
  return {
    stop: () => streams.stop(),
    parts: [
      { name: "Changes", description: "A stream that tells what has changed, for pages that show it." },
    ],
    routes: (api) => changeRoutes(api, streams),
  };
}
