import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  RecordedOfAccount,
  type Target,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const FLAGS = 12;
/** Share of the proposals that are rejected. */
const REJECTED = 0.3;
/** Proposals of a flag between two verifications: their entries are on one page of the audit log. */
const PROPOSALS_MAX = 40;
const APPLY_ACTION = "gate.proposals.approve";

type Decision = "approve" | "reject";

/** A flag, the number that its last applied proposal has written into it, and the numbers of this round. */
class Flag {
  number = 0;
  applied: number[] = [];
  /** A decision without a response. */
  doubt: { readonly number: number; readonly proposalId: string; readonly decision: Decision } | null = null;
  /** Proposals since the last verification. */
  proposed = 0;
  isBusy = false;

  constructor(readonly key: string) {}
}

interface Entry {
  readonly action: string;
  readonly after: { readonly metadata?: { readonly number?: number } } | null;
}

/** Proposals that are approved or rejected: after every crash each approved one is applied once, with one entry of the audit log, and no other is. */
export class ProposalWorkload extends RecordedOfAccount implements Workload {
  readonly name = "proposals";
  readonly weight = 2;
  private readonly flags = Array.from({ length: FLAGS }, (_, index) => new Flag(`proposed-${index}`));
  private proposer = "";
  private sent = 0;
  /** The number of the last proposal before the last verification. */
  private verified = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "proposals@example.com", "unlimited");
    const key = { prefix: "sm", name: "proposer", scopes: ["gate:*"] };
    this.proposer = String((await this.ask(target, "POST", "/v1/keys", key))["secret"]);
    for (const { key: flag_key, number } of this.flags)
      await this.ask(target, "POST", "/v1/gate", { flag_key, enabled: true, metadata: { number } });
  }

  async act(target: Target, random: Random): Promise<void> {
    const flag = random.pick(this.flags);
    const decision = random.chance(REJECTED) ? "reject" : "approve";
    if (flag.isBusy || flag.doubt !== null || flag.proposed >= PROPOSALS_MAX) return;
    flag.proposed += 1;
    flag.isBusy = true;
    await this.change(target, flag, decision);
    flag.isBusy = false;
  }

  async verify(target: Target): Promise<string[]> {
    for (const flag of this.flags) await this.verifyFlag(target, flag);
    this.verified = this.sent;
    return this.problems.splice(0);
  }

  private async change(target: Target, flag: Flag, decision: Decision): Promise<void> {
    this.sent += 1;
    const number = this.sent;
    const path = `/v1/gate/${flag.key}/proposals`;
    const body = { metadata: { number } };
    const proposed = await target.send({ method: "POST", path, key: this.proposer, body });
    if (proposed === null) this.counts.inDoubt += 1;
    if (proposed === null || proposed.status === UNAVAILABLE) return;
    if (proposed.status !== 201)
      this.problems.push(`${flag.key}: a proposal got ${proposed.status} ${proposed.text}`);
    if (proposed.status !== 201) return;
    this.counts.acknowledged += 1;
    const proposalId = String(bodyOf(proposed)["proposal_id"]);
    const decided = await target.send({
      method: "POST",
      path: `${path}/${proposalId}/${decision}`,
      key: this.key,
      ...(decision === "reject" ? { body: {} } : {}),
    });
    if (decided === null) {
      this.counts.inDoubt += 1;
      flag.doubt = { number, proposalId, decision };
    }
    if (decided === null || decided.status === UNAVAILABLE) return;
    this.counts.acknowledged += 1;
    if (decided.status !== 200)
      this.problems.push(`${flag.key}: ${decision} got ${decided.status} ${decided.text}`);
    else if (decision === "approve") this.apply(flag, number);
  }

  private apply(flag: Flag, number: number): void {
    flag.number = number;
    flag.applied.push(number);
  }

  private async verifyFlag(target: Target, flag: Flag): Promise<void> {
    const path = `/v1/gate/${flag.key}`;
    const { doubt } = flag;
    if (doubt !== null) {
      const { status } = await this.ask(target, "GET", `${path}/proposals/${doubt.proposalId}`);
      if (status !== "open") this.counts.happened += 1;
      if (status === "applied") this.apply(flag, doubt.number);
      const expected = doubt.decision === "approve" ? "applied" : "rejected";
      if (status !== "open" && status !== expected)
        this.problems.push(`${flag.key}: ${doubt.decision} was requested, its proposal is ${String(status)}`);
      flag.doubt = null;
    }
    const { metadata } = (await this.ask(target, "GET", `${path}/definition`)) as {
      metadata?: { number?: number };
    };
    const query = `target_type=flag&target_id=${flag.key}&limit=100`;
    const { entries } = (await this.ask(target, "GET", `/v1/audit?${query}`)) as { entries: Entry[] };
    const numbers = entries
      .filter(({ action }) => action === APPLY_ACTION)
      .map(({ after }) => after?.metadata?.number ?? -1)
      .filter((number) => number < 0 || number > this.verified)
      .reverse();
    const shown = JSON.stringify({ number: metadata?.number, numbers });
    if (metadata?.number !== flag.number)
      this.problems.push(`${flag.key}: is ${shown}, its responses said ${flag.number}`);
    if (numbers.join() !== flag.applied.join())
      this.problems.push(`${flag.key}: its entries are ${shown}, its responses said ${flag.applied.join()}`);
    flag.applied = [];
    flag.proposed = 0;
  }
}
