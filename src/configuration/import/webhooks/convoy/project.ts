import type { Draft } from "../../draft.ts";
import { isObject, SourceObject, shown } from "../../source.ts";
import { STATE } from "./fields.ts";

/** Settings of a project without an effect on its endpoints. */
const PROJECT_SETTINGS = [
  ...["max_payload_read_size", "multiple_endpoint_subscriptions", "verify_dynamic_events", "search_policy"],
  ...["allow_unmatched_dynamic_urls", "circuit_breaker", "ssl", "retention_policy", "request_id_header"],
  "is_retention_policy_enabled",
];

/** What all endpoints of a project have. */
export interface Project {
  /** Null for one that endpoints cannot have. */
  readonly signature: Readonly<Record<string, unknown>> | null;
  readonly retries: unknown;
  /** Null for the default. */
  readonly disableAfterHours: number | null;
}

/** Reads a project, or the default settings of one if the value is null. @throws StartupError */
export function projectOf(draft: Draft, value: unknown): Project {
  const project = new SourceObject(draft, "project", value ?? {});
  const config = new SourceObject(draft, "project", project.any("config") ?? {});
  const hasConfig = config.names.length > 0;
  const signature = signatureOf(config);
  if (!hasConfig)
    project.noteChange(
      "signature",
      "is assumed to be X-Convoy-Signature, in hexadecimal: add the project to the file if it has another one",
    );
  const retries = config.any("strategy");
  const isDisabling = config.flag("disable_endpoint");
  const events = config.any("meta_event");
  if (isObject(events) && events["is_enabled"] === true)
    config.note(
      "meta_event",
      "not carried over: endpoints can subscribe to notices, such as ninefold.endpoint.disabled",
    );
  const limit = config.any("ratelimit");
  if (isObject(limit) && Number(limit["count"]) > 0) config.note("ratelimit", "not carried over");
  config.ignore(...PROJECT_SETTINGS);
  config.rest();
  project.ignore(...STATE, "name", "logo_url", "organisation_id", "type", "statistics", "retained_events");
  project.rest();
  return { signature, retries, disableAfterHours: hasConfig && !isDisabling ? 0 : null };
}

/** The signature of endpoints without advanced signatures: the last version signs. */
function signatureOf(config: SourceObject): Project["signature"] {
  const value = config.any("signature");
  if (value === null) return { scheme: "hmac-sha256-hex", header: "X-Convoy-Signature" };
  const signature = new SourceObject(config.draft, "project: signature", value);
  const header = signature.text("header") ?? "X-Convoy-Signature";
  const newest = signature.list("versions").at(-1);
  const version = new SourceObject(config.draft, "project: signature", newest ?? {});
  const [hash, encoding] = [version.text("hash") ?? "SHA256", version.text("encoding") ?? "hex"];
  if (hash === "SHA256" && (encoding === "hex" || encoding === "base64"))
    return { scheme: `hmac-sha256-${encoding}`, header };
  signature.note("hash", `${shown(hash)} is not supported: receivers must verify by Standard Webhooks`);
  return null;
}
