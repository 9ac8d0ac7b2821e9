import type { HttpResponse } from "../processes/connection.ts";
import type { Random } from "./random.ts";
import { inParallel } from "./target.ts";
import { bodyOf, Recorded, type Target, type TargetRequest, UNAVAILABLE, type Workload } from "./workload.ts";

/** Initial balance of accounts; a rotation costs 1. */
const BALANCE = 1_000;
/** Connections that are used for verification. */
const READERS = 8;

/** A requested account and its state. */
interface Made {
  readonly email: string;
  readonly creation: TargetRequest;
  rotation: TargetRequest | null;
  created: "acknowledged" | "in doubt";
  rotated: "no" | "acknowledged" | "in doubt";
  /** Keys that must work: the first one, and after a rotation both. */
  readonly keys: string[];
}

/** Creation of accounts by the operator, and rotation of their keys. */
export class AccountWorkload extends Recorded implements Workload {
  readonly name = "accounts";
  readonly weight = 1;
  private open: Made[] = [];
  private rotatable: Made[] = [];
  private readonly settled = new Set<string>();
  private made = 0;

  /** It creates its accounts in its steps. */
  prepare(): Promise<void> {
    return Promise.resolve();
  }

  async act(target: Target, random: Random): Promise<void> {
    const rotatable = this.rotatable.pop();
    if (rotatable !== undefined && random.chance(0.5)) return this.rotate(target, random, rotatable);
    if (rotatable !== undefined) this.rotatable.push(rotatable);
    return this.create(target, random);
  }

  async verify(target: Target): Promise<string[]> {
    const listed = await this.listEmails(target);
    await inParallel(this.open, READERS, (made) => this.settle(target, made, listed));
    this.compareList(await this.listEmails(target));
    this.open = [];
    this.rotatable = [];
    return this.problems.splice(0);
  }

  private async create(target: Target, random: Random): Promise<void> {
    this.made += 1;
    const email = `account-${this.made}@example.com`;
    const creation: TargetRequest = {
      method: "POST",
      path: "/v1/admin/accounts",
      key: target.operatorKey,
      body: { email, tier: "scale", balance: BALANCE },
      ...(random.chance(0.5) ? { idempotencyKey: email } : {}),
    };
    const created: Made = { email, creation, rotation: null, created: "in doubt", rotated: "no", keys: [] };
    this.open.push(created);
    const response = await target.send(creation);
    this.count(response);
    if (response === null) return;
    if (response.status === UNAVAILABLE) {
      // It was not requested.
      this.open = this.open.filter((stream) => stream !== created);
      return;
    }
    this.takeKey(created, response, 201, "api_key");
    created.created = "acknowledged";
    this.rotatable.push(created);
  }

  private async rotate(target: Target, random: Random, created: Made): Promise<void> {
    const keyed = random.chance(0.5) ? { idempotencyKey: "rotation" } : {};
    created.rotation = { method: "POST", path: "/v1/keys/rotate", key: created.keys[0] ?? "", ...keyed };
    created.rotated = "in doubt";
    const response = await target.send(created.rotation);
    this.count(response);
    if (response === null) return;
    if (response.status === UNAVAILABLE) {
      created.rotation = null;
      created.rotated = "no";
      return;
    }
    this.takeKey(created, response, 200, "key");
    created.rotated = "acknowledged";
  }

  /** Completes an account's record: retries requests in doubt, then reads its state. */
  private async settle(target: Target, created: Made, listed: ReadonlySet<string>): Promise<void> {
    const before = listed.has(created.email);
    if (created.created === "in doubt") {
      if (before) this.counts.happened += 1;
      const response = await target.ask(created.creation);
      // Without an Idempotency-Key a repeat finds the address in use, and the first key is unknown.
      const keyed = created.creation.idempotencyKey !== undefined;
      if (keyed || !before) this.takeKey(created, response, 201, "api_key");
      else if (response.status !== 409) this.problem(created, `was there and made again: ${response.status}`);
    } else if (!before) {
      this.problem(created, "was acknowledged and is lost");
      return;
    }
    this.settled.add(created.email);
    const rotations = await this.settleRotation(target, created);
    await inParallel(created.keys, 1, (key) =>
      this.compareBalance(target, created, key, BALANCE - rotations),
    );
  }

  /** Returns the number of rotations that must have been charged. */
  private async settleRotation(target: Target, created: Made): Promise<number> {
    if (created.rotation === null) return 0;
    if (created.rotated === "acknowledged") return 1;
    const response = await target.ask(created.rotation);
    const keyed = created.rotation.idempotencyKey !== undefined;
    // It was rotated: the calling key is a replaced one, which cannot change keys.
    if (response.status === 403 && !keyed) {
      this.counts.happened += 1;
      return 1;
    }
    if (response.headers.get("idempotent-replayed") === "true") this.counts.happened += 1;
    this.takeKey(created, response, 200, "key");
    return 1;
  }

  private async compareBalance(target: Target, created: Made, key: string, balance: number): Promise<void> {
    const response = await target.ask({ method: "GET", path: "/v1/meter/balance", key });
    if (response.status !== 200)
      this.problem(created, `a request with one of its keys returned ${response.status}`);
    else if (bodyOf(response)["balance"] !== balance) {
      this.problem(created, `has balance ${String(bodyOf(response)["balance"])}, ${balance} would be right`);
    }
  }

  private compareList(listed: ReadonlySet<string>): void {
    for (const email of this.settled) {
      if (!listed.has(email)) this.problems.push(`account ${email}: is gone`);
    }
    for (const email of listed) {
      // Addresses of other forms are the operator's and other workloads'.
      if (email.startsWith("account-") && !this.settled.has(email)) {
        this.problems.push(`account ${email} was not requested`);
      }
    }
  }

  /** The addresses of all accounts. A duplicate is a problem. */
  private async listEmails(target: Target): Promise<Set<string>> {
    const emails = new Set<string>();
    let cursor = "";
    for (;;) {
      const path = `/v1/admin/accounts?limit=100${cursor}`;
      const response = await target.ask({ method: "GET", path, key: target.operatorKey });
      const page = bodyOf(response) as { accounts: { email: string }[]; cursor?: string };
      for (const { email } of page.accounts) {
        if (emails.has(email)) this.problems.push(`account ${email}: is there twice`);
        emails.add(email);
      }
      if (page.cursor === undefined) return emails;
      cursor = `&cursor=${encodeURIComponent(page.cursor)}`;
    }
  }

  private takeKey(created: Made, response: HttpResponse, status: number, member: string): void {
    if (response.status === status) created.keys.push(String(bodyOf(response)[member]));
    else this.problem(created, `unexpected response ${response.status} ${response.text}`);
  }

  private count(response: HttpResponse | null): void {
    if (response === null) this.counts.inDoubt += 1;
    else if (response.status !== UNAVAILABLE) this.counts.acknowledged += 1;
  }

  private problem(created: Made, what: string): void {
    this.problems.push(`account ${created.email}: ${what}`);
  }
}
