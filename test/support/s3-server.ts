import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignatureV4 } from "@smithy/signature-v4";
import S3rver from "s3rver";

/** How the server behaves: as it should, answering 503, never answering, or sending elsewhere. */
export type S3Mode = "up" | "down" | "hanging" | "redirecting";

/** A request that the server got. */
export interface S3Request {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** The SHA-256 that AWS's signer asks for, plain or keyed. */
class Sha256 {
  private readonly state: Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.state = secret === undefined ? createHash("sha256") : createHmac("sha256", secret as string);
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.state.update(data as string);
  }

  async digest(): Promise<Uint8Array> {
    return this.state.digest();
  }

  reset(): void {}
}

/**
 * An S3 server on a loopback socket: s3rver keeps the objects, and in front of it AWS's own signer checks every
 * signature and the bytes that it covers. `If-None-Match: *` is honoured as Amazon S3 does, which s3rver does not.
 */
export class S3Server {
  readonly accessKeyId = "AKIATESTTESTTESTTEST";
  readonly secretAccessKey = "test+secret/test+secret/test+secret/test";
  readonly region = "eu-test-1";
  readonly bucket = "receipts";
  mode: S3Mode = "up";
  /** Every request, whatever became of it. */
  readonly requests: S3Request[] = [];
  private readonly directory = mkdtempSync(join(tmpdir(), "ninefold-s3-"));
  private readonly store = new S3rver({
    address: "127.0.0.1",
    port: 0,
    silent: true,
    directory: this.directory,
    configureBuckets: [{ name: "receipts" }],
  });
  private storeUrl = "";
  private front: ReturnType<typeof Bun.serve> | null = null;

  async start(): Promise<this> {
    this.storeUrl = `http://127.0.0.1:${(await this.store.run()).port}`;
    this.front = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 60,
      fetch: (request) => this.answer(request),
    });
    return this;
  }

  async stop(): Promise<void> {
    await this.front?.stop(true);
    await this.store.close();
    rmSync(this.directory, { recursive: true, force: true });
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.front?.port}`;
  }

  /** A configuration that works. */
  config(prefix?: string): Record<string, string> {
    const { endpoint, bucket, region, accessKeyId, secretAccessKey } = this;
    const given = { endpoint, bucket, region, accessKeyId, secretAccessKey };
    return prefix === undefined ? given : { ...given, prefix };
  }

  /** The text of an object in the bucket, or null. */
  async object(key: string): Promise<string | null> {
    const answer = await fetch(`${this.storeUrl}/${this.bucket}/${key}`);
    return answer.ok ? answer.text() : null;
  }

  /** Puts an object there, past every check. */
  async place(key: string, text: string): Promise<void> {
    await fetch(`${this.storeUrl}/${this.bucket}/${key}`, { method: "PUT", body: text });
  }

  private async answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const body = Buffer.from(await request.arrayBuffer());
    this.requests.push({ method: request.method, path: pathname, headers: request.headers, body });
    if (this.mode === "hanging") return new Promise(() => {});
    if (this.mode === "down") return s3Error(503, "SlowDown");
    if (this.mode === "redirecting") {
      return new Response("", { status: 307, headers: { location: `${this.endpoint}/elsewhere` } });
    }
    const refusal = await this.signatureFault(request, body);
    if (refusal !== null) return s3Error(403, refusal);
    const exists = (await fetch(this.storeUrl + pathname, { method: "HEAD" })).ok;
    if (request.method === "PUT" && request.headers.get("if-none-match") === "*" && exists) {
      return s3Error(412, "PreconditionFailed");
    }
    const init = request.method === "PUT" ? { method: "PUT", body } : { method: request.method };
    const stored = await fetch(this.storeUrl + pathname, init);
    return new Response(await stored.arrayBuffer(), { status: stored.status });
  }

  /** Signs the request anew, as its client should have, and compares. */
  private async signatureFault(request: Request, body: Buffer): Promise<string | null> {
    const authorization = request.headers.get("authorization") ?? "";
    const [, keyId, region, signedNames = "", signature] =
      /^AWS4-HMAC-SHA256 Credential=([^/]+)\/\d{8}\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)$/.exec(
        authorization,
      ) ?? [];
    if (keyId !== this.accessKeyId) return "InvalidAccessKeyId";
    if (region !== this.region) return "AuthorizationHeaderMalformed";
    if (request.headers.get("x-amz-content-sha256") !== createHash("sha256").update(body).digest("hex")) {
      return "XAmzContentSHA256Mismatch";
    }
    const date = dateOf(request.headers.get("x-amz-date") ?? "");
    if (Math.abs(date.getTime() - Date.now()) > 15 * 60 * 1000) return "RequestTimeTooSkewed";
    const names = signedNames.split(";");
    if (!["host", "x-amz-content-sha256", "x-amz-date"].every((name) => names.includes(name)))
      return "AccessDenied";
    const url = new URL(request.url);
    const { accessKeyId, secretAccessKey } = this;
    const signer = new SignatureV4({
      service: "s3",
      region,
      credentials: { accessKeyId, secretAccessKey },
      sha256: Sha256,
      uriEscapePath: false,
    });
    const signed = await signer.sign(
      {
        method: request.method,
        protocol: url.protocol,
        hostname: url.hostname,
        path: url.pathname,
        headers: Object.fromEntries(names.map((name) => [name, request.headers.get(name) ?? ""])),
      },
      { signingDate: date, signableHeaders: new Set(names) },
    );
    return signed.headers.authorization?.endsWith(`Signature=${signature}`) ? null : "SignatureDoesNotMatch";
  }
}

/** Reads `20260310T120000Z`. */
function dateOf(text: string): Date {
  return new Date(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
}

function s3Error(status: number, code: string): Response {
  const text = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>refused</Message></Error>`;
  return new Response(text, { status, headers: { "content-type": "application/xml" } });
}
