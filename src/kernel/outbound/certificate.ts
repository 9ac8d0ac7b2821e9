import { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import type { DetailedPeerCertificate } from "node:tls";
import tls from "node:tls";

/** What a certificate says of itself. */
export interface Certificate {
  /** When it ends, epoch milliseconds; an intermediate certificate may end before the target's own. */
  readonly notAfter: number;
  /** Who issued it: the organization, else the common name. */
  readonly issuer: string;
  /** The intermediate certificate that ends first, unless that is the target's own: its common name, else the organization. */
  readonly intermediate?: string;
}

/** Longest name of an issuer: what X.509 allows (RFC 5280, appendix A.1). */
const NAME_LENGTH_MAX = 64;
/** Certificates of a target that are looked at: real chains have two to four. */
const CHAIN_LENGTH_MAX = 10;

/** The certificates of authorities that need no proof. */
export class TrustAnchors {
  private bySubject: Map<string, X509Certificate[]> | null = null;

  /** `authorities`: PEM of the only ones that are trusted; without it the built-in ones. */
  constructor(private readonly authorities?: string | readonly string[]) {}

  /** Whether one of them has issued a certificate. */
  haveIssued(certificate: X509Certificate): boolean {
    this.bySubject ??= Map.groupBy(this.read(), ({ subject }) => subject);
    const named = this.bySubject.get(certificate.issuer) ?? [];
    return named.some((issuer) => isIssuedBy(certificate, issuer));
  }

  /**
   * Whether a chain of certificates, the end's first, leads to one of them, each valid at `at` (epoch milliseconds) and issued by
   * an authority.
   */
  trusts([leaf, ...others]: readonly X509Certificate[], at: number): boolean {
    let current = leaf;
    for (let depth = 0; current !== undefined && depth <= others.length; depth += 1) {
      if (!isValidAt(current, at)) return false;
      if (this.haveIssued(current)) return true;
      const { issuer } = current;
      const issued: X509Certificate = current;
      current = others.find(
        (candidate) => candidate.ca && candidate.subject === issuer && isIssuedBy(issued, candidate),
      );
    }
    return false;
  }

  private read(): X509Certificate[] {
    const texts = [this.authorities ?? tls.rootCertificates].flat();
    return texts.map((text) => new X509Certificate(text));
  }
}

/** The certificate of a connection's other end; null without TLS. */
export function certificateOf(socket: Socket, anchors: TrustAnchors): Certificate | null {
  if (!(socket instanceof tls.TLSSocket)) return null;
  const leaf = socket.getPeerCertificate(true);
  const notAfter = Date.parse(leaf.valid_to);
  if (Number.isNaN(notAfter)) return null;
  // A name may stand several times.
  const [issuer = "unknown"] = [leaf.issuer.O ?? leaf.issuer.CN].flat();
  const certificate = { notAfter, issuer: issuer.slice(0, NAME_LENGTH_MAX) };
  const others = presentedWith(leaf);
  // Authorities let no certificate outlive its intermediate; what does is worth the proof.
  const isSuspicious = others.some(({ valid_to }) => Date.parse(valid_to) < notAfter);
  return isSuspicious ? (earlierOnPath(certificate, [leaf, ...others], anchors) ?? certificate) : certificate;
}

/** The other certificates that a target presents, in their order. */
function presentedWith(leaf: DetailedPeerCertificate): DetailedPeerCertificate[] {
  const all = new Set([leaf]);
  for (let next = leaf.issuerCertificate; next && !all.has(next); next = next.issuerCertificate) {
    if (all.size === CHAIN_LENGTH_MAX) break;
    all.add(next);
  }
  return [...all].slice(1);
}

/**
 * The certificate with the intermediate one that ends first, if that is before its own end. Only those on the path to a trusted
 * authority count: targets also present old ones, which clients do not need. Null: there is none.
 */
function earlierOnPath(
  certificate: Certificate,
  presented: readonly DetailedPeerCertificate[],
  anchors: TrustAnchors,
): Certificate | null {
  const [leaf, ...others] = presented.map((certificate) => ({
    read: new X509Certificate(certificate.raw),
    ...certificate,
  }));
  if (leaf === undefined) return null;
  let earliest: Certificate | null = null;
  let current = leaf;
  for (let depth = 0; depth < others.length && !anchors.haveIssued(current.read); depth += 1) {
    const { read } = current;
    const [issuer] = others
      .filter(
        (candidate) => candidate.read.subject !== candidate.read.issuer && isIssuedBy(read, candidate.read),
      )
      .toSorted((a, b) => Date.parse(b.valid_to) - Date.parse(a.valid_to));
    if (issuer === undefined) break;
    const notAfter = Date.parse(issuer.valid_to);
    const [name = "unknown"] = [issuer.subject.CN ?? issuer.subject.O].flat();
    if (notAfter < (earliest ?? certificate).notAfter)
      earliest = { ...certificate, notAfter, intermediate: name.slice(0, NAME_LENGTH_MAX) };
    current = issuer;
  }
  return earliest;
}

function isValidAt({ validFrom, validTo }: X509Certificate, at: number): boolean {
  return Date.parse(validFrom) <= at && at < Date.parse(validTo);
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/** The one that ends first. */
export function endingFirst(left: Certificate | null, right: Certificate | null): Certificate | null {
  if (left === null || right === null) return left ?? right;
  return left.notAfter <= right.notAfter ? left : right;
}
