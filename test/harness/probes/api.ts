/** The API of the server, for the account of the harness. */
export class Api {
  /** `url`: the server. `key`: of the account. */
  constructor(
    private readonly url: string,
    private readonly key: string | null,
  ) {}

  /** @throws Error for any status but 2xx */
  async ask<T>(method: string, path: string, body?: object): Promise<T> {
    const headers = { authorization: `Bearer ${this.key}`, "content-type": "application/json" };
    const response = await fetch(this.url + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** The checks of a monitor since an instant: times in epoch milliseconds, by checker. At most so many pages of the newest. */
  async history(
    monitorId: string,
    since: number,
    pagesMax = Number.POSITIVE_INFINITY,
  ): Promise<Map<string, number[]>> {
    const times = new Map<string, number[]>();
    for (let [cursor, pages] = ["", 1]; ; pages += 1) {
      const page = await this.ask<HistoryPage>(
        "GET",
        `/v1/pulse/${monitorId}/history?limit=100${cursor === "" ? "" : `&cursor=${cursor}`}`,
      );
      for (const { checked_at, probe } of page.checks) {
        const at = checked_at * 1_000;
        if (at >= since) times.set(probe, [...(times.get(probe) ?? []), at]);
      }
      if (page.cursor === undefined || pages >= pagesMax) return times;
      cursor = page.cursor;
    }
  }
}

interface HistoryPage {
  readonly checks: readonly { readonly checked_at: number; readonly probe: string }[];
  readonly cursor?: string;
}
