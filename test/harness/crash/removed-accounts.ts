import { join } from "node:path";
import { countFlagsOf } from "./ledger-checks.ts";
import type { Random } from "./random.ts";
import { inParallel } from "./target.ts";
import {
  bodyOf,
  createAccount,
  Recorded,
  settled,
  type Target,
  type TargetRequest,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

/** Longest time of a removal after the restart. */
const REMOVAL_MS = 60_000;
/** Flags of each account: a removal takes several slices. */
const FLAGS = 250;
/** Accounts that are ready to be deleted at the beginning of a round. */
const READY = 2;
/** Connections that make the flags. */
const MAKERS = 8;
/** Probability that a step deletes an account; other steps read its flags. */
const DELETION = 0.1;

interface Made {
  readonly userId: string;
  readonly email: string;
  readonly key: string;
  deletion: "no" | "in doubt" | "acknowledged";
}

/** Deletion of accounts with contents: after a kill in the middle of a removal, the next start completes it. */
export class RemovedAccountWorkload extends Recorded implements Workload {
  readonly name = "removed accounts";
  readonly weight = 1;
  private open: Made[] = [];
  private made = 0;

  prepare(target: Target): Promise<void> {
    return this.makeReady(target);
  }

  async act(target: Target, random: Random): Promise<void> {
    const made = this.open.find(({ deletion }) => deletion === "no");
    if (made === undefined) return;
    if (random.chance(DELETION)) return this.delete(target, made);
    await target.send({ method: "GET", path: "/v1/gate?limit=1", key: made.key });
  }

  async verify(target: Target): Promise<string[]> {
    for (const made of this.open) {
      const again = await target.ask({ method: "GET", path: "/v1/meter/balance", key: made.key });
      if (made.deletion === "in doubt" && again.status === 401) this.counts.happened += 1;
      if (made.deletion === "in doubt" && again.status === 200) made.deletion = "no";
      const expected = made.deletion === "no" ? 200 : 401;
      if (again.status !== expected) this.problem(made, `a request with its key returned ${again.status}`);
      const rows = () => Promise.resolve(countFlagsOf(join(target.folder, "ninefold.db"), made.userId));
      if (made.deletion === "no") {
        const flags = await rows();
        if (flags !== FLAGS) this.problem(made, `is not deleted, and has ${flags} of ${FLAGS} flags`);
        continue;
      }
      const left = await settled(REMOVAL_MS, rows, (count) => count === 0);
      if (left !== 0) this.problem(made, `is deleted, and ${left} of its flags remain`);
    }
    this.open = this.open.filter(({ deletion }) => deletion === "no");
    await this.makeReady(target);
    return this.problems.splice(0);
  }

  private async makeReady(target: Target): Promise<void> {
    while (this.open.length < READY) {
      this.made += 1;
      const email = `removed-${this.made}@example.com`;
      const key = await createAccount(target, email, "unlimited");
      const balance = await target.ask({ method: "GET", path: "/v1/meter/balance", key });
      const names = Array.from({ length: FLAGS }, (_, index) => `f${index}`);
      await inParallel(names, MAKERS, (flag_key) =>
        target.ask({ method: "POST", path: "/v1/gate", key, body: { flag_key, enabled: true } }),
      );
      this.open.push({ userId: String(bodyOf(balance)["user_id"]), email, key, deletion: "no" });
    }
  }

  private async delete(target: Target, created: Made): Promise<void> {
    created.deletion = "in doubt";
    const path = `/v1/admin/accounts/${created.userId}`;
    const deletion: TargetRequest = { method: "DELETE", path, key: target.operatorKey };
    const response = await target.send(deletion);
    if (response === null) {
      this.counts.inDoubt += 1;
      return;
    }
    if (response.status === UNAVAILABLE) {
      created.deletion = "no";
      return;
    }
    this.counts.acknowledged += 1;
    created.deletion = "acknowledged";
    if (response.status !== 202)
      this.problem(created, `unexpected response ${response.status} ${response.text}`);
  }

  private problem({ email }: Made, what: string): void {
    this.problems.push(`account ${email}: ${what}`);
  }
}
