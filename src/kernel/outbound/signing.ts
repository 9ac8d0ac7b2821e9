import { createHmac } from "node:crypto";

/** A body as it is sent, byte for byte. */
export type SignedBody = Uint8Array | string;

/** `X-Svc-Signature` of a scheduled delivery: over the timestamp's digits and the body. */
export function relaySignature(key: string, timestampMs: number, body: SignedBody): string {
  return `sha256=${createHmac("sha256", key).update(String(timestampMs)).update(body).digest("hex")}`;
}

/** `X-Svc-Signature` of a monitor's notification: over the body alone. */
export function notificationSignature(key: string, body: SignedBody): string {
  return `sha256=${createHmac("sha256", key).update(body).digest("hex")}`;
}

/** `X-Svc-Signature` of a forwarded or replayed event: `t=<timestamp>,v1=<hex>` over `<timestamp>.<body>`. */
export function replaySignature(key: string, timestamp: string, body: SignedBody): string {
  const hex = createHmac("sha256", key).update(`${timestamp}.`).update(body).digest("hex");
  return `t=${timestamp},v1=${hex}`;
}
