import type { Bucket } from "../../../../client/generated/api.ts";
import { HOUR_MS } from "../../core/format.ts";
import { serverNow } from "../../core/now.ts";
import type { Entered, RowOf } from "../../ui/data-form.tsx";
import { HOURS, RETRIES, SECRET, WORDS } from "../../ui/kinds.ts";

const MODES = [
  ["mark", "stored, not forwarded"],
  ["reject", "rejected"],
] as const;
const OVERLOAD = [
  ["200", "200: the event is lost"],
  ["429", "429: the sender can retry"],
  ["503", "503: the sender can retry"],
] as const;
/** Hours for which a previous secret is valid, unless others are entered. */
export const PREVIOUS_HOURS = 24;

const FORWARD = [
  [
    { name: "forward.method", label: "Forward the method", hint: "" },
    { name: "forward.path", label: "Forward the path", hint: "" },
    { name: "forward.query", label: "Forward the query", hint: "" },
  ],
  {
    name: "forward.headers",
    label: "Forwarded headers",
    kind: WORDS,
    placeholder: "x-*",
    hint: "Secrets, such as Authorization, only by their full name.",
  },
] as const;
const CHALLENGE = [
  {
    name: "challenge.pointer",
    label: "Challenge: pointer into the body",
    placeholder: "/challenge",
    required: false,
    hint: "",
  },
  {
    name: "challenge.origins",
    label: "Challenge: origins of CloudEvents",
    kind: WORDS,
    placeholder: "eventgrid.azure.net",
    required: false,
    hint: "",
  },
] as const;

/** Settings that few buckets need: accepted requests, retention and responses. A setting without an effect is omitted. */
export function settingsFields(bucket: Bucket, get: Entered): readonly RowOf<"catch.buckets.update">[] {
  return [
    { name: "methods", label: "Accepted methods" },
    [
      { name: "verification_mode", label: "Invalid signatures", options: MODES, hint: "" },
      { name: "invalid_status", label: "Response to them", hint: "" },
    ],
    !bucket.has_signing_secret
      ? null
      : [
          {
            name: "previous_signing_secret",
            label: "Previous secret",
            kind: SECRET,
            hint:
              bucket.previous_expires_at === null
                ? ""
                : `The previous secret is valid until ${bucket.previous_expires_at}.`,
          },
          { name: "$hours", label: "Valid for", kind: HOURS },
        ],
    { name: "overload_status", label: "Response when over the limit", options: OVERLOAD, hint: "" },
    get("$way") === "pull" ? null : { name: "retry_schedule", hint: RETRIES.hint },
    bucket.provider === "sns"
      ? { name: "auto_confirm", label: "Confirm subscriptions automatically", hint: "" }
      : null,
    ...(get("$way") === "pull" ? [] : FORWARD),
    ...(bucket.challenge === null || bucket.challenge.pointer !== undefined || bucket.challenge.origins
      ? [CHALLENGE]
      : []),
    [
      { name: "deduplicate_hours", label: "Deduplication window", kind: HOURS },
      {
        name: "retention_hours",
        label: "Retention",
        kind: HOURS,
        hint: "Leave empty for the maximum of the tier.",
      },
    ],
    [
      {
        name: "response.status",
        label: "Response status",
        required: false,
        hint: "Leave empty for the default JSON response.",
      },
      { name: "response.content_type", label: "Content type" },
    ],
    { name: "response.body", label: "Body", rows: 2, mono: true },
  ];
}

/** The settings of a body, as the API accepts them. */
export function settingsIn(body: Record<string, unknown>, get: Entered, bucket: Bucket | undefined): object {
  return {
    ...("forward" in body ? { forward: filled(body["forward"]) } : {}),
    ...(bucket !== undefined && "challenge" in body
      ? { challenge: challengeOf(body["challenge"], bucket) }
      : {}),
    ...("response" in body ? { response: responseOf(body["response"]) } : {}),
    ...("previous_signing_secret" in body
      ? { previous_expires_at: new Date(serverNow() + Number(get("$hours")) * HOUR_MS).toISOString() }
      : {}),
  };
}

/** The members that say something; null without any. */
function filled(entered: unknown): Readonly<Record<string, unknown>> | null {
  const members = Object.entries((entered ?? {}) as Readonly<Record<string, unknown>>).filter(
    ([, value]) => value === true || (Array.isArray(value) ? value.length > 0 : Boolean(value)),
  );
  return members.length === 0 ? null : Object.fromEntries(members);
}

/** The condition of a challenge stays, which the form does not show. */
function challengeOf(entered: unknown, { challenge }: Bucket): object | null {
  const members = filled(entered);
  const isKept = members !== null && "pointer" in members && challenge?.when !== undefined;
  return isKept ? { ...members, when: challenge.when } : members;
}

/** Without a status, the response is the default one. */
function responseOf(entered: unknown): object | null {
  const response = entered as { readonly status?: number };
  return response.status === undefined ? null : response;
}
