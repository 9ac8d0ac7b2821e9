import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Readiness } from "../health/readiness.ts";
import { EXPOSITION_CONTENT_TYPE, renderMetrics } from "../metrics/exposition.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { TextReply } from "./answer.ts";
import type { Http } from "./http.ts";
import type { MonitoringGate } from "./monitoring-access.ts";
import { openApiDocument } from "./openapi.ts";

/** What the monitoring endpoints answer from. */
export interface Monitoring {
  readonly gate: MonitoringGate;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
}

const Pong = Type.Object({ pong: Type.Literal(true) });
const OpenApiDocument = Type.Object({ openapi: Type.String() }, { additionalProperties: true });
const Status = Type.Object({ status: Type.String() });

/** What belongs to no area: the ping, the description of the API, health and metrics. */
export function systemRoutes(http: Http, { gate, readiness, metrics }: Monitoring) {
  let document: ReturnType<typeof openApiDocument> | undefined;
  return new Elysia({ tags: ["System"] })
    .use(http.api)
    .get("/v1/ping", () => ({ pong: true as const }), {
      open: { name: "ping", summary: "Check that the server answers" },
      response: Pong,
    })
    .get(
      "/openapi.json",
      () => {
        document ??= openApiDocument(http.routes, http.parts);
        return document;
      },
      {
        open: { name: "openapi.read", summary: "Read this API's OpenAPI document" },
        response: OpenApiDocument,
      },
    )
    .get(
      "/healthz",
      ({ call }) => {
        gate.assertAdmitted("health.live", call);
        return { status: "ok" };
      },
      {
        open: { name: "health.live", monitoring: true, summary: "Check that the process serves" },
        response: Status,
      },
    )
    .get(
      "/readyz",
      async ({ call }) => {
        gate.assertAdmitted("health.ready", call);
        await readiness.assertReady();
        return { status: "ready" };
      },
      {
        open: { name: "health.ready", monitoring: true, summary: "Check that changes can be made" },
        response: Status,
      },
    )
    .get(
      "/metrics",
      ({ call }) => {
        gate.assertAdmitted("metrics.read", call);
        return new TextReply(renderMetrics(metrics.families), EXPOSITION_CONTENT_TYPE);
      },
      { open: { name: "metrics.read", monitoring: true, summary: "Read the metrics" } },
    );
}
