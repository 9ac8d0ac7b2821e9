import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import { canHaveBody, type RequestHeaders, withDefaults } from "../../../kernel/outbound/headers.ts";
import { sealedJson, sealedText } from "../../../kernel/secrets/sealed-column.ts";
import { readsBody } from "../options.ts";
import { failureOf } from "./assertions.ts";
import { withoutCoding } from "./body-text.ts";
import type { CheckedTarget, TargetKind, TargetOutcome } from "./target.ts";

/** Redirects that a check follows. */
const REDIRECTS_MAX = 5;
/** Bytes of the body that a check reads, and as many of what they are decoded to. */
const BODY_BYTES_MAX = 64 * 1024;
const USER_AGENT = "Svc-Pulse/1.0";

/** The headers that checks of a monitor send. */
export const MONITOR_HEADERS = sealedJson<RequestHeaders>("monitor-headers");

/** The keys of the client certificates of monitors. */
export const MONITOR_CLIENT_KEY = sealedText("monitor-tls-client-key");

export const HTTP: TargetKind = { urlOf: ({ url }) => url, check: checkUrl, probeUrlOf: (url) => url };

/** Requests the URL of a monitor, and compares the response with the assertions. */
async function checkUrl(
  outbound: OutboundClient,
  { account, settings, headers, clientKey }: CheckedTarget,
): Promise<TargetOutcome> {
  const { method, url, timeout, body: text, tls_client_certificate: certificate } = settings;
  const body = canHaveBody(method) ? text : null;
  const outcome = await outbound.send({
    account,
    method,
    url,
    headers: headersOf(headers, body),
    body: body === null ? null : Buffer.from(body),
    timeoutMs: timeout,
    bodyBytesMax: BODY_BYTES_MAX,
    keepsBody: readsBody(settings),
    // Schemes are case-insensitive.
    readsCertificate: url.slice(0, "https:".length).toLowerCase() === "https:",
    longerBody: "truncate",
    redirectsMax: REDIRECTS_MAX,
    keepsCookies: true,
    // A check includes connecting.
    reuseConnection: false,
    fallsBackToHttp2: true,
    verifiesTls: settings.tls_verify,
    clientCertificate: certificate === null || clientKey === null ? null : { certificate, key: clientKey },
  });
  if (!outcome.answered) return outcome;
  const response = readsBody(settings) ? await withoutCoding(outcome, BODY_BYTES_MAX) : outcome;
  return { ...outcome, error: failureOf(settings, response) };
}

function headersOf(configured: RequestHeaders | null, body: string | null): RequestHeaders {
  const type: RequestHeaders = body === null ? {} : { "Content-Type": contentTypeOf(body) };
  return withDefaults(configured ?? {}, { "User-Agent": USER_AGENT, Accept: "*/*", ...type });
}

function contentTypeOf(body: string): string {
  try {
    JSON.parse(body);
    return "application/json";
  } catch {
    return "text/plain; charset=utf-8";
  }
}
