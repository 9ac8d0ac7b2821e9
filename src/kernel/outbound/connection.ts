import { closeSync, openSync } from "node:fs";
import type { Socket } from "node:net";
import net from "node:net";
import { devNull } from "node:os";
import type { ConnectionOptions, PeerCertificate, SecureContext } from "node:tls";
import tls from "node:tls";
import { slices } from "../background/time-slices.ts";
import { isLoopback } from "../data/addresses.ts";
import { errorCode } from "../errors.ts";
import { type Cancel, monotonicMs, realTimeout } from "../time/clock.ts";
import { type Certificate, certificateOf, TrustAnchors } from "./certificate.ts";
import { type Deadline, OtherProtocol, OutboundFailure } from "./outcome.ts";
import { isPieces, type PieceBody } from "./piece-body.ts";
import { type BodyOptions, HeadTooLarge, Http2Bytes, ResponseReader } from "./response-reader.ts";
import type { Target } from "./target.ts";

/** Listens to a connection while it carries a request. */
export interface ConnectionListener {
  onBytes(bytes: Buffer): void;
  /** The peer has closed its side, or the connection is gone. */
  onEnd(): void;
}

/** A connection to a checked address and, for HTTPS, to a name that the certificate has proved. */
export class Connection {
  /** How many requests it has carried. */
  uses = 0;
  /** When it became idle, monotonic milliseconds. */
  idleSince = 0;
  listener: ConnectionListener | null = null;
  /** The protocol that was chosen by ALPN; empty: none; null: without TLS. */
  readonly protocol: string | null;
  private closed = false;

  constructor(
    /** Says which requests it may carry: scheme, address, port and name. */
    readonly key: string,
    private readonly socket: Socket,
    /** Where it leads. */
    readonly address: string,
    private readonly anchors: TrustAnchors,
  ) {
    this.protocol = socket instanceof tls.TLSSocket ? socket.alpnProtocol || "" : null;
    socket.on("data", this.onData);
    socket.on("end", () => this.listener?.onEnd());
    // A close follows, which is all that matters; an error without a listener would end the process.
    socket.on("error", () => {});
    socket.on("close", () => {
      this.closed = true;
      this.listener?.onEnd();
    });
  }

  get isOpen(): boolean {
    return !this.closed && !this.socket.destroyed && this.socket.readable && this.socket.writable;
  }

  /** The certificate of the other end; null without TLS. */
  get certificate(): Certificate | null {
    return certificateOf(this.socket, this.anchors);
  }

  /** Returns whether more should be written now; otherwise after {@link drained}. */
  write(bytes: Uint8Array): boolean {
    return this.socket.write(bytes);
  }

  /** Resolves when more can be written, or the connection is gone. */
  drained(): Promise<void> {
    if (!this.isOpen) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        this.socket.off("drain", done).off("close", done);
        resolve();
      };
      this.socket.on("drain", done).on("close", done);
    });
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** Ends this side; the other end may still send. */
  end(): void {
    this.socket.end();
  }

  /** Hands the socket over to another protocol: the connection does not read from it any more. */
  detach(): Socket {
    return this.socket.off("data", this.onData);
  }

  private readonly onData = (bytes: Buffer): void => {
    if (this.listener !== null) this.listener.onBytes(bytes);
    // A response without a request.
    else this.destroy();
  };
}

/** A certificate that a client presents, PEM. */
export interface ClientCertificate {
  /** The certificate, with intermediate ones. */
  readonly certificate: string;
  readonly key: string;
}

/** How a TLS connection is opened. */
export interface TlsTerms {
  /** Names of protocols in ALPN; none: it is not used. */
  readonly protocols: readonly string[];
  /** Whether a certificate that is not valid ends the connection. */
  readonly verify: boolean;
  /** Presented if the server requests one. */
  readonly client: ClientCertificate | null;
}

/**
 * TLS of HTTP/1.1. HTTP/2 is not offered with it: a server that has both would choose that by its own preference.
 */
export const HTTP_TLS: TlsTerms = { protocols: ["http/1.1"], verify: true, client: null };

/** A connection that is being opened. */
export interface Opening {
  /** Settles when the address has accepted it; what is left for HTTPS is the handshake. */
  readonly accepted: Promise<void>;
  readonly done: Promise<Connection>;
  /** Closes it, in whatever state it is. */
  giveUp(): void;
}

/** Opens connections to checked addresses. */
export class Connector {
  private readonly secureContext: SecureContext | null;
  readonly anchors: TrustAnchors;

  /**
   * `certificateAuthorities`: PEM of the only authorities to trust; without it the built-in ones.
   * `trustLoopback`: a server on this machine need not prove its name. `leadTo`: where connections to an address go.
   */
  constructor(
    private readonly certificateAuthorities?: string | string[],
    private readonly trustLoopback = false,
    private readonly leadTo: (address: string) => string = (address) => address,
  ) {
    this.anchors = new TrustAnchors(certificateAuthorities);
    this.secureContext =
      certificateAuthorities === undefined ? null : tls.createSecureContext({ ca: certificateAuthorities });
  }

  /**
   * Connects to `address` and, for HTTPS, checks the target's name. Fails at the deadline, by `connect`, `tls` or `timeout`.
   */
  open(target: Target, address: string, deadline: Deadline, terms = HTTP_TLS): Opening {
    const accepted = Promise.withResolvers<void>();
    let giveUp = (): void => {};
    const done = deadline.within<Connection>((settle) => {
      const leads = this.leadTo(address);
      const socket = target.secure ? this.openTls(target, leads, terms) : openTcp(target, leads);
      let connected = false;
      const onError = (error: unknown): void => settle.reject(connectFailure(error, connected, terms));
      const onClose = (): void => settle.reject(connectFailure(null, connected, terms));
      const finish = (): void => {
        socket.off("error", onError);
        socket.off("close", onClose);
        settle.resolve(new Connection(connectionKey(target, address), socket, address, this.anchors));
      };
      socket.on("error", onError);
      socket.on("close", onClose);
      socket.once("connect", () => {
        connected = true;
        accepted.resolve();
        socket.setNoDelay(true);
        if (!target.secure) finish();
      });
      if (target.secure) socket.once("secureConnect", finish);
      giveUp = () => socket.destroy();
      settle.onAbandoned(giveUp);
    });
    return { accepted: accepted.promise, done, giveUp: () => giveUp() };
  }

  /**
   * Begins TLS over a connection, which must not be used any more. Fails at the deadline, by `tls` or `timeout`.
   * @throws OutboundFailure
   */
  upgrade(connection: Connection, target: Target, deadline: Deadline, terms: TlsTerms): Promise<Connection> {
    return deadline.within<Connection>((settle) => {
      const leads = this.leadTo(connection.address);
      const socket = tls.connect({ socket: connection.detach(), ...this.tlsOptions(target, leads, terms) });
      const onError = (error: unknown): void => settle.reject(connectFailure(error, true, terms));
      const onClose = (): void => settle.reject(connectFailure(null, true, terms));
      socket.on("error", onError);
      socket.on("close", onClose);
      socket.once("secureConnect", () => {
        socket.off("error", onError);
        socket.off("close", onClose);
        settle.resolve(new Connection(connection.key, socket, connection.address, this.anchors));
      });
      settle.onAbandoned(() => socket.destroy());
    });
  }

  private openTls(target: Target, address: string, terms: TlsTerms): Socket {
    const options = this.tlsOptions(target, address, terms);
    return tls.connect({ host: address, port: target.port, ...options });
  }

  private tlsOptions(
    target: Target,
    address: string,
    { protocols, verify, client }: TlsTerms,
  ): ConnectionOptions {
    const { secureContext, certificateAuthorities } = this;
    return {
      // An address has no server name (RFC 6066); the certificate is then checked against the address.
      ...(target.isAddress ? {} : { servername: target.host }),
      rejectUnauthorized: verify && !(this.trustLoopback && isLoopback(address)),
      checkServerIdentity: provesName,
      ...(protocols.length === 0 ? {} : { ALPNProtocols: [...protocols] }),
      ...(client === null
        ? secureContext !== null && { secureContext }
        : { cert: client.certificate, key: client.key }),
      ...(client !== null && certificateAuthorities !== undefined && { ca: certificateAuthorities }),
    };
  }
}

/** Only the alternative names of a certificate count, not its common name (RFC 9525, section 6.3). */
function provesName(name: string, certificate: PeerCertificate): Error | undefined {
  return tls.checkServerIdentity(name, { ...certificate, subject: { ...certificate.subject, CN: "" } });
}

function openTcp(target: Target, address: string): Socket {
  return net.connect({ host: address, port: target.port });
}

/** Which requests a connection can carry. */
export function connectionKey(target: Target, address: string): string {
  return `${target.secure ? "https" : "http"} ${address} ${target.port} ${target.host}`;
}

const CONNECT_MESSAGES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ENETUNREACH: "the network is unreachable",
  EHOSTUNREACH: "the host is unreachable",
  ETIMEDOUT: "the connection timed out",
};

/** The server has rejected all names that were offered by ALPN (RFC 7301, section 3.2). */
const NO_COMMON_PROTOCOL = "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL";

function connectFailure(error: unknown, connected: boolean, { protocols }: TlsTerms): OutboundFailure {
  const code = errorCode(error);
  if (!connected && isOutOfDescriptors()) {
    return new OutboundFailure("local", "this server has no capacity for another connection");
  }
  if (!connected) return new OutboundFailure("connect", CONNECT_MESSAGES[code] ?? "no connection was made");
  if (code === NO_COMMON_PROTOCOL) {
    const missing = `the server does not offer ${protocols.join(" or ")}`;
    return new OtherProtocol("tls", `the TLS handshake failed: ${missing}`, true);
  }
  const reason = /^[A-Z][A-Z0-9_]+$/.test(code) ? ` (${code})` : "";
  return new OutboundFailure("tls", `the TLS handshake failed${reason}`);
}

/** Without a free file descriptor, Bun reports a refused connection, so this tries to get a descriptor. */
function isOutOfDescriptors(): boolean {
  try {
    closeSync(openSync(devNull, "r"));
    return false;
  } catch (error) {
    return ["EMFILE", "ENFILE", "ENOMEM"].includes(errorCode(error));
  }
}

/** Idle connections kept in all: each holds a file descriptor here and one at the other end. */
export const IDLE_CONNECTIONS_MAX = 256;
/** Idle connections kept to one target. */
export const IDLE_PER_TARGET_MAX = 16;
/** How long an idle connection stays open: less than the 5 s after which common servers close theirs. */
export const IDLE_MS_MAX = 4_000;
/** How often idle connections are checked. */
const SWEEP_MS = 1_000;
/** Connections that are being ended, at most: each holds a file descriptor, until the other end closes it. */
export const ENDING_CONNECTIONS_MAX = 256;
/** How long the other end may take, in milliseconds: a mail server may greet only after it has looked up the name of its client. */
const ENDING_MS_MAX = 10_000;
/** What it may still send, in bytes. */
const ENDING_BYTES_MAX = 64 * 1024;

/** Idle connections, for other requests to the same checked address and name. */
export class ConnectionPool {
  private readonly idle = new Map<string, Connection[]>();
  private count = 0;
  private cancelSweep: Cancel | null = null;
  private closed = false;
  private readonly ending = new Set<Connection>();

  /** Takes out an open connection for this key; null when there is none. */
  take(key: string): Connection | null {
    const waiting = this.idle.get(key);
    for (;;) {
      const connection = waiting?.pop();
      if (connection === undefined) return null;
      this.count -= 1;
      if (waiting?.length === 0) this.idle.delete(key);
      if (connection.isOpen && connection.idleSince > monotonicMs() - IDLE_MS_MAX) return connection;
      connection.destroy();
    }
  }

  /** Returns a connection to the pool, or closes it when there is no space. */
  give(connection: Connection): void {
    connection.listener = null;
    const waiting = this.idle.get(connection.key) ?? [];
    if (this.closed || this.count >= IDLE_CONNECTIONS_MAX || waiting.length >= IDLE_PER_TARGET_MAX) {
      connection.destroy();
      return;
    }
    connection.idleSince = monotonicMs();
    waiting.push(connection);
    this.idle.set(connection.key, waiting);
    this.count += 1;
    this.cancelSweep ??= realTimeout(SWEEP_MS, () => this.sweep());
  }

  /**
   * Ends a connection over which nothing was sent, and reads until the other end has closed it. To close it with unread
   * bytes would be a reset, after some of which servers such as MySQL block a client.
   */
  finish(connection: Connection): void {
    if (this.closed || this.ending.size >= ENDING_CONNECTIONS_MAX || !connection.isOpen) {
      connection.destroy();
      return;
    }
    let left = ENDING_BYTES_MAX;
    const close = (): void => {
      cancel();
      connection.listener = null;
      this.ending.delete(connection);
      connection.destroy();
    };
    const cancel = realTimeout(ENDING_MS_MAX, close);
    const onBytes = ({ length }: Buffer): void => {
      left -= length;
      if (left < 0) close();
    };
    connection.listener = { onBytes, onEnd: close };
    this.ending.add(connection);
    connection.end();
  }

  /** Idle connections. */
  get size(): number {
    return this.count;
  }

  /** Closes all of them, and keeps no more. */
  close(): void {
    this.closed = true;
    this.cancelSweep?.();
    for (const waiting of this.idle.values()) for (const connection of waiting) connection.destroy();
    this.idle.clear();
    this.count = 0;
    for (const connection of this.ending) connection.listener?.onEnd();
  }

  private sweep(): void {
    const oldest = monotonicMs() - IDLE_MS_MAX;
    for (const [key, waiting] of this.idle) {
      const kept = waiting.filter((connection) => connection.isOpen && connection.idleSince > oldest);
      for (const connection of waiting) if (!kept.includes(connection)) connection.destroy();
      this.count -= waiting.length - kept.length;
      if (kept.length === 0) this.idle.delete(key);
      else this.idle.set(key, kept);
    }
    this.cancelSweep = this.count === 0 ? null : realTimeout(SWEEP_MS, () => this.sweep());
  }
}

/** Thrown when an idle connection was closed before any response: a new one may succeed. */
export class StaleConnection extends Error {}

/**
 * Sends one request over a connection, with `bytes` before a body in pieces, and reads the response. Afterwards the connection has no listener, and is closed
 * unless it can be used again.
 *
 * @throws OutboundFailure `timeout`, `reset`, `malformed`, `too-large`
 * @throws StaleConnection
 */
export async function exchange(
  connection: Connection,
  bytes: Uint8Array,
  request: BodyOptions & Pick<PieceRequest, "method" | "body">,
  deadline: Deadline,
): Promise<ResponseReader> {
  const reader = new ResponseReader(request.method, request);
  const sending = isPieces(request.body) ? new Sending(connection, request.body) : null;
  try {
    await deadline.within<void>((settle) => {
      let heard = false;
      const end = (): void => {
        if (reader.end()) settle.resolve();
        else settle.reject(ended(connection, heard));
      };
      const onBytes = (received: Buffer): void => {
        heard = true;
        try {
          if (reader.push(received)) settle.resolve();
        } catch (error) {
          settle.reject(responseFailure(error));
        }
      };
      connection.listener = { onBytes, onEnd: end };
      // If it was closed since it was opened, no event will come.
      if (!connection.isOpen) return end();
      connection.write(bytes);
      sending?.run().catch(() => settle.reject(new OutboundFailure("local", "the body was removed")));
    });
  } catch (error) {
    connection.destroy();
    throw error;
  } finally {
    connection.listener = null;
  }
  connection.uses += 1;
  reader.address = connection.address;
  // A response before the end of the body: the rest is not sent.
  const isCut = sending !== null && !sending.stop();
  if (isCut) reader.reusable = false;
  if (!reader.reusable) connection.destroy();
  return reader;
}

/** A request whose body may be read piece by piece. */
interface PieceRequest {
  readonly method: string;
  readonly body: Uint8Array | PieceBody | null;
}

/** Sends a body piece by piece, as fast as the other end takes it. */
class Sending {
  private isOver = false;
  private isComplete = false;

  constructor(
    private readonly connection: Connection,
    private readonly body: PieceBody,
  ) {}

  /** @throws Error when the body is removed meanwhile */
  async run(): Promise<void> {
    for (const piece of this.body.pieces()) {
      if (this.isOver || !this.connection.isOpen) return;
      if (!this.connection.write(piece)) await this.connection.drained();
      else if (slices.isOver) await slices.next();
    }
    this.isComplete = true;
  }

  /** Ends it. Returns whether everything was sent. */
  stop(): boolean {
    this.isOver = true;
    return this.isComplete;
  }
}

/** What is said of a response that ends early. */
export const CUT = "the connection was closed before the response was complete";

function ended(connection: Connection, heard: boolean): Error {
  if (connection.uses > 0 && !heard) return new StaleConnection();
  // A server of gRPC that knows none of the protocols offered may complete the handshake, and close the connection afterwards.
  if (!heard && connection.protocol === "") return new OtherProtocol("reset", CUT, false);
  return new OutboundFailure("reset", CUT);
}

function responseFailure(error: unknown): OutboundFailure {
  if (error instanceof HeadTooLarge)
    return new OutboundFailure("too-large", "the response's headers are too long");
  if (error instanceof Http2Bytes)
    return new OtherProtocol("malformed", "the response is HTTP/2, not HTTP/1.1", true);
  return new OutboundFailure("malformed", "the response is not HTTP/1.1");
}
