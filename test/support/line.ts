import type { OutboundOverrides } from "../../src/kernel/outbound/client.ts";

/** An address of this machine at which nobody listens. */
const NOWHERE = "127.9.9.9";
const HERE = "127.0.0.1";

/**
 * The line of a server to the outside: hosts of `.example` have public addresses, which lead to real sockets on this
 * machine while the line is up, and nowhere while it is cut.
 */
export class Line {
  isUp = true;
  /** Hosts that are gone, whatever the line does. */
  readonly gone = new Set<string>();
  private readonly addresses = new Map<string, string>();

  /** For a test server's `parts`. */
  get overrides(): OutboundOverrides {
    return {
      resolver: {
        resolve: async (host) => {
          if (!this.isUp || !host.endsWith(".example")) throw new Error("no answer");
          return [this.addressOf(host)];
        },
      },
      leadTo: (address) => {
        if (address.startsWith("127.")) return address;
        const isGone = [...this.gone].some((host) => this.addressOf(host) === address);
        return this.isUp && !isGone ? HERE : NOWHERE;
      },
    };
  }

  /** Gives a host an address, before it is asked for. */
  place(host: string, address: string): void {
    this.addresses.set(host, address);
  }

  /** The public address of a host. */
  addressOf(host: string): string {
    const known = this.addresses.get(host) ?? `9.9.9.${this.addresses.size + 1}`;
    this.addresses.set(host, known);
    return known;
  }
}
