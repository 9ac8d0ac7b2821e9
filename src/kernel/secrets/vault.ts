import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

const FORMAT = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes of a master key: AES-256. */
export const MASTER_KEY_BYTES = 32;

/** Encrypts secrets in the database (AES-256-GCM with the master key). */
export interface Vault {
  /**
   * Encrypts `plain`. `context` names its purpose and owner (for example `platform-key:usr_…`): a sealed value that is
   * moved to another row cannot be opened.
   */
  seal(plain: string, context: string): Uint8Array;
  /** Decrypts a value of {@link seal}. @throws Error if the key, the context or a single bit differs. */
  open(sealed: Uint8Array, context: string): string;
  /** Derives a key of 32 bytes for one purpose: the same at every start; the master key cannot be computed from it. */
  derive(purpose: string): Uint8Array;
}

/** A vault under a 32-byte master key. */
export function createVault(masterKey: Uint8Array): Vault {
  if (masterKey.length !== MASTER_KEY_BYTES) throw new Error(`a master key has ${MASTER_KEY_BYTES} bytes`);
  return {
    seal(plain, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", masterKey, nonce);
      cipher.setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]);
      return new Uint8Array(Buffer.concat([Buffer.of(FORMAT), nonce, body, cipher.getAuthTag()]));
    },
    open(sealed, context) {
      if (sealed.length < 1 + NONCE_BYTES + TAG_BYTES || sealed[0] !== FORMAT)
        throw new Error("not a sealed value");
      const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
      const decipher = createDecipheriv("aes-256-gcm", masterKey, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(context));
      decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
      const body = sealed.subarray(1 + NONCE_BYTES, sealed.length - TAG_BYTES);
      return Buffer.concat([decipher.update(body), decipher.final()]).toString("utf8");
    },
    derive: (purpose) => new Uint8Array(hkdfSync("sha256", masterKey, "", purpose, MASTER_KEY_BYTES)),
  };
}
