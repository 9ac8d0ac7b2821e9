import { hmacSha256 } from "../kernel/hmac.ts";
import { equalInConstantTime } from "../kernel/secrets/key-format.ts";
import { CLOCK_DIFFERENCE_MS_MAX, clocksDiffer } from "./clock-difference.ts";
import type { ClusterNode } from "./commit-log.ts";

/**
 * Nonces that are remembered: each for twice the time that clocks may differ. A copy of 100 GiB in an hour uses 7 a second, so
 * this is enough for ten of them.
 */
const NONCES_MAX = 50_000;
const HEADER = /^Ninefold ([A-Za-z0-9_-]{1,2000})\.([0-9a-f]{64})$/;
/** Headers of programs before identities. */
const FORMER_HEADER = /^Bearer \d{1,15}\.[0-9a-f]{64}$/;

/** What one node requests of another one. Everything in it is signed. */
export interface NodeRequest {
  /** Id of the node that sends it. */
  readonly from: string;
  /** The node that it is for: nobody else can use it. */
  readonly to: ClusterNode;
  /** Id of the log. */
  readonly log: string;
  /** Random, and accepted once. */
  readonly nonce: string;
  /** Wall clock of the sender, epoch milliseconds. */
  readonly at: number;
  /** The copy that is continued; null: a new one. */
  readonly copy: string | null;
  /** First page that is requested. */
  readonly page: number;
}

/** A request, and the key of its response: nobody without the master key knows it, and no other response has it. */
export interface SignedRequest {
  readonly request: NodeRequest;
  readonly responseKey: Uint8Array;
}

/** Why a request is rejected. */
export interface Rejection {
  readonly status: number;
  readonly message: string;
}

/** Signs a request. `key` is derived from the master key. Returns the `Authorization` header. */
export function signRequest(
  request: NodeRequest,
  key: Uint8Array,
  cell: string,
): { readonly authorization: string; readonly responseKey: Uint8Array } {
  const text = Buffer.from(JSON.stringify(request)).toString("base64url");
  return {
    authorization: `Ninefold ${text}.${signatureOf(text, key, cell)}`,
    responseKey: responseKeyOf(text, key, cell),
  };
}

/** Verifies the requests that a node receives. */
export class RequestVerifier {
  /** When each nonce may be forgotten. Oldest first. */
  private readonly nonces = new Map<string, number>();

  constructor(
    private readonly deps: {
      readonly node: ClusterNode;
      /** Id of the log. */
      readonly log: string;
      readonly key: Uint8Array;
      readonly cell: string;
      readonly now: () => number;
    },
  ) {}

  /** Accepts each request once. */
  verify(header: string | null): SignedRequest | Rejection {
    const { key, cell, node, log, now } = this.deps;
    const [, text = "", signature = ""] = HEADER.exec(header ?? "") ?? [];
    if (text === "" || !equalInConstantTime(signature, signatureOf(text, key, cell)))
      return rejection(
        401,
        FORMER_HEADER.test(header ?? "")
          ? "That node runs an older version: upgrade it."
          : "This path is for nodes of the same cell that have the same master key.",
      );
    const request = JSON.parse(Buffer.from(text, "base64url").toString("utf8")) as NodeRequest;
    if (request.to.id !== node.id || request.to.advertise !== node.advertise)
      return rejection(403, "This request is for another node: its --advertise leads to this one.");
    if (request.log !== log)
      return rejection(
        409,
        `This node leads the log ${log}, and the request is about the log ${request.log}.`,
      );
    const wrongClock = clocksDiffer(request.at - now());
    if (wrongClock !== null) return rejection(403, `The node cannot be served. ${wrongClock}`);
    this.forgetOld();
    if (this.nonces.has(request.nonce)) return rejection(403, "This request was sent before.");
    if (this.nonces.size >= NONCES_MAX) return rejection(503, "Too many requests from nodes.");
    this.nonces.set(request.nonce, now() + 2 * CLOCK_DIFFERENCE_MS_MAX);
    return { request, responseKey: responseKeyOf(text, key, cell) };
  }

  private forgetOld(): void {
    for (const [nonce, until] of this.nonces) {
      if (until > this.deps.now()) return;
      this.nonces.delete(nonce);
    }
  }
}

function rejection(status: number, message: string): Rejection {
  return { status, message };
}

function signatureOf(text: string, key: Uint8Array, cell: string): string {
  return hmacSha256(key).update(`request\n${cell}\n${text}`).digest("hex");
}

function responseKeyOf(text: string, key: Uint8Array, cell: string): Uint8Array {
  return hmacSha256(key).update(`response\n${cell}\n${text}`).digest();
}
