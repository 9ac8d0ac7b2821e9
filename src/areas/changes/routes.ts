import { Elysia } from "elysia";
import type { Api } from "../../kernel/http/api.ts";
import { EVENT_STREAM_HEADERS } from "../../kernel/http/responses/event-stream.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import type { ChangeStreams } from "./streams.ts";

/** Declares the stream of changes. */
export function changeRoutes(api: Api, streams: ChangeStreams) {
  return new Elysia({ tags: ["Changes"] }).get(
    "/v1/changes",
    api.endpoint(
      {
        name: "changes.stream",
        access: "any",
        summary: "Stream changes",
        description:
          'Server-Sent Events: `event: changes` with `{"at", "areas"}`, where each area has the ids that have changed, or `true`. Events contain neither the data nor earlier changes: read the data again after a reconnect. Changes within half a second are sent together. Only areas that the key can read are included. At most 5 streams per key or session, and 50 per account.',
        responseTypes: ["text/event-stream"],
        errors: ["service_unavailable"],
      },
      ({ call }) => reply(200, streams.begin(call), EVENT_STREAM_HEADERS),
    ),
  );
}
