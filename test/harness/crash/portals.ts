import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  RecordedOfAccount,
  type Target,
  type TargetRequest,
  UNAVAILABLE,
  type Workload,
} from "./workload.ts";

const CREDITS = 1_000_000;
const PATH = "/v1/relay/portal";
const CUSTOMERS = 8;
/** Revoked links that are verified again after later kills. */
const REVOKED_KEPT = 5;
/** Share of the steps with a link that revoke it. */
const REVOKED_SHARE = 0.2;
/** The response above the limit of a customer's requests per minute: nothing was done. */
const TOO_MANY = 429;

/** A customer with one endpoint. One operation at a time. */
interface Customer {
  readonly id: string;
  readonly endpoint: string;
  isBusy: boolean;
  /** The token of its link; null without one. */
  token: string | null;
  /** Whether its revocation is in doubt. */
  isInDoubt: boolean;
  /** Undefined while a change is in doubt. */
  description: string | undefined;
  revoked: string[];
}

/** Portal links, and changes that customers make with them: acknowledged links work, and revoked ones stay revoked. */
export class PortalWorkload extends RecordedOfAccount implements Workload {
  readonly name = "portals";
  readonly weight = 1;
  private customers: Customer[] = [];
  private changes = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "portals@example.com", CREDITS);
    for (let number = 0; number < CUSTOMERS; number += 1) {
      const id = `customer-${number}`;
      const body = { url: "https://example.com/hooks", owner_id: id, description: "new" };
      const created = await this.ask(target, "POST", "/v1/relay/endpoints", body);
      const endpoint = String(created["endpoint_id"]);
      const free = { isBusy: false, token: null, isInDoubt: false, revoked: [] };
      this.customers.push({ id, endpoint, description: "new", ...free });
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const free = this.customers.filter(({ isBusy, isInDoubt }) => !isBusy && !isInDoubt);
    if (free.length === 0) return;
    const customer = random.pick(free);
    customer.isBusy = true;
    if (customer.token === null) await this.create(target, customer);
    else if (random.chance(REVOKED_SHARE)) await this.revoke(target, customer, customer.token);
    else await this.change(target, customer, customer.token);
    customer.isBusy = false;
  }

  async verify(target: Target): Promise<string[]> {
    const problems: string[] = [];
    for (const customer of this.customers) problems.push(...(await this.problemsOf(target, customer)));
    return problems;
  }

  private async create(target: Target, customer: Customer): Promise<void> {
    const response = await this.send(target, {
      method: "POST",
      path: PATH,
      key: this.key,
      body: { owner_id: customer.id },
    });
    if (response?.status !== 201) return;
    const url = String(bodyOf(response)["url"]);
    customer.token = url.slice(url.indexOf("=") + 1);
  }

  private async revoke(target: Target, customer: Customer, token: string): Promise<void> {
    const body = { owner_id: customer.id };
    const response = await this.send(target, { method: "POST", path: `${PATH}/revoke`, key: this.key, body });
    customer.isInDoubt = response === null;
    if (response?.status !== 200) return;
    customer.revoked = [token, ...customer.revoked].slice(0, REVOKED_KEPT);
    customer.token = null;
  }

  private async change(target: Target, customer: Customer, token: string): Promise<void> {
    this.changes += 1;
    const before = customer.description;
    const description = `change ${this.changes}`;
    customer.description = undefined;
    const path = `${PATH}/endpoints/${customer.endpoint}`;
    const response = await this.send(target, { method: "PATCH", path, key: token, body: { description } });
    if (response?.status === 200) customer.description = description;
    else if (response !== null) customer.description = before;
  }

  private async send(target: Target, request: TargetRequest) {
    const response = await target.send(request);
    if (response === null) this.counts.inDoubt += 1;
    else if (response.status < 300) this.counts.acknowledged += 1;
    else if (response.status !== UNAVAILABLE && response.status !== TOO_MANY)
      throw new Error(`portals: unexpected response ${response.status} ${response.text}`);
    return response;
  }

  private async problemsOf(target: Target, customer: Customer): Promise<string[]> {
    const { id, endpoint, token, isInDoubt, description } = customer;
    const problems: string[] = [];
    const read = await this.ask(target, "GET", `/v1/relay/endpoints/${endpoint}`);
    const is = String(read["description"]);
    if (description !== undefined && is !== description)
      problems.push(`portals: the endpoint of ${id} is "${is}", not "${description}"`);
    customer.description = is;
    const statusOf = async (key: string): Promise<number> =>
      (await target.ask({ method: "GET", path: PATH, key })).status;
    if (token !== null) {
      const status = await statusOf(token);
      if (status === 401 && isInDoubt) {
        this.counts.happened += 1;
        customer.revoked = [token, ...customer.revoked].slice(0, REVOKED_KEPT);
        customer.token = null;
      } else if (status !== 200) problems.push(`portals: the link of ${id} gets ${status}`);
      customer.isInDoubt = false;
    }
    for (const old of customer.revoked) {
      const status = await statusOf(old);
      if (status !== 401) problems.push(`portals: a revoked link of ${id} gets ${status}`);
    }
    return problems;
  }
}
