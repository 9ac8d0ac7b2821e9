import { Elysia } from "elysia";
import { idParams } from "../../kernel/data/schema.ts";
import type { Api } from "../../kernel/http/api.ts";
import { resourceRoutes } from "../../kernel/resources/routes.ts";
import type { Channels } from "./channels.ts";
import { ChannelTested } from "./schema.ts";

/** Declares the operations of notification channels. */
export function channelRoutes(api: Api, channels: Channels) {
  return [resourceRoutes(api, channels.resource), testRoute(api, channels)];
}

function testRoute(api: Api, channels: Channels) {
  return new Elysia({ tags: ["Monitors"] }).post(
    "/v1/pulse/channels/:channel_id/test",
    api.endpoint(
      {
        name: "monitors.channels.test",
        access: "pulse:write",
        cost: 1,
        limit: "monitor",
        summary: "Send a test message to a channel",
        description: "The message is sent immediately, without retries.",
        errors: ["not_found"],
        params: idParams("channel"),
        response: ChannelTested,
      },
      ({ call, params }) => channels.test(call, params.channel_id),
    ),
  );
}
