import type { X509Certificate } from "node:crypto";
import type { ClientHttp2Session } from "node:http2";
import { isIPv6 } from "node:net";
import type { WorkGate } from "../scheduler/scheduler.ts";
import { monotonicMs } from "../time/clock.ts";
import { allowedAddresses } from "./address.ts";
import { type Certificate, endingFirst } from "./certificate.ts";
import { ConnectRace, inTurns } from "./connect-race.ts";
import {
  type ClientCertificate,
  type Connection,
  ConnectionPool,
  Connector,
  connectionKey,
  exchange,
  HTTP_TLS,
  StaleConnection,
  type TlsTerms,
} from "./connection.ts";
import { Cookies } from "./cookies.ts";
import { type RecordType, reverseName } from "./dns/message.ts";
import { DNS_PORT } from "./dns/name-servers.ts";
import { type EventLoopStalls, type EventLoopWatch, STALL_MS_MAX, watchEventLoop } from "./event-loop.ts";
import { FirstBytes } from "./first-bytes.ts";
import { type Below, type RequestHeaders, requestBytes, withoutSecrets } from "./headers.ts";
import { exchangeHttp2, Http2Wire } from "./http2.ts";
import { type ChosenServer, createSystemResolver, Lookups, type Resolver } from "./lookups.ts";
import {
  type Answered,
  Deadline,
  type Failed,
  type Measured,
  OtherProtocol,
  OutboundFailure,
  type OutboundOutcome,
} from "./outcome.ts";
import { isPieces, type PieceBody } from "./piece-body.ts";
import { type PingStatistics, Pings } from "./ping.ts";
import type { BodyOptions, ResponseReader } from "./response-reader.ts";
import { requestTls, type StartTls } from "./starttls.ts";
import { knownAddresses, type Refusal, type Target, TargetPolicy, type TargetRules } from "./target.ts";

/** Addresses of one name that are tried before a request is given up. */
export const ADDRESSES_TRIED_MAX = 4;

/** A request to someone else's server. */
export interface OutboundRequest extends TargetRules, BodyOptions {
  /** Reference of the account whose request it is: its lookups are counted together. Null: the operator's own. */
  readonly account: number | null;
  readonly method: string;
  readonly url: string;
  /** What follows the path and the query of the URL; a redirect does not repeat it. */
  readonly below?: Below | undefined;
  /** Those about connection and framing are omitted: the client sets its own. */
  readonly headers: RequestHeaders;
  readonly body: Uint8Array | PieceBody | null;
  /** Real time for everything: lookup, connection, redirects, and the response. A body in pieces has more, by its size. */
  readonly timeoutMs: number;
  /** What happens when the body is longer: the rest is dropped (`truncate`), or the request fails (`fail`). */
  readonly longerBody: "truncate" | "fail";
  /** Redirects that are followed; 0: a redirect is the response. */
  readonly redirectsMax: number;
  /** Whether cookies that a response sets are sent with the redirects that follow it. */
  readonly keepsCookies?: boolean;
  /** Whether a connection left open by an earlier request may carry this one. */
  readonly reuseConnection: boolean;
  /** Whether the outcome says what certificate was met: on new connections alone. */
  readonly readsCertificate?: boolean;
  /** Whether a certificate that is not valid is a failure (the default). Without `reuseConnection` only. */
  readonly verifiesTls?: boolean;
  /** Presented to servers of the URL's origin that request one. Without `reuseConnection` only. */
  readonly clientCertificate?: ClientCertificate | null;
  /** Whether it is sent over HTTP/2 to a server that offers nothing else. Without `reuseConnection` and a body in pieces only. */
  readonly fallsBackToHttp2?: boolean;
}

/** A TCP connection, over which nothing is sent. */
export interface TcpRequest {
  /** As in {@link OutboundRequest}. */
  readonly account: number | null;
  readonly host: string;
  readonly port: number;
  /** TLS from the start, or after a command; null: none. */
  readonly tls: "direct" | StartTls | null;
  /** Text that is searched in what the other end sends first, before `STARTTLS`; null: nothing is read. */
  readonly expected: string | null;
  /** Real time for everything: lookup, connection and the text. */
  readonly timeoutMs: number;
}

/** What became of a connection. */
export type TcpOutcome = Failed | (Measured & Connected);

/** A connection was made. */
interface Connected {
  readonly answered: true;
  readonly address: string;
  /** Whether the expected text was found in the first bytes, or none was expected. */
  readonly found: boolean;
  /** What it presented; null without TLS. */
  readonly certificate: Certificate | null;
}

/** A lookup of records. */
export interface RecordsRequest {
  /** As in {@link OutboundRequest}. */
  readonly account: number | null;
  readonly host: string;
  readonly type: RecordType;
  /** The name server that is queried; null for those of the system. */
  readonly resolver: HostAndPort | null;
  readonly timeoutMs: number;
}

/** Packets to a host. */
export interface PingRequest {
  /** As in {@link OutboundRequest}. */
  readonly account: number | null;
  readonly host: string;
  readonly packets: number;
  /** Real time for sending and replies, from the first packet on; a lookup before it has as much. */
  readonly timeoutMs: number;
}

/** What became of packets. Without a reply there are statistics, too. */
export type PingOutcome =
  | Failed
  | (Measured & PingStatistics & { readonly answered: true; readonly address: string });

/** A port of a host. */
export interface HostAndPort {
  /** Name or address, without brackets. */
  readonly host: string;
  readonly port: number;
}

/** What became of a lookup of records. */
export type RecordsOutcome =
  | Failed
  | (Measured & { readonly answered: true; readonly values: readonly string[] });

/** What tests put in place of parts of the real network. */
export interface OutboundOverrides {
  readonly resolver?: Resolver;
  /** PEM of the only certificate authorities that are trusted. */
  readonly certificateAuthorities?: string | string[];
  readonly stalls?: EventLoopStalls;
  /** Accepts the certificates of servers on this machine, which are for the names that others know them by. */
  readonly trustLoopback?: boolean;
  /** Where connections to an address really go: how a test has hosts with public addresses on its own machine. */
  readonly leadTo?: (address: string) => string;
  /** Path of a command of the machine by its name; null without one. */
  readonly commandNamed?: (name: string) => string | null;
  /** The process that sends, as errors name it: `server` by default. */
  readonly runsIn?: "server" | "probe";
}

/** An HTTP/2 session to a checked address. */
export type Http2Session = ClientHttp2Session;

/** A connection that is only tried. */
export interface Reach {
  /** As in {@link OutboundRequest}. */
  readonly account: number | null;
  readonly timeoutMs: number;
  /** The operator has named the host: it may be anywhere. */
  readonly anywhere?: boolean;
}

/** Time that a body in pieces has in addition, in milliseconds for each MiB: 1 MiB/s is a slow line. */
const SENDING_MS_PER_MIB = 1_000;
/** Attempts of a probe during which the process stands still, see {@link OutboundClient.reaches}: the stall may pass. */
const REACH_ATTEMPTS_MAX = 3;

/** Servers of other protocols than HTTP may reject names of protocols that are not theirs. */
const TCP_TLS: TlsTerms = { ...HTTP_TLS, protocols: [] };

/** Packets have no port: rules for hosts are the same for each. */
const ANY_PORT = 80;

/** A text as its bytes, one character each, as replies before TLS are read. */
function latin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}

const ANYWHERE = new TargetPolicy(allowedAddresses(["all"]));

/**
 * Every request that the server makes goes through here. A name is resolved once, all of its addresses are checked, and
 * the connection is made to one of those addresses.
 */
export class OutboundClient {
  /** Decides where requests may go; areas check URLs with it when they are set. */
  readonly policy: TargetPolicy;
  private readonly pool = new ConnectionPool();
  private readonly connector: Connector;
  private readonly lookups: Lookups;
  private readonly pings: Pings;
  private readonly stalls: EventLoopStalls;
  /** Requests whose outcome is not known yet. */
  private inFlight = 0;

  /**
   * `allowPrivateTargets`: the addresses that the operator permits in addition to public ones; `watch`: who else follows the
   * event loop; `gate`: decides whether a request may leave now, null: always.
   * @throws StartupError for an entry that is not an address, a range, `loopback`, `private` or `all`.
   */
  constructor(
    allowPrivateTargets: readonly string[],
    overrides: OutboundOverrides = {},
    { onTick, isIdle = () => false }: EventLoopWatch = {},
    private readonly gate: Pick<WorkGate, "pass"> | null = null,
  ) {
    this.policy = new TargetPolicy(allowedAddresses(allowPrivateTargets), overrides.runsIn);
    this.lookups = new Lookups(overrides.resolver ?? createSystemResolver());
    this.connector = new Connector(
      overrides.certificateAuthorities,
      overrides.trustLoopback,
      overrides.leadTo,
    );
    this.pings = new Pings(overrides.commandNamed);
    this.stalls =
      overrides.stalls ??
      watchEventLoop({ ...(onTick && { onTick }), isIdle: () => this.inFlight === 0 && isIdle() });
  }

  /**
   * Whether the authorities that this client trusts have issued a certificate, by the chain that it begins, which must be valid at
   * `at`, in epoch milliseconds.
   */
  trusts(chain: readonly X509Certificate[], at: number): boolean {
    return this.connector.anchors.trusts(chain, at);
  }

  /** Sends a request. What targets do is in the outcome, and never thrown. */
  send(request: OutboundRequest): Promise<OutboundOutcome> {
    const timeoutMs = request.timeoutMs + sendingMs(request.body);
    return this.measure(timeoutMs, (deadline, led) => this.follow({ ...request, deadline, led }));
  }

  /** Connects to a port, also with TLS, and searches a text in what the other end sends first. */
  connectTo({ account, host, port, tls, expected, timeoutMs }: TcpRequest): Promise<TcpOutcome> {
    return this.measure(timeoutMs, async (deadline, led): Promise<Connected> => {
      const named = accepted(this.policy.examineHost(host, port), "the host");
      const target = { ...named, secure: tls === "direct" };
      const addresses = await this.checkedAddresses(
        target,
        { account, deadline, led },
        this.policy,
        "the host",
      );
      let connection = await this.connect(target, addresses, deadline, TCP_TLS);
      try {
        const { address } = connection;
        if (tls !== null && tls !== "direct") {
          const greeting = await requestTls(connection, tls, deadline);
          connection = await this.connector.upgrade(connection, target, deadline, TCP_TLS);
          const found = expected === null || greeting.includes(latin1(expected));
          return { answered: true, address, found, certificate: connection.certificate };
        }
        const { certificate } = connection;
        const found = expected === null || (await new FirstBytes(expected).readFrom(connection, deadline));
        return { answered: true, address, found, certificate };
      } finally {
        this.pool.finish(connection);
      }
    });
  }

  /**
   * Looks up a name's records of one type; the `PTR` records of an address by its reverse name. Records of the system's name servers
   * with an address that is not allowed are a failure: they can serve internal zones. Another name server is only queried at an
   * allowed address, and returns what it returns to everybody there.
   */
  lookUp({ account, host, type, resolver, timeoutMs }: RecordsRequest): Promise<RecordsOutcome> {
    return this.measure(timeoutMs, async (deadline, led) => {
      const target = accepted(this.policy.examineHost(host, DNS_PORT), "the host");
      const name = type === "PTR" && target.isAddress ? reverseName(target.host) : target.host;
      const chosen = resolver === null ? undefined : await this.chosen(resolver, { account, deadline, led });
      const values = await this.lookups.recordsOf(name, type, account, deadline, chosen);
      const isGuarded = chosen === undefined && (type === "A" || type === "AAAA");
      const addresses = isGuarded ? values : [];
      const refusal = this.policy.rejectionOf(target, addresses, {});
      if (refusal !== null) throw rejectionFailure(refusal, "the name");
      return { answered: true, values } as const;
    });
  }

  /** Sends packets to a host by the `ping` of the system, to a checked address. */
  ping({ account, host, packets, timeoutMs }: PingRequest): Promise<PingOutcome> {
    return this.measure(timeoutMs, async (deadline, led) => {
      const target = accepted(this.policy.examineHost(host, ANY_PORT), "the host");
      const seeking = { account, deadline, led };
      const addresses = await this.checkedAddresses(target, seeking, this.policy, "the host");
      const statistics = await this.pings.send(addresses, { account, packets, timeoutMs }, deadline);
      return { answered: true, ...statistics } as const;
    });
  }

  /** A name server at its checked addresses. @throws OutboundFailure */
  private async chosen({ host, port }: HostAndPort, seeking: Seeking): Promise<ChosenServer> {
    const target = accepted(this.policy.examineHost(host, port), "the resolver");
    const addresses = await this.checkedAddresses(target, seeking, this.policy, "the resolver");
    const servers = addresses.map((address) => `${isIPv6(address) ? `[${address}]` : address}:${port}`);
    return { name: port === DNS_PORT ? host : `${isIPv6(host) ? `[${host}]` : host}:${port}`, servers };
  }

  /** Runs the work of a request until its end or its deadline. What targets do is in the outcome, and never thrown. */
  private async measure<Done extends { readonly answered: true }>(
    timeoutMs: number,
    work: (deadline: Deadline, led: Led) => Promise<Done>,
  ): Promise<(Done & Measured) | Failed> {
    const startedAt = monotonicMs();
    const deadline = new Deadline(timeoutMs);
    const led: Led = { addresses: [], heldMs: 0 };
    this.inFlight += 1;
    this.stalls.wake();
    try {
      const done = await work(deadline, led);
      return { ...done, ...this.measured(startedAt, led) };
    } catch (error) {
      if (!(error instanceof OutboundFailure)) throw error;
      const { addresses } = led;
      return { answered: false, failure: error, addresses, ...this.measured(startedAt, led) };
    } finally {
      this.inFlight -= 1;
      deadline.close();
    }
  }

  /**
   * Whether a host takes connections, over which nothing is sent. True also where this machine has none to give. A timeout during
   * which this process stood still is no result: the attempt is repeated.
   */
  async reaches(url: string, { account, timeoutMs, anywhere = false }: Reach): Promise<boolean> {
    const policy = anywhere ? ANYWHERE : this.policy;
    const target = policy.examine(url);
    if ("refused" in target) return false;
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await this.measure(timeoutMs, async (deadline, led) => {
        const addresses = await this.checkedAddresses(target, { account, deadline, led }, policy);
        const connection = await this.connect({ ...target, secure: false }, addresses, deadline);
        this.pool.finish(connection);
        return { answered: true } as const;
      });
      if (outcome.answered) return true;
      const { failure, stalledMs } = outcome;
      const isResult = failure.kind !== "timeout" || stalledMs <= STALL_MS_MAX;
      if (isResult || attempt === REACH_ATTEMPTS_MAX) return failure.kind === "local";
    }
  }

  /**
   * Opens an HTTP/2 session, without TLS with prior knowledge. The caller closes it; its errors need no listener.
   *
   * @throws OutboundFailure
   */
  async openHttp2(url: string, timeoutMs: number): Promise<Http2Session> {
    const deadline = new Deadline(timeoutMs);
    try {
      // Loaded on use, and before there is a connection: the server may send its settings immediately.
      const { connect } = await import("node:http2");
      const target = this.targetOf(url, {});
      const seeking = { account: null, deadline, led: { addresses: [], heldMs: 0 } };
      const addresses = await this.checkedAddresses(target, seeking);
      const connection = await this.connect(target, addresses, deadline, { ...HTTP_TLS, protocols: ["h2"] });
      const session = connect(target.url.origin, { createConnection: () => connection.detach() });
      // Each stream reports them, too; an error without a listener would end the process.
      session.on("error", () => {});
      return session;
    } finally {
      deadline.close();
    }
  }

  /** Closes idle connections. */
  close(): void {
    this.pool.close();
    this.stalls.stop();
  }

  private measured(startedAt: number, { heldMs }: Led): Measured {
    return {
      latencyMs: Math.round(monotonicMs() - startedAt - heldMs),
      stalledMs: Math.round(this.stalls.longestSince(startedAt)),
    };
  }

  private async follow(request: Sending): Promise<Unmeasured> {
    let target = this.targetOf(request.url, request);
    let current = request;
    let certificate: Certificate | null = null;
    const cookies = request.keepsCookies === true ? new Cookies() : null;
    for (let redirects = 0; ; redirects += 1) {
      const { headers } = current;
      const sent = cookies === null ? current : { ...current, headers: cookies.addTo(headers, target.url) };
      const response = await this.ask(target, sent);
      cookies?.take(response.headers["set-cookie"], target.url);
      certificate = endingFirst(certificate, response.certificate);
      const location = redirectOf(response);
      if (location === null || request.redirectsMax === 0) {
        return { ...answered(response, request), certificate };
      }
      if (redirects >= request.redirectsMax) {
        throw new OutboundFailure("redirects", `more than ${request.redirectsMax} redirects`);
      }
      const next = this.targetOf(resolveLocation(location, target.url), request);
      current = redirected(current, response.status, next.url.origin === target.url.origin);
      target = next;
    }
  }

  private targetOf(url: string, rules: TargetRules): Target {
    return accepted(this.policy.examine(url, rules), "the URL");
  }

  /** One request and its response, without following anything. */
  private async ask(target: Target, request: Sending): Promise<ResponseReader> {
    const addresses = await this.checkedAddresses(target, request);
    const bytes = requestBytes(target, request, request.reuseConnection);
    if (request.reuseConnection) {
      const response = await this.askIdle(target, addresses, bytes, request);
      if (response !== null) return response;
    }
    const { verifiesTls: verify = true, clientCertificate: client = null, fallsBackToHttp2, led } = request;
    const terms = { ...HTTP_TLS, verify, client };
    const [since, { heldMs }] = [monotonicMs(), led];
    try {
      const connection = await this.connect(target, addresses, request.deadline, terms);
      return await withCertificate(connection, request, () => this.askOver(connection, bytes, request));
    } catch (error) {
      if (fallsBackToHttp2 !== true || !(error instanceof OtherProtocol)) throw error;
      const connection = await this.connectHttp2(target, addresses, request, terms, error);
      // The latency is that of HTTP/2 alone.
      led.heldMs = heldMs + monotonicMs() - since;
      return await withCertificate(connection, request, () => this.askHttp2(connection, target, request));
    }
  }

  /** Connects again, for HTTP/2. @throws `reason` if that is not certain to be the server's protocol */
  private async connectHttp2(
    target: Target,
    addresses: readonly string[],
    { deadline }: Sending,
    terms: TlsTerms,
    reason: OtherProtocol,
  ): Promise<Connection> {
    try {
      const connection = await this.connect(target, addresses, deadline, { ...terms, protocols: ["h2"] });
      if (reason.isCertain || connection.protocol === "h2") return connection;
      connection.destroy();
    } catch (error) {
      if (reason.isCertain) throw error;
    }
    throw reason;
  }

  private async askHttp2(connection: Connection, target: Target, request: Sending): Promise<ResponseReader> {
    const wire = new Http2Wire(connection, request);
    if (this.gate !== null) await passGate(this.gate, connection, request);
    return exchangeHttp2(wire, target, request, request.deadline);
  }

  /** Null: there is no idle connection, or it was dead. */
  private async askIdle(
    target: Target,
    addresses: readonly string[],
    bytes: Uint8Array,
    request: Sending,
  ): Promise<ResponseReader | null> {
    for (const address of addresses) {
      const idle = this.pool.take(connectionKey(target, address));
      if (idle === null) continue;
      try {
        return await this.askOver(idle, bytes, request);
      } catch (error) {
        if (!(error instanceof StaleConnection)) throw error;
        return null;
      }
    }
    return null;
  }

  private async askOver(
    connection: Connection,
    bytes: Uint8Array,
    request: Sending,
  ): Promise<ResponseReader> {
    if (this.gate !== null) await passGate(this.gate, connection, request);
    const response = await exchange(connection, bytes, request, request.deadline);
    if (!response.reusable) return response;
    if (request.reuseConnection) this.pool.give(connection);
    else connection.destroy();
    return response;
  }

  private async checkedAddresses(
    target: Target,
    request: Seeking,
    policy = this.policy,
    subject = "the URL",
  ): Promise<readonly string[]> {
    const { account, deadline, led } = request;
    led.addresses = [];
    const addresses =
      knownAddresses(target) ?? (await this.lookups.addressesOf(target.host, account, deadline));
    led.addresses = addresses;
    const refusal = policy.rejectionOf(target, addresses, request);
    if (refusal !== null) throw rejectionFailure(refusal, subject);
    return inTurns(addresses).slice(0, ADDRESSES_TRIED_MAX);
  }

  /**
   * Connects to the address that accepts a connection first. The next one is tried when the one before has failed, or has
   * not responded for {@link ATTEMPT_DELAY_MS} (RFC 8305, section 5).
   */
  private connect(
    target: Target,
    addresses: readonly string[],
    deadline: Deadline,
    terms: TlsTerms = HTTP_TLS,
  ): Promise<Connection> {
    const race = new ConnectRace(addresses, (address) =>
      this.connector.open(target, address, deadline, terms),
    );
    return race.run();
  }
}

/** Reads the certificate first, where it is wanted: once the response is there the connection may be gone. */
async function withCertificate(
  connection: Connection,
  { readsCertificate }: OutboundRequest,
  ask: () => Promise<ResponseReader>,
): Promise<ResponseReader> {
  const certificate = readsCertificate === true ? connection.certificate : null;
  const response = await ask();
  response.certificate = certificate;
  return response;
}

/** Asked last, since looking up a name and connecting take time. @throws OutboundFailure `local` */
async function passGate(
  gate: Pick<WorkGate, "pass">,
  connection: Connection,
  { account, deadline, led }: Sending,
): Promise<void> {
  try {
    const passing = gate.pass(account);
    if (passing === undefined) return;
    const since = monotonicMs();
    await deadline.within<void>(({ resolve, reject }) => void passing.then(resolve, reject));
    led.heldMs += monotonicMs() - since;
  } catch {
    connection.destroy();
    throw new OutboundFailure("local", "this server cannot confirm its changes now");
  }
}

/** Time for sending a body, in addition to that of the response. */
function sendingMs(body: OutboundRequest["body"]): number {
  return isPieces(body) ? Math.ceil(body.length / (1024 * 1024)) * SENDING_MS_PER_MIB : 0;
}

/** Where the name of a request led, also where nothing comes of it. */
interface Led {
  addresses: readonly string[];
  /** How long this server has held it back, or has tried another protocol. */
  heldMs: number;
}

/** What a lookup needs of a request. */
type Seeking = TargetRules &
  Pick<OutboundRequest, "account"> & { readonly deadline: Deadline; readonly led: Led };

/** A request with the end of its time. */
type Sending = OutboundRequest & Seeking;

type Unmeasured = Omit<Answered, keyof Measured>;

function answered(response: ResponseReader, request: OutboundRequest): Omit<Unmeasured, "certificate"> {
  if (response.truncated && request.longerBody === "fail") {
    throw new OutboundFailure(
      "too-large",
      `the response's body is larger than ${request.bodyBytesMax} bytes`,
    );
  }
  const { status, headers, truncated, address } = response;
  return { answered: true, status, headers, body: response.storedBody, truncated, address };
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

function redirectOf(response: ResponseReader): string | null {
  return REDIRECTS.has(response.status) ? (response.headers["location"] ?? null) : null;
}

/** Bytes beyond ASCII, as the reader has them: one per character. */
const RAW_BYTE = /[\x80-\xff]/g;

/** Bytes that a server should have percent-encoded are encoded as they are, whatever their charset. */
function resolveLocation(location: string, base: URL): string {
  const encoded = location.replace(RAW_BYTE, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);
  const url = URL.parse(encoded, base.href);
  if (url === null) throw new OutboundFailure("invalid", "the redirect leads to no URL");
  return url.href;
}

/** The request after a redirect, as browsers make it (Fetch standard): 303, and 301 or 302 after POST, become a GET. */
function redirected({ below: _, ...request }: Sending, status: number, sameOrigin: boolean): Sending {
  const headers = sameOrigin ? request.headers : withoutSecrets(request.headers);
  const clientCertificate = sameOrigin ? (request.clientCertificate ?? null) : null;
  const becomesGet =
    (status === 303 && request.method !== "HEAD") || (status <= 302 && request.method === "POST");
  if (!becomesGet) return { ...request, headers, clientCertificate };
  return { ...request, headers, clientCertificate, method: "GET", body: null };
}

/** @throws OutboundFailure `blocked`, `invalid` */
function accepted(target: Target | Refusal, subject: string): Target {
  if ("refused" in target) throw rejectionFailure(target, subject);
  return target;
}

function rejectionFailure({ refused, isBlocked }: Refusal, subject: string): OutboundFailure {
  return new OutboundFailure(isBlocked ? "blocked" : "invalid", `${subject} ${refused}`);
}
