import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

const FORMAT = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes of a master key: AES-256. */
export const MASTER_KEY_BYTES = 32;

/** Seals what must not stand in the database file in clear (AES-256-GCM under the master key). */
export interface Vault {
  /**
   * Encrypts `plain`. `context` says what it is and whose (for example `platform-key:usr_…`): a sealed value
   * moved to another place does not open.
   */
  seal(plain: string, context: string): Uint8Array;
  /** Decrypts what {@link seal} made. @throws Error when key, context or a single bit differ. */
  open(sealed: Uint8Array, context: string): string;
  /** A key of 32 bytes for one purpose: the same at every start, and no way back to the master key. */
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
