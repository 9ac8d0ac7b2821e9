import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { sign as signLikeGithub } from "@octokit/webhooks-methods";
import fc from "fast-check";
import Stripe from "stripe";
import { Webhook } from "svix";
import { DETECTED_PROVIDERS as PROVIDERS, type Verification } from "../../../../src/areas/catch/domain.ts";
import type { Received } from "../../../../src/areas/catch/providers/extracted-fields.ts";
import {
  detectProvider,
  PRESETS,
  verify as verifyBy,
} from "../../../../src/areas/catch/providers/presets.ts";
import { SIGNATURE_TOLERANCE_SECONDS } from "../../../../src/areas/catch/providers/signatures.ts";
import vectors from "../../../vectors/keys-and-signatures.json" with { type: "json" };

type Provider = (typeof PROVIDERS)[number];

function verify(provider: Provider | null, secret: string | null, received: Received): Verification {
  return verifyBy(provider === null ? null : PRESETS[provider], secret === null ? [] : [secret], received);
}

const STRIPE_SECRET = "whsec_stripe_secret";
const GITHUB_SECRET = "It's a Secret to Everybody";
const SHOPIFY_SECRET = "shpss_0123456789abcdef";
const SVIX_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SECRETS: Record<Provider, string> = {
  stripe: STRIPE_SECRET,
  github: GITHUB_SECRET,
  shopify: SHOPIFY_SECRET,
  svix: SVIX_SECRET,
};

const NOW_SECONDS = 1_760_000_000;
const NOW_MS = NOW_SECONDS * 1000;
const BODY = '{"id":"evt_1","text":"Grüße, 世界 😀","amount":4200}';
const stripe = new Stripe("sk_test_unused");

function check(
  provider: Provider,
  headers: Record<string, string>,
  body: string | Uint8Array = BODY,
  { at = NOW_MS, secret = SECRETS[provider] }: { at?: number; secret?: string } = {},
): Verification {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  return verify(provider, secret, { headers: new Headers(headers), body: bytes, receivedAt: at });
}

function signLikeStripe(payload: string): Promise<string> {
  return stripe.webhooks.generateTestHeaderStringAsync({
    payload,
    secret: STRIPE_SECRET,
    timestamp: NOW_SECONDS,
  });
}
const STRIPE_HEADER = await signLikeStripe(BODY);

function svixHeaders(body = BODY, seconds = NOW_SECONDS, secret = SVIX_SECRET): Record<string, string> {
  const id = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W";
  return {
    "svix-id": id,
    "svix-timestamp": String(seconds),
    "svix-signature": new Webhook(secret).sign(id, new Date(seconds * 1000), body),
  };
}

/** Shopify's published method: the base64 of the HMAC-SHA256 of the body. */
function shopifyHeader(body: string | Uint8Array = BODY, secret = SHOPIFY_SECRET): string {
  return createHmac("sha256", secret).update(body).digest("base64");
}

/** A request signed by the provider's library. */
async function signed(provider: Provider, body = BODY): Promise<Record<string, string>> {
  switch (provider) {
    case "stripe":
      return { "stripe-signature": await signLikeStripe(body) };
    case "github":
      return { "x-hub-signature-256": await signLikeGithub(GITHUB_SECRET, body) };
    case "shopify":
      return { "x-shopify-hmac-sha256": shopifyHeader(body) };
    case "svix":
      return svixHeaders(body);
  }
}

describe("published vectors", () => {
  test.each(PROVIDERS)("%s", (provider) => {
    const { secret, body, header, ...dated } = vectors[provider];
    const at = "at" in dated ? dated.at * 1000 : NOW_MS;
    const headers = header as Record<string, string>;
    expect(check(provider, headers, body, { secret, at })).toBe("valid");
    expect(check(provider, headers, `${body} `, { secret, at })).toBe("invalid");
    const other = `${secret.slice(0, 7)}X${secret.slice(8)}`;
    expect(check(provider, headers, body, { secret: other, at })).toBe("invalid");
  });
});

describe("signatures by the providers' libraries", () => {
  test.each(PROVIDERS)("%s: valid", async (provider) => {
    expect(check(provider, await signed(provider))).toBe("valid");
  });

  test.each(PROVIDERS)("%s: bodies of any text", async (provider) => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary", maxLength: 200 }), async (text) => {
        // The libraries of Stripe and Svix sign an empty text differently; it does not occur.
        const body = `${text.toWellFormed()}.`;
        expect(check(provider, await signed(provider, body), body)).toBe("valid");
      }),
      { numRuns: 50 },
    );
  });

  test.each(PROVIDERS)("%s: invalid with any one bit of the body changed", async (provider) => {
    const headers = await signed(provider);
    const bits = Buffer.byteLength(BODY) * 8;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: bits - 1 }), (bit) => {
        const body = Buffer.from(BODY);
        body[bit >> 3] = (body[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(check(provider, headers, body)).toBe("invalid");
      }),
      { numRuns: 100 },
    );
  });

  test.each(PROVIDERS)(
    "%s: invalid with another secret, a longer body, or without headers",
    async (provider) => {
      const headers = await signed(provider);
      const other = provider === "svix" ? "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD" : "another secret";
      expect(check(provider, headers, BODY, { secret: other })).toBe("invalid");
      expect(check(provider, headers, `${BODY}\n`)).toBe("invalid");
      expect(check(provider, {})).toBe("invalid");
    },
  );
});

describe("without a provider or a secret", () => {
  const received = { headers: new Headers(), body: Buffer.from(BODY), receivedAt: NOW_MS };
  test("none", () => {
    expect(verify(null, "secret", received)).toBe("none");
    expect(verify("stripe", null, received)).toBe("none");
    expect(verify(null, null, received)).toBe("none");
  });
});

describe("stripe", () => {
  const at = (ms: number) => check("stripe", { "stripe-signature": STRIPE_HEADER }, BODY, { at: ms });

  test("is accepted within the tolerance, to the second, in both directions", () => {
    expect(SIGNATURE_TOLERANCE_SECONDS).toBe(300);
    expect(at(NOW_MS + 300_999)).toBe("valid");
    expect(at(NOW_MS + 301_000)).toBe("invalid");
    expect(at(NOW_MS - 300_000)).toBe("valid");
    expect(at(NOW_MS - 300_001)).toBe("invalid");
  });

  test("agrees with Stripe's library at the edge of its tolerance", async () => {
    const payload = Buffer.from(BODY);
    const accepts = (ms: number): Promise<boolean> =>
      stripe.webhooks
        .constructEventAsync(payload, STRIPE_HEADER, STRIPE_SECRET, 300, undefined, ms)
        .then(() => true)
        .catch(() => false);
    for (const ms of [NOW_MS, NOW_MS + 300_999, NOW_MS + 301_000, NOW_MS + 400_000]) {
      expect({ ms, valid: at(ms) === "valid" }).toEqual({ ms, valid: await accepts(ms) });
    }
  });

  test("several signatures in one header: one valid signature is enough, at any position", () => {
    const good = STRIPE_HEADER.split("v1=")[1] ?? "";
    const wrong = "0".repeat(64);
    const header = (...signatures: string[]) => ({
      "stripe-signature": [`t=${NOW_SECONDS}`, ...signatures.map((value) => `v1=${value}`)].join(","),
    });
    expect(check("stripe", header(wrong, good))).toBe("valid");
    expect(check("stripe", header(good, wrong))).toBe("valid");
    expect(check("stripe", header(wrong, wrong, wrong, good))).toBe("valid");
    expect(check("stripe", header(wrong, wrong))).toBe("invalid");
  });

  test.each([
    ["empty", ""],
    ["no signature", `t=${NOW_SECONDS}`],
    ["no time", STRIPE_HEADER.split(",")[1] ?? ""],
    ["another scheme", STRIPE_HEADER.replace("v1=", "v0=")],
    ["a time that is no number", STRIPE_HEADER.replace(/t=\d+/, "t=NaN")],
    ["a time with a sign", STRIPE_HEADER.replace("t=", "t=+")],
    ["a time in milliseconds", STRIPE_HEADER.replace(/t=(\d+)/, "t=$1000")],
    ["a later time for the same signature", STRIPE_HEADER.replace(/t=\d+/, `t=${NOW_SECONDS + 1}`)],
    ["a signature cut short", STRIPE_HEADER.slice(0, -1)],
    ["a signature made longer", `${STRIPE_HEADER}0`],
    ["a signature in capitals", STRIPE_HEADER.replace(/v1=.*/, (text) => text.toUpperCase())],
    ["an empty signature", `t=${NOW_SECONDS},v1=`],
    ["only separators", ",=,=,,"],
  ])("invalid: %s", (_, header) => {
    expect(check("stripe", { "stripe-signature": header })).toBe("invalid");
  });

  test("spaces around the parts are ignored", () => {
    expect(check("stripe", { "stripe-signature": ` ${STRIPE_HEADER.replace(",", " , ")} ` })).toBe("valid");
  });
});

describe("github", () => {
  test("several signatures: one valid signature is enough", async () => {
    const good = await signLikeGithub(GITHUB_SECRET, BODY);
    const wrong = `sha256=${"0".repeat(64)}`;
    expect(check("github", { "x-hub-signature-256": `${wrong}, ${good}` })).toBe("valid");
    expect(check("github", { "x-hub-signature-256": `${good},${wrong}` })).toBe("valid");
    expect(check("github", { "x-hub-signature-256": `${wrong},${wrong}` })).toBe("invalid");
  });

  test.each([
    ["the digest alone", (good: string) => good.replace("sha256=", "")],
    ["another algorithm's name", (good: string) => good.replace("sha256=", "sha1=")],
    ["cut short", (good: string) => good.slice(0, -1)],
    ["empty", () => ""],
  ])("invalid: %s", async (_, change) => {
    const good = await signLikeGithub(GITHUB_SECRET, BODY);
    expect(check("github", { "x-hub-signature-256": change(good) })).toBe("invalid");
  });
});

describe("shopify", () => {
  test("several signatures: one valid signature is enough", () => {
    const wrong = shopifyHeader("something else");
    expect(check("shopify", { "x-shopify-hmac-sha256": `${wrong}, ${shopifyHeader()}` })).toBe("valid");
    expect(check("shopify", { "x-shopify-hmac-sha256": `${wrong}, ${wrong}` })).toBe("invalid");
  });

  test("covers bytes that are not text", () => {
    const body = new Uint8Array([0, 255, 128, 10, 13]);
    expect(check("shopify", { "x-shopify-hmac-sha256": shopifyHeader(body) }, body)).toBe("valid");
  });

  test.each([
    ["in hex", createHmac("sha256", SHOPIFY_SECRET).update(BODY).digest("hex")],
    ["without padding", shopifyHeader().replaceAll("=", "")],
    ["empty", ""],
  ])("invalid: %s", (_, header) => {
    expect(check("shopify", { "x-shopify-hmac-sha256": header })).toBe("invalid");
  });
});

describe("svix", () => {
  test("is accepted within the tolerance, to the second, in both directions", () => {
    const at = (ms: number) => check("svix", svixHeaders(), BODY, { at: ms });
    expect(at(NOW_MS + 300_999)).toBe("valid");
    expect(at(NOW_MS + 301_000)).toBe("invalid");
    expect(at(NOW_MS - 300_000)).toBe("valid");
    expect(at(NOW_MS - 300_001)).toBe("invalid");
  });

  test("several signatures: one that holds is enough, wherever it stands", () => {
    const headers = svixHeaders();
    const good = headers["svix-signature"] ?? "";
    const wrong = `v1,${shopifyHeader("something else")}`;
    const withSignatures = (text: string) => check("svix", { ...headers, "svix-signature": text });
    expect(withSignatures(`${wrong} ${good}`)).toBe("valid");
    expect(withSignatures(`${good} ${wrong}`)).toBe("valid");
    expect(withSignatures(`v1a,AAAA ${wrong} v2,${good.slice(3)} ${good}`)).toBe("valid");
    expect(withSignatures(`${wrong} ${wrong}`)).toBe("invalid");
    expect(withSignatures(`v2,${good.slice(3)}`)).toBe("invalid");
    expect(withSignatures(good.slice(3))).toBe("invalid");
    expect(withSignatures("")).toBe("invalid");
  });

  test("a secret without its prefix is equivalent", () => {
    expect(check("svix", svixHeaders(), BODY, { secret: SVIX_SECRET.slice(6) })).toBe("valid");
  });

  test.each(["svix-id", "svix-timestamp", "svix-signature"])("invalid without %s", (name) => {
    const { [name]: _, ...rest } = svixHeaders();
    expect(check("svix", rest)).toBe("invalid");
  });

  test("invalid with another id or timestamp than the signed one", () => {
    expect(check("svix", { ...svixHeaders(), "svix-id": "msg_other" })).toBe("invalid");
    expect(check("svix", { ...svixHeaders(), "svix-timestamp": String(NOW_SECONDS + 1) })).toBe("invalid");
  });

  test("a secret without a key verifies nothing, although an empty key is known", () => {
    const body = BODY;
    const forged = createHmac("sha256", "").update(`msg_1.${NOW_SECONDS}.${body}`).digest("base64");
    const headers = {
      "svix-id": "msg_1",
      "svix-timestamp": String(NOW_SECONDS),
      "svix-signature": `v1,${forged}`,
    };
    for (const secret of ["whsec_", "!!!", "whsec_===="]) {
      expect(check("svix", headers, body, { secret })).toBe("invalid");
    }
  });
});

describe("headers of any shape", () => {
  test.each(PROVIDERS)("%s: never throws, and is never valid", (provider) => {
    const value = fc
      .string({ unit: fc.constantFrom(..."=,v1 t:;.sha256/+ABCab019\t\u00ff".split("")), maxLength: 80 })
      .map((text) => text.trim());
    fc.assert(
      fc.property(value, value, value, (first, second, third) => {
        const headers = {
          "stripe-signature": first,
          "x-hub-signature-256": first,
          "x-shopify-hmac-sha256": first,
          "svix-signature": first,
          "svix-id": second,
          "svix-timestamp": third,
        };
        expect(check(provider, headers)).toBe("invalid");
      }),
      { numRuns: 200 },
    );
  });
});

describe("the provider detected by headers", () => {
  test.each(PROVIDERS)("%s", async (provider) => {
    expect(detectProvider(new Headers(await signed(provider)))).toBe(provider);
  });

  test("none without signature headers, or with only some of Svix's", () => {
    expect(detectProvider(new Headers())).toBeNull();
    expect(detectProvider(new Headers({ "x-github-event": "push", "x-hub-signature": "sha1=0" }))).toBeNull();
    const { "svix-id": _, ...rest } = svixHeaders();
    expect(detectProvider(new Headers(rest))).toBeNull();
  });
});
