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

/** Declares what is done with channels. */
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
        op: { name: "monitors.channels.list", ...READ, summary: "List channels, newest first" },
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
          summary: "Read a channel",
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
          summary: "Make a channel, through which people are told",
          description: "Tiers starter and higher; `email` needs pro.",
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
          summary: "Change a channel",
          description: "What is left out stays as it is; `config` is given whole, its secrets included.",
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
          summary: "Delete a channel",
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
          summary: "Send a test to a channel",
          description: "Once, at once. An e-mail goes through the mail queue.",
          errors: ["not_found"],
        },
        params: ChannelParams,
        response: ChannelTested,
      },
    );
}
