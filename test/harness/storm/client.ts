import type { Random } from "../crash/random.ts";
import { type Connection, ConnectionLost, type HttpResponse } from "../processes/connection.ts";
import type { Target } from "./target.ts";
import type { Grant, Resource, Witness } from "./witness.ts";

/** State that all clients share. */
export interface Shared {
  readonly target: Target;
  readonly witness: Witness;
  readonly resource: Resource;
  readonly random: Random;
  readonly keys: readonly string[];
  readonly counts: Counts;
  isOver: boolean;
}

/** Number of events other than grants. */
export interface Counts {
  dropped: number;
  timeouts: number;
  rejected: number;
  oversleeps: number;
  refreshes: number;
}

const TTL_MS_MIN = 1_000;
const TTL_MS_SPREAD = 1_000;
const TIMEOUT_MS_MIN = 1_000;
const TIMEOUT_MS_SPREAD = 4_000;
const HOLD_MS_MAX = 10;
const DROP_CHANCE = 0.05;
const DROP_AFTER_MS_MAX = 50;
/** Rare, since no other client gets the lock until the lease expires. */
const OVERSLEEP_CHANCE = 0.003;
const OVERSLEEP_MS = 50;
const REFRESH_CHANCE = 0.1;
const OWN_TOKEN_CHANCE = 0.5;

/** One client: acquires, works and releases; sometimes it hangs up or sleeps too long, as real clients do. */
export class StormClient {
  private readonly shared: Shared;
  private readonly id: number;
  private connection: Connection | null = null;

  constructor(shared: Shared, id: number) {
    this.shared = shared;
    this.id = id;
  }

  /** Runs until {@link Shared.isOver}. */
  async run(): Promise<void> {
    const { shared } = this;
    while (!shared.isOver) {
      await shared.target.ready;
      try {
        await this.useLock();
      } catch (error) {
        this.handleLost(error);
      }
    }
    this.connection?.close();
  }

  /** The open connection, or a new one if the server closed it. */
  private async openConnection(): Promise<Connection> {
    if (this.connection?.usable !== true) this.connection = await this.shared.target.open();
    return this.connection;
  }

  private handleLost(error: unknown): void {
    if (!(error instanceof ConnectionLost)) throw error;
    this.connection = null;
    if (!this.shared.target.isStopping && !this.shared.isOver) {
      this.shared.witness.note(`client ${this.id}: ${error.message}, though the server was up`);
    }
  }

  private async useLock(): Promise<void> {
    const { random, keys, counts, witness, target } = this.shared;
    const key = random.pick(keys);
    const ttl = TTL_MS_MIN + random.below(TTL_MS_SPREAD);
    const timeout = TIMEOUT_MS_MIN + random.below(TIMEOUT_MS_SPREAD);
    const token = random.chance(OWN_TOKEN_CHANCE) ? { token: crypto.randomUUID() } : {};
    const request = target.send(await this.openConnection(), `${key}/acquire`, { ttl, timeout, ...token });
    const response = random.chance(DROP_CHANCE) ? await this.hangUpUnlessFast(request) : await request;
    if (response === null) return;
    if (response.status === 200) await this.hold(grantOf(this.id, response), ttl);
    else if (response.status === 408) counts.timeouts += 1;
    else if (response.status === 503 && target.isStopping) counts.rejected += 1;
    else witness.note(`client ${this.id}: acquire returned ${response.status} ${response.text}`);
  }

  /** Hangs up when the response does not arrive soon. A grant that is in flight then expires. */
  private async hangUpUnlessFast(request: Promise<HttpResponse>): Promise<HttpResponse | null> {
    request.catch(() => {});
    const late = Bun.sleep(this.shared.random.below(DROP_AFTER_MS_MAX)).then(() => null);
    const response = await Promise.race([request, late]);
    if (response !== null) return response;
    this.connection?.close();
    this.connection = null;
    this.shared.counts.dropped += 1;
    return null;
  }

  private async hold(grant: Grant, ttl: number): Promise<void> {
    const { random, counts, witness } = this.shared;
    witness.granted(grant);
    this.write(grant);
    let held = grant;
    if (random.chance(REFRESH_CHANCE)) held = await this.refresh(grant, ttl);
    await Bun.sleep(random.below(HOLD_MS_MAX));
    if (random.chance(OVERSLEEP_CHANCE)) {
      counts.oversleeps += 1;
      await Bun.sleep(Math.max(0, held.expiresAt - Date.now()) + random.below(OVERSLEEP_MS));
    }
    this.write(held);
    witness.releasing(held);
    await this.release(held);
  }

  /** Extends the lease. Resolves to the old grant if the server stops meanwhile. */
  private async refresh(grant: Grant, ttl: number): Promise<Grant> {
    const { target, witness, counts } = this.shared;
    try {
      const response = await target.send(await this.openConnection(), `${grant.key}/acquire`, {
        ttl,
        token: grant.token,
      });
      if (response.status !== 200) {
        witness.note(`client ${this.id}: refresh returned ${response.status} ${response.text}`);
        return grant;
      }
      const after = grantOf(this.id, response);
      witness.refreshed(grant, after);
      counts.refreshes += 1;
      return after;
    } catch (error) {
      this.handleLost(error);
      return grant;
    }
  }

  /** A write within the lease must be accepted. One after it is rejected if another holder has written since. */
  private write(grant: Grant): void {
    const isAccepted = this.shared.resource.write(grant.key, grant.fencingToken);
    if (!isAccepted && Date.now() < grant.expiresAt) {
      this.shared.witness.note(`${grant.key}: the write of holder ${this.id} was rejected within its lease`);
    }
  }

  /** Releases, and repeats it if the server stopped meanwhile: the first request may have been carried out. */
  private async release(grant: Grant): Promise<void> {
    const { target, witness } = this.shared;
    for (let attempt = 0; !this.shared.isOver; attempt += 1) {
      try {
        await target.ready;
        const response = await target.send(await this.openConnection(), `${grant.key}/release`, {
          token: grant.token,
        });
        if (response.status === 200) witness.released(grant);
        const inDoubt = attempt > 0 || Date.now() >= grant.expiresAt;
        if (response.status === 200 || (inDoubt && [403, 404].includes(response.status))) return;
        witness.note(`${grant.key}: release within the lease returned ${response.status}`);
        return;
      } catch (error) {
        this.handleLost(error);
      }
    }
  }
}

function grantOf(client: number, response: HttpResponse): Grant {
  const { key, token, fencing_token, expires_at } = JSON.parse(response.text) as {
    key: string;
    token: string;
    fencing_token: number;
    expires_at: number;
  };
  const requestId = response.headers.get("x-request-id") ?? "";
  return { client, key, token, fencingToken: fencing_token, expiresAt: expires_at, requestId };
}
