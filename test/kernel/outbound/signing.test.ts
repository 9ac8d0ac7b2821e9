import { describe, expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { Webhook as Svix } from "svix";
import {
  notificationSignature,
  relaySignature,
  replaySignature,
  SIGNING_KEY_BYTES_MAX,
  SIGNING_KEY_BYTES_MIN,
  signingKeyIn,
  signingSecret,
  standardHeaders,
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

  test("of a replayed event", async () => {
    const { api_key, timestamp, body, header } = vectors.replay;
    expect(await replaySignature(api_key, timestamp, body)).toBe(header["X-Svc-Signature"]);
  });

  test("of one body in pieces are made in one pass over it, and another pass begins later", async () => {
    const key = vectors.replay.api_key;
    const text = "a body in pieces";
    let passes = 0;
    const body = {
      length: text.length,
      pieceBytes: "a body ".length,
      *pieces() {
        passes += 1;
        for (const part of ["a body ", "in ", "pieces"]) yield new TextEncoder().encode(part);
      },
    };
    const keys = [Buffer.alloc(24, 1), Buffer.alloc(24, 2)];
    const both = (of: typeof body | string) =>
      Promise.all([replaySignature(key, "1", of), standardHeaders(keys, "evt_1", 1_000, of)]);
    expect(await both(body)).toEqual(await both(text));
    expect(passes).toBe(1);
    expect(await both(body)).toEqual(await both(text));
    expect(passes).toBe(2);
  });

  test("of a delivery without a body cover the timestamp alone", () => {
    const key = vectors.relay.api_key;
    const expected = new Bun.CryptoHasher("sha256", key).update("1760000000123").digest("hex");
    expect(relaySignature(key, 1_760_000_000_123, "")).toBe(`sha256=${expected}`);
  });
});

describe("Standard Webhooks", () => {
  const ID = "msg_01";
  const AT_MS = 1_767_225_600_999;
  const BODY = '{"id":"evt_1","type":"invoice.paid"}';
  const VECTORS = [
    ["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX", 0x00, "v1,KrauGVXZBiowSs6RfXWt79f6ng26u47RjX3oClAS1A0="],
    ["whsec_GBkaGxwdHh8gISIjJCUmJygpKissLS4v", 0x18, "v1,DMBIEtukDf6PhAhcClX5YQ2etaKI7DVCEtKqLKhP8Sk="],
  ] as const;
  const keys = VECTORS.map(([, first]) => Uint8Array.from({ length: 24 }, (_, at) => first + at));

  test("has the form of the specification: id, seconds, a signature by each key, newest first", async () => {
    for (const [at, [secret, , signature]] of VECTORS.entries()) {
      const key = signingKeyIn(secret);
      expect(key).toEqual(keys[at] as Uint8Array<ArrayBuffer>);
      expect(signingSecret(key ?? new Uint8Array())).toBe(secret);
      expect(await standardHeaders([key ?? new Uint8Array()], ID, AT_MS, BODY)).toEqual({
        "webhook-id": ID,
        "webhook-timestamp": "1767225600",
        "webhook-signature": signature,
      });
    }
    expect((await standardHeaders(keys, ID, AT_MS, Buffer.from(BODY)))["webhook-signature"]).toBe(
      `${VECTORS[0][2]} ${VECTORS[1][2]}`,
    );
  });

  test("the standard libraries accept exactly these signatures, by either key, for any bytes", async () => {
    for (const body of [BODY, "", "naïve ☃", "a.b.c"]) {
      for (const order of [keys, keys.toReversed()]) {
        const headers = await standardHeaders(order, ID, Date.now(), body);
        for (const [secret] of VECTORS) {
          new Webhook(secret).verify(body, headers, { jsonParse: false });
          new Svix(secret).verify(body, headers);
          for (const library of [new Webhook(secret), new Svix(secret)])
            expect(() => library.verify(`${body} `, headers)).toThrow("No matching signature found");
        }
      }
    }
  });

  test.each([
    ["the shortest", SIGNING_KEY_BYTES_MIN, true],
    ["the longest", SIGNING_KEY_BYTES_MAX, true],
    ["shorter", SIGNING_KEY_BYTES_MIN - 1, false],
    ["longer", SIGNING_KEY_BYTES_MAX + 1, false],
  ])("a key: %s", (_, bytes, isKey) => {
    expect(signingKeyIn(signingSecret(new Uint8Array(bytes).fill(7))) !== null).toBe(isKey);
  });

  test("a secret has its prefix and one notation", () => {
    const [[secret]] = VECTORS;
    const text = secret.slice("whsec_".length);
    for (const wrong of [text, `whsk_${text}`, `${secret} `, `${secret}=`, secret.replace("A", "!A"), ""])
      expect(signingKeyIn(wrong)).toBe(null);
    // Two spellings of the same bytes.
    const odd = signingSecret(new Uint8Array(25).fill(7));
    expect(odd).toEndWith("Bw==");
    expect(signingKeyIn(odd)).not.toBe(null);
    expect(signingKeyIn(odd.replace("Bw==", "Bx=="))).toBe(null);
  });
});
