import { createHmac } from "node:crypto";
import type { Answer } from "../support/client.ts";
import type { TestServer } from "../support/server.ts";
import { type Answered, type Asked, ask, receiverUrl } from "./world.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Secrets that are sealed in the folder. */
export const SIGNING_SECRET = "whsec_kept_signing_secret";
export const STORAGE_SECRET = "kept/storage/secret";
/** A header that monitors and deliveries send, also sealed. */
export const SEALED_HEADER = ["x-kept", "sealed header"] as const;

/** Fills a new server through its API, and records what to read later. */
export class Filling {
  readonly keys: Record<string, string> = {};
  readonly things: Record<string, string> = {};
  readonly stored: Answered[] = [];
  private readonly server: TestServer;
  private readonly advance: (ms: number) => Promise<unknown>;

  constructor(server: TestServer, advance: (ms: number) => Promise<unknown>) {
    this.server = server;
    this.advance = advance;
  }

  async run(): Promise<void> {
    this.keys["operator"] = this.server.key;
    await this.accounts();
    await this.projects();
    await this.managedKeys();
    await this.meters();
    await this.flags();
    await this.monitors();
    await this.deliveries();
    await this.buckets();
    await this.chain();
    // Two hours of monitor checks, attempts, settled balances.
    await this.advance(2 * HOUR_MS);
    await this.last();
  }

  private async accounts(): Promise<void> {
    for (const [name, tier] of [
      ["free", "free"],
      ["starter", "starter"],
      ["pro", "pro"],
      ["scale", "scale"],
    ] as const) {
      const created = await this.done("operator", "POST /v1/admin/accounts", {
        email: `${name}@example.com`,
        tier,
      });
      this.keep(name, created.body["api_key"]);
      this.thing(`${name} account`, created.body["user_id"]);
    }
    await this.done("operator", `PATCH /v1/admin/accounts/${this.things["starter account"]}`, {
      suspended: true,
    });
  }

  private async projects(): Promise<void> {
    const shop = await this.done("scale", "POST /v1/projects", { name: "Shop", description: "The shop" });
    this.thing("shop", shop.body["id"]);
    const gone = await this.done("scale", "POST /v1/projects", { name: "Gone" });
    this.thing("gone", gone.body["id"]);
    for (const name of ["shop", "gone"]) {
      const key = await this.done("scale", `POST /v1/projects/${this.things[name]}/keys`, {
        prefix: "sm",
        name: `server of ${name}`,
        scopes: ["*"],
      });
      this.keep(name, key.body["secret"]);
    }
    await this.done("gone", "POST /v1/gate", { flag_key: "of-the-deleted", enabled: true });
    await this.done("gone", "POST /v1/meter/of-the-deleted/refill", { amount: 7 });
  }

  private async managedKeys(): Promise<void> {
    const plain = { prefix: "acme_live", name: "Warehouse", scopes: ["orders:read"] };
    for (const [name, terms] of Object.entries({
      reader: { prefix: "sm", name: "Reader", scopes: ["meter:read", "gate:read"] },
      customer: { ...plain, environment: "live", metadata: { plan: "gold" } },
      rotated: { ...plain, prefix: "acme_test", name: "Rotated" },
      revoked: { ...plain, name: "Revoked" },
      expired: { ...plain, name: "Expired", expires_at: "2026-03-10T13:00:00Z" },
      ending: { ...plain, name: "Ending", expires_at: "2026-06-01T02:00:00+02:00" },
    })) {
      const created = await this.done("scale", "POST /v1/keys", terms);
      this.keep(name, created.body["secret"]);
      this.thing(`key ${name}`, created.body["key_id"]);
      await this.advance(1_000);
    }
    await this.done("scale", `DELETE /v1/keys/${this.things["key revoked"]}`);
    const meta = { ip: "203.0.113.7", user_agent: "curl/8.5" };
    await this.done("scale", "POST /v1/keys/verify", { secret: this.keys["customer"], meta });
    await this.done("operator", "POST /v1/keys", { prefix: "ops", name: "Other's", scopes: ["a"] });
  }

  private async meters(): Promise<void> {
    for (const [as, amount] of [
      ["scale", 1_000],
      ["shop", 500],
      ["free", 50],
    ] as const) {
      await this.done(as, "POST /v1/meter/customer-1/refill", { amount });
      for (let taken = 1; taken <= 5; taken++)
        await this.done(as, "POST /v1/meter/customer-1/deduct", { amount: taken });
    }
    await this.done("scale", "POST /v1/meter/customer-2/reset", { balance: 2 ** 53 - 1 });
    await this.done("scale", "POST /v1/meter/emptied/refill", { amount: 3 });
    await this.done("scale", "POST /v1/meter/emptied/reset", { balance: 0 });
    await this.done("scale", "POST /v1/meter/refill", { amount: 250 });
    await this.done("scale", "POST /v1/meter/deduct", { amount: 50 });
  }

  private async flags(): Promise<void> {
    const description = "Ünïcode, and a 'quote'";
    await this.done("scale", "POST /v1/gate", { flag_key: "new-checkout", enabled: true, description });
    await this.done("scale", "POST /v1/gate", { flag_key: "old_search", enabled: false });
    await this.done("shop", "POST /v1/gate", { flag_key: "new-checkout", enabled: false });
  }

  private async monitors(): Promise<void> {
    const [header, value] = SEALED_HEADER;
    const alerts = { webhook_url: receiverUrl("/alerts"), notify_recovery: true, cooldown_ms: 3_600_000 };
    const well = { url: receiverUrl("/well"), interval: 300_000, headers: { [header]: value } };
    const posting = { method: "POST", body: '{"probe":1}', consecutive_threshold: 2, timeout: 5_000 };
    for (const [name, as, terms] of [
      ["well", "scale", { ...well, ...alerts }],
      ["broken", "scale", { url: receiverUrl("/broken/site"), interval: 300_000, ...alerts, ...posting }],
      ["of the shop", "shop", well],
      ["plain", "free", { url: receiverUrl("/plain"), interval: 300_000 }],
    ] as const) {
      const created = await this.done(as, "POST /v1/pulse", terms);
      this.thing(`monitor ${name}`, created.body["id"]);
    }
    await this.done("free", `PUT /v1/pulse/${this.things["monitor plain"]}`, { active: false });
  }

  private async deliveries(): Promise<void> {
    const [header, value] = SEALED_HEADER;
    const plain = { method: "POST", payload: { number: 1 }, headers: { [header]: value } };
    for (const [name, path, delay] of [
      ["delivered", "/relay/soon", "1s"],
      ["failed", "/broken/relay", "2s"],
      ["waiting", "/relay/later", "3h"],
      ["cancelled", "/relay/never", "1h"],
    ] as const) {
      const created = await this.done("scale", "POST /v1/relay", {
        ...plain,
        target_url: receiverUrl(path),
        delay,
      });
      this.thing(`relay ${name}`, created.body["relay_id"]);
    }
    await this.done("scale", `DELETE /v1/relay/${this.things["relay cancelled"]}`);
  }

  private async buckets(): Promise<void> {
    for (const [name, state, path] of [
      ["live", "live", "/hooks"],
      ["paused", "paused", "/hooks/later"],
      ["failing", "live", "/broken/hooks"],
    ] as const) {
      const created = await this.done("scale", "POST /v1/catch/buckets", {
        target_url: receiverUrl(path),
        provider: "github",
        signing_secret: SIGNING_SECRET,
      });
      this.thing(`bucket ${name}`, created.body["id"]);
      if (state === "live")
        await this.done("scale", `PATCH /v1/catch/buckets/${created.body["id"]}`, { state });
      this.thing(`event ${name}`, await this.event(String(created.body["id"]), name));
      await this.event(String(created.body["id"]), "unsigned", false);
    }
    const bytes = new Uint8Array([0, 255, 128, 10, 13, 0]);
    const path = `/v1/catch/${this.things["bucket paused"]}`;
    await this.server.client(null).post(path, bytes, { headers: { "content-type": "application/x-odd" } });
  }

  private async event(bucketId: string, name: string, signed = true): Promise<string> {
    const body = JSON.stringify({ event: name });
    const { status, body: taken } = await this.server.client(null).post(`/v1/catch/${bucketId}`, body, {
      headers: {
        authorization: "Basic a2VwdDpwYXNzd29yZA==",
        cookie: "session=kept",
        "x-github-event": "push",
        ...(signed ? { "x-hub-signature-256": githubSignature(body) } : {}),
      },
    });
    if (status !== 200 || taken["status"] !== "accepted") throw new Error(`not accepted: ${name}`);
    return String(taken["event_id"]);
  }

  private async chain(): Promise<void> {
    const created = await this.done("scale", "POST /v1/witness/sys/init");
    this.thing("chain", created.body["chain_id"]);
    await this.done("scale", "POST /v1/witness/log", { log: { event: "before the storage" } });
    const storage = { bucket: "kept", region: "eu-kept-1", accessKeyId: "AKIAKEPTKEPTKEPTKEPT" };
    const secretAccessKey = STORAGE_SECRET;
    const good = { endpoint: receiverUrl(""), ...storage, secretAccessKey };
    await this.done("scale", "POST /v1/witness/config", good);
    await this.done("scale", "POST /v1/witness/log", { log: { event: "delivered", amount: 1.5 } });
    await this.done("scale", "POST /v1/witness/config", { ...good, bucket: "broken" });
    await this.done("scale", "POST /v1/witness/log", { log: { event: "buffered", list: [1, null, "ü"] } });
    await this.done("shop", "POST /v1/witness/sys/init");
    await this.done("shop", "POST /v1/witness/log", { log: { event: "of the shop" } });
  }

  /** State that a running clock would remove: grace periods, leases, stored responses, a removal in progress. */
  private async last(): Promise<void> {
    const rotated = await this.done("scale", `POST /v1/keys/${this.things["key rotated"]}/rotate`, {
      grace_hours: 48,
    });
    this.keep("successor", rotated.body["new_secret"]);
    const platform = await this.done("pro", "POST /v1/keys/rotate");
    this.keep("pro successor", platform.body["key"]);
    const lock = await this.done("scale", "POST /v1/latch/invoice:42/acquire", { ttl: 900_000 });
    this.thing("lock token", lock.body["token"]);
    this.thing("fencing token", lock.body["fencing_token"]);
    await this.done("scale", "POST /v1/latch/report/acquire", { ttl: 900_000 });
    const named = { prefix: "acme_live", name: "Stored", scopes: ["a"] };
    await this.store("scale", "POST /v1/meter/customer-1/deduct", "refused", { amount: 1_000_000 });
    await this.store("scale", "POST /v1/meter/customer-1/deduct", "deduct", { amount: 10 });
    await this.store("shop", "POST /v1/meter/customer-1/deduct", "of the shop", { amount: 10 });
    await this.store("scale", "POST /v1/keys", "secret", named);
    await this.store("scale", "POST /v1/witness/log", "log", { log: { event: "stored" } });
    await this.store("scale", `POST /v1/pulse/${this.things["monitor well"]}/check`, "check");
    await this.done("scale", `DELETE /v1/projects/${this.things["gone"]}`);
  }

  private async store(as: string, route: string, idempotencyKey: string, body?: unknown): Promise<void> {
    const asked = { ...request(as, route, body), idempotencyKey };
    const { status, body: answer } = await ask(this.server.url, this.keys, asked);
    this.stored.push({ ...asked, status, answer });
  }

  private async done(as: string, route: string, body?: unknown): Promise<Answer> {
    const asked = request(as, route, body);
    const answer = await ask(this.server.url, this.keys, asked);
    if (answer.status >= 300) throw new Error(`${route} by ${as}: ${answer.status} ${answer.text}`);
    return answer;
  }

  private keep(name: string, key: unknown): void {
    this.keys[name] = String(key);
  }

  private thing(name: string, id: unknown): void {
    this.things[name] = String(id);
  }
}

/** GitHub's signature of a body with the stored secret. */
export function githubSignature(body: string): string {
  return `sha256=${createHmac("sha256", SIGNING_SECRET).update(body).digest("hex")}`;
}

function request(as: string, route: string, body?: unknown): Asked {
  const [method = "", path = ""] = route.split(" ");
  return { as, method, path, ...(body === undefined ? {} : { body }) };
}
