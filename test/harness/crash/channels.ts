import type { Random } from "./random.ts";
import {
  bodyOf,
  createAccount,
  Recorded,
  type Target,
  type TargetRequest,
  type Workload,
} from "./workload.ts";

const CREDITS = 1_000_000;
const PATH = "/v1/pulse/channels";
const CHANNELS = 8;
const REMIND = ["never", "1h", "6h", "1d"] as const;

/** Changes reminders and names of channels. Each must be as its last acknowledged change made it. */
export class ChannelWorkload extends Recorded implements Workload {
  readonly name = "channels";
  readonly weight = 1;
  /** By id; undefined while a change is in progress or in doubt. */
  private readonly channels = new Map<string, string | undefined>();
  private key = "";
  private changes = 0;

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "channels@example.com", CREDITS);
    const config = { url: "https://example.com/alerts" };
    for (let count = 0; count < CHANNELS; count += 1) {
      const body = { name: "new", kind: "webhook", config };
      const response = bodyOf(await target.ask({ method: "POST", path: PATH, key: this.key, body }));
      this.channels.set(String(response["id"]), shownOf(response));
    }
  }

  async act(target: Target, random: Random): Promise<void> {
    const free = [...this.channels].filter(([, known]) => known !== undefined).map(([id]) => id);
    if (free.length === 0) return;
    const id = random.pick(free);
    this.changes += 1;
    const body = { name: `change ${this.changes}`, remind: random.pick(REMIND) };
    this.channels.set(id, undefined);
    const request: TargetRequest = { method: "PATCH", path: `${PATH}/${id}`, key: this.key, body };
    const response = await target.send(request);
    if (response === null) {
      this.counts.inDoubt += 1;
      return;
    }
    if (response.status !== 200) return;
    this.counts.acknowledged += 1;
    this.channels.set(id, shownOf(bodyOf(response)));
  }

  async verify(target: Target): Promise<string[]> {
    const list = await target.ask({ method: "GET", path: `${PATH}?limit=100`, key: this.key });
    const found = bodyOf(list)["channels"] as { id: string }[];
    const shown = new Map(found.map((channel) => [channel.id, shownOf(channel)]));
    const problems: string[] = [];
    for (const [id, known] of this.channels) {
      const is = shown.get(id);
      if (is === undefined) problems.push(`channels: ${id} is lost`);
      else if (known !== undefined && known !== is) problems.push(`channels: ${id} is ${is}, not ${known}`);
      this.channels.set(id, is);
    }
    return problems;
  }
}

function shownOf(channel: object): string {
  const { name, remind } = channel as { name?: unknown; remind?: unknown };
  return `${String(name)}, ${String(remind)}`;
}
