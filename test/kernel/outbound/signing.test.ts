import { describe, expect, test } from "bun:test";
import {
  notificationSignature,
  relaySignature,
  replaySignature,
} from "../../../src/kernel/outbound/signing.ts";
import vectors from "../../vectors/keys-and-signatures.json" with { type: "json" };

describe("signatures", () => {
  test("of a scheduled delivery", () => {
    const { api_key, timestamp_ms, body, header } = vectors.relay;
    expect(relaySignature(api_key, timestamp_ms, body)).toBe(header["X-Svc-Signature"]);
    expect(relaySignature(api_key, timestamp_ms, Buffer.from(body))).toBe(header["X-Svc-Signature"]);
    expect(String(timestamp_ms)).toBe(header["X-Svc-Timestamp"]);
  });

  test("of a monitor's notification", () => {
    const { api_key, body, header } = vectors.monitor;
    expect(notificationSignature(api_key, body)).toBe(header["X-Svc-Signature"]);
  });

  test("of a replayed event", () => {
    const { api_key, timestamp, body, header } = vectors.replay;
    expect(replaySignature(api_key, timestamp, body)).toBe(header["X-Svc-Signature"]);
  });

  test("of a delivery without a body cover the timestamp alone", () => {
    const key = vectors.relay.api_key;
    const expected = new Bun.CryptoHasher("sha256", key).update("1760000000123").digest("hex");
    expect(relaySignature(key, 1_760_000_000_123, "")).toBe(`sha256=${expected}`);
  });
});
