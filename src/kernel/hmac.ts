/**
 * An HMAC-SHA256 that is fed part by part. Of the runtime's two forms this one takes a microsecond less than
 * `createHmac`, and each webhook that comes in or goes out takes one.
 */
export function hmacSha256(key: string | Uint8Array): Bun.CryptoHasher {
  return new Bun.CryptoHasher("sha256", key);
}
