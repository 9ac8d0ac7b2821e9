import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { PROVIDERS, type Provider, type Verification } from "../../../../src/areas/catch/domain.ts";
import { FIELD_LENGTH_MAX, type Received } from "../../../../src/areas/catch/providers/extracted-fields.ts";
import {
  type CustomRecipe,
  PRESETS,
  verify,
  withRecipe,
} from "../../../../src/areas/catch/providers/presets.ts";
import {
  FORM_FIELDS_MAX,
  KEY_CHECKS_MAX,
  SENT_FORMS_BYTES_MAX,
  TOKENS_MAX,
} from "../../../../src/areas/catch/providers/signatures.ts";

const SECONDS = 1_767_225_600;
const SECRET = "s3cr3t";
const BODY = '{"id":"evt_1","type":"invoice.paid"}';
const TARGET = "/v1/catch/brave-otter-314159";
const DISCORD_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
const SENDGRID_KEY =
  "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEq1ERw/y0qjzkhWUq3naYiVvfN+aH6NSZrGv1RqI2UvF+YZLuAWSu1DCrRYla8OTBkfN0pdgWd6lplwDgSiH3g==";

interface Vector {
  readonly provider: Provider;
  readonly what?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly secret?: string;
  readonly body?: string;
  readonly target?: string;
  readonly at?: number;
}

function received({
  headers,
  body = BODY,
  target = TARGET,
  at = SECONDS,
}: Omit<Vector, "provider">): Received {
  return {
    headers: new Headers(headers),
    body: Buffer.from(body),
    receivedAt: at * 1000,
    method: "POST",
    target,
    publicUrl: "https://nf.example",
  };
}

function check(vector: Vector): Verification {
  return verify(PRESETS[vector.provider], [vector.secret ?? SECRET], received(vector));
}

const HEX = "31e53e0f98fbcb6c9dafab0917b9d56a82e8a036110f348549e2d333b2118b42";
const V0 = "v0=1fe5a5c38bbbae3fd5db042fcc251f0e1ae11e367a7e3a8802959ad3d4f0fcb4";
const LINEAR_BODY = `{"type":"Issue","action":"create","webhookTimestamp":${SECONDS}000}`;
const WITH_DIGEST = `${TARGET}?bodySHA256=d0d68fc7e872c5939afbebc3266f9bf866148a28a9b90b787c8caacc700c6bc6`;
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const STANDARD_SIGNATURE = "v1,KrauGVXZBiowSs6RfXWt79f6ng26u47RjX3oClAS1A0=";
const STANDARD_SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

const VECTORS: readonly Vector[] = [
  {
    provider: "standard",
    secret: STANDARD_SECRET,
    headers: {
      "webhook-id": "msg_01",
      "webhook-timestamp": `${SECONDS}`,
      "webhook-signature": `v1,AAAA ${STANDARD_SIGNATURE}`,
    },
  },
  {
    provider: "standard",
    what: "under Svix's names",
    secret: STANDARD_SECRET,
    headers: { "svix-id": "msg_01", "svix-timestamp": `${SECONDS}`, "svix-signature": STANDARD_SIGNATURE },
  },
  {
    provider: "slack",
    headers: { "x-slack-signature": V0, "x-slack-request-timestamp": `${SECONDS}` },
  },
  {
    provider: "slack",
    what: "as published",
    secret: "8f742231b10e8888abcd99yyyzzz85a5",
    at: 1_531_420_618,
    headers: {
      "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
      "x-slack-request-timestamp": "1531420618",
    },
    body: "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
  },
  {
    provider: "twilio",
    what: "a form",
    headers: { ...FORM, "x-twilio-signature": "xnhokC7sx/CwsiSJ2VNe6FgcTxE=" },
    body: "To=%2B15557654321&CallSid=CA1&From=%2B15551234567",
  },
  {
    provider: "twilio",
    what: "JSON",
    target: WITH_DIGEST,
    headers: { "content-type": "application/json", "x-twilio-signature": "JqFtkDCMupeRm4FgdrKcMF4j3ks=" },
  },
  {
    provider: "linear",
    body: LINEAR_BODY,
    headers: { "linear-signature": createHmac("sha256", SECRET).update(LINEAR_BODY).digest("hex") },
  },
  { provider: "lemonsqueezy", headers: { "x-signature": HEX } },
  { provider: "bitbucket", headers: { "x-hub-signature": `sha256=${HEX}` } },
  {
    provider: "discord",
    secret: DISCORD_KEY,
    headers: {
      "x-signature-ed25519":
        "fbcb4d8db75bfdb96599d8e08c4759f781e3db4fc48aea78ff8d1e936aa951c36da4c30abdcc0f93098fd0dba8679178f0c234ee7ce5f416c6e53cd24f603f03",
      "x-signature-timestamp": `${SECONDS}`,
    },
  },
  {
    provider: "paddle",
    headers: {
      "paddle-signature": `ts=${SECONDS};h1=00;h1=38ad9a842b9b3de3b0e4c840bd762d85f6c12dd977d3a8e5ac162c9e154e363e`,
    },
  },
  {
    provider: "sendgrid",
    secret: SENDGRID_KEY,
    headers: {
      "x-twilio-email-event-webhook-signature":
        "MEUCIA37b3pWNMhpYx7vOLREQQSIxyC+xB0wjrbGcduoLKeAAiEA4jRflRXpHKBQA5ZpHEL2WOhGW23VgdcF3GLniuLYazM=",
      "x-twilio-email-event-webhook-timestamp": `${SECONDS}`,
    },
  },
  {
    provider: "sendgrid",
    what: "as published",
    at: 1_600_112_502,
    secret:
      "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==",
    headers: {
      "x-twilio-email-event-webhook-signature":
        "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=",
      "x-twilio-email-event-webhook-timestamp": "1600112502",
    },
    body: `${JSON.stringify([
      {
        email: "hello@world.com",
        event: "dropped",
        reason: "Bounced Address",
        sg_event_id: "ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA",
        sg_message_id: "LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0",
        "smtp-id": "<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>",
        timestamp: 1600112492,
      },
    ])}\r\n`,
  },
  {
    provider: "square",
    headers: { "x-square-hmacsha256-signature": "4VUmWtXOLtV5kTCnohZUv2NUSsJy3Ke65h2yT2qqGGM=" },
  },
  { provider: "zoom", headers: { "x-zm-signature": V0, "x-zm-request-timestamp": `${SECONDS}` } },
  { provider: "intercom", headers: { "x-hub-signature": "sha1=f4a1ee95def29f9eb0f558cde42cb0ad5f2b3b1a" } },
  { provider: "gitlab", headers: { "x-gitlab-token": SECRET } },
  {
    provider: "zendesk",
    headers: {
      "x-zendesk-webhook-signature": "fMJ7majkicuzw/twZFkojWy8iqWO728Quin/xUlQ6CA=",
      "x-zendesk-webhook-signature-timestamp": "2026-01-01T00:00:00Z",
    },
  },
  {
    provider: "typeform",
    headers: { "typeform-signature": "sha256=MeU+D5j7y2ydr6sJF7nVaoLooDYRDzSFSeLTM7IRi0I=" },
  },
];

describe("vectors", () => {
  const named = VECTORS.map((vector) => [`${vector.provider} ${vector.what ?? ""}`.trim(), vector] as const);

  test.each(named)("%s: valid, and invalid with another body, secret or covered target", (_, vector) => {
    expect(check(vector)).toBe("valid");
    const { provider, secret = SECRET, target = TARGET } = vector;
    if (provider !== "gitlab") expect(check({ ...vector, body: `${vector.body ?? BODY} ` })).toBe("invalid");
    const changed = secret.replace(/.{3}$/, "AAA");
    expect(check({ ...vector, secret: changed })).toBe("invalid");
    const covers = PRESETS[provider].schemes.some(({ coversUrl }) => coversUrl);
    expect(check({ ...vector, target: `${target}/x` })).toBe(covers ? "invalid" : "valid");
  });

  test.each(named)("%s: invalid without any one of its headers", (_, vector) => {
    for (const name of Object.keys(vector.headers)) {
      const { [name]: _, ...rest } = vector.headers;
      // Twilio's signature of JSON does not cover the type.
      if (name !== "content-type" || vector.target === undefined)
        expect(check({ ...vector, headers: rest })).toBe("invalid");
    }
  });

  test.each(named)("%s: timestamps are valid within the tolerance, to the second", (_, vector) => {
    const { at = SECONDS, provider } = vector;
    const dated = PRESETS[provider].schemes.some(
      (scheme) => scheme.timestamp_format ?? scheme.timestamp_key ?? scheme.timestamp_header,
    );
    const tolerance = provider === "linear" ? 60 : 300;
    expect(check({ ...vector, at: at + tolerance })).toBe("valid");
    expect(check({ ...vector, at: at - tolerance })).toBe("valid");
    expect(check({ ...vector, at: at + tolerance + 1 })).toBe(dated ? "invalid" : "valid");
    expect(check({ ...vector, at: at - tolerance - 1 })).toBe(dated ? "invalid" : "valid");
  });

  test("exist for every preset that verifies, except those tested elsewhere", () => {
    const here = new Set(VECTORS.map(({ provider }) => provider));
    const signing = PROVIDERS.filter((provider) => PRESETS[provider].schemes.length > 0);
    expect(signing.filter((provider) => !here.has(provider))).toEqual([
      "stripe",
      "github",
      "shopify",
      "svix",
      "adyen",
    ]);
  });

  test("linear without a timestamp is invalid", () => {
    expect(check({ provider: "linear", headers: { "linear-signature": HEX } })).toBe("invalid");
  });

  test("twilio without --public-url, or with a body that neither form nor digest covers, is invalid", () => {
    const json = VECTORS.find(({ what }) => what === "JSON") as Vector;
    expect(verify(PRESETS.twilio, [SECRET], { ...received(json), publicUrl: null })).toBe("invalid");
    const bare = createHmac("sha1", SECRET).update(`https://nf.example${TARGET}`).digest("base64");
    expect(check({ provider: "twilio", headers: { "x-twilio-signature": bare } })).toBe("invalid");
    expect(check({ provider: "twilio", headers: { "x-twilio-signature": bare }, body: "" })).toBe("valid");
  });

  test(`a form has at most ${FORM_FIELDS_MAX} fields`, () => {
    const form = (count: number): Vector => {
      const names = Array.from({ length: count }, (_, index) => `f${index}`);
      const signed = `https://nf.example${TARGET}${names
        .toSorted()
        .map((name) => `${name}1`)
        .join("")}`;
      const signature = createHmac("sha1", SECRET).update(signed).digest("base64");
      const headers = { ...FORM, "x-twilio-signature": signature };
      return { provider: "twilio", headers, body: names.map((name) => `${name}=1`).join("&") };
    };
    expect(check(form(FORM_FIELDS_MAX))).toBe("valid");
    expect(check(form(FORM_FIELDS_MAX + 1))).toBe("invalid");
  });

  test(`a public key verifies at most ${KEY_CHECKS_MAX} signatures`, () => {
    const { headers, ...vector } = VECTORS.find(({ provider }) => provider === "discord") as Vector;
    const good = headers["x-signature-ed25519"] ?? "";
    const behind = (wrong: number) =>
      check({ ...vector, headers: { ...headers, "x-signature-ed25519": `${"00,".repeat(wrong)}${good}` } });
    expect(behind(KEY_CHECKS_MAX - 1)).toBe("valid");
    expect(behind(KEY_CHECKS_MAX)).toBe("invalid");
  });

  test(`of one header, at most ${TOKENS_MAX} tokens are compared`, () => {
    const recipe = { header: "x-tokens", algorithm: "token", separator: "," } as const;
    const preset = withRecipe(PRESETS.custom, recipe);
    const behind = (wrong: number) => {
      const headers = new Headers({ "x-tokens": `${",".repeat(wrong)}${SECRET}` });
      return verify(preset, [SECRET], { headers, body: Buffer.from(BODY), receivedAt: SECONDS * 1_000 });
    };
    expect(behind(TOKENS_MAX - 1)).toBe("valid");
    expect(behind(TOKENS_MAX)).toBe("invalid");
  });

  test("a large body is compared with fewer forms of the URL in which it may have been sent", () => {
    // The third form is the one with both characters unencoded.
    const sent = `${TARGET}?x="é"`;
    const large = (bytes: number) => {
      const body = "x".repeat(bytes);
      const signed = createHmac("sha256", SECRET).update(`https://nf.example${sent}${body}`).digest("base64");
      const headers = { "x-square-hmacsha256-signature": signed };
      return check({ provider: "square", headers, body, target: encodeURI(sent) });
    };
    expect(large(SENT_FORMS_BYTES_MAX / 3 - 1)).toBe("valid");
    expect(large(SENT_FORMS_BYTES_MAX / 2)).toBe("invalid");
  });

  test("a secret without a key verifies nothing", () => {
    const forged = createHmac("sha256", "").update(`msg_01.${SECONDS}.${BODY}`).digest("base64");
    const headers = {
      "webhook-id": "msg_01",
      "webhook-timestamp": `${SECONDS}`,
      "webhook-signature": `v1,${forged}`,
    };
    for (const secret of ["whsec_", "!!!"])
      expect(check({ provider: "standard", headers, secret })).toBe("invalid");
    for (const secret of ["zz", "AAAA", "-----BEGIN PUBLIC KEY-----"])
      for (const vector of VECTORS.filter(
        ({ provider }) => provider === "discord" || provider === "sendgrid",
      ))
        expect(check({ ...vector, secret })).toBe("invalid");
  });

  test("one of two secrets must match", () => {
    const vector = VECTORS.find(({ provider }) => provider === "zoom") as Vector;
    expect(verify(PRESETS.zoom, ["other", SECRET], received(vector))).toBe("valid");
    expect(verify(PRESETS.zoom, ["other", "another"], received(vector))).toBe("invalid");
    expect(verify(PRESETS.zoom, [], received(vector))).toBe("none");
  });
});

describe("custom recipes", () => {
  const digest = (hash: string, signed: string, encoding: "hex" | "base64" | "base64url") =>
    createHmac(hash, SECRET).update(signed).digest(encoding);
  const own = (recipe: CustomRecipe, headers: Record<string, string>, secret = SECRET): Verification =>
    verify(withRecipe(PRESETS.custom, recipe), [secret], received({ headers }));
  const plain = { header: "X-Sig", template: "{body}" } as const;

  test("algorithms and encodings", () => {
    for (const hash of ["sha1", "sha256", "sha512"])
      for (const encoding of ["hex", "base64", "base64url"] as const) {
        const recipe = { ...plain, algorithm: `hmac-${hash}` as CustomRecipe["algorithm"], encoding };
        const signature = digest(hash, BODY, encoding);
        expect({ recipe, is: own(recipe, { "x-sig": signature }) }).toEqual({ recipe, is: "valid" });
        expect(own(recipe, { "x-sig": `x, ${signature}` })).toBe("valid");
        expect(own(recipe, { "x-sig": signature.slice(1) })).toBe("invalid");
        expect(own(recipe, {})).toBe("invalid");
      }
  });

  test.each([
    ["hex", "a1b2", true],
    ["hex", "a1 b2\n", true],
    ["hex", "a1b2-not-hex", false],
    ["hex", "a1b", false],
    ["base64", "obI=", true],
    ["base64", "ob\r\nI=", true],
    ["base64", "obI=.more", false],
    ["whsec", "whsec_obI=", true],
    ["whsec", "whsec_obI= whsec_obI=", false],
  ] as const)("a secret in %s: %j verifies: %p", (secret_encoding, secret, isKey) => {
    const recipe = { ...plain, algorithm: "hmac-sha256", secret_encoding } as const;
    const signature = createHmac("sha256", Buffer.from("a1b2", "hex")).update(BODY).digest("hex");
    expect(own(recipe, { "x-sig": signature }, secret)).toBe(isKey ? "valid" : "invalid");
    // A truncated secret is a shorter key, which can be guessed.
    const short = createHmac("sha256", Buffer.from("a1", "hex")).update(BODY).digest("hex");
    expect(own(recipe, { "x-sig": short }, secret)).toBe("invalid");
  });

  test("all placeholders of a template", () => {
    const template = "{method} {path} {url} {id:X-Id} {timestamp}\n{body}";
    const recipe = {
      header: "x-sig",
      algorithm: "hmac-sha256",
      template,
      timestamp_header: "X-Time",
    } as const;
    const signed = `POST ${TARGET} https://nf.example${TARGET} 7 ${SECONDS}\n${BODY}`;
    const headers = { "x-sig": digest("sha256", signed, "hex"), "x-id": "7", "x-time": `${SECONDS}` };
    expect(own(recipe, headers)).toBe("valid");
    expect(own(recipe, { ...headers, "x-id": "8" })).toBe("invalid");
    expect(withRecipe(PRESETS.custom, recipe).prefixes).toEqual(["x-sig", "x-time", "x-id"]);
  });

  test("timestamps in milliseconds and as RFC 3339, of any age without a tolerance", () => {
    const recipe = { ...plain, algorithm: "hmac-sha256", timestamp_header: "x-time" } as const;
    const at = (timestamp_format: "unix" | "unix_ms" | "rfc3339", time: string, tolerance_seconds = 10) =>
      own({ ...recipe, timestamp_format, tolerance_seconds }, { "x-sig": HEX, "x-time": time });
    expect(at("unix_ms", `${SECONDS}999`)).toBe("valid");
    expect(at("unix_ms", `${SECONDS - 11}999`)).toBe("invalid");
    expect(at("rfc3339", "2026-01-01T01:00:10+01:00")).toBe("valid");
    expect(at("rfc3339", "2026-01-01T00:00:11Z")).toBe("invalid");
    expect(at("rfc3339", `${SECONDS}`)).toBe("invalid");
    expect(at("unix", "1", 0)).toBe("valid");
  });

  test("tokens: the whole header, with a prefix, or one of several", () => {
    const recipe = { header: "authorization", algorithm: "token", prefix: "Bearer " } as const;
    expect(own(recipe, { authorization: `Bearer ${SECRET}` })).toBe("valid");
    expect(own(recipe, { authorization: SECRET })).toBe("invalid");
    expect(own(recipe, { authorization: `Bearer x, Bearer ${SECRET}` })).toBe("invalid");
    expect(own({ ...recipe, separator: "," }, { authorization: `Bearer x, Bearer ${SECRET}` })).toBe("valid");
    expect(own({ header: "x", algorithm: "token" }, { x: "a,b" }, "a,b")).toBe("valid");
  });

  test.each([
    ["no body", "{timestamp}", /contain \{body\} exactly once/],
    ["the body twice", "{body}{body}", /contain \{body\} exactly once/],
    ["a time that stands nowhere", "{timestamp}{body}", /timestamp_header/],
    ["something unknown", "{nonce}{body}", /unknown placeholder/],
    ["a lone brace", "{body}}", /unknown placeholder/],
  ])("rejected: a template with %s", (_, template, reason) => {
    expect(() => withRecipe(PRESETS.custom, { header: "x", algorithm: "hmac-sha256", template })).toThrow(
      reason,
    );
  });
});

describe("ids and types of senders", () => {
  const facts = (provider: Provider, headers: Record<string, string>, body = BODY) => {
    const request = received({ headers, body });
    return [PRESETS[provider].eventId(request), PRESETS[provider].eventType(request)];
  };

  test("are read from headers and bodies", () => {
    expect(facts("stripe", {})).toEqual(["evt_1", "invoice.paid"]);
    expect(facts("github", { "x-github-delivery": "7", "x-github-event": "push" })).toEqual(["7", "push"]);
    expect(facts("linear", { "linear-delivery": "7" }, LINEAR_BODY)).toEqual(["7", "Issue.create"]);
    expect(
      facts("slack", {}, '{"event_id":"Ev1","type":"event_callback","event":{"type":"message"}}'),
    ).toEqual([...["Ev1", "message"]]);
    expect(facts("slack", {}, '{"type":"url_verification"}')).toEqual([null, "url_verification"]);
    expect(facts("sendgrid", {}, '[{"event":"open"}]')[1]).toBe("open");
    expect(facts("discord", {}, '{"id":"1","type":2}')).toEqual(["1", "2"]);
    expect(facts("zoom", {}, "{}")[0]).toHaveLength(64);
    expect(facts("zoom", {}, "{}")[0]).not.toBe(facts("zoom", {}, "{} ")[0]);
  });

  test("are null when there is none that can be stored", () => {
    const long = "x".repeat(FIELD_LENGTH_MAX);
    expect(facts("stripe", {}, `{"id":"${long}","type":"${long}y"}`)).toEqual([long, null]);
    expect(facts("stripe", {}, '{"id":{},"type":""}')).toEqual([null, null]);
    expect(facts("stripe", {}, '{"__proto__":{"id":"x"}}')).toEqual([null, null]);
    expect(facts("stripe", {}, `${"[".repeat(100_000)}`)).toEqual([null, null]);
    expect(facts("stripe", {}, '{"id":"\\ud800"}')[0]).toBe("\ufffd");
  });

  test("are found by escaped JSON pointers", () => {
    const preset = withRecipe(PRESETS.custom, {
      header: "x",
      algorithm: "token",
      event_id: "/a~1b/~01/1",
      event_type: "header:X-Type",
    });
    const request = received({ headers: { "x-type": "t" }, body: '{"a/b":{"~1":[0,"id"]}}' });
    expect([preset.eventId(request), preset.eventType(request)]).toEqual(["id", "t"]);
  });
});
