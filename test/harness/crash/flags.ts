import type { HttpResponse } from "../processes/connection.ts";
import type { Random } from "./random.ts";
import { bodyOf, createAccount, Recorded, type Target, UNAVAILABLE, type Workload } from "./workload.ts";

const FLAGS = 24;
const PATH = "/v1/gate";
/** How often a flag is deleted instead of changed. */
const DELETE_CHANCE = 0.1;
/** Maximum of random additional bytes of a definition, so that some rows use overflow pages. */
const PADDING_MAX = 6_000;

/** State of a flag after a change: the number written into it, and its version. Null: it does not exist. */
type State = { readonly number: number; readonly version: number | null } | null;

/** The acknowledged state of a flag. */
class Flag {
  readonly key: string;
  state: State = null;
  /** A change without a response: it may have happened. */
  doubt: { readonly state: State } | null = null;
  /** Whether a change is in progress: the next one waits, so that their order is known. */
  isBusy = false;

  constructor(key: string) {
    this.key = key;
  }
}

/** Changes definitions of flags: after every crash each is as acknowledged, and no version is used twice. */
export class FlagWorkload extends Recorded implements Workload {
  readonly name = "flags";
  readonly weight = 4;
  private readonly flags = Array.from({ length: FLAGS }, (_, index) => new Flag(`flag-${index}`));
  /** Versions in responses. */
  private readonly versions = new Set<number>();
  private highest = 0;
  private sent = 0;
  private key = "";

  async prepare(target: Target): Promise<void> {
    this.key = await createAccount(target, "flags@example.com", "unlimited");
  }

  async act(target: Target, random: Random): Promise<void> {
    const flag = random.pick(this.flags);
    if (flag.isBusy || flag.doubt !== null) return;
    flag.isBusy = true;
    const isRemoval = flag.state !== null && random.chance(DELETE_CHANCE);
    this.sent += 1;
    const number = this.sent;
    const response = isRemoval
      ? await target.send({ method: "DELETE", path: `${PATH}/${flag.key}`, key: this.key })
      : await target.send({
          method: "POST",
          path: PATH,
          key: this.key,
          body: definition(flag.key, number, random.below(PADDING_MAX)),
        });
    flag.isBusy = false;
    if (response?.status === UNAVAILABLE) return;
    if (response === null) {
      this.counts.inDoubt += 1;
      flag.doubt = { state: isRemoval ? null : { number, version: null } };
      return;
    }
    this.counts.acknowledged += 1;
    if (isRemoval) this.takeRemoval(flag, response);
    else flag.state = { number, version: this.takeVersion(response) };
  }

  async verify(target: Target): Promise<string[]> {
    for (const flag of this.flags) await this.verifyFlag(target, flag);
    // The next change has a version that no response contained.
    const body = definition("probe", this.sent, 0);
    this.sent += 1;
    this.takeVersion(await target.ask({ method: "POST", path: PATH, key: this.key, body }), true);
    return this.problems.splice(0);
  }

  private async verifyFlag(target: Target, flag: Flag): Promise<void> {
    const path = `${PATH}/${flag.key}/definition`;
    const response = await target.ask({ method: "GET", path, key: this.key });
    const found = stateIn(response);
    const { doubt, state } = flag;
    flag.doubt = null;
    if (doubt !== null && found?.number === doubt.state?.number) {
      this.counts.happened += 1;
      flag.state = found;
    } else if (found?.number !== state?.number || (state?.version ?? found?.version) !== found?.version) {
      this.problems.push(
        `${flag.key}: is ${JSON.stringify(found)}, and its response was ${JSON.stringify(state)}, in doubt ${JSON.stringify(doubt)}`,
      );
      flag.state = found;
    }
    if (found?.version != null) this.highest = Math.max(this.highest, found.version);
  }

  private takeRemoval(flag: Flag, response: HttpResponse): void {
    if (response.status !== 200)
      this.problems.push(`${flag.key}: its deletion got ${response.status} ${response.text}`);
    flag.state = null;
  }

  /** Checks the version of an acknowledged change. `isAlone`: it must be above all previous ones. */
  private takeVersion(response: HttpResponse, isAlone = false): number | null {
    if (response.status !== 201) {
      this.problems.push(`a save got ${response.status} ${response.text}`);
      return null;
    }
    const version = Number(bodyOf(response)["version"]);
    if (this.versions.has(version)) this.problems.push(`version ${version} was given twice`);
    if (isAlone && version <= this.highest)
      this.problems.push(`version ${version} came after ${this.highest}`);
    this.versions.add(version);
    this.highest = Math.max(this.highest, version);
    return version;
  }
}

function definition(flag_key: string, number: number, padding: number): object {
  const values = ["pro", "x".repeat(padding % 256)];
  const condition = { attribute: "plan", op: "in", values };
  const rules = Array.from({ length: 1 + Math.floor(padding / 256) }, () => ({
    when: [condition],
    serve: { variant: "on" },
  }));
  return { flag_key, enabled: number % 2 === 0, metadata: { number }, rules };
}

function stateIn(response: HttpResponse): State {
  if (response.status === 404) return null;
  const { metadata, version } = bodyOf(response) as { metadata?: { number?: number }; version?: number };
  return { number: metadata?.number ?? -1, version: version ?? null };
}
