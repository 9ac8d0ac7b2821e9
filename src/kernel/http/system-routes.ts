import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { isLoopback, isLoopbackName } from "../data/addresses.ts";
import { ApiError, rejectionBy } from "../errors.ts";
import type { Readiness } from "../health/readiness.ts";
import { EXPOSITION_CONTENT_TYPE, type Metrics, renderMetrics } from "../metrics/metrics.ts";
import type { Guard } from "./access/guard.ts";
import type { Api } from "./api.ts";
import { openApiDocument } from "./document/openapi.ts";
import type { Http } from "./http.ts";
import { operationOf } from "./operation.ts";
import type { OpenCall } from "./requests/call.ts";
import type { Paths } from "./requests/paths.ts";
import { pathOf } from "./requests/request-target.ts";
import { asset } from "./responses/asset.ts";
import { sharedBytes } from "./responses/outgoing-bodies.ts";
import { additionalReply, reply } from "./responses/response.ts";

/** The sources of the monitoring endpoints. */
export interface Monitoring {
  /** Lets a call to a monitoring endpoint pass. @throws ApiError `not_found` */
  readonly gate: (call: OpenCall) => void;
  /** Whether a call to the readiness may read why the server is not ready. @throws ApiError `not_found` if it may read nothing. */
  readonly readsDetails: (call: OpenCall) => boolean;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  /** Where the description of the API says that this server is; null for the origin that serves it. */
  readonly publicUrl: () => string | null;
}

const Pong = Type.Object({ pong: Type.Literal(true) }, { $id: "Pong" });
const OpenApiDocument = Type.Object(
  { openapi: Type.String({ examples: ["3.1.0"] }) },
  { $id: "OpenApiDocument", additionalProperties: true },
);
const Status = Type.Object({ status: Type.String() });

/** Serves the API document of a server at a URL. */
function documentAt(http: Http, url: string | null): ReturnType<typeof asset> {
  let text: Promise<Uint8Array<ArrayBuffer>> | undefined;
  return asset({
    contentType: "application/json",
    immutable: false,
    read: () => {
      text ??= openApiDocument(http.routes, http.parts, url).then((document) =>
        sharedBytes(new TextEncoder().encode(JSON.stringify(document))),
      );
      return text;
    },
  });
}

/** What belongs to no area: the ping, the description of the API, health and metrics. */
export function systemRoutes(
  api: Api,
  http: Http,
  { gate, readsDetails, readiness, metrics, publicUrl }: Monitoring,
) {
  let cached: { readonly url: string | null; readonly serve: ReturnType<typeof asset> } | undefined;
  /** The document names the public URL, which may change. */
  const document = (call: Parameters<ReturnType<typeof asset>>[0]): ReturnType<ReturnType<typeof asset>> => {
    const url = publicUrl();
    if (cached === undefined || cached.url !== url) cached = { url, serve: documentAt(http, url) };
    return cached.serve(call);
  };
  return new Elysia({ tags: ["System"] })
    .get(
      "/v1/ping",
      api.open(
        {
          name: "ping",
          showsNothing: true,
          summary: "Check that the server responds",
          description:
            "Says that the process accepts requests, and nothing about the database: use `/readyz` for load balancers and health checks.",
          response: Pong,
        },
        () => ({ pong: true as const }),
      ),
    )
    .get(
      "/openapi.json",
      api.open(
        {
          name: "openapi.read",
          showsNothing: true,
          summary: "Read this API's OpenAPI document",
          description:
            "For generating clients and for tools: OpenAPI 3.1 of this version of the server, as in the reference at `/docs`. Large; send `If-None-Match` to download it only after a change.",
          tagged: true,
          response: OpenApiDocument,
        },
        async ({ call }) => {
          const { status, bytes, headers } = await document(call);
          return additionalReply(status, bytes ?? "", headers);
        },
      ),
    )
    .get(
      "/healthz",
      api.open(
        {
          name: "health.live",
          monitoring: true,
          showsNothing: true,
          summary: "Check that the process serves",
          response: Status,
        },
        ({ call }) => {
          gate(call);
          return { status: "ok" };
        },
      ),
    )
    .get(
      "/readyz",
      api.open(
        {
          name: "health.ready",
          monitoring: true,
          showsNothing: true,
          summary: "Check that changes can be made",
          response: Status,
        },
        async ({ call }) => {
          if (readsDetails(call)) await readiness.assertReady();
          else if (!(await isReady(readiness)))
            throw new ApiError("service_unavailable", "The server is not ready.", { retryAfterSeconds: 1 });
          return { status: "ready" };
        },
      ),
    )
    .get(
      "/metrics",
      api.open(
        { name: "metrics.read", monitoring: true, showsNothing: true, summary: "Read the metrics" },
        ({ call }) => {
          gate(call);
          return reply(200, renderMetrics(metrics.families), { "content-type": EXPOSITION_CONTENT_TYPE });
        },
      ),
    );
}

async function isReady(readiness: Readiness): Promise<boolean> {
  return readiness.assertReady().then(
    () => true,
    (error: unknown) => {
      if (error instanceof ApiError) return false;
      throw error;
    },
  );
}

/**
 * The clients that may use the monitoring endpoints, in addition to the operator.
 *
 * - `loopback`: requests that come straight from this machine; everyone reads whether the server is ready, without the reason;
 * - `health`: everyone reads the health, and this machine the metrics;
 * - `operator`: nobody else;
 * - `public`: everyone.
 */
export type MonitoringAccess = "loopback" | "health" | "operator" | "public";

/** Headers that proxies add, and the one of a page in a browser. With any of them a request is someone else's, wherever it comes from. */
const FOREIGN_HEADERS: ReadonlySet<string> = new Set([
  ...["forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "client-ip"],
  ...["x-original-forwarded-for", "x-envoy-external-address", "x-appengine-user-ip", "fly-client-ip"],
  ...["cf-connecting-ip", "cf-ray", "fastly-client-ip", "origin"],
]);
const FORWARDING_PREFIX = "x-forwarded-";

/** The operation that the gate requires if nothing else admits a request. */
const OPERATOR_ONLY = operationOf({
  name: "monitoring",
  access: "operator",
  // Prometheus has a key, and people the console.
  role: null,
  summary: "Read what others may not",
});

/** Decides who may read health and metrics. Everybody else reads what stands at any path that is not there. */
export function monitoringGate(
  access: MonitoringAccess,
  guard: Guard,
  paths: Paths,
): Pick<Monitoring, "gate" | "readsDetails"> {
  const isAdmitted = (call: OpenCall): boolean =>
    admits(access, call.operation.name === "metrics.read", call.request, call.socketAddress) ||
    rejectionBy(() => guard.authorize(guard.authenticate(call), OPERATOR_ONLY)) === null;
  const refusalOf = ({ request }: OpenCall): ApiError => paths.refusal(request.method, pathOf(request.url));
  return {
    gate: (call) => {
      if (!isAdmitted(call)) throw refusalOf(call);
    },
    readsDetails: (call) => {
      if (isAdmitted(call)) return true;
      // A load balancer on another machine needs no more than this.
      if (access === "operator") throw refusalOf(call);
      return false;
    },
  };
}

/** Whether a request to a monitoring endpoint, which may be that of the metrics, is admitted without a key. */
export function admits(
  access: MonitoringAccess,
  isForMetrics: boolean,
  request: Request,
  socketAddress: string | null,
): boolean {
  if (access === "public" || (access === "health" && !isForMetrics)) return true;
  return access !== "operator" && isDirect(request, socketAddress);
}

/**
 * Whether a request comes from this machine, and not through a proxy on it. The requested host must be this
 * machine's too: a page in a browser here can make any name lead to 127.0.0.1, and most proxies pass on the name that
 * they were requested.
 */
function isDirect(request: Request, socketAddress: string | null): boolean {
  if (socketAddress === null || !isLoopback(socketAddress)) return false;
  for (const name of request.headers.keys()) {
    if (FOREIGN_HEADERS.has(name) || name.startsWith(FORWARDING_PREFIX)) return false;
  }
  return isLoopbackName(request.headers.get("host") ?? "");
}
