/** The connections that this process has accepted, as the system knows them: the runtime has no list of them. Linux only. */
import { ptr } from "bun:ffi";
import type { TimeSlices } from "../../background/time-slices.ts";
import { openCLibrary } from "../../c-library.ts";
import { networkOf } from "../../data/addresses.ts";

/** A connection that was accepted. */
export interface OwnConnection {
  readonly descriptor: number;
  /** The network of its client: see {@link networkOf}. */
  readonly network: string;
  /** Whether its client has sent anything. */
  readonly hasSent: boolean;
  /** Time since its client last sent anything. */
  readonly silentMs: number;
}

// Of <fcntl.h>, <sys/socket.h>, <netinet/in.h> and <linux/tcp.h>.
const AF_INET = 2;
const AF_INET6 = 10;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
const SHUT_RDWR = 2;
const F_GETFD = 1;
const ADDRESS_BYTES = 28;
const INFO_BYTES = 256;
const INFO_LAST_DATA_RECEIVED = 52;
const INFO_BYTES_RECEIVED = 128;
/** The first bytes of an IPv4 address in IPv6. */
const MAPPED = "00000000000000000000ffff";

/** The search ends after so many descriptors in a row that are not in use. */
const GAP_MAX = 1_024;

/** The sockets of this process, by the C library. Reads them into buffers that are used again. */
export class SystemSockets {
  private readonly library = openCLibrary({
    fcntl: { args: ["int", "int"], returns: "int" },
    getsockname: { args: ["int", "ptr", "ptr"], returns: "int" },
    getpeername: { args: ["int", "ptr", "ptr"], returns: "int" },
    getsockopt: { args: ["int", "int", "int", "ptr", "ptr"], returns: "int" },
    shutdown: { args: ["int", "int"], returns: "int" },
  });
  private readonly bytes = new Uint8Array(INFO_BYTES);
  private readonly view = new DataView(this.bytes.buffer);
  private readonly length = new Uint32Array(1);

  /** The connections to a port of this process, and how many descriptors it uses in all. Works in slices. */
  async connections(
    port: number,
    timeSlices: Pick<TimeSlices, "isOver" | "next">,
  ): Promise<{ readonly connections: OwnConnection[]; readonly used: number }> {
    const connections: OwnConnection[] = [];
    let used = 0;
    for (let descriptor = 0, gap = 0; gap < GAP_MAX; descriptor += 1) {
      gap += 1;
      if (this.library.fcntl(descriptor, F_GETFD) >= 0) {
        gap = 0;
        used += 1;
        const connection = this.connection(descriptor, port);
        if (connection !== null) connections.push(connection);
      }
      if (timeSlices.isOver) await timeSlices.next();
    }
    return { connections, used };
  }

  /** Ends a connection in both directions: the runtime then closes it. */
  close(descriptor: number): void {
    this.library.shutdown(descriptor, SHUT_RDWR);
  }

  /** A descriptor as a connection to a port; null for everything else. */
  private connection(descriptor: number, port: number): OwnConnection | null {
    if (!this.reads(ADDRESS_BYTES, (to, length) => this.library.getsockname(descriptor, to, length)))
      return null;
    if (this.port !== port) return null;
    if (!this.reads(ADDRESS_BYTES, (to, length) => this.library.getpeername(descriptor, to, length)))
      return null;
    const address = this.address();
    if (address === null) return null;
    const hasInfo = this.reads(INFO_BYTES, (to, length) =>
      this.library.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, to, length),
    );
    return {
      descriptor,
      network: networkOf(address),
      hasSent: !hasInfo || this.view.getBigUint64(INFO_BYTES_RECEIVED, true) > 0n,
      silentMs: hasInfo ? this.view.getUint32(INFO_LAST_DATA_RECEIVED, true) : 0,
    };
  }

  private reads(
    bytes: number,
    call: (to: ReturnType<typeof ptr>, length: ReturnType<typeof ptr>) => number,
  ): boolean {
    this.length[0] = bytes;
    return call(ptr(this.bytes), ptr(this.length)) === 0;
  }

  private get port(): number {
    return this.isInternet ? this.view.getUint16(2) : 0;
  }

  private get isInternet(): boolean {
    const family = this.view.getUint16(0, true);
    return family === AF_INET || family === AF_INET6;
  }

  private address(): string | null {
    if (!this.isInternet) return null;
    if (this.view.getUint16(0, true) === AF_INET) return this.bytes.subarray(4, 8).join(".");
    const hex = this.bytes.subarray(8, 24).toHex();
    if (hex.startsWith(MAPPED)) return this.bytes.subarray(20, 24).join(".");
    return Array.from({ length: 8 }, (_, at) => hex.slice(4 * at, 4 * at + 4)).join(":");
  }
}
