import ipaddr from "ipaddr.js";
import { isWithin, normalize, parseRange, type Range, withLocalhost } from "../../data/addresses.ts";
import type { Logger } from "../../log.ts";

/** Which proxies are trusted, and the server's public URL. */
export interface PeerSettings {
  /** Where it listens. */
  readonly host: string;
  readonly port: number;
  /** Null: it speaks plain HTTP. */
  readonly tls: object | null;
  /** Where clients reach the server; null: where their requests say. */
  readonly publicUrl: () => string | null;
  /** Addresses and ranges of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted. */
  readonly trustProxy: readonly string[];
}

/** A server as far as it knows its requests; null stands for requests that came over no socket. */
export interface Listener {
  /** Where it listens. */
  readonly url: URL;
  requestIP(request: Request): { address: string } | null;
}

/** A request, where it came from, and where it reached us. */
export interface Arrival {
  readonly request: Request;
  /** The client's address: see {@link Peers.clientAddress}. */
  readonly clientAddress: string;
  /** The server's own origin: see {@link Peers.origin}. */
  readonly origin: string;
  /** Whether the other end of the socket is a proxy that `trust_proxy` lists; false when omitted. */
  readonly isFromProxy?: boolean;
  /** Whether the key is a reverse proxy's. Its client's headers open nothing then, nor do its cookies. */
  readonly byProxy?: true;
  /** Whether the `Authorization` header has the token of a portal link. No key and no cookie opens anything then. */
  readonly byPortal?: true;
}

/** A request as far as it shows whether a page of this server made it. */
export type PageRequest = Pick<Arrival, "request" | "origin" | "isFromProxy">;

/** In place of the address of a request that came over no socket. */
export const UNKNOWN_ADDRESS = "unknown";

/** Requests after a start that are all examined for an untrusted forwarded header. */
const EXAMINED_FIRST = 1_000;
/** Afterwards, one of this many is: a proxy sends the header with every request, and the first reading of any takes time. */
const EXAMINED_EVERY = 64;

/** The schemes that proxies name; some name those of WebSockets for every request that may become one. */
const SCHEMES: Readonly<Record<string, "http" | "https">> = {
  http: "http",
  https: "https",
  ws: "http",
  wss: "https",
};

/** An address with the port behind it, as some proxies write it; one of IPv6 is in brackets then. */
const WITH_PORT = /^(?:\[([0-9a-f:.]{2,45})\]|([0-9.]{7,15}))(?::\d{1,5})?$/i;

/** An entry of `X-Forwarded-For` without a port. */
function withoutPort(entry: string): string {
  const [, inBrackets, plain] = WITH_PORT.exec(entry) ?? [];
  return inBrackets ?? plain ?? entry;
}

/** Who is at the other end of a request, and how it reached us. */
export class Peers {
  private readonly proxies: readonly Range[];
  private readonly publicUrl: () => string | null;
  /** Where it listens once it does. */
  private readonly configured: URL;

  /** Whether an untrusted forwarded header was reported: one line shows the missing setting. */
  private hasReported = false;
  /** Requests so far, examined or not. */
  private requests = 0;

  /** @throws StartupError when an entry of `trustProxy` is neither an address nor a CIDR. */
  constructor(
    { publicUrl, trustProxy, host, port, tls }: PeerSettings,
    private readonly log: Pick<Logger, "warn">,
  ) {
    const address = host.includes(":") ? `[${host}]` : host;
    this.configured = new URL(`${tls === null ? "http" : "https"}://${address}:${port}`);
    this.proxies = trustProxy.map((range) => parseRange(range));
    this.publicUrl = publicUrl;
  }

  /** The address at the other end of the socket; null for a request that came over none. */
  socketAddress(request: Request, server: Listener | null): string | null {
    return server?.requestIP(request)?.address ?? null;
  }

  /** Whether the other end of a request's socket is a trusted proxy. */
  isFromProxy(request: Request, server: Listener | null): boolean {
    if (this.proxies.length === 0) return false;
    const address = normalize(this.socketAddress(request, server) ?? "");
    return address !== null && this.isProxy(address);
  }

  /**
   * The client's address is the socket's, unless that is a trusted proxy's: then the last address in
   * `X-Forwarded-For` that is not a trusted proxy's itself. Null for a request that came over no socket.
   */
  clientAddress(request: Request, server: Listener | null): string | null {
    const socketAddress = this.socketAddress(request, server);
    if (socketAddress === null) return null;
    // A socket spells IPv4 in one way alone, and without proxies there is nothing to read: every webhook comes by here.
    if (this.proxies.length === 0 && !socketAddress.includes(":")) {
      this.reportUntrusted(request, socketAddress);
      return socketAddress;
    }
    const socket = normalize(socketAddress);
    if (socket === null) return socketAddress;
    if (!this.isProxy(socket)) {
      this.reportUntrusted(request, socket);
      return socket;
    }
    const forwarded = (request.headers.get("x-forwarded-for") ?? "").split(",");
    let client = socket;
    for (let index = forwarded.length - 1; index >= 0; index -= 1) {
      const address = normalize(withoutPort(forwarded[index]?.trim() ?? ""));
      // What is not an address was not written by a proxy that we trust: the one before it is the last known.
      if (address === null) return client;
      client = address;
      if (!this.isProxy(address)) return address;
    }
    return client;
  }

  /**
   * The origin of this server's pages, such as `https://hooks.example.com`. Without a `publicUrl`, what the request shows:
   * its `Host`, and the scheme that it came by.
   */
  origin(request: Request, server: Listener | null): string {
    const publicUrl = this.publicUrl();
    return publicUrl === null ? this.shownOrigin(request, server) : new URL(publicUrl).origin;
  }

  /** All starts of this server's URLs that are known: its `publicUrl`, where the request came in, and where it listens. */
  ownUrls(request: Request, server: Listener | null): string[] {
    const listening = (server?.url ?? this.configured).origin;
    return [this.baseUrl(request, server), this.shownOrigin(request, server), listening];
  }

  private shownOrigin(request: Request, server: Listener | null): string {
    // With a Host that makes no URL, the server hands out the target alone.
    const serverUrl = server === null ? this.configured : (URL.parse(request.url) ?? server.url);
    const scheme = this.scheme(request, server) ?? serverUrl.protocol.slice(0, -1);
    // As browsers write it: without the scheme's own port.
    return (URL.parse(`${scheme}://${request.headers.get("host") ?? serverUrl.host}`) ?? serverUrl).origin;
  }

  /** The start of URLs in responses, without a slash at its end: the `publicUrl` with its path, or else the {@link origin}. */
  baseUrl(request: Request, server: Listener | null): string {
    return this.publicUrl() ?? this.origin(request, server);
  }

  /** The start of links that people open: the {@link baseUrl}, at `localhost` in place of an address of this machine. */
  linkUrl(request: Request, server: Listener | null): string {
    return this.publicUrl() ?? withLocalhost(this.origin(request, server));
  }

  /** The scheme that `X-Forwarded-Proto` names, of a trusted proxy: one that ends TLS speaks plain HTTP here. */
  private scheme(request: Request, server: Listener | null): "http" | "https" | null {
    if (this.proxies.length === 0) return null;
    const socket = normalize(this.socketAddress(request, server) ?? "");
    if (socket === null || !this.isProxy(socket)) return null;
    // Proxies in a row write a list, in which the first is the one that the client reached.
    const [named = ""] = (request.headers.get("x-forwarded-proto") ?? "").split(",");
    return SCHEMES[named.trim().toLowerCase()] ?? null;
  }

  /** Behind a proxy that is not trusted, all clients share one address, and with it the limits of an address. */
  private reportUntrusted(request: Request, address: string): void {
    if (this.hasReported) return;
    this.requests += 1;
    if (this.requests > EXAMINED_FIRST && this.requests % EXAMINED_EVERY > 0) return;
    if (!request.headers.has("x-forwarded-for")) return;
    this.hasReported = true;
    this.log.warn(
      "X-Forwarded-For is ignored: the request comes from an address that is not a trusted proxy; if it is your proxy, add it to trust_proxy",
      { address },
    );
  }

  private isProxy(address: string): boolean {
    return isWithin(ipaddr.parse(address), this.proxies);
  }
}
