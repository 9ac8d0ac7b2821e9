import type { Random } from "../crashes/random.ts";
import { type Answer, type Connection, ConnectionLost } from "../processes/connection.ts";
import type { Target } from "./target.ts";
import type { Grant, Resource, Witness } from "./witness.ts";

/** What all clients share. */
export interface Sea {
  readonly target: Target;
  readonly witness: Witness;
  readonly resource: Resource;
  readonly random: Random;
  readonly keys: readonly string[];
  readonly counts: Counts;
  over: boolean;
}

/** What happened, besides grants. */
export interface Counts {
  dropped: number;
  timeouts: number;
  turnedAway: number;
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
/** Rare, since nobody else gets the lock until the lease has ended. */
const OVERSLEEP_CHANCE = 0.003;
const OVERSLEEP_MS = 50;
const REFRESH_CHANCE = 0.1;
const OWN_TOKEN_CHANCE = 0.5;

/** One client: acquires, works, releases, and misbehaves now and then as real ones do. */
export class StormClient {
  private readonly sea: Sea;
  private readonly id: number;
  private connection: Connection | null = null;

  constructor(sea: Sea, id: number) {
    this.sea = sea;
    this.id = id;
  }

  /** Runs until the storm is over. */
  async run(): Promise<void> {
    const { sea } = this;
    while (!sea.over) {
      await sea.target.ready;
      try {
        await this.once();
      } catch (error) {
        this.lost(error);
      }
    }
    this.connection?.close();
  }

  /** Its connection, or another when the last one ended with the server. */
  private async connected(): Promise<Connection> {
    if (this.connection?.usable !== true) this.connection = await this.sea.target.open();
    return this.connection;
  }

  private lost(error: unknown): void {
    if (!(error instanceof ConnectionLost)) throw error;
    this.connection = null;
    if (!this.sea.target.ending && !this.sea.over) {
      this.sea.witness.note(`client ${this.id}: ${error.message}, though the server was up`);
    }
  }

  private async once(): Promise<void> {
    const { random, keys, counts, witness, target } = this.sea;
    const key = random.pick(keys);
    const ttl = TTL_MS_MIN + random.below(TTL_MS_SPREAD);
    const timeout = TIMEOUT_MS_MIN + random.below(TIMEOUT_MS_SPREAD);
    const token = random.chance(OWN_TOKEN_CHANCE) ? { token: crypto.randomUUID() } : {};
    const asked = target.ask(await this.connected(), `${key}/acquire`, { ttl, timeout, ...token });
    const answer = random.chance(DROP_CHANCE) ? await this.dropUnlessAnswered(asked) : await asked;
    if (answer === null) return;
    if (answer.status === 200) await this.hold(grantOf(this.id, answer), ttl);
    else if (answer.status === 408) counts.timeouts += 1;
    else if (answer.status === 503 && target.ending) counts.turnedAway += 1;
    else witness.note(`client ${this.id}: acquire answered ${answer.status} ${answer.text}`);
  }

  /** Goes away when the answer does not come soon. A grant that is on its way then ends by itself. */
  private async dropUnlessAnswered(asked: Promise<Answer>): Promise<Answer | null> {
    asked.catch(() => {});
    const late = Bun.sleep(this.sea.random.below(DROP_AFTER_MS_MAX)).then(() => null);
    const answer = await Promise.race([asked, late]);
    if (answer !== null) return answer;
    this.connection?.close();
    this.connection = null;
    this.sea.counts.dropped += 1;
    return null;
  }

  private async hold(grant: Grant, ttl: number): Promise<void> {
    const { random, counts, witness } = this.sea;
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

  /** The lease is as it was when the server goes away in the middle. */
  private async refresh(grant: Grant, ttl: number): Promise<Grant> {
    const { target, witness, counts } = this.sea;
    try {
      const answer = await target.ask(await this.connected(), `${grant.key}/acquire`, {
        ttl,
        token: grant.token,
      });
      if (answer.status !== 200) {
        witness.note(`client ${this.id}: refresh answered ${answer.status} ${answer.text}`);
        return grant;
      }
      const after = grantOf(this.id, answer);
      witness.refreshed(grant, after);
      counts.refreshes += 1;
      return after;
    } catch (error) {
      this.lost(error);
      return grant;
    }
  }

  /** A write within the lease must be taken; one after it is refused when another has written since. */
  private write(grant: Grant): void {
    const taken = this.sea.resource.write(grant.key, grant.fencingToken);
    if (!taken && Date.now() < grant.expiresAt) {
      this.sea.witness.note(`${grant.key}: the write of holder ${this.id} was refused within its lease`);
    }
  }

  /** Releases, and does so again when the server went away in the middle: then it may have happened already. */
  private async release(grant: Grant): Promise<void> {
    const { target, witness } = this.sea;
    for (let attempt = 0; !this.sea.over; attempt += 1) {
      try {
        await target.ready;
        const answer = await target.ask(await this.connected(), `${grant.key}/release`, {
          token: grant.token,
        });
        if (answer.status === 200) witness.released(grant);
        const inDoubt = attempt > 0 || Date.now() >= grant.expiresAt;
        if (answer.status === 200 || (inDoubt && [403, 404].includes(answer.status))) return;
        witness.note(`${grant.key}: release within the lease answered ${answer.status}`);
        return;
      } catch (error) {
        this.lost(error);
      }
    }
  }
}

function grantOf(client: number, answer: Answer): Grant {
  const { key, token, fencing_token, expires_at } = JSON.parse(answer.text) as {
    key: string;
    token: string;
    fencing_token: number;
    expires_at: number;
  };
  const requestId = answer.headers.get("x-request-id") ?? "";
  return { client, key, token, fencingToken: fencing_token, expiresAt: expires_at, requestId };
}
