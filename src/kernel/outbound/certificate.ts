import type { Socket } from "node:net";
import { node } from "./node.ts";

/** What a certificate says of itself. */
export interface Certificate {
  /** When it ends, epoch milliseconds. */
  readonly notAfter: number;
  /** Who issued it: the organization, else the common name. */
  readonly issuer: string;
}

/** Longest name of an issuer: what X.509 allows (RFC 5280, appendix A.1). */
const ISSUER_LENGTH_MAX = 64;

/** The certificate of a connection's other end; null without TLS. */
export function certificateOf(socket: Socket): Certificate | null {
  if (!(socket instanceof node.tls.TLSSocket)) return null;
  const { valid_to, issuer } = socket.getPeerCertificate();
  const notAfter = Date.parse(valid_to);
  // A name may stand several times.
  const [name = "unknown"] = [issuer.O ?? issuer.CN].flat();
  return Number.isNaN(notAfter) ? null : { notAfter, issuer: name.slice(0, ISSUER_LENGTH_MAX) };
}

/** The one that ends first. */
export function endingFirst(one: Certificate | null, other: Certificate | null): Certificate | null {
  if (one === null || other === null) return one ?? other;
  return one.notAfter <= other.notAfter ? one : other;
}
