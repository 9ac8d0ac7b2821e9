import { Type } from "@sinclair/typebox";
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

/** Declares what belongs to no area: the ping, the description of the API, health and metrics. */
export function systemRoutes(http: Http, monitoring: Monitoring): void {
  http.publicRoute(
    "GET",
    "/v1/ping",
    {
      operation: "ping",
      summary: "Check that the server answers",
      answers: { 200: Type.Object({ pong: Type.Literal(true) }) },
    },
    () => ({ pong: true }),
  );
  let document: object | undefined;
  http.publicRoute(
    "GET",
    "/openapi.json",
    {
      operation: "openapi.read",
      summary: "Read this API's OpenAPI document",
      answers: { 200: Type.Object({ openapi: Type.String() }, { additionalProperties: true }) },
    },
    () => {
      document ??= openApiDocument(http.routes);
      return document;
    },
  );
  monitoringRoutes(http, monitoring);
}

const Status = Type.Object({ status: Type.String() });

function monitoringRoutes(http: Http, { gate, readiness, metrics }: Monitoring): void {
  http.publicRoute(
    "GET",
    "/healthz",
    { operation: "health.live", summary: "Check that the process serves", answers: { 200: Status } },
    (call) => {
      gate.assertAdmitted("health.live", call);
      return { status: "ok" };
    },
  );
  http.publicRoute(
    "GET",
    "/readyz",
    { operation: "health.ready", summary: "Check that changes can be made", answers: { 200: Status } },
    async (call) => {
      gate.assertAdmitted("health.ready", call);
      await readiness.assertReady();
      return { status: "ready" };
    },
  );
  http.publicRoute(
    "GET",
    "/metrics",
    { operation: "metrics.read", summary: "Read the metrics", answers: { 200: Type.String() } },
    async (call) => {
      gate.assertAdmitted("metrics.read", call);
      return new TextReply(await renderMetrics(metrics.families), EXPOSITION_CONTENT_TYPE);
    },
  );
}
