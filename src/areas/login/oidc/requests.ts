import type { CustomFetch } from "openid-client";
import { findExcess, JSON_LEVELS_MAX } from "../../../json-text.ts";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import { REQUEST_TIMEOUT_MS, RESPONSE_BYTES_MAX } from "./domain.ts";

/** Status of a response, which a `Response` can have: of those without a body it cannot have one. */
const NO_BODY: readonly number[] = [204, 205, 304];

/**
 * The requests to a provider, through the guarded client. The operator has named the host of the issuer, so it may be in the own
 * network; other hosts, which the metadata of the provider names, may not.
 */
export function requestsTo(outbound: Pick<OutboundClient, "send">, issuer: string): CustomFetch {
  const { host } = new URL(issuer);
  return async (url, { method, headers, body }) => {
    const rules = new URL(url).host === host ? { ofOperator: true } : { requireHttps: true };
    const outcome = await outbound.send({
      ...rules,
      account: null,
      method,
      url,
      headers: { ...headers },
      body: bytesOf(body),
      timeoutMs: REQUEST_TIMEOUT_MS,
      bodyBytesMax: RESPONSE_BYTES_MAX,
      keepsBody: true,
      longerBody: "fail",
      redirectsMax: 0,
      reuseConnection: false,
    });
    if (!outcome.answered) throw outcome.failure;
    const { status } = outcome;
    const text = Buffer.from(outcome.body).toString("utf8");
    // Parsing very many small values would take long.
    const excess = findExcess(text, JSON_LEVELS_MAX);
    if (excess !== null) throw new Error(`the response has too many ${excess}`);
    const content = NO_BODY.includes(status) ? null : text;
    return new Response(content, { status, headers: { ...outcome.headers } });
  };
}

/** The client sends forms alone. */
function bytesOf(body: Parameters<CustomFetch>[1]["body"]): Uint8Array | null {
  if (body === null || body === undefined) return null;
  if (body instanceof URLSearchParams || typeof body === "string") return Buffer.from(body.toString());
  throw new Error("a request to a provider has a body that is no form");
}
