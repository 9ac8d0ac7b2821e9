// Fills a data folder with managed keys: bun fill-keys.ts FOLDER EMAIL COUNT
// Their secrets are derived from their numbers (key-secrets.ts), so that the load generator knows them.
import { keyStore } from "../src/areas/keys/store.ts";
import { keyDigest } from "../src/kernel/secrets/key-format.ts";
import type { Tx } from "../src/kernel/storage/tx.ts";
import { defaultProjectOf, endFilling, openForFilling } from "./filling.ts";
import { FIRST_CREATED_AT, PREFIX, secretOf } from "./key-secrets.ts";

/** Keys created in one unit of work. */
const SLICE = 5_000;

const [folder = "", email = "", count = "0"] = process.argv.slice(2);
const kernel = openForFilling(folder);
const { db, writer, ids } = kernel;
const account = defaultProjectOf(kernel, email);
const store = keyStore(db);

function fill(tx: Tx, from: number, end: number, accountRef: number): void {
  for (let number = from; number < end; number += 1) {
    const secret = secretOf(number);
    store.insert(tx, {
      ref: number + 1,
      id: ids.bytes(16),
      account_ref: accountRef,
      project_ref: null,
      project_id: null,
      digest: keyDigest(secret),
      prefix: PREFIX,
      last4: secret.slice(-4),
      name: `Key ${number}`,
      scopes: '["orders:read"]',
      environment: null,
      metadata: null,
      created_at: FIRST_CREATED_AT + number,
      expires_at: null,
      owner_id: null,
      meter_id: null,
      enabled: 1,
      ratelimits: null,
      allowed_ips: null,
      allowance_ref: null,
      managed_by: null,
      created_by: null,
      holder: null,
      permissions: null,
      roles: null,
    });
  }
}

const total = Number(count);
for (let from = 0; from < total; from += SLICE) {
  await writer.submit((tx) => fill(tx, from, Math.min(total, from + SLICE), account.accountRef));
  // Yields to the event loop, so that checkpoints continue.
  await Bun.sleep(0);
}
endFilling(kernel);
