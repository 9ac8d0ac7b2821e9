import { Type } from "@sinclair/typebox";
import type { Http } from "../../kernel/http/http.ts";
import { pageQuery } from "../../kernel/http/pagination.ts";
import {
  Monitor,
  MonitorCreateBody,
  MonitorDeleted,
  MonitorFilter,
  MonitorHistory,
  MonitorPage,
  MonitorParams,
  MonitorStatusView,
  MonitorUpdateBody,
} from "./schema.ts";
import type { MonitorService } from "./service.ts";

/** Monitors and checks on a page unless asked otherwise. */
const LIST_LIMIT = 50;

/** Declares monitors and what can be seen of them. Each request costs a credit, and the monitors' own rate limit counts it. */
export function monitorRoutes(http: Http, monitors: MonitorService): void {
  readRoutes(http, monitors);
  changeRoutes(http, monitors);
  checkRoute(http, monitors);
}

function readRoutes(http: Http, monitors: MonitorService): void {
  http.route(
    "GET",
    "/v1/pulse",
    {
      operation: "monitors.list",
      summary: "List monitors, newest first",
      query: Type.Composite([MonitorFilter, pageQuery(LIST_LIMIT)]),
      answers: { 200: MonitorPage },
    },
    (call) => {
      const { status, limit = LIST_LIMIT, cursor } = call.query;
      return call.perform(() => monitors.list(call.caller.project.ref, { status, limit, cursor }));
    },
  );
  http.route(
    "GET",
    "/v1/pulse/:monitorId",
    {
      operation: "monitors.read",
      summary: "Read what a monitor says of its target",
      params: MonitorParams,
      answers: { 200: MonitorStatusView },
      errors: ["not_found"],
    },
    (call) => call.perform(() => monitors.status(call.caller.project.ref, call.params.monitorId)),
  );
  http.route(
    "GET",
    "/v1/pulse/:monitorId/history",
    {
      operation: "monitors.history",
      summary: "Read a monitor's checks, newest first, and its uptime",
      description: "Checks are kept for 30 days.",
      params: MonitorParams,
      query: pageQuery(LIST_LIMIT),
      answers: { 200: MonitorHistory },
      errors: ["not_found"],
    },
    (call) => {
      const { limit = LIST_LIMIT, cursor } = call.query;
      const { monitorId } = call.params;
      return call.perform((tx) =>
        monitors.history(call.caller.project.ref, monitorId, tx.now, limit, cursor),
      );
    },
  );
}

function changeRoutes(http: Http, monitors: MonitorService): void {
  http.route(
    "POST",
    "/v1/pulse",
    {
      operation: "monitors.create",
      summary: "Create a monitor",
      description: "The first check comes within 5 seconds.",
      body: MonitorCreateBody,
      status: 201,
      answers: { 201: Monitor },
      errors: ["monitor_limit_exceeded"],
      example: { url: "https://example.com/health", interval: 60_000 },
    },
    (call) => {
      monitors.assertSettings(call.caller, call.body);
      return call.perform((tx) => monitors.create(tx, call.caller, call.body));
    },
  );
  http.route(
    "PUT",
    "/v1/pulse/:monitorId",
    {
      operation: "monitors.update",
      summary: "Change a monitor",
      description: "What is left out stays as it is. `active: false` stops the checks and keeps the status.",
      params: MonitorParams,
      body: MonitorUpdateBody,
      answers: { 200: Monitor },
      errors: ["not_found"],
      example: { interval: 30_000 },
    },
    (call) => {
      monitors.assertSettings(call.caller, call.body);
      return call.perform((tx) => monitors.update(tx, call.caller, call.params.monitorId, call.body));
    },
  );
  http.route(
    "DELETE",
    "/v1/pulse/:monitorId",
    {
      operation: "monitors.delete",
      summary: "Delete a monitor and its history",
      params: MonitorParams,
      answers: { 200: MonitorDeleted },
      errors: ["not_found"],
    },
    (call) => call.perform((tx) => monitors.delete(tx, call.caller.project.ref, call.params.monitorId)),
  );
}

function checkRoute(http: Http, monitors: MonitorService): void {
  http.route(
    "POST",
    "/v1/pulse/:monitorId/check",
    {
      operation: "monitors.check",
      summary: "Check now",
      description: "Counts like a scheduled check, but tells nobody. Works on an inactive monitor as well.",
      params: MonitorParams,
      answers: { 200: MonitorStatusView },
      errors: ["not_found"],
    },
    (call) => {
      // A check may take 30 s, and more when it must be made again.
      call.liftIdleTimeout();
      return call.performAcross({
        claim: () => monitors.claim(call.caller.project.ref, call.params.monitorId),
        outside: (monitor) => monitors.check(monitor),
        settle: (tx, monitor, made) => monitors.settle(tx, monitor, made),
      });
    },
  );
}
