import { type KeyObject, X509Certificate } from "node:crypto";
import { ApiError } from "../../../kernel/errors.ts";
import { AttemptLimiter } from "../../../kernel/http/access/guard.ts";
import { LruMap } from "../../../kernel/limits/lru-map.ts";
import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { DAY_MS, MINUTE_MS } from "../../../kernel/time/units.ts";
import type { Provider } from "../domain.ts";

/** Certificates in memory: senders sign with one or two at a time. */
const CERTIFICATES_MAX = 100;
/** Largest certificate with its chain: some kilobytes are normal. */
export const CERTIFICATE_BYTES_MAX = 64 * 1024;
/** Time for which a certificate is not fetched again. */
export const CERTIFICATE_LIFETIME_MS = DAY_MS;
/** Time for which a certificate that could not be fetched is not requested again. */
export const CERTIFICATE_FAILURE_MS = 30_000;
/** Fetches for the requests of one bucket within a minute: anyone can send requests that name other certificates. */
export const CERTIFICATE_FETCHES_MAX = 10;
/** Concurrent fetches of all buckets: each holds a connection. */
const CONCURRENT_FETCHES_MAX = 20;
const FETCH_TIMEOUT_MS = 5_000;
const BLOCK = "-----BEGIN CERTIFICATE-----";
const CHAIN_LENGTH_MAX = 10;

/** Hosts of certificates by provider, as `host` or `host:port`, in place of the provider's own. */
export type CertificateHosts = Partial<Record<Provider, readonly string[]>>;

/** Where the certificates of a sender are, and whose they are. */
export interface CertificateSource {
  readonly provider: Provider;
  /** The sender's own hosts. */
  readonly hosts: RegExp;
  /** Paths of its certificates. */
  readonly path: RegExp;
  /** Names of its certificates. */
  readonly names: readonly string[];
}

/** Whether a URL leads to a host of a sender, by HTTPS, without a user or a fragment. */
export function isAtSender(
  url: URL,
  { provider, hosts }: CertificateSource,
  replaced: CertificateHosts,
): boolean {
  if (url.protocol !== "https:" || url.username !== "" || url.password !== "" || url.hash !== "")
    return false;
  const replacements = replaced[provider];
  if (replacements === undefined || replacements.length === 0)
    return url.port === "" && hosts.test(url.hostname);
  const port = url.port === "" ? "443" : url.port;
  return replacements.some(
    (host) => host === `${url.hostname}:${port}` || (port === "443" && host === url.hostname),
  );
}

/** Fetches the certificates that senders sign with from the senders' hosts, verifies their chains, and caches their keys. */
export class SigningCertificates {
  private readonly keys = new LruMap<string, { readonly key: KeyObject; readonly expiresAt: number }>(
    CERTIFICATES_MAX,
  );
  private readonly failures = new LruMap<string, { readonly isUntrusted: boolean; readonly until: number }>(
    CERTIFICATES_MAX,
  );
  private readonly fetching = new Map<string, Promise<KeyObject | null>>();
  private readonly fetches: AttemptLimiter;

  constructor(
    private readonly deps: {
      readonly outbound: Pick<OutboundClient, "send" | "trusts">;
      readonly clock: Clock;
      readonly certificateHosts: CertificateHosts;
    },
  ) {
    this.fetches = new AttemptLimiter(deps.clock, CERTIFICATE_FETCHES_MAX, MINUTE_MS);
  }

  /**
   * The public key of the certificate at a URL that a request names; null when the sender has no certificates there, or the
   * certificate is not the sender's.
   * @throws ApiError `service_unavailable` while it cannot be fetched: the sender retries
   */
  async keyAt(url: string | null, source: CertificateSource, bucketId: string): Promise<KeyObject | null> {
    const parsed = url === null ? null : URL.parse(url);
    if (parsed === null || !this.isCertificate(parsed, source)) return null;
    const { href } = parsed;
    const now = this.deps.clock.now();
    const known = this.keys.get(href);
    if (known !== undefined && known.expiresAt > now) return known.key;
    const failure = this.failures.get(href);
    if (failure !== undefined && failure.until > now) {
      if (failure.isUntrusted) return null;
      throw unavailable(Math.ceil((failure.until - now) / 1000));
    }
    const running = this.fetching.get(href);
    if (running !== undefined) return running;
    const waitSeconds = this.fetches.take(bucketId);
    if (waitSeconds > 0) throw unavailable(waitSeconds);
    if (this.fetching.size >= CONCURRENT_FETCHES_MAX) throw unavailable(1);
    const fetched = this.fetch(href, source).finally(() => this.fetching.delete(href));
    this.fetching.set(href, fetched);
    return fetched;
  }

  private isCertificate(url: URL, source: CertificateSource): boolean {
    return (
      isAtSender(url, source, this.deps.certificateHosts) &&
      url.search === "" &&
      source.path.test(url.pathname)
    );
  }

  private async fetch(url: string, { names }: CertificateSource): Promise<KeyObject | null> {
    const { outbound, clock } = this.deps;
    const outcome = await outbound.send({
      account: null,
      method: "GET",
      url,
      requireHttps: true,
      headers: {},
      body: null,
      timeoutMs: FETCH_TIMEOUT_MS,
      bodyBytesMax: CERTIFICATE_BYTES_MAX,
      keepsBody: true,
      longerBody: "fail",
      redirectsMax: 0,
      reuseConnection: false,
    });
    const now = clock.now();
    const until = now + CERTIFICATE_FAILURE_MS;
    if (!outcome.answered || outcome.status !== 200) {
      this.failures.set(url, { isUntrusted: false, until });
      throw unavailable(CERTIFICATE_FAILURE_MS / 1000);
    }
    const chain = chainIn(Buffer.from(outcome.body).toString("latin1"));
    const [leaf] = chain;
    const isOfSender = leaf !== undefined && names.some((name) => leaf.checkHost(name) !== undefined);
    if (!isOfSender || !outbound.trusts(chain, now)) {
      this.failures.set(url, { isUntrusted: true, until });
      return null;
    }
    const expiresAt = Math.min(now + CERTIFICATE_LIFETIME_MS, Date.parse(leaf.validTo));
    this.keys.set(url, { key: leaf.publicKey, expiresAt });
    return leaf.publicKey;
  }
}

/** The certificates in a text, the signer's first; none if one of them is broken. */
function chainIn(text: string): X509Certificate[] {
  const [, ...blocks] = text.split(BLOCK, CHAIN_LENGTH_MAX + 1);
  try {
    return blocks.map((block) => new X509Certificate(BLOCK + block));
  } catch {
    return [];
  }
}

function unavailable(retryAfterSeconds: number): ApiError {
  return new ApiError(
    "service_unavailable",
    "The certificate of the signature could not be fetched from the sender. Send the webhook again later.",
    { retryAfterSeconds },
  );
}
