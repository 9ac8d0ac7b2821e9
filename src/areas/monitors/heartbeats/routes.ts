import { Elysia } from "elysia";
import type { Api } from "../../../kernel/http/api.ts";
import { largeBody } from "../../../kernel/http/requests/body.ts";
import { MonitorParams } from "../schema.ts";
import type { MonitorService } from "../service.ts";
import type { Pings } from "./pings.ts";
import { PING_BODY_BYTES_MAX, PINGS_KEPT, PingKey, PingList, PingParams } from "./schema.ts";

/** Declares what heartbeats have beyond every monitor's endpoints. */
export function heartbeatRoutes(api: Api, monitors: MonitorService, pings: Pings) {
  const { heartbeats } = monitors;
  return [
    new Elysia({ tags: ["Monitors"] })
      .use(api)
      .get(
        "/v1/pulse/:monitorId/pings",
        ({ call, params }) =>
          call.read(() => heartbeats.pings(monitors.find(call.caller.project.ref, params.monitorId))),
        {
          op: {
            name: "monitors.pings",
            access: "pulse:read",
            cost: 1,
            limit: "monitor",
            summary: "Read the last pings of a heartbeat, newest first",
            description: `The last ${PINGS_KEPT} are kept.`,
            errors: ["not_found"],
          },
          params: MonitorParams,
          response: PingList,
        },
      )
      .post("/v1/pulse/ping-key", ({ call }) => call.perform((tx) => heartbeats.renewKey(tx, call.caller)), {
        op: {
          name: "monitors.ping_key",
          access: "pulse:write",
          cost: 1,
          limit: "monitor",
          audit: "yes",
          secret: true,
          summary: "Make the project's ping key, or another in its place",
          description:
            "Heartbeats with a slug are pinged under it at `/ping/<ping key>/<slug>`. The key before works no longer.",
        },
        response: PingKey,
      }),
    pingRoute(api, pings),
  ];
}

function pingRoute(api: Api, pings: Pings) {
  return new Elysia({ tags: ["Monitors"] }).use(api).post("/ping/:check", ({ call }) => pings.receive(call), {
    open: {
      name: "monitors.ping",
      everyMethod: true,
      summary: "Ping a heartbeat",
      description:
        "Healthchecks' ping API. By GET, HEAD or POST, and without a key: `/ping/<uuid>` or `/ping/<ping key>/<slug>`; " +
        "below it `/start`, `/fail`, `/log`, or an exit status from 0 to 255. `?rid=<uuid>` pairs the start and the end of a run, " +
        "`?create=1` makes a heartbeat where the slug has none. The answer is a text.",
      anyBody: `What the run said. The first ${PING_BODY_BYTES_MAX} bytes of it are kept.`,
      bodyLimits: largeBody(),
      textResponses: {
        "200": "`OK`: the ping is durable.",
        "201": "`Created`: so are the ping and the heartbeat that it made.",
        "400": "`invalid url format`",
        "403": "The tier allows no more monitors.",
        "404": "`not found`",
        "429":
          "`rate limited`: beyond 60 pings a minute of one heartbeat. `Retry-After` says when to try again.",
        "405": "`method not allowed`",
        "503": "`try again`: the ping could not be stored. `Retry-After` says when to send it again.",
      },
    },
    params: PingParams,
  });
}
