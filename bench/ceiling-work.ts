import { generateKeyPairSync, hash, sign } from "node:crypto";
import { eventIdOf } from "../src/areas/catch/event-ids.ts";
import { uuidToBytes } from "../src/kernel/data/uuid.ts";
import type { Kernel } from "../src/kernel/kernel.ts";
import { laneName } from "../src/kernel/scheduler/dispatcher.ts";
import type { Tx } from "../src/kernel/storage/tx.ts";
import { createNativeCrypto } from "../src/verify/native.ts";
import { chainHashOf } from "../src/verify/receipt.ts";
import { RESPONSES } from "./responses.ts";

/** A request whose key was verified. */
export interface IncomingRequest {
  readonly parts: readonly string[];
  readonly headers: Headers;
  readonly body: Buffer;
  readonly id: string;
}

/** Writes the rows of a request, one or as many as Ninefold writes for it, and returns the response body. */
export type Work = (tx: Tx, incoming: IncomingRequest) => object | string;

type Value = string | number | null | Uint8Array;
type Db = Kernel["db"];

/** References of the only account, project, bucket and chain. */
const REF = 1;
const METER_BALANCE = 1_000_000_000;
const LOCK_TTL_MS = 30_000;
const HOUR_MS = 3_600_000;

/** What the requests of each row do, by the part of the path that names the area. */
export function ceilingWork(db: Db): Readonly<Record<string, Work>> {
  return {
    meter: meter(db),
    latch: lock(db),
    relay: relay(db),
    catch: ingest(db),
    witness: receipt(db),
    ping: ping(db),
  };
}

function insertion(db: Db, table: string, columns: string) {
  const marks = columns.split(",").map(() => "?");
  return db.change<Value[]>(`INSERT INTO ${table} (${columns}) VALUES (${marks.join(",")})`);
}

function largest(db: Db, column: string, table: string): number {
  return db.number(`SELECT max(${column}) AS n FROM ${table}`)();
}

function parsed<T>(body: Buffer): T {
  return JSON.parse(body.toString("utf8")) as T;
}

const ENTRY = "sequence,meter_ref,previous,kind,amount,balance_after,at,request_id";

/** Deductions, and holds with their captures. */
function meter(db: Db): Work {
  const insert = insertion(db, "meter_entries", ENTRY);
  const hold = holding(db);
  const meters = new Map<string, Meter>();
  let sequence = largest(db, "sequence", "meter_entries");
  return (tx, incoming) => {
    const { parts, body, id } = incoming;
    const [, , name = "", action] = parts;
    let meter = meters.get(name);
    if (meter === undefined) {
      meter = { name, ref: meters.size + 1, balance: METER_BALANCE, last: 0 };
      meters.set(name, meter);
    }
    if (action === "holds" && parts[4] === undefined) return hold.create(tx, meter, incoming);
    const { amount } = parsed<{ amount: number }>(body);
    meter.balance -= amount;
    sequence += 1;
    const previous = meter.last;
    meter.last = sequence;
    const request = uuidToBytes(id);
    if (action === "holds") return hold.capture(tx, meter, incoming, { sequence, previous, amount, request });
    insert(tx, sequence, meter.ref, previous, 1, -amount, meter.balance, tx.now, request);
    return RESPONSES.meter(name, meter.balance);
  };
}

interface Meter {
  readonly name: string;
  readonly ref: number;
  balance: number;
  last: number;
}

interface Taken {
  readonly sequence: number;
  readonly previous: number;
  readonly amount: number;
  readonly request: Uint8Array;
}

function holding(db: Db) {
  const insert = insertion(
    db,
    "meter_holds",
    "ref,project_ref,meter_ref,hold_id,status,requested,at_most,amount,captured,shortfall,created_at,expires_at",
  );
  const end = db.change<[number, number, number, string]>(
    "UPDATE meter_holds SET status = 2, captured = ?, asked = ?, ended_at = ? WHERE project_ref = 1 AND hold_id = ?",
  );
  const capture = insertion(db, "meter_entries", `${ENTRY},hold_id`);
  let ref = largest(db, "ref", "meter_holds");
  return {
    create(tx: Tx, { ref: meter, name, balance }: Meter, { body }: IncomingRequest): object {
      const { amount, hold_id } = parsed<{ amount: number; hold_id: string }>(body);
      ref += 1;
      insert(tx, ref, REF, meter, hold_id, 1, amount, 0, amount, 0, 0, tx.now, tx.now + HOUR_MS);
      return RESPONSES.hold(name, hold_id, balance);
    },
    capture(
      tx: Tx,
      meter: Meter,
      { parts }: IncomingRequest,
      { sequence, previous, amount, request }: Taken,
    ): object {
      const { name, ref: of, balance } = meter;
      const id = parts[4] ?? "";
      end(tx, amount, amount, tx.now, id);
      capture(tx, sequence, of, previous, 4, -amount, balance, tx.now, request, id);
      return RESPONSES.hold(name, id, balance, amount);
    },
  };
}

function lock(db: Db): Work {
  const insert = insertion(db, "locks", "fencing_token,project_ref,key,token,expires_at");
  const remove = db.change<[number]>("DELETE FROM locks WHERE fencing_token = ?");
  const held = new Map<string, number>();
  let fencing = largest(db, "fencing_token", "locks");
  return (tx, { parts: [, , key = "", action], body }) => {
    const { token } = parsed<{ token: string }>(body);
    if (action === "release") {
      remove(tx, held.get(key) ?? 0);
      held.delete(key);
      return RESPONSES.released;
    }
    fencing += 1;
    held.set(key, fencing);
    insert(tx, fencing, REF, key, token, tx.now + LOCK_TTL_MS);
    return RESPONSES.acquired(key, token, fencing, tx.now + LOCK_TTL_MS);
  };
}

function relay(db: Db): Work {
  const insert = insertion(
    db,
    "relays",
    "ref,relay_id,account_ref,project_ref,kind,status,target_url,method,body,attempts,scheduled_for,created_at",
  );
  const enqueue = insertion(db, "jobs", "id,kind,key,due_at,lane,payload,attempt");
  let ref = largest(db, "ref", "relays");
  let job = largest(db, "id", "jobs");
  return (tx, { body, id }) => {
    const sent = parsed<{ target_url: string; method: string; payload: object }>(body);
    const at = tx.now + HOUR_MS;
    const { target_url, method, payload } = sent;
    ref += 1;
    job += 1;
    const text = JSON.stringify(payload);
    insert(tx, ref, uuidToBytes(id), REF, REF, 1, 1, target_url, method, text, 0, at, tx.now);
    enqueue(tx, job, "relay.deliver", null, at, laneName(REF, new URL(target_url).host), `${ref}`, 0);
    return RESPONSES.relay(id, at);
  };
}

function ingest(db: Db): Work {
  const insertPayload = insertion(db, "catch_payloads", "sequence,headers,body,remote_address");
  const columns =
    "bucket_ref,sequence,status,provider,verification,received_at,attempts,error,payload_bytes,event_type,provider_event_id";
  const insert = insertion(db, "catch_events", columns);
  let sequence = largest(db, "sequence", "catch_payloads");
  return (tx, { headers, body }) => {
    const { id, type } = parsed<{ id: string; type?: string }>(body);
    sequence = Math.max(sequence + 1, tx.now * 1024);
    insertPayload(tx, sequence, JSON.stringify(headers.toJSON()), body, "127.0.0.1");
    insert(tx, REF, sequence, 0, 1, 1, tx.now, 0, null, body.length, type ?? null, id);
    return RESPONSES.event(eventIdOf(sequence));
  };
}

/** The row of its check: the states of monitors are written later, many pings at a time. */
function ping(db: Db): Work {
  const columns = "sequence,monitor_ref,previous,checked_at,up,manual,latency_ms,response_status,error,mark";
  const insert = insertion(db, "monitor_checks", columns);
  const monitors = new Map<string, { readonly ref: number; last: number }>();
  let sequence = largest(db, "sequence", "monitor_checks");
  return (tx, { parts: [, id = ""] }) => {
    const monitor = monitors.get(id) ?? { ref: monitors.size + 1, last: 0 };
    monitors.set(id, monitor);
    sequence += 1;
    insert(tx, sequence, monitor.ref, monitor.last, tx.now, 1, 0, 0, null, null, 0);
    monitor.last = sequence;
    return RESPONSES.pinged;
  };
}

/** The receipt is hashed and signed. */
function receipt(db: Db): Work {
  const insert = insertion(db, "receipts", "chain_ref,sequence,at,chain_hash,signature,log");
  const { privateKey } = generateKeyPairSync("ed25519");
  const crypto = createNativeCrypto();
  let sequence = largest(db, "sequence", "receipts");
  let last: Uint8Array = new Uint8Array(32);
  return (tx, { body }) => {
    const { log } = parsed<{ log: object }>(body);
    const text = JSON.stringify(log);
    const contentHash = hash("sha256", text, "buffer");
    const before = last;
    sequence += 1;
    last = chainHashOf(crypto, before, BigInt(sequence), contentHash);
    const signature = sign(null, last, privateKey);
    insert(tx, REF, sequence, tx.now, last, signature, text);
    return RESPONSES.receipt(log, {
      sequence_id: `${sequence}`,
      content_hash: contentHash.toHex(),
      prev_hash: before.toHex(),
      chain_hash: last.toHex(),
      signature: signature.toHex(),
      timestamp: tx.now,
    });
  };
}
