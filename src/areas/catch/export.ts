import { BULK_STATUSES } from "../../kernel/bulk/bulk.ts";
import {
  type AreaExport,
  asBase64,
  asFlag,
  asJson,
  asName,
  type ExportRow,
} from "../../kernel/projects/account-export.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import { BUCKET_SETTINGS } from "./buckets/buckets.ts";
import { openSettings, settingsView } from "./buckets/settings.ts";
import { EVENT_STATUSES, PROVIDERS } from "./domain.ts";
import { readHeaders } from "./event-headers.ts";
import { eventIdOf } from "./event-ids.ts";
import { decodeProvider } from "./store.ts";

const PROVIDER_NAMES = ["none", ...PROVIDERS];

/** Buckets in an export with their events, and their settings as the API shows them: without secrets. */
export function catchExport({ vault }: { vault: Vault }): AreaExport {
  return {
    ofProject: [
      {
        type: "bucket",
        table: "catch_buckets",
        of: { project_ref: "ref" },
        key: ["ref"],
        id: "id",
        show: {
          provider: asName(PROVIDER_NAMES, 0),
          signing_secret: null,
          live: asFlag,
          pull: asFlag,
          settings: (value, { id, provider }) => {
            const stored = BUCKET_SETTINGS.open(vault, String(id), value as Uint8Array);
            const sender = decodeProvider(Number(provider));
            return settingsView(sender, openSettings(sender, stored));
          },
        },
        more: ({ signing_secret }) => ({ has_signing_secret: signing_secret !== null }),
        contains: [
          {
            type: "event",
            table: "catch_events",
            of: { bucket_ref: "ref" },
            key: ["sequence"],
            show: {
              sequence: null,
              status: asName(EVENT_STATUSES, 0),
              provider: asName(PROVIDER_NAMES, 0),
              verification: asName(["none", "valid", "invalid"], 0),
            },
            more: ({ sequence }) => ({ id: eventIdOf(Number(sequence)) }),
            contains: [
              {
                type: "event_payload",
                table: "catch_payloads",
                of: { sequence: "sequence" },
                key: ["sequence"],
                isLarge: true,
                show: {
                  headers: (value, _, { bucket_id }) => readHeaders(String(value), vault, String(bucket_id)),
                  body: asBase64,
                  upload: null,
                  sha256: (value) =>
                    value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value,
                },
                more: eventId,
                contains: [
                  {
                    type: "event_piece",
                    table: "catch_pieces",
                    of: { upload: "upload" },
                    key: ["number"],
                    isLarge: true,
                    show: { bytes: asBase64 },
                  },
                ],
              },
              {
                type: "event_attempt",
                table: "catch_attempts",
                of: { sequence: "sequence" },
                key: ["number"],
                show: { kind: asName(["forward", "replay"], 0) },
                more: eventId,
              },
            ],
          },
          {
            type: "replay",
            table: "catch_replays",
            of: { bucket_ref: "ref" },
            key: ["replay_id"],
            show: { status: asName(BULK_STATUSES, 1), filters: asJson },
          },
        ],
      },
    ],
  };
}

function eventId({ sequence }: ExportRow): object {
  return { event_id: eventIdOf(Number(sequence)) };
}
