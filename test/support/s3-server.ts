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
  /** The query with its question mark; empty without one. */
  readonly search: string;
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
  /** Whether `If-None-Match` is honoured. */
  isConditional = true;
  /** Called before each request: a status is the response instead, and nothing is stored. */
  before: (request: S3Request) => number | null = () => null;
  /** Called after each request: a status is the response instead, although it was carried out. */
  after: (request: S3Request) => number | null = () => null;
  /** Returns the text of a list, for which `stored` reads the one of the store. */
  list: (stored: () => Promise<string>) => string | Promise<string> = (stored) => stored();
  /** Whether a PUT must have a checksum, as a bucket with a retention lock demands it. */
  demandsChecksum = false;
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
  private readonly storing = new Map<string, Promise<void>>();
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

  /**
   * The same server for the rounds of scripts/harness archive-crashes: in every other round it is down, or fails after its work.
   * `atStep` calls back once, at the next request that is a step, before or after it was carried out; its response is lost.
   */
  disturbed() {
    const { endpoint, bucket, region, accessKeyId, secretAccessKey } = this;
    const disturb = (fraction: number): void => {
      this.mode = fraction > 0.8 ? "down" : "up";
      let count = 0;
      this.before = () => null;
      this.after = () => (fraction > 0.5 && ++count % 3 === 0 ? 500 : null);
    };
    const atStep = (
      isStep: (request: S3Request) => boolean,
      when: "before" | "after",
      call: () => void,
    ): void => {
      disturb(0);
      this[when] = (request) => {
        if (!isStep(request)) return null;
        this[when] = () => null;
        call();
        return 500;
      };
    };
    const { archiveEnvironment } = this;
    return {
      endpoint,
      bucket,
      region,
      accessKeyId,
      secretAccessKey,
      archiveEnvironment,
      disturb,
      atStep,
    };
  }

  /** The variables with which a server or a command reaches an archive here. */
  get archiveEnvironment(): Record<string, string> {
    return {
      NINEFOLD_ARCHIVE_ENDPOINT: this.endpoint,
      NINEFOLD_ARCHIVE_REGION: this.region,
      NINEFOLD_ARCHIVE_ACCESS_KEY_ID: this.accessKeyId,
      NINEFOLD_ARCHIVE_SECRET_ACCESS_KEY: this.secretAccessKey,
    };
  }

  /** A configuration that works. */
  config(prefix?: string): Record<string, string> {
    const { endpoint, bucket, region, accessKeyId, secretAccessKey } = this;
    const body = { endpoint, bucket, region, accessKeyId, secretAccessKey };
    return prefix === undefined ? body : { ...body, prefix };
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
    const { pathname, search } = new URL(request.url);
    const body = Buffer.from(await request.arrayBuffer());
    const received = { method: request.method, path: pathname, search, headers: request.headers, body };
    this.requests.push(received);
    if (this.mode === "hanging") return new Promise(() => {});
    if (this.mode === "down") return s3Error(503, "SlowDown");
    if (this.mode === "redirecting") {
      return new Response("", { status: 307, headers: { location: `${this.endpoint}/elsewhere` } });
    }
    const refusal = await this.signatureFault(request, body);
    if (refusal !== null) return s3Error(403, refusal);
    if (this.demandsChecksum && received.method === "PUT" && !hasChecksum(received))
      return s3Error(400, "InvalidRequest");
    const failed = this.before(received);
    if (failed !== null) return s3Error(failed, "InternalError");
    const answer = await this.carryOut(received);
    const lost = this.after(received);
    return lost === null ? answer : s3Error(lost, "InternalError");
  }

  private async carryOut({ method, path, search, headers, body }: S3Request): Promise<Response> {
    const url = this.storeUrl + path + search;
    if (this.isConditional && method === "PUT" && headers.get("if-none-match") === "*") {
      const key = `${method} ${path}`;
      // The store checks and stores as one step.
      while (this.storing.has(key)) await this.storing.get(key);
      const done = Promise.withResolvers<void>();
      this.storing.set(key, done.promise);
      try {
        if ((await fetch(url, { method: "HEAD" })).ok) return s3Error(412, "PreconditionFailed");
        return await passed(await fetch(url, { method, body }));
      } finally {
        this.storing.delete(key);
        done.resolve();
      }
    }
    const range = headers.get("range");
    const kept = { ...(range === null ? {} : { range }), "content-type": headers.get("content-type") ?? "" };
    const hasBody = method === "PUT" || method === "POST";
    const send = () => fetch(url, { method, headers: kept, ...(hasBody && { body }) });
    if (!search.includes("list-type=2")) return passed(await send());
    let status = 200;
    const stored = async (): Promise<string> => {
      const answer = await send();
      status = answer.status;
      return sorted(await answer.text());
    };
    const text = await this.list(stored);
    return new Response(text, { status });
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
        query: Object.fromEntries(url.searchParams),
        headers: Object.fromEntries(names.map((name) => [name, request.headers.get(name) ?? ""])),
      },
      { signingDate: date, signableHeaders: new Set(names) },
    );
    return signed.headers.authorization?.endsWith(`Signature=${signature}`) ? null : "SignatureDoesNotMatch";
  }
}

/** A list in the order of its keys, as every S3 server returns it; that of s3rver is the one of its folder. */
function sorted(list: string): string {
  const items = list.match(/<Contents>.*?<\/Contents>/gs) ?? [];
  const [before = ""] = list.split("<Contents>");
  const after = list.slice(list.lastIndexOf("</Contents>") + (items.length === 0 ? 1 : "</Contents>".length));
  const key = (item: string) => /<Key>(.*?)<\/Key>/.exec(item)?.[1] ?? "";
  const order = items.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
  return items.length === 0 ? list : before + order.join("") + after;
}

/** Whether a request has the MD5 of its body, which every store understands. */
function hasChecksum({ headers, body }: S3Request): boolean {
  return headers.get("content-md5") === createHash("md5").update(body).digest("base64");
}

async function passed(stored: Response): Promise<Response> {
  const tag = stored.headers.get("etag");
  return new Response(await stored.arrayBuffer(), {
    status: stored.status,
    headers: tag === null ? {} : { etag: tag },
  });
}

/** Reads `20260310T120000Z`. */
function dateOf(text: string): Date {
  return new Date(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
}

function s3Error(status: number, code: string): Response {
  const text = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>refused</Message></Error>`;
  return new Response(text, { status, headers: { "content-type": "application/xml" } });
}
