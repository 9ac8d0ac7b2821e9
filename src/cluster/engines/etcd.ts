import { errorText, StartupError } from "../../kernel/errors.ts";
import { OutboundClient, type OutboundOverrides } from "../../kernel/outbound/client.ts";
import { type Cancel, realTimeout } from "../../kernel/time/clock.ts";
import {
  CALL_MS_MAX,
  type ClusterNode,
  type CommitLog,
  type EngineErrorKind,
  EngineErrors,
  type EngineSpace,
  EngineUnavailable,
  type Leader,
  type LoggedEntry,
  type LogRange,
  LogTrimmed,
  type NodeReport,
  PlaceTaken,
  unreachable,
} from "../commit-log.ts";
import { EtcdPut } from "./etcd-put.ts";

/** Longest response: a page of entries in base64. */
const RESPONSE_BYTES_MAX = 64 * 1024 * 1024;
/** Longest wait for a page of entries. */
const READ_MS_MAX = 2_000;
/** Entries in a response, each at most 1 MiB in its own value: base64 makes 43 MiB of them. */
const READ_ENTRIES_MAX = 32;
/** A watch is renewed this often, since a broken connection may never be noticed. */
const WATCH_MS = 30_000;
/** Pause before a watch that failed is begun again. */
const WATCH_RETRY_MS = 200;
/** Digits of a sequence number in a key: keys sort like numbers. */
const SEQ_DIGITS = 15;
/** Bytes before the last part of an entry: epoch, number of parts. */
const VALUE_HEADER_BYTES = 6;
/** The first release whose gateway is at `/v3`. */
const VERSION_MIN = "3.4.0";

/** Longest wait for a login: etcd makes the comparison of passwords slow on purpose. */
const LOGIN_MS_MAX = 2_000;
const UNAUTHORIZED = 401;
const QUOTA_METRIC = "etcd_server_quota_backend_bytes ";
/** etcd's own default of `--quota-backend-bytes`. */
const QUOTA_BYTES_DEFAULT = 2 * 1024 ** 3;
/** Statuses of a gateway whose server has no leader, or no connection to it. */
const UNREACHABLE = [502, 503, 504];

/** Where etcd is. */
export interface EtcdAddress {
  /** `http://host:2379`, at least one. */
  readonly endpoints: readonly string[];
  readonly user: { readonly name: string; readonly password: string } | null;
}

interface KeyValue {
  readonly key: string;
  readonly value?: string;
  readonly mod_revision: string;
  /** The lease that the key hangs on. */
  readonly lease?: string;
}

interface RangeResponse {
  readonly header: { readonly revision: string };
  readonly kvs?: readonly KeyValue[];
}

interface TxnResponse {
  readonly succeeded?: boolean;
  readonly responses?: readonly { readonly response_range?: RangeResponse }[];
}

type Json = Readonly<Record<string, unknown>>;

/** A commit log in etcd, through its JSON gateway. All keys of a cell begin with `ninefold/<cell>/`. */
export class EtcdLog implements CommitLog {
  readonly errors = new EngineErrors();
  private readonly client: OutboundClient;
  private readonly puts: EtcdPut;
  /** The endpoint that responded last. */
  private current = 0;
  private lease: string | null = null;
  private token: string | null = null;
  private quota: number | null = null;
  private isClosed = false;

  constructor(
    private readonly address: EtcdAddress,
    private readonly cell: string,
    authorities: OutboundOverrides = {},
  ) {
    this.client = new OutboundClient(["all"], authorities);
    this.puts = new EtcdPut((url) => this.client.openHttp2(url, CALL_MS_MAX));
  }

  async prepare(): Promise<void> {
    try {
      const { version = "0" } = (await this.call("/v3/maintenance/status", {})) as { version?: string };
      if (Bun.semver.order(version, VERSION_MIN) < 0)
        throw new StartupError(`etcd ${version} is too old: ${VERSION_MIN} or later is required.`);
    } catch (error) {
      if (error instanceof StartupError) throw error;
      throw unreachable(error);
    }
  }

  async tryLead(node: ClusterNode, ttlMs: number, epochMin: number): Promise<number | null> {
    const [leaderNow, epochNow] = await this.values("lead", "epoch");
    const holder = readJson<Leader>(leaderNow);
    if (holder !== null && holder.id !== node.id) return null;
    const epoch = Math.max((readJson<number>(epochNow) ?? 0) + 1, epochMin);
    const lease = await this.grant(ttlMs);
    const { succeeded = false } = await this.txn(
      [this.isUnchanged("lead", leaderNow), this.isUnchanged("epoch", epochNow)],
      [this.put("lead", { ...node, epoch }, lease), this.put("epoch", epoch)],
    );
    if (!succeeded) {
      await this.revoke(lease);
      return null;
    }
    this.lease = lease;
    return epoch;
  }

  async renew(node: ClusterNode, epoch: number, ttlMs: number): Promise<boolean> {
    const isAlive = this.lease !== null && (await this.keepAlive(this.lease));
    // Read after the lease was extended: a key that is there now stays as long as the lease it hangs on.
    const [leaderNow, epochNow] = await this.values("lead", "epoch");
    const holder = readJson<Leader>(leaderNow);
    if (readJson<number>(epochNow) !== epoch || (holder !== null && holder.epoch !== epoch)) return false;
    if (isAlive && holder !== null && leaderNow?.lease === this.lease) return true;
    const lease = await this.grant(ttlMs);
    const { succeeded = false } = await this.txn(
      [this.isUnchanged("lead", leaderNow), this.isUnchanged("epoch", epochNow)],
      [this.put("lead", { ...node, epoch }, lease)],
    );
    if (!succeeded) {
      await this.revoke(lease);
      throw new EngineUnavailable("the lease changed while it was renewed");
    }
    this.lease = lease;
    return true;
  }

  async release(_node: ClusterNode, epoch: number): Promise<void> {
    const [leaderNow] = await this.values("lead");
    if (readJson<Leader>(leaderNow)?.epoch !== epoch) return;
    await this.txn(
      [this.isUnchanged("lead", leaderNow)],
      [{ request_delete_range: { key: this.key("lead") } }],
    );
    if (this.lease !== null) await this.revoke(this.lease);
    this.lease = null;
  }

  async leader(): Promise<Leader | null> {
    const [leaderNow] = await this.values("lead");
    return readJson<Leader>(leaderNow);
  }

  async append({ seq, epoch, parts }: LoggedEntry): Promise<void> {
    // Only the last part takes the place: an entry whose leader ended before it was never there.
    for (const [index, part] of parts.slice(0, -1).entries())
      await this.call("/v3/kv/put", { key: this.partKey(seq, epoch, index), value: base64(part) });
    const header = Buffer.alloc(VALUE_HEADER_BYTES);
    header.writeUInt32BE(epoch, 0);
    header.writeUInt16BE(parts.length, 4);
    const bytes = Buffer.concat([header, parts.at(-1) ?? new Uint8Array()]);
    const key = this.entryKey(seq);
    if (await this.putEntry(key, bytes)) return;
    const value = base64(bytes);
    const { succeeded = false, responses = [] } = await this.txn(
      [{ key, target: "CREATE", result: "EQUAL", create_revision: "0" }],
      [{ request_put: { key, value } }],
      [{ request_range: { key } }],
    );
    if (succeeded) return;
    const there = responses[0]?.response_range?.kvs?.[0];
    // The call before was confirmed to nobody.
    if (there !== undefined && bytesOf(there).readUInt32BE(0) === epoch) return;
    throw new PlaceTaken(`another leader has written entry ${seq}`);
  }

  /** Whether the entry has got its place. False: the gateway tells. */
  private async putEntry(key: string, value: Uint8Array): Promise<boolean> {
    try {
      const endpoint = { url: this.endpoint, token: this.token };
      return await this.puts.put(endpoint, Buffer.from(key, "base64"), value);
    } catch {
      this.current += 1;
      return false;
    }
  }

  async read(from: number, max: number): Promise<LoggedEntry[]> {
    const { kvs = [] } = await this.rangeOf(this.entryKey(from), this.entryEnd(), {
      limit: Math.min(max, READ_ENTRIES_MAX),
    });
    const found = kvs.map((kv) => ({ seq: this.seqOf(kv), value: bytesOf(kv) }));
    const entries: LoggedEntry[] = [];
    for (const [index, { seq, value }] of found.entries()) {
      if (seq !== from + index) throw new LogTrimmed(`the log begins at entry ${seq}`);
      const epoch = value.readUInt32BE(0);
      const last = value.subarray(VALUE_HEADER_BYTES);
      const before = value.readUInt16BE(4) - 1;
      entries.push({ seq, epoch, parts: [...(await this.partsOf(seq, epoch, before)), last] });
    }
    return entries;
  }

  async range(): Promise<LogRange | null> {
    const end = (sort_order: string): Json => ({
      request_range: {
        key: this.entryKey(0),
        range_end: this.entryEnd(),
        limit: 1,
        keys_only: true,
        sort_order,
        sort_target: "KEY",
      },
    });
    // At one revision: entries are appended and trimmed meanwhile.
    const { responses = [] } = await this.txn([], [end("ASCEND"), end("DESCEND")]);
    const [first, last] = responses.map(({ response_range }) => response_range?.kvs?.[0]);
    return first === undefined || last === undefined
      ? null
      : { first: this.seqOf(first), last: this.seqOf(last) };
  }

  async space(): Promise<EngineSpace> {
    const status = (await this.call("/v3/maintenance/status", {})) as { readonly dbSizeInUse?: string };
    this.quota ??= await this.readQuota();
    return { used: Number(status.dbSizeInUse ?? 0), quota: this.quota };
  }

  /** Only its metrics say it in all releases. Null: they cannot be read now. */
  private async readQuota(): Promise<number | null> {
    const outcome = await this.client.send({
      ...this.request("/metrics", {}),
      method: "GET",
      body: null,
      timeoutMs: READ_MS_MAX,
    });
    if (!outcome.answered || outcome.status !== 200) return null;
    const lines = Buffer.from(outcome.body).toString("latin1").split("\n");
    const line = lines.find((line) => line.startsWith(QUOTA_METRIC)) ?? QUOTA_METRIC;
    return Number(line.slice(QUOTA_METRIC.length)) || QUOTA_BYTES_DEFAULT;
  }

  async identity(): Promise<string | null> {
    const [found] = await this.values("log");
    return readJson<string>(found);
  }

  async identify(id: string): Promise<string> {
    const { succeeded = false } = await this.txn([this.isUnchanged("log", undefined)], [this.put("log", id)]);
    return succeeded ? id : ((await this.identity()) ?? id);
  }

  watch(from: number, wake: () => void): Cancel {
    let isOver = false;
    const run = async (): Promise<void> => {
      while (!isOver && !this.isClosed) {
        const outcome = await this.client.send({
          ...this.request("/v3/watch", {
            create_request: { key: this.entryKey(from), range_end: this.entryEnd() },
          }),
          timeoutMs: WATCH_MS,
          keepsBody: false,
          longerBody: "truncate",
          onBody: () => {
            if (!isOver) wake();
          },
        });
        // A watch that ends says nothing of what was appended meanwhile.
        if (!isOver) wake();
        if (outcome.answered || outcome.failure.kind !== "timeout") {
          this.current += 1;
          await new Promise<void>((resolve) => realTimeout(WATCH_RETRY_MS, resolve));
        }
      }
    };
    run().catch(() => wake());
    return () => {
      isOver = true;
    };
  }

  async trim(through: number): Promise<void> {
    await this.remove(this.entryKey(0), this.entryKey(through + 1));
    await this.remove(this.key("part/"), this.key(`part/${digits(through + 1)}`));
    const { header } = await this.rangeOf(this.key("epoch"));
    await this.call("/v3/kv/compaction", { revision: header.revision }).catch((error: unknown) => {
      // Another node has compacted further.
      if (!errorText(error).includes("compacted")) throw error;
    });
  }

  async report(node: NodeReport): Promise<NodeReport | null> {
    const { prev_kv } = (await this.call("/v3/kv/put", {
      key: this.key(`node/${node.id}`),
      value: base64(JSON.stringify(node)),
      prev_kv: true,
    })) as { prev_kv?: KeyValue };
    return readJson<NodeReport>(prev_kv);
  }

  async nodes(): Promise<NodeReport[]> {
    const { kvs = [] } = await this.rangeOf(this.key("node/"), this.key("node0"));
    return kvs.map((kv) => JSON.parse(bytesOf(kv).toString("utf8")) as NodeReport);
  }

  async forget(id: string): Promise<void> {
    await this.remove(this.key(`node/${id}`));
  }

  async askToHandOver(epoch: number): Promise<void> {
    await this.call("/v3/kv/put", { key: this.key("asked"), value: base64(JSON.stringify(epoch)) });
  }

  async isAskedToHandOver(epoch: number): Promise<boolean> {
    const [asked] = await this.values("asked");
    return readJson<number>(asked) === epoch;
  }

  async reset(): Promise<void> {
    const all = ["entry/", "part/", "node/"].map((name) => ({
      request_delete_range: { key: this.key(name), range_end: this.key(name.replace("/", "0")) },
    }));
    const single = ["lead", "log"].map((name) => ({ request_delete_range: { key: this.key(name) } }));
    await this.txn([], [...all, ...single]);
  }

  close(): void {
    this.isClosed = true;
    this.puts.close();
    this.client.close();
  }

  private async partsOf(seq: number, epoch: number, count: number): Promise<Uint8Array[]> {
    if (count === 0) return [];
    const { kvs = [] } = await this.rangeOf(this.partKey(seq, epoch, 0), this.partKey(seq, epoch, count));
    if (kvs.length !== count) throw new LogTrimmed(`entry ${seq} is not complete any more`);
    return kvs.map(bytesOf);
  }

  private async grant(ttlMs: number): Promise<string> {
    const { ID } = await this.call("/v3/lease/grant", { TTL: Math.ceil(ttlMs / 1000) });
    return String(ID);
  }

  /** Extends a lease. False: it has expired. */
  private async keepAlive(lease: string): Promise<boolean> {
    const { result } = (await this.call("/v3/lease/keepalive", { ID: lease })) as {
      result?: { readonly TTL?: string };
    };
    return Number(result?.TTL ?? 0) > 0;
  }

  /** Ends a lease that nothing hangs on; if that fails, it expires. */
  private async revoke(lease: string): Promise<void> {
    await this.call("/v3/lease/revoke", { ID: lease }).catch(() => undefined);
  }

  /** The values of several keys at one revision; undefined for a key that does not exist. */
  private async values(...names: string[]): Promise<(KeyValue | undefined)[]> {
    const { responses = [] } = await this.txn(
      [],
      names.map((name) => ({ request_range: { key: this.key(name) } })),
    );
    return names.map((_, index) => responses[index]?.response_range?.kvs?.[0]);
  }

  private isUnchanged(name: string, seen: KeyValue | undefined): Json {
    return { key: this.key(name), target: "MOD", result: "EQUAL", mod_revision: seen?.mod_revision ?? "0" };
  }

  private put(name: string, value: unknown, lease?: string): Json {
    const request = { key: this.key(name), value: base64(JSON.stringify(value)) };
    return { request_put: lease === undefined ? request : { ...request, lease } };
  }

  private async txn(compare: readonly Json[], success: readonly Json[], failure: readonly Json[] = []) {
    return (await this.call("/v3/kv/txn", { compare, success, failure })) as TxnResponse;
  }

  private async rangeOf(key: string, range_end?: string, options: Json = {}): Promise<RangeResponse> {
    const range = range_end === undefined ? { key } : { key, range_end };
    return (await this.call(
      "/v3/kv/range",
      { ...range, ...options },
      READ_MS_MAX,
    )) as unknown as RangeResponse;
  }

  private async remove(key: string, range_end?: string): Promise<void> {
    await this.call("/v3/kv/deleterange", range_end === undefined ? { key } : { key, range_end });
  }

  /** Tries each endpoint once, beginning with the one that responded last. */
  private async call(path: string, body: Json, timeoutMs = CALL_MS_MAX): Promise<Json> {
    let failure = "";
    let kind: EngineErrorKind = "unreachable";
    let mayLogInAgain = true;
    let tries = this.address.endpoints.length;
    while (tries > 0) {
      tries -= 1;
      failure = (await this.logIn()) ?? "";
      if (failure !== "") {
        this.current += 1;
        continue;
      }
      const outcome = await this.client.send({ ...this.request(path, body), timeoutMs });
      if (outcome.answered && outcome.status === 200 && !outcome.truncated) return parsed(outcome.body);
      failure = outcome.answered ? refusalIn(outcome.body, outcome.status) : outcome.failure.message;
      kind = outcome.answered ? kindOf(failure, outcome.status) : "unreachable";
      if (outcome.answered && outcome.status === UNAUTHORIZED && this.token !== null) {
        // The token of a user ends with time, or with a restart of etcd: the same server gives another one.
        this.token = null;
        tries += mayLogInAgain ? 1 : 0;
        mayLogInAgain = false;
      } else this.current += 1;
    }
    throw this.errors.count(new EngineUnavailable(`etcd: ${failure}`, kind));
  }

  /** Gets a token where a user is configured. Returns why there is none. */
  private async logIn(): Promise<string | null> {
    const { user } = this.address;
    if (user === null || this.token !== null) return null;
    const request = this.request("/v3/auth/authenticate", { ...user });
    const outcome = await this.client.send({ ...request, timeoutMs: LOGIN_MS_MAX });
    if (!outcome.answered) return outcome.failure.message;
    if (outcome.status !== 200) return refusalIn(outcome.body, outcome.status);
    this.token = String(parsed(outcome.body)["token"]);
    return null;
  }

  private get endpoint(): string {
    const { endpoints } = this.address;
    return endpoints[this.current % endpoints.length] ?? "";
  }

  private request(path: string, body: Json) {
    return {
      account: null,
      method: "POST",
      url: `${this.endpoint}${path}`,
      headers: {
        "content-type": "application/json",
        ...(this.token === null ? {} : { authorization: this.token }),
      },
      body: Buffer.from(JSON.stringify(body)),
      timeoutMs: CALL_MS_MAX,
      bodyBytesMax: RESPONSE_BYTES_MAX,
      keepsBody: true,
      longerBody: "fail" as const,
      redirectsMax: 0,
      reuseConnection: true,
    };
  }

  private key(name: string): string {
    return base64(`ninefold/${this.cell}/${name}`);
  }

  private entryKey(seq: number): string {
    return this.key(`entry/${digits(seq)}`);
  }

  private entryEnd(): string {
    return this.key("entry0");
  }

  private partKey(seq: number, epoch: number, part: number): string {
    return this.key(`part/${digits(seq)}/${digits(epoch)}/${digits(part)}`);
  }

  private seqOf({ key }: KeyValue): number {
    return Number(Buffer.from(key, "base64").toString("utf8").slice(-SEQ_DIGITS));
  }
}

function digits(value: number): string {
  return String(value).padStart(SEQ_DIGITS, "0");
}

function base64(value: Uint8Array | string): string {
  return Buffer.from(value).toString("base64");
}

function bytesOf({ value = "" }: KeyValue): Buffer {
  return Buffer.from(value, "base64");
}

function readJson<T>(found: KeyValue | undefined): T | null {
  return found === undefined ? null : (JSON.parse(bytesOf(found).toString("utf8")) as T);
}

function kindOf(reason: string, status: number): EngineErrorKind {
  if (reason.includes("database space exceeded")) return "no_space";
  return UNREACHABLE.includes(status) ? "unreachable" : "rejected";
}

function parsed(body: Uint8Array): Json {
  return JSON.parse(Buffer.from(body).toString("utf8")) as Json;
}

function refusalIn(body: Uint8Array, status: number): string {
  try {
    const { message, error } = parsed(body);
    return String(message ?? error);
  } catch {
    return `status ${status}`;
  }
}
