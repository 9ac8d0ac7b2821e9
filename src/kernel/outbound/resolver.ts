import { Resolver as NameServers, setServers } from "node:dns";
import { monotonicMs } from "../clock.ts";

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
