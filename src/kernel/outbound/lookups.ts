import { Resolver as NameServers, setServers } from "node:dns";
import { monotonicMs } from "../clock.ts";
import type { Deadline, Settle } from "./deadline.ts";
import { OutboundFailure } from "./outcome.ts";

/**
 * Look-ups of one account under way at once. Names of servers that are well take milliseconds, so that thousands of
 * monitors still ask for theirs in a second; names that hang, for a minute and more, take no others' place.
 */
export const LOOKUPS_PER_ACCOUNT_MAX = 64;
/**
 * Look-ups under way at once, in all. Each takes two of the 65,536 numbers that a DNS question can have, and whoever
 * looks for a free one where there is none looks for ever.
 */
export const LOOKUPS_MAX = 8_192;

/** Look-ups of an account. */
interface Account {
  underWay: number;
  /** Those that wait for a place, in order. */
  readonly waiting: Set<() => void>;
}

/**
 * Looks up names, and bounds what an account takes of it. A place is taken until the name servers have answered or
 * have been given up, not only as long as somebody waits: that is what a look-up costs.
 */
export class Lookups {
  /**
   * What is being asked. Requests for the same name share a question, whosever they are. Only the account that asked
   * first pays for it: it wanted the answer anyhow, and those who join in cost nothing.
   */
  private readonly questions = new Map<string, Promise<readonly string[]>>();
  private readonly accounts = new Map<number | null, Account>();

  constructor(private readonly resolver: Resolver) {}

  /**
   * The addresses of a name. An account that has no place left waits for one, as long as its request may take.
   * @throws OutboundFailure `dns`, `timeout`; `local` when there was no place in time: nothing is known of the name then
   */
  async addressesOf(host: string, account: number | null, deadline: Deadline): Promise<readonly string[]> {
    const addresses = await deadline.within<readonly string[]>((settle) => this.seek(host, account, settle));
    if (addresses.length === 0) throw new OutboundFailure("dns", "the name could not be resolved");
    return addresses;
  }

  private seek(host: string, of: number | null, settle: Settle<readonly string[]>): void {
    const account = this.accounts.get(of) ?? { underWay: 0, waiting: new Set() };
    const question = this.questions.get(host);
    if (question !== undefined) {
      question.then(settle.resolve, settle.reject);
    } else if (this.questions.size >= LOOKUPS_MAX) {
      settle.reject(new OutboundFailure("local", "this server has no room for another look-up"));
    } else if (account.underWay >= LOOKUPS_PER_ACCOUNT_MAX) {
      this.wait(account, () => this.seek(host, of, settle), settle);
    } else {
      this.accounts.set(of, account);
      account.underWay += 1;
      this.ask(host, () => this.release(of, account)).then(settle.resolve, settle.reject);
    }
  }

  private wait(account: Account, again: () => void, settle: Settle<readonly string[]>): void {
    const turn = (): void => {
      settle.onGivenUp(() => {});
      again();
    };
    account.waiting.add(turn);
    settle.onGivenUp(() => {
      account.waiting.delete(turn);
      settle.reject(
        new OutboundFailure(
          "local",
          `${LOOKUPS_PER_ACCOUNT_MAX} other names of this account wait for name servers`,
        ),
      );
    });
  }

  /** An empty list: the name has no address, or nobody answers. */
  private ask(host: string, release: () => void): Promise<readonly string[]> {
    const question = this.resolver
      .resolve(host)
      .catch(() => [])
      .finally(() => {
        this.questions.delete(host);
        release();
      });
    this.questions.set(host, question);
    return question;
  }

  private release(of: number | null, account: Account): void {
    account.underWay -= 1;
    for (const turn of account.waiting) {
      if (account.underWay >= LOOKUPS_PER_ACCOUNT_MAX) return;
      account.waiting.delete(turn);
      turn();
    }
    if (account.underWay === 0) this.accounts.delete(of);
  }
}

/** Finds the addresses of a name. */
export interface Resolver {
  /** All addresses of a name, at least one. @throws Error when it has none or nobody knows. */
  resolve(host: string): Promise<readonly string[]>;
}

/** Shortest time between two looks at the system's name servers. */
export const SERVERS_LOOK_MS = 1_000;

/**
 * Asks the hosts file and the system's name servers, on the event loop. The system's own `getaddrinfo` would hold a
 * thread of the few that also read files: as many names that hang as there are threads would stop everything.
 */
export function createSystemResolver(systemServers = () => new NameServers().getServers()): Resolver {
  const servers = new KnownServers(systemServers);
  return {
    async resolve(host) {
      try {
        return await ask(host);
      } catch (error) {
        // A machine may have moved to another network, whose name servers are others.
        if (!servers.haveChanged()) throw error;
        return ask(host);
      }
    },
  };
}

async function ask(host: string): Promise<readonly string[]> {
  const found = await Bun.dns.lookup(host, { backend: "c-ares" });
  if (found.length === 0) throw new Error(`${host} has no addresses`);
  // IPv4 first: where both are announced it is the family that more networks really carry.
  const ordered = found.toSorted((a, b) => a.family - b.family);
  return [...new Set(ordered.map(({ address }) => address))];
}

/** The name servers that are asked: they are read once by the process, and again only when it is told to. */
class KnownServers {
  private inUse: readonly string[];
  private lookedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly read: () => readonly string[]) {
    this.inUse = read();
  }

  /** Whether the system names other servers than before; they are asked from now on. */
  haveChanged(): boolean {
    if (monotonicMs() - this.lookedAt < SERVERS_LOOK_MS) return false;
    this.lookedAt = monotonicMs();
    const named = this.read();
    if (named.join() === this.inUse.join()) return false;
    setServers([...named]);
    this.inUse = named;
    return true;
  }
}
