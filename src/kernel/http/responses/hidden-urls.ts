import { isExactNumber } from "../../../json-text.ts";
import { type Caller, seesSecretUrls } from "../../callers/caller.ts";
import { Reply, WithJson } from "./response.ts";

/** Fields with an address that accepts what anyone sends to it. */
const CAPABILITIES: ReadonlySet<string> = new Set(["ingest_url"]);
/** Fields with a URL that may contain a token: where deliveries and alerts go. */
const TARGETS: ReadonlySet<string> = new Set(["target_url", "webhook_url"]);
/** Fields in which every URL may: settings of channels and buckets, and both sides of audit entries. */
const SETTINGS: ReadonlySet<string> = new Set(["config", "targets", "before", "after"]);
/** An endpoint's URL is where its deliveries go. */
const ENDPOINT_ID = "endpoint_id";
const HTTP_URL = /^https?:\/\//i;

/**
 * What a caller may see of a response. People who only read, or only respond to incidents, get no URL that gives access to
 * whoever knows it: addresses that accept events are null, and targets end after the host.
 */
export function withoutSecretUrls<T>(value: T, caller: Caller): T {
  return seesSecretUrls(caller) ? value : (hidden(value, false) as T);
}

/** What a caller may see of the result of a handler, as {@link withoutSecretUrls}. Streams and texts are made for their caller. */
export function shownTo(caller: Caller, result: unknown): unknown {
  if (seesSecretUrls(caller)) return result;
  if (!(result instanceof Reply)) return withoutSecretUrls(result, caller);
  const { code, response, headers, isStored } = result;
  const shown =
    response instanceof WithJson
      ? response.of(withoutSecretUrls(response.body, caller))
      : withoutSecretUrls(response, caller);
  return new Reply(code, shown, headers, isStored);
}

/** `isSetting`: whether every URL in it is one that may contain a token. */
function hidden(value: unknown, isSetting: boolean): unknown {
  if (typeof value === "string") return isSetting ? hostOnly(value) : value;
  if (Array.isArray(value)) return value.map((item) => hidden(item, isSetting));
  if (typeof value !== "object" || value === null || isExactNumber(value)) return value;
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  const isEndpoint = ENDPOINT_ID in value;
  const shown = Object.entries(value).map(([name, field]) => {
    if (CAPABILITIES.has(name)) return [name, null];
    const isTarget = TARGETS.has(name) || (isEndpoint && name === "url");
    return [name, hidden(field, isSetting || isTarget || SETTINGS.has(name))];
  });
  return Object.fromEntries(shown);
}

/** A URL up to its host; any other text as it is. */
function hostOnly(text: string): string {
  return HTTP_URL.test(text) ? (URL.parse(text)?.origin ?? "") : text;
}
