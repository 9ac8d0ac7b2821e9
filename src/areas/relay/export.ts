import { BULK_STATUSES } from "../../kernel/bulk/bulk.ts";
import { type RequestHeaders, withSecretsCovered } from "../../kernel/outbound/headers.ts";
import { secretKeys } from "../../kernel/outbound/signature-schemes.ts";
import {
  type AreaExport,
  asBase64,
  asJson,
  asName,
  asTime,
  asUuid,
  type ExportedTable,
  idLookup,
  type Shown,
} from "../../kernel/projects/account-export.ts";
import type { SealedColumn } from "../../kernel/secrets/sealed-column.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Database } from "../../kernel/storage/database.ts";
import { shownCallbackUrl } from "./deliveries/callback-urls.ts";
import { RELAY_STATUSES } from "./deliveries/schema.ts";
import { RELAY_KINDS } from "./domain.ts";
import { ENDPOINT_STATES } from "./endpoints/schema.ts";
import { coverSealed, SECRET_FIELDS } from "./endpoints/secret-settings.ts";
import { SCHEDULE_HEADERS } from "./schedules/runs.ts";

const OF_PROJECT = { project_ref: "ref" };

const asCallbackUrl: Shown = (url) => shownCallbackUrl(String(url));
const CALLBACK_URLS = { callback_url: asCallbackUrl, failure_callback_url: asCallbackUrl };
const asKind = asName(RELAY_KINDS, 1);
const asTarget: Shown = (url, row, context) =>
  asKind(Number(row["kind"]), row, context) === "callback" ? shownCallbackUrl(String(url)) : url;

/** Opens a signing secret, by its owner. */
type OpenSecret = (ownerRef: number, number: number, sealed: Uint8Array) => string;

/** What deliveries need to be exported. Secrets that the API shows are opened. */
export interface RelayExportDeps {
  readonly db: Database;
  readonly vault: Vault;
  readonly projectSecret: OpenSecret;
  readonly endpointSecret: OpenSecret;
}

/** Deliveries, endpoints, messages and schedules in an export. Values of secret headers are covered, as in the API. */
export function relayExport({ db, vault, projectSecret, endpointSecret }: RelayExportDeps): AreaExport {
  const secrets = (type: string, table: string, open: OpenSecret): ExportedTable => ({
    type,
    table,
    of: { owner_ref: "ref" },
    key: ["number"],
    show: {
      sealed: null,
      number: null,
    },
    more: ({ owner_ref, number, sealed }) => {
      const { text, private: key } = secretKeys(
        open(Number(owner_ref), Number(number), sealed as Uint8Array),
      );
      return key === null ? { secret: text } : { public_key: key.publicText };
    },
  });
  const headers =
    (column: SealedColumn<RequestHeaders>, id: string): Shown =>
    (value, row) =>
      withSecretsCovered(column.open(vault, String(row[id]), value as Uint8Array));
  const endpointSecrets = Object.fromEntries(
    SECRET_FIELDS.map((field): [string, Shown] => [
      field,
      (value, row) => coverSealed(vault, field, String(row["endpoint_id"]), value as Uint8Array),
    ]),
  );
  const endpointId = idLookup(db, "relay_endpoints", "endpoint_id");
  const messageId = idLookup(db, "relay_messages", "message_id");
  const relayId = idLookup(db, "relays", "relay_id", asUuid);
  return {
    ofProject: [
      secrets("relay_secret", "relay_project_secrets", projectSecret),
      {
        type: "endpoint",
        table: "relay_endpoints",
        of: OF_PROJECT,
        key: ["ref"],
        id: "endpoint_id",
        show: {
          terms: asJson,
          metadata: asJson,
          ...endpointSecrets,
          state: asName([...ENDPOINT_STATES, "deleted"], 1),
          failing_since: asTime,
        },
        contains: [secrets("endpoint_secret", "relay_endpoint_secrets", endpointSecret)],
      },
      {
        type: "message",
        table: "relay_messages",
        of: OF_PROJECT,
        key: ["ref"],
        isLarge: true,
        show: { channels: asJson, payload: asJson, scheduled_for: asTime, purge_at: null },
        contains: [
          {
            type: "message_schema_errors",
            table: "relay_message_schema_errors",
            of: { message_ref: "ref" },
            key: ["message_ref"],
            show: { errors: asJson },
          },
          {
            type: "message_order",
            table: "relay_message_order",
            of: { message_ref: "ref" },
            key: ["message_ref"],
          },
        ],
      },
      {
        type: "delivery",
        table: "relays",
        of: OF_PROJECT,
        key: ["status", "ref"],
        isLarge: true,
        id: "relay_id",
        show: {
          relay_id: asUuid,
          monitor_id: asUuid,
          kind: asKind,
          target_url: asTarget,
          status: asName(RELAY_STATUSES, 1),
          // Sealed: the API does not show them either.
          headers: null,
          destination: null,
          body_bytes: asBase64,
          retry_schedule: asJson,
          scheduled_for: asTime,
        },
        more: ({ endpoint_ref, message_ref }) => ({
          endpoint_id: endpointId(endpoint_ref),
          message_id: messageId(message_ref),
        }),
        contains: [
          {
            type: "delivery_attempt",
            table: "relay_attempts",
            of: { relay_ref: "ref" },
            key: ["number"],
            show: { request_headers: asJson, response_headers: asJson, response_body: asBase64 },
          },
          {
            type: "delivery_template",
            table: "relay_delivery_templates",
            of: { relay_ref: "ref" },
            key: ["relay_ref"],
            show: { template: asJson },
          },
          {
            type: "delivery_callback",
            table: "relay_callbacks",
            of: { relay_ref: "ref" },
            key: ["relay_ref"],
            show: { ...CALLBACK_URLS, callback_of: asUuid },
          },
        ],
      },
      {
        type: "event_type",
        table: "relay_event_types",
        of: OF_PROJECT,
        key: ["ref"],
        isLarge: true,
        show: { schema: asJson, example: asJson },
      },
      {
        type: "event_type_invalid",
        table: "relay_event_type_invalid",
        of: OF_PROJECT,
        key: ["name", "hour"],
      },
      {
        type: "portal_link",
        table: "relay_portal_links",
        of: OF_PROJECT,
        key: ["owner_id", "id"],
        show: { token_hash: null, key_digest: null, event_types: asJson },
      },
      {
        type: "delivery_deduplication",
        table: "relay_deduplication",
        of: OF_PROJECT,
        key: ["id"],
        more: ({ relay_ref }) => ({ relay_id: relayId(relay_ref) }),
      },
      {
        type: "resend",
        table: "relay_resends",
        of: OF_PROJECT,
        key: ["resend_id"],
        show: { status: asName(BULK_STATUSES, 1), filters: asJson },
      },
      {
        type: "schedule",
        table: "relay_schedules",
        of: OF_PROJECT,
        key: ["ref"],
        isLarge: true,
        show: {
          headers: headers(SCHEDULE_HEADERS, "schedule_id"),
          payload: asJson,
          retry_schedule: asJson,
          ...CALLBACK_URLS,
        },
      },
    ],
  };
}
