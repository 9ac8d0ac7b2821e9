let created = 0;

/** An account's key and the server it belongs to. */
export class Account {
  constructor(
    readonly url: string,
    private readonly key: string | null,
    private readonly userId = "",
  ) {}

  /** A new account of the tier `unlimited`; only the operator can create one. */
  async newAccount(): Promise<Account> {
    created += 1;
    const body = { email: `neighbour-${created}@example.com`, tier: "unlimited" };
    const account = await this.create<{ api_key: string; user_id: string }>("/v1/admin/accounts", body);
    return new Account(this.url, account.api_key, account.user_id);
  }

  /** Changes an account; only the operator can. */
  async update(account: Account, settings: object): Promise<void> {
    await this.send("PATCH", `/v1/admin/accounts/${account.userId}`, JSON.stringify(settings));
  }

  /** The same server without a key. */
  anonymous(): Account {
    return new Account(this.url, null);
  }

  /** Sends a request and discards the body of the response. Resolves to its status. */
  async send(method: string, path: string, body?: string): Promise<number> {
    const response = await this.fetch(method, path, body);
    await response.arrayBuffer();
    return response.status;
  }

  /** Creates something and resolves to the response. @throws Error for any status but a success. */
  async create<T>(path: string, body: object): Promise<T> {
    const response = await this.fetch("POST", path, JSON.stringify(body));
    if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** Creates several things, a few at a time, in the order of their index. */
  async createMany<T>(count: number, path: string, bodyOf: (index: number) => object): Promise<T[]> {
    const created: T[] = [];
    while (created.length < count) {
      const from = created.length;
      const part = Array.from({ length: Math.min(CONCURRENT_MAX, count - from) }, (_, at) =>
        this.create<T>(path, bodyOf(from + at)),
      );
      created.push(...(await Promise.all(part)));
    }
    return created;
  }

  private fetch(method: string, path: string, body?: string): Promise<Response> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (this.key !== null) headers["authorization"] = `Bearer ${this.key}`;
    return fetch(this.url + path, { method, headers, ...(body === undefined ? {} : { body }) });
  }
}

const CONCURRENT_MAX = 25;
