import { CONCURRENCY_MAX } from "../../../../areas/relay/endpoints/schema.ts";
import { MINUTE_MS } from "../../../../kernel/time/units.ts";
import { type Draft, Secret } from "../../draft.ts";
import { SourceObject, shown } from "../../source.ts";
import { basicAuthorization, perSecondOf, SECRET_FORM, secretHeader, timeoutOf } from "../endpoints.ts";

/** Timeout of requests of Hookdeck. */
const TIMEOUT_MS = MINUTE_MS;
/** Seconds of the periods of rates. */
const PERIODS: Readonly<Record<string, number>> = { second: 1, minute: 60, hour: 3_600 };
const SIGNATURE_HEADER = "X-Hookdeck-Signature";

/** What a bucket forwards beside the body. */
export interface Forward {
  readonly method: boolean;
  readonly path: boolean;
  readonly query: boolean;
  readonly headers: readonly string[];
}

/** A destination before its connections. */
export interface Destination {
  readonly source: SourceObject;
  readonly name: string;
  readonly values: Readonly<Record<string, unknown>>;
  readonly forward: Forward;
  /** Whether the receiver would get what it does not expect. */
  readonly isHeld: boolean;
}

/** Reads a destination; null for one that is no URL. @throws StartupError */
export function destinationOf(draft: Draft, value: unknown, state: readonly string[]): Destination | null {
  const source = new SourceObject(draft, "destination", value);
  const name = source.text("name") ?? source.text("id") ?? "destination";
  source.label = `destination ${shown(name)}`;
  const type = source.text("type") ?? "HTTP";
  if (type !== "HTTP") {
    const instead = type === "CLI" ? ": use ninefold listen" : "";
    source.noteLoss("type", `${shown(type)} is not carried over${instead}`);
    return null;
  }
  const config = new SourceObject(draft, source.label, source.any("config") ?? {}, "destination");
  const method = config.text("http_method");
  if (method !== null && method !== "POST")
    config.note("http_method", `${shown(method)} is not supported: POST is sent`);
  const url = config.text("url");
  const authentication = authenticationOf(config, url);
  const values = {
    url: authentication.url,
    description: source.text("description"),
    timeout_ms: timeoutOf(source, "timeout", TIMEOUT_MS),
    ...rateOf(config),
    // Hookdeck disables no destination.
    disable_after_hours: 0,
    headers: authentication.headers,
    signature: { scheme: "hmac-sha256-base64", header: authentication.header },
    secret: authentication.secret,
    state: source.text("disabled_at") === null ? null : "paused",
  };
  const isPathKept = !config.flag("path_forwarding_disabled");
  config.ignore("auth", "auth_type");
  config.rest();
  source.ignore(...state);
  source.rest();
  return {
    source,
    name,
    values,
    forward: { method: method === null, path: isPathKept, query: isPathKept, headers: ["*"] },
    isHeld: !authentication.isWhole || (method !== null && method !== "POST"),
  };
}

function rateOf(config: SourceObject): Readonly<Record<string, number>> {
  const rate = config.number("rate_limit");
  const period = config.text("rate_limit_period") ?? "second";
  if (rate === null) return {};
  if (period === "concurrent") {
    const limited = Math.min(Math.max(Math.floor(rate), 1), CONCURRENCY_MAX);
    if (limited !== rate) config.noteChange("rate_limit", `is ${limited} at a time`);
    return { max_concurrency: limited };
  }
  return { max_per_second: perSecondOf(config, "rate_limit", rate, PERIODS[period] ?? 1) };
}

interface Authentication {
  readonly url: Secret | string | null;
  readonly headers: Readonly<Record<string, Secret>> | null;
  /** Header of the signature. */
  readonly header: string;
  readonly secret: Secret;
  /** Whether requests carry all that the receiver expects. */
  readonly isWhole: boolean;
}

function authenticationOf(config: SourceObject, url: string | null): Authentication {
  const plain = {
    url,
    headers: null,
    header: SIGNATURE_HEADER,
    // That of the project, which the API does not return.
    secret: Secret.unknown(SECRET_FORM),
    isWhole: true,
  };
  const type = config.text("auth_type") ?? "HOOKDECK_SIGNATURE";
  const value = config.any("auth");
  const auth = new SourceObject(config.draft, config.label, value ?? {}, "destination");
  if (type === "HOOKDECK_SIGNATURE") return plain;
  if (type === "CUSTOM_SIGNATURE") {
    const secret = auth.text("signing_secret");
    config.noteChange("auth", "is a signature in base64: compare one with what your receiver expects");
    return {
      ...plain,
      header: auth.text("key") ?? SIGNATURE_HEADER,
      secret: secret === null ? plain.secret : new Secret(secret),
    };
  }
  if (type === "BEARER_TOKEN") {
    const token = auth.text("token");
    return { ...plain, headers: secretHeader("Authorization", token === null ? null : `Bearer ${token}`) };
  }
  if (type === "BASIC_AUTH") {
    const [name, password] = [auth.text("username"), auth.text("password")];
    const text = name === null ? null : basicAuthorization(name, password ?? "");
    return { ...plain, headers: secretHeader("Authorization", text) };
  }
  if (type === "API_KEY") {
    const [key, secret] = [auth.text("key") ?? "Authorization", auth.text("api_key")];
    if (auth.text("to") !== "query") return { ...plain, headers: secretHeader(key, secret) };
    return { ...plain, url: withQuery(url, key, secret) };
  }
  config.note("auth", `${shown(type)} is not supported`);
  return { ...plain, isWhole: false };
}

/** A URL with a key in its query is a secret. */
function withQuery(text: string | null, name: string, secret: string | null): Secret | null {
  const url = text === null ? null : URL.parse(text);
  if (url === null) return null;
  url.searchParams.append(name, secret ?? "");
  return new Secret(url.href, secret !== null);
}
