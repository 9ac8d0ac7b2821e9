import type { Random } from "./random.ts";
import {
  createAccount,
  RecordedOfAccount,
  type Target,
  type TargetRequest,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const KEYS = 8;

/** A permission with a number, which each change counts up. */
class Numbered {
  acknowledged = 0;
  /** A change without a response: it may have happened. */
  inDoubt: number | null = null;
  /** Whether a change is in progress: the next one waits, so that their order is known. */
  isBusy = false;

  constructor(
    readonly name: string,
    /** The request that gives it a number. */
    readonly change: (permissions: string[]) => TargetRequest,
  ) {}

  permission(number: number): string {
    return `${this.name}.${number}`;
  }
}

interface RoleKey {
  readonly secret: string;
  readonly own: Numbered;
  readonly role: Numbered;
}

/** Changes permissions of keys and of their roles: after every crash verifications have those that were acknowledged. */
export class KeyRoleWorkload extends RecordedOfAccount implements Workload {
  readonly name = "permissions and roles of keys";
  readonly weight = 2;
  private readonly keys: RoleKey[] = [];
  private sent = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "key-roles@example.com", "unlimited");
    for (let number = 0; number < KEYS; number += 1) this.keys.push(await this.createKey(target, number));
  }

  async act(target: Target, random: Random): Promise<void> {
    const { own, role } = random.pick(this.keys);
    const of = random.pick([own, role]);
    if (of.isBusy || of.inDoubt !== null) return;
    of.isBusy = true;
    this.sent += 1;
    const number = this.sent;
    const response = await target.send(of.change([of.permission(number)]));
    of.isBusy = false;
    if (response === null) {
      this.counts.inDoubt += 1;
      of.inDoubt = number;
    } else if (response.status !== UNAVAILABLE) {
      this.counts.acknowledged += 1;
      if (response.status !== 200) this.problems.push(`${of.name}: a change got ${response.text}`);
      else of.acknowledged = number;
    }
  }

  async verify(target: Target): Promise<string[]> {
    for (const { secret, own, role } of this.keys) {
      const { permissions } = await this.ask(target, "POST", "/v1/keys/verify", { secret });
      const found = permissions as readonly string[];
      if (found.length !== 2) this.problems.push(`${own.name}: its permissions are ${found.join(", ")}`);
      for (const of of [own, role]) this.settle(of, found);
    }
    return this.problems.splice(0);
  }

  private settle(of: Numbered, found: readonly string[]): void {
    const { acknowledged, inDoubt } = of;
    of.inDoubt = null;
    if (inDoubt !== null && found.includes(of.permission(inDoubt))) {
      this.counts.happened += 1;
      of.acknowledged = inDoubt;
    } else if (!found.includes(of.permission(acknowledged)))
      this.problems.push(
        `${of.permission(acknowledged)} was acknowledged, and is not in ${found.join(", ")}`,
      );
  }

  private async createKey(target: Target, number: number): Promise<RoleKey> {
    const { key } = this;
    const name = `role-${number}`;
    const role = new Numbered(name, (permissions) => ({
      method: "PUT",
      path: `/v1/keys/roles/${name}`,
      key,
      body: { permissions },
    }));
    await this.ask(target, "PUT", `/v1/keys/roles/${name}`, { permissions: [role.permission(0)] });
    const terms = { prefix: "acme", name: "k", scopes: ["orders:read"], roles: [name] };
    const permissions = [`own-${number}.0`];
    const { key_id, secret } = await this.ask(target, "POST", "/v1/keys", { ...terms, permissions });
    const own = new Numbered(`own-${number}`, (permissions) => ({
      method: "PATCH",
      path: `/v1/keys/${String(key_id)}`,
      key,
      body: { permissions },
    }));
    return { secret: String(secret), own, role };
  }
}
