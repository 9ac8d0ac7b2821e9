import { lookup } from "node:dns/promises";

/** Finds the addresses of a name. */
export interface Resolver {
  /** All addresses of a name, at least one. @throws Error when it has none or nobody knows. */
  resolve(host: string): Promise<readonly string[]>;
}

/** Asks the system. Requests that ask for the same name at the same time share one question. */
export function createSystemResolver(): Resolver {
  const asked = new Map<string, Promise<readonly string[]>>();
  return {
    resolve(host) {
      const known = asked.get(host);
      if (known !== undefined) return known;
      const asking = ask(host).finally(() => asked.delete(host));
      asked.set(host, asking);
      return asking;
    },
  };
}

async function ask(host: string): Promise<readonly string[]> {
  const found = await lookup(host, { all: true, verbatim: true });
  if (found.length === 0) throw new Error(`${host} has no addresses`);
  // IPv4 first: where both are announced it is the family that more networks really carry.
  const ordered = found.toSorted((a, b) => a.family - b.family);
  return [...new Set(ordered.map(({ address }) => address))];
}
