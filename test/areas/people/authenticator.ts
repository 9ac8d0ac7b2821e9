import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** The options of a registration or login, as far as an authenticator reads them. */
interface Options {
  readonly challenge: string;
}

/** What a test makes differently from a correct authenticator. */
export interface Deviation {
  readonly origin?: string;
  readonly rpId?: string;
  readonly challenge?: string;
  /** Whether the user was verified. */
  readonly verified?: boolean;
  readonly counter?: number;
  readonly type?: string;
}

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const ATTESTED = 0x40;

/** A passkey in software: ES256, with a counter only where a test sets one. */
export class SoftwareAuthenticator {
  readonly id = crypto.getRandomValues(new Uint8Array(32));
  private readonly publicKey: KeyObject;
  private readonly privateKey: KeyObject;

  constructor(
    /** The origin of the page, such as `http://localhost:9909`. */
    private readonly origin: string,
  ) {
    const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.publicKey = pair.publicKey;
    this.privateKey = pair.privateKey;
  }

  /** Creates the passkey: what `navigator.credentials.create` returns. */
  create(options: Options, deviation: Deviation = {}) {
    const clientDataJSON = this.clientData("webauthn.create", options, deviation);
    const authData = this.authenticatorData(deviation, true);
    const attestation = cborMap([
      ["fmt", cborText("none")],
      ["attStmt", Buffer.from([0xa0])],
      ["authData", cborBytes(authData)],
    ]);
    return this.credential({
      clientDataJSON: base64url(clientDataJSON),
      attestationObject: base64url(attestation),
      transports: ["internal"],
    });
  }

  /** Uses the passkey: what `navigator.credentials.get` returns. */
  get(options: Options, deviation: Deviation = {}) {
    const clientDataJSON = this.clientData("webauthn.get", options, deviation);
    const authData = this.authenticatorData(deviation, false);
    const signed = Buffer.concat([authData, sha256(clientDataJSON)]);
    return this.credential({
      clientDataJSON: base64url(clientDataJSON),
      authenticatorData: base64url(authData),
      signature: base64url(sign("sha256", signed, this.privateKey)),
    });
  }

  private credential<Response extends object>(response: Response) {
    const id = base64url(this.id);
    return { id, rawId: id, type: "public-key", clientExtensionResults: {}, response };
  }

  private clientData(type: string, { challenge }: Options, deviation: Deviation): Buffer {
    const { origin = this.origin } = deviation;
    const body = { type: deviation.type ?? type, challenge: deviation.challenge ?? challenge, origin };
    return Buffer.from(JSON.stringify({ ...body, crossOrigin: false }));
  }

  private authenticatorData({ rpId, verified = true, counter = 0 }: Deviation, isNew: boolean): Buffer {
    const host = rpId ?? new URL(this.origin).hostname;
    const flags = USER_PRESENT | (verified ? USER_VERIFIED : 0) | (isNew ? ATTESTED : 0);
    const head = Buffer.alloc(37);
    head.set(sha256(Buffer.from(host)));
    head.writeUInt8(flags, 32);
    head.writeUInt32BE(counter, 33);
    if (!isNew) return head;
    const length = Buffer.alloc(2);
    length.writeUInt16BE(this.id.length);
    return Buffer.concat([head, Buffer.alloc(16), length, this.id, this.coseKey()]);
  }

  private coseKey(): Buffer {
    const { x = "", y = "" } = this.publicKey.export({ format: "jwk" });
    // kty EC2, alg ES256, crv P-256.
    const head = Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01]);
    const coordinate = (text: string) => cborBytes(Buffer.from(text, "base64url"));
    return Buffer.concat([head, Buffer.from([0x21]), coordinate(x), Buffer.from([0x22]), coordinate(y)]);
  }
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64url");
}

function cborHead(major: number, length: number): Buffer {
  if (length < 24) return Buffer.from([(major << 5) | length]);
  if (length < 256) return Buffer.from([(major << 5) | 24, length]);
  return Buffer.from([(major << 5) | 25, length >> 8, length & 255]);
}

function cborBytes(bytes: Uint8Array): Buffer {
  return Buffer.concat([cborHead(2, bytes.length), bytes]);
}

function cborText(text: string): Buffer {
  return Buffer.concat([cborHead(3, text.length), Buffer.from(text)]);
}

function cborMap(entries: readonly (readonly [string, Buffer])[]): Buffer {
  const parts = entries.flatMap(([name, value]) => [cborText(name), value]);
  return Buffer.concat([cborHead(5, entries.length), ...parts]);
}
