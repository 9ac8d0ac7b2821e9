import type { MonitorStatus } from "../../../../client/generated/api.ts";
import { span } from "../../core/format.ts";
import { useCall } from "../../core/resource.ts";
import { go } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import type { Entered, RowOf } from "../../ui/data-form.tsx";
import { DataForm } from "../../ui/form.tsx";
import { SECONDS, TEXT_LINES } from "../../ui/kinds.ts";
import { ALERT_DEFAULTS } from "./alert-fields.tsx";
import { ChannelChoice } from "./channel-choice.tsx";
import { moreFields } from "./monitor-more.tsx";

type MonitorRow = RowOf<"monitors.create"> & RowOf<"monitors.update">;

const INTERVALS = [15_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000];
const TYPES = [
  ["http", "Request a URL"],
  ["tcp", "Connect to a port"],
  ["dns", "Look up DNS records"],
  ["icmp", "Ping a host"],
  ["domain", "Watch the expiry of a domain"],
  ["manual", "Nothing: incidents set its state"],
] as const;
/** TLS of ports, and the labels. */
const TLS = [
  ["", "none"],
  ["direct", "from the start"],
  ["starttls-smtp", "STARTTLS of SMTP"],
  ["starttls-imap", "STARTTLS of IMAP"],
  ["starttls-pop3", "STLS of POP3"],
] as const;
/** How records are compared, and their labels. */
const MATCHES = [
  ["exact", "one is the expected value"],
  ["contains", "one contains the expected value"],
  ["set", "all are exactly the expected values"],
] as const;
const DEFAULTS = {
  type: "http",
  method: "GET",
  record_type: "A",
  match: "exact",
  interval: 60_000,
  timeout: 10_000,
  packets: 3,
  max_loss_percent: 99,
  consecutive_threshold: 1,
  recovery_threshold: 1,
  tls_expiry_days: 14,
  ...ALERT_DEFAULTS,
};

interface MonitorFormProps {
  /** Undefined for a new monitor. */
  readonly of?: MonitorStatus;
  readonly onDone?: () => void;
  readonly onClose: () => void;
}

/** The form of a new or existing monitor. */
export function MonitorForm({ of: monitor, onDone, onClose }: MonitorFormProps) {
  const isNew = monitor === undefined;
  const parents = useParents(monitor);
  const interval = monitor?.interval ?? DEFAULTS.interval;
  const intervals = [...new Set([...INTERVALS, interval])].sort((a, b) => a - b);
  return (
    <DataForm
      title={isNew ? "New monitor" : `Edit ${monitor.name}`}
      submit={isNew ? "Create monitor" : "Save"}
      operation={isNew ? "monitors.create" : "monitors.update"}
      params={{ monitorId: monitor?.monitor_id ?? "" }}
      of={monitor && { ...monitor, name: givenName(monitor) }}
      start={isNew ? DEFAULTS : {}}
      fields={(get) => [
        isNew ? { name: "type", label: "Check", options: TYPES, hint: "" } : null,
        ...(get("type") === "manual" ? MANUAL_FIELDS : checkFields(get, intervals, parents)),
      ]}
      adapt={(body, get) => ({ ...withComparison(body), ...(isNew ? {} : clearedOf(monitor, get)) })}
      onDone={(answer) => {
        if (answer.warning !== undefined) toast(answer.warning);
        else if (!isNew) toast("Monitor updated");
        if ("id" in answer) go(["monitors", answer.id]);
        onDone?.();
      }}
      onClose={onClose}
    />
  );
}

/** What a manual monitor has. */
const MANUAL_FIELDS: readonly MonitorRow[] = [
  { name: "name", required: true, placeholder: "Payments", hint: "As status pages show it." },
  { name: "group", placeholder: "", hint: "" },
];

/** What a monitor has that checks something. */
function checkFields(
  get: Entered,
  intervals: readonly number[],
  parents: readonly (readonly [string, string])[],
): readonly MonitorRow[] {
  const isDomain = get("type") === "domain";
  return [
    ...targetFields(String(get("type")), String(get("match") ?? "")),
    { name: "name", placeholder: "", hint: "Leave empty to use the host." },
    [
      isDomain
        ? null
        : { name: "interval", options: intervals.map((ms) => [String(ms), span(ms)] as const), hint: "" },
      get("type") === "http" ? { name: "method", placeholder: "GET", hint: "" } : null,
      { name: "timeout", kind: SECONDS, required: true, hint: "" },
      { name: "consecutive_threshold", label: "Failures until down", required: true, hint: "" },
    ],
    sendsBody(get) ? { name: "body", rows: 3, mono: true, hint: "" } : null,
    { name: "channels", control: ChannelChoice },
    {
      name: "depends_on",
      options: parents,
      hint: "While the other monitor is down, this one sends no alerts.",
    },
    { more: moreFields(get) },
  ];
}

/** Methods whose requests have no body. */
const WITHOUT_BODY = ["", "GET", "HEAD"];

function sendsBody(get: Entered): boolean {
  return get("type") === "http" && !WITHOUT_BODY.includes(String(get("method") ?? ""));
}

/** Clears what a changed method has no use for: GET and HEAD send no body, and responses to HEAD have none. */
function clearedOf(monitor: MonitorStatus, get: Entered): object {
  const { type, body, keyword, keyword_absent, keywords_all, keywords_any, json_path } = monitor;
  const texts = keyword ?? keyword_absent ?? keywords_all ?? keywords_any ?? json_path;
  const cleared = {
    ...(!sendsBody(get) && body !== null ? { body: null } : {}),
    ...(get("method") === "HEAD" && texts !== null
      ? { keyword: null, keyword_absent: null, keywords_all: null, keywords_any: null, json_path: null }
      : {}),
  };
  return type === "http" ? cleared : {};
}

/** A comparison without a value compares with the empty text. */
function withComparison(body: Record<string, unknown>): object {
  const { json_path: path, json_op: op, json_value: value } = body;
  if (typeof path !== "string" || op === "exists" || (value ?? null) !== null) return body;
  return { ...body, json_value: "" };
}

/** Most monitors in the list of options. */
const PARENTS_SHOWN = 100;

/** The monitors that this one can depend on. */
function useParents(monitor: MonitorStatus | undefined): (readonly [string, string])[] {
  const list = useCall("monitors.list", { query: { limit: PARENTS_SHOWN } });
  const parent = monitor?.depends_on ?? "";
  const others = (list.data?.monitors ?? []).filter(({ monitor_id }) => monitor_id !== monitor?.monitor_id);
  const isKnown = parent === "" || others.some(({ monitor_id }) => monitor_id === parent);
  return [
    ["", "nothing"],
    ...(isKnown ? [] : [[parent, parent] as const]),
    ...others.map(({ monitor_id, name }) => [monitor_id, name] as const),
  ];
}

/** The target of a check, and what counts as up. */
function targetFields(type: string, match: string): readonly MonitorRow[] {
  if (type === "http")
    return [
      {
        name: "url",
        required: true,
        placeholder: "https://example.com/health",
        hint: "A status below 400 counts as up; change it under More.",
      },
    ];
  const host = {
    name: "host",
    required: true,
    placeholder: type === "dns" || type === "domain" ? "example.com" : "db.example.com",
    hint: "",
  } as const;
  if (type === "tcp")
    return [
      [
        host,
        { name: "port", required: true, hint: "" },
        { name: "tls", label: "TLS", options: TLS, hint: "" },
      ],
      {
        name: "keyword",
        label: "Expected text",
        placeholder: "ESMTP",
        hint: "Optional: must appear in what the server sends first.",
      },
    ];
  if (type === "domain")
    return [
      {
        ...host,
        label: "Domain",
        hint: "The registered name, such as example.com. It is checked once a day.",
      },
    ];
  if (type === "icmp")
    return [
      host,
      [
        { name: "packets", label: "Packets", required: true, hint: "" },
        { name: "max_loss_percent", label: "Packets that may be lost (%)", required: true, hint: "" },
      ],
    ];
  return [
    [host, { name: "record_type", hint: "" }],
    { name: "match", label: "Records", options: MATCHES, hint: "" },
    match === "set"
      ? {
          name: "record_values",
          label: "Expected values",
          kind: TEXT_LINES,
          required: true,
          hint: "One per line.",
        }
      : {
          name: "record_value",
          label: "Expected value",
          required: match === "contains",
          hint: match === "contains" ? "" : "Leave empty for any.",
        },
    {
      name: "resolver",
      label: "Name server",
      placeholder: "1.1.1.1:53",
      hint: "Leave empty for those of the server.",
    },
  ];
}

/** The name that the user entered; a monitor without one is named after its host. */
function givenName({ name, type, url, host }: MonitorStatus): string | null {
  return name === (type === "dns" ? host : new URL(url).host) ? null : name;
}
