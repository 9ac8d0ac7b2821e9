import { createVerify, type KeyObject, type Verify } from "node:crypto";

/** Content that a signature covers: texts, and the body as bytes. */
export type SignedContent = readonly (string | Uint8Array)[];

type HmacName = "sha1" | "sha256" | "sha512";

interface Running<Hasher> {
  readonly hasher: Hasher;
  /** What follows the body. */
  readonly after: SignedContent;
}

/**
 * The hashes of a body that is not in memory. The verification of its signature runs twice: before the body arrives it requests
 * what is to be hashed, and afterwards it gets the results of the same requests.
 */
export class BodyHashes {
  private readonly sha256 = new Bun.CryptoHasher("sha256");
  private readonly hmacs = new Map<string, Running<Bun.CryptoHasher> & { digest?: Buffer }>();
  private readonly verifiers = new Map<string, Running<Verify> & { isValid?: boolean }>();
  /** CRC-32 so far; null unless it is requested before the body arrives. */
  private crc: number | null = null;
  private isComplete = false;
  private digest: Buffer | null = null;

  /** Adds the next bytes of the body. */
  update(bytes: Uint8Array): void {
    this.sha256.update(bytes);
    if (this.crc !== null) this.crc = Bun.hash.crc32(bytes, this.crc);
    for (const { hasher } of this.hmacs.values()) hasher.update(bytes);
    for (const { hasher } of this.verifiers.values()) hasher.update(bytes);
  }

  /** Ends the body. */
  complete(): void {
    this.isComplete = true;
  }

  /** SHA-256 of the body; empty before it is complete. */
  get bodyDigest(): Buffer {
    if (!this.isComplete) return Buffer.alloc(0);
    this.digest ??= this.sha256.digest();
    return this.digest;
  }

  /** CRC-32 of the body; before it is complete, of what has arrived. */
  get bodyCrc(): number {
    this.crc ??= 0;
    return this.crc;
  }

  /** The HMAC of content whose bytes stand for the body; null before it is complete. */
  hmac(name: HmacName, key: string | Uint8Array, content: SignedContent): Buffer | null {
    const { before, after } = partsOf(content);
    const id = JSON.stringify([name, Buffer.from(key).toString("base64"), before, after]);
    let running = this.hmacs.get(id);
    if (running === undefined) {
      if (this.isComplete) return null;
      running = { hasher: fed(new Bun.CryptoHasher(name, key), before), after };
      this.hmacs.set(id, running);
    }
    if (!this.isComplete) return null;
    running.digest ??= fed(running.hasher, running.after).digest();
    return running.digest;
  }

  /** Whether an ECDSA signature of content whose bytes stand for the body is valid; false before it is complete. */
  isSignedBy(key: KeyObject, content: SignedContent, signature: Uint8Array): boolean {
    const { before, after } = partsOf(content);
    const pem = String(key.export({ type: "spki", format: "pem" }));
    const id = JSON.stringify([pem, before, after]);
    let running = this.verifiers.get(id);
    if (running === undefined) {
      if (this.isComplete) return false;
      running = { hasher: fed(createVerify("sha256"), before), after };
      this.verifiers.set(id, running);
    }
    if (!this.isComplete) return false;
    running.isValid ??= fed(running.hasher, running.after).verify(key, signature);
    return running.isValid;
  }
}

/** What stands before the body, and what follows it. */
function partsOf(content: SignedContent): { readonly before: SignedContent; readonly after: SignedContent } {
  const at = content.findIndex((part) => typeof part !== "string");
  return { before: content.slice(0, at), after: content.slice(at + 1) };
}

function fed<Hasher extends { update(part: string | Uint8Array): unknown }>(
  hasher: Hasher,
  parts: SignedContent,
): Hasher {
  for (const part of parts) hasher.update(part);
  return hasher;
}
