import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  RecordedOfAccount,
  settled,
  type Target,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

/** Changes of each flag. */
const CHANGES = 3;
/** The first one applies so much later than its save, and each further one so much after the one before. */
const FIRST_MS = 60;
const STEP_MS = 60;
/** Flags of a round: each is read and deleted after it. */
const FLAGS_MAX = 100;
/** How long a restarted server may take for what it missed. */
const APPLIED_WITHIN_MS = 20_000;

interface Entry {
  readonly actor: { readonly type: string; readonly id?: string };
  readonly after: { readonly metadata?: { readonly step?: number } } | null;
}

/** Flags with scheduled changes: after every crash each has been applied once, in its order, with one entry of the audit log. */
export class ScheduledFlagWorkload extends RecordedOfAccount implements Workload {
  readonly name = "scheduled flags";
  readonly weight = 1;
  private keys: string[] = [];
  private sent = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "scheduled-flags@example.com", "unlimited");
  }

  async act(target: Target, random: Random): Promise<void> {
    if (this.keys.length >= FLAGS_MAX) return;
    this.sent += 1;
    const flag_key = `scheduled-${this.sent}`;
    const first = Date.now() + FIRST_MS + random.below(STEP_MS);
    const scheduled = Array.from({ length: CHANGES }, (_, step) => ({
      at: new Date(first + step * STEP_MS).toISOString(),
      set: { metadata: { step } },
    }));
    const body = { flag_key, enabled: true, scheduled };
    const response = await target.send({ method: "POST", path: "/v1/gate", key: this.key, body });
    // A save that arrived too late is rejected.
    if (response?.status === UNAVAILABLE || response?.status === 400) return;
    if (response === null) {
      this.counts.inDoubt += 1;
      return;
    }
    this.counts.acknowledged += 1;
    if (response.status === 201) this.keys.push(flag_key);
    else this.problems.push(`${flag_key}: its save got ${response.status} ${response.text}`);
  }

  async verify(target: Target): Promise<string[]> {
    for (const key of this.keys.splice(0)) {
      await this.verifyFlag(target, key);
      await this.ask(target, "DELETE", `/v1/gate/${key}`);
    }
    return this.problems.splice(0);
  }

  private async verifyFlag(target: Target, key: string): Promise<void> {
    const read = () => this.ask(target, "GET", `/v1/gate/${key}/definition`);
    const { scheduled, metadata } = await settled(
      APPLIED_WITHIN_MS,
      read,
      (flag) => (flag["scheduled"] as unknown[]).length === 0,
    );
    const shown = JSON.stringify({ scheduled, metadata });
    if (shown !== JSON.stringify({ scheduled: [], metadata: { step: CHANGES - 1 } }))
      this.problems.push(`${key}: is ${shown}`);
    const path = `/v1/audit?target_type=flag&target_id=${key}`;
    const response = await target.ask({ method: "GET", path, key: this.key });
    const entries = (bodyOf(response)["entries"] as Entry[]).filter(({ actor }) => actor.type === "schedule");
    const steps = entries.map(({ after }) => after?.metadata?.step).reverse();
    const ids = new Set(entries.map(({ actor }) => actor.id));
    if (ids.size !== CHANGES || steps.join() !== Array.from({ length: CHANGES }, (_, step) => step).join())
      this.problems.push(`${key}: its entries are ${JSON.stringify(steps)}`);
  }
}
