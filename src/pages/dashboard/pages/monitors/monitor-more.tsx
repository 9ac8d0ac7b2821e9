import type { Entered, RowOf } from "../../ui/data-form.tsx";
import { type Kind, MILLISECONDS, SECONDS, SECRET, TEXT_LINES } from "../../ui/kinds.ts";
import { alertFields } from "./alert-fields.tsx";

type MonitorRow = RowOf<"monitors.create"> & RowOf<"monitors.update">;

/** Comparison operators and their labels. */
const OPS = [
  ["==", "is"],
  ["!=", "is not"],
  ["<", "is below"],
  ["<=", "is at most"],
  [">", "is above"],
  [">=", "is at least"],
  ["contains", "contains"],
  ["exists", "exists"],
] as const;

/** How many probes must see a target down, and their labels. */
export const CONFIRM = [
  ["any", "one probe sees it down"],
  ["majority", "most probes see it down"],
  ["all", "all probes see it down"],
] as const;

/** A value as entered: a string needs quotes only where it would be read as another type. */
const LITERAL: Kind = {
  show: (value) => {
    if (value === undefined) return "";
    return typeof value === "string" && typedValue(value) === value ? value : JSON.stringify(value);
  },
  read: typedValue,
  mono: true,
};

function typedValue(typed: string): string | number | boolean | null {
  try {
    const value: unknown = JSON.parse(typed);
    if (value === null || typeof value === "string" || typeof value === "boolean") return value;
    return typeof value === "number" ? value : typed;
  } catch {
    return typed;
  }
}

/** Settings that few monitors need. */
export function moreFields(get: Entered): readonly MonitorRow[] {
  const isHttp = get("type") === "http";
  const isDomain = get("type") === "domain";
  return [
    { name: "group", placeholder: "", hint: "" },
    ...(isHttp ? responseFields(get) : []),
    [
      isDomain
        ? null
        : {
            name: "retry_interval",
            label: "Interval after a failed check",
            kind: SECONDS,
            hint: "Leave empty to keep the normal interval.",
          },
      isDomain
        ? null
        : {
            name: "down_interval",
            label: "Interval while down",
            kind: SECONDS,
            hint: "Leave empty to keep the normal interval.",
          },
      { name: "recovery_threshold", label: "Successes until up", required: true, hint: "" },
      isDomain ? null : { name: "degraded_ms", label: "Slow above", kind: MILLISECONDS, hint: "" },
      hasTls(get)
        ? {
            name: "tls_expiry_days",
            label: "Certificate warning (days before expiry)",
            required: true,
            hint: "0: never.",
          }
        : null,
    ],
    ...(isHttp && hasTls(get) ? tlsFields(get) : []),
    [
      { name: "probes", label: "Checked by", hint: "Names of probes; local is the server." },
      String(get("probes") ?? "").includes(",")
        ? { name: "confirm", label: "Down when", options: CONFIRM, hint: "" }
        : null,
    ],
    (get("degraded_ms") ?? "") === ""
      ? null
      : { name: "notify_degraded", label: "Notify channels when slow" },
    ...alertFields(get),
  ];
}

/** Whether the target may present a certificate. */
function hasTls(get: Entered): boolean {
  if (get("type") === "tcp") return (get("tls") ?? "") !== "";
  return get("type") === "http" && !String(get("url") ?? "").startsWith("http:");
}

/** TLS of requests. */
function tlsFields(get: Entered): readonly MonitorRow[] {
  return [
    { name: "tls_verify", label: "Down if the certificate is not valid" },
    {
      name: "tls_client_certificate",
      label: "Client certificate",
      placeholder: "-----BEGIN CERTIFICATE-----",
      rows: 3,
      mono: true,
      hint: "Optional, PEM: for servers that request one.",
    },
    (get("tls_client_certificate") ?? "") === ""
      ? null
      : {
          name: "tls_client_key",
          label: "Key of the client certificate",
          kind: { ...SECRET, input: {}, rows: 3 },
          hint: "PEM. Leave empty to keep the stored key.",
        },
  ];
}

/** Conditions for a successful check. */
function responseFields(get: Entered): readonly MonitorRow[] {
  const status = {
    name: "accept_status",
    label: "Accepted statuses",
    placeholder: "200-299, 401",
    hint: "Leave empty for all below 400.",
  } as const;
  if (get("method") === "HEAD") return [status];
  const isCompared = (get("json_path") ?? "") !== "";
  return [
    status,
    { name: "keyword", label: "Response contains", hint: "" },
    { name: "keyword_absent", label: "Response does not contain", hint: "" },
    [
      { name: "keywords_all", label: "Response contains all of", kind: TEXT_LINES, hint: "One per line." },
      { name: "keywords_any", label: "Response contains one of", kind: TEXT_LINES, hint: "One per line." },
    ],
    { name: "json_path", label: "JSON path", mono: true, group: "json", hint: "" },
    isCompared
      ? [
          { name: "json_op", label: "Comparison", options: OPS, group: "json", hint: "" },
          get("json_op") === "exists"
            ? null
            : { name: "json_value", label: "Expected value", kind: LITERAL, group: "json", hint: "" },
        ]
      : null,
  ];
}
