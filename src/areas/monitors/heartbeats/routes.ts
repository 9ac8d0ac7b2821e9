import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { largeBody } from "../../../kernel/http/operation.ts";
import { MonitorParams } from "../schema.ts";
import type { MonitorRow } from "../store.ts";
import type { Heartbeats } from "./heartbeats.ts";
import type { Pings } from "./pings.ts";
import {
  PING_BODY_BYTES_MAX,
  PINGS_STORED,
  PingKey,
  PingList,
  PingParams,
  PushAccepted,
  PushParams,
} from "./schema.ts";

interface HeartbeatDeps {
  readonly heartbeats: Heartbeats;
  readonly pings: Pings;
  /** A monitor of a project. @throws ApiError `not_found` */
  readonly findMonitor: (projectRef: number, monitorId: string) => MonitorRow;
}

/** Endpoints that only heartbeats have. */
export function heartbeatRoutes(api: Api, { heartbeats, pings, findMonitor }: HeartbeatDeps) {
  return [
    new Elysia({ tags: ["Monitors"] })
      .get(
        "/v1/pulse/:monitorId/pings",
        api.endpoint(
          {
            name: "monitors.pings",
            access: "pulse:read",
            cost: 1,
            limit: "monitor",
            summary: "List the last pings of a heartbeat",
            description: `Newest first. The last ${PINGS_STORED} pings are stored.`,
            errors: ["not_found"],
            params: MonitorParams,
            response: PingList,
          },
          ({ call, params }) =>
            call.read(() => heartbeats.pings(findMonitor(call.caller.project.ref, params.monitorId))),
        ),
      )
      .post(
        "/v1/pulse/ping-key",
        api.endpoint(
          {
            name: "monitors.ping_key",
            role: "admin",
            stepUp: true,
            access: "pulse:write",
            cost: 1,
            limit: "monitor",
            audit: "yes",
            secret: true,
            summary: "Create or replace the project's ping key",
            description:
              "A heartbeat with a slug is pinged at `/ping/<ping key>/<slug>`. The previous key stops working.",
            response: PingKey,
          },
          ({ call }) => call.perform((tx) => heartbeats.renewKey(tx, call.caller)),
        ),
      ),
    pingRoute(api, pings),
    pushRoute(api, pings),
  ];
}

function pingRoute(api: Api, pings: Pings) {
  return new Elysia({ tags: ["Monitors"] }).post(
    "/ping/:check",
    api.open(
      {
        name: "monitors.ping",
        everyMethod: true,
        summary: "Ping a heartbeat",
        description:
          "The ping API of Healthchecks, by GET, HEAD or POST and without an API key: `/ping/<uuid>` or `/ping/<ping key>/<slug>`, " +
          "optionally followed by `/start`, `/fail`, `/log` or an exit status from 0 to 255. `?rid=<uuid>` pairs the start and the end of a run. " +
          "`?create=1` creates a heartbeat for an unknown slug. The response is plain text.",
        anyBody: `Output of the run. The first ${PING_BODY_BYTES_MAX} bytes are stored.`,
        bodyLimits: largeBody(),
        textResponses: {
          "200": "`OK`: the ping is durable.",
          "201": "`Created`: the ping and the heartbeat that it created are durable.",
          "400": "`invalid url format`",
          "403": "The account has reached the monitor limit of its tier.",
          "404": "`not found`",
          "429":
            "`rate limited`: more than 60 pings a minute of one heartbeat. `Retry-After` gives the seconds to wait.",
          "405": "`method not allowed`",
          "503":
            "`try again`: the ping could not be stored. `Retry-After` gives the seconds to wait before a retry.",
        },
        params: PingParams,
      },
      ({ call }) => pings.receive(call),
    ),
  );
}

function pushRoute(api: Api, pings: Pings) {
  return new Elysia({ tags: ["Monitors"] }).get(
    "/api/push/:token",
    api.open(
      {
        name: "monitors.push",
        everyMethod: true,
        summary: "Ping a heartbeat as a push monitor of Uptime Kuma",
        description:
          "By GET, HEAD or POST and without an API key, for heartbeats with a `push_token`. `?status=up` or no status is a success, any other status a failure. " +
          "`msg` is the reason of a failure, and `ping` the duration in milliseconds.",
        anyBody: `Output of the run. The first ${PING_BODY_BYTES_MAX} bytes are stored.`,
        bodyLimits: largeBody(),
        errors: [
          "invalid_request",
          "not_found",
          "method_not_allowed",
          "rate_limit_exceeded",
          "service_unavailable",
        ],
        params: PushParams,
        response: PushAccepted,
      },
      ({ call }) => pings.receivePush(call),
    ),
  );
}
