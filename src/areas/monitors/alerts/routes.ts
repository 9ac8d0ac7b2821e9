import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { reply } from "../../../kernel/http/responses/response.ts";
import type { Channels } from "./channels.ts";
import {
  Channel,
  ChannelCreateBody,
  ChannelDeleted,
  ChannelPage,
  ChannelParams,
  ChannelPatch,
  ChannelQuery,
  ChannelTested,
} from "./schema.ts";

const READ = { access: "pulse:read", cost: 1, limit: "monitor" } as const;
const WRITE = { ...READ, access: "pulse:write" } as const;
const CHANGE = { ...WRITE, audit: "yes" } as const;

/** Declares the operations of notification channels. */
export function channelRoutes(api: Api, channels: Channels) {
  return [readRoutes(api, channels), changeRoutes(api, channels)];
}

function readRoutes(api: Api, channels: Channels) {
  return new Elysia({ tags: ["Monitors"] })
    .use(api)
    .get(
      "/v1/pulse/channels",
      ({ call, query }) => call.read(() => channels.list(call.caller.project.ref, query)),
      {
        op: { name: "monitors.channels.list", ...READ, summary: "List notification channels, newest first" },
        query: ChannelQuery,
        response: ChannelPage,
      },
    )
    .get(
      "/v1/pulse/channels/:channel_id",
      ({ call, params }) => call.read(() => channels.read(call.caller.project.ref, params.channel_id)),
      {
        op: {
          name: "monitors.channels.read",
          ...READ,
          summary: "Get a notification channel",
          errors: ["not_found"],
        },
        params: ChannelParams,
        response: Channel,
      },
    );
}

function changeRoutes(api: Api, channels: Channels) {
  return new Elysia({ tags: ["Monitors"] })
    .use(api)
    .post(
      "/v1/pulse/channels",
      ({ call, body }) => call.perform((tx) => reply(201, channels.create(tx, call.caller, body))),
      {
        op: {
          name: "monitors.channels.create",
          ...CHANGE,
          summary: "Create a notification channel",
          description: "Tier starter and higher; the kind `email` requires the tier pro.",
          errors: ["channel_limit_exceeded"],
          example: { name: "Team chat", kind: "slack", config: { url: "https://example.com/hooks/T0/B0/x" } },
        },
        body: ChannelCreateBody,
        response: { 201: Channel },
      },
    )
    .patch(
      "/v1/pulse/channels/:channel_id",
      ({ call, params, body }) =>
        call.perform((tx) => channels.change(tx, call.caller, params.channel_id, body)),
      {
        op: {
          name: "monitors.channels.change",
          ...CHANGE,
          summary: "Update a notification channel",
          description:
            "Omitted fields stay unchanged. `config` is replaced as a whole, including its secrets.",
          errors: ["not_found"],
          example: { default: false },
        },
        params: ChannelParams,
        body: ChannelPatch,
        response: Channel,
      },
    )
    .delete(
      "/v1/pulse/channels/:channel_id",
      ({ call, params }) =>
        call.perform((tx) => channels.delete(tx, call.caller.project.ref, params.channel_id)),
      {
        op: {
          name: "monitors.channels.delete",
          ...CHANGE,
          summary: "Delete a notification channel",
          errors: ["not_found"],
        },
        params: ChannelParams,
        response: ChannelDeleted,
      },
    )
    .post(
      "/v1/pulse/channels/:channel_id/test",
      ({ call, params }) => channels.test(call, params.channel_id),
      {
        op: {
          name: "monitors.channels.test",
          ...WRITE,
          summary: "Send a test message to a channel",
          description: "The message is sent immediately, without retries.",
          errors: ["not_found"],
        },
        params: ChannelParams,
        response: ChannelTested,
      },
    );
}
