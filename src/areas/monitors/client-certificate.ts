import { createPrivateKey, X509Certificate } from "node:crypto";
import { invalidField } from "../../kernel/errors.ts";

/** Longest key of a client certificate, PEM: RSA of 8,192 bits. */
export const CLIENT_KEY_LENGTH_MAX = 8_192;

/**
 * Checks a client certificate and its key: both, or neither.
 * @throws ApiError `validation_error` naming the field
 */
export function assertClientCertificate(certificate: string | null, key: string | null): void {
  if (certificate === null && key === null) return;
  if (key === null) throw invalidField("tls_client_key", "is required with a tls_client_certificate");
  if (certificate === null) throw invalidField("tls_client_certificate", "is required with a tls_client_key");
  const parsed = parse(() => new X509Certificate(certificate));
  if (parsed === null)
    throw invalidField("tls_client_certificate", "must be a certificate as PEM (BEGIN CERTIFICATE)");
  const privateKey = parse(() => createPrivateKey(key));
  if (privateKey === null)
    throw invalidField("tls_client_key", "must be a private key as PEM, without a passphrase");
  if (!parsed.checkPrivateKey(privateKey))
    throw invalidField("tls_client_key", "must be the key of the tls_client_certificate");
}

function parse<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}
