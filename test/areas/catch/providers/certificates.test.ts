import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import https from "node:https";
import { join } from "node:path";
import { Readable } from "node:stream";
import MessageValidator from "sns-validator";
import {
  CERTIFICATE_BYTES_MAX,
  CERTIFICATE_FAILURE_MS,
  CERTIFICATE_FETCHES_MAX,
  CERTIFICATE_LIFETIME_MS,
} from "../../../../src/areas/catch/providers/certificates.ts";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { CertificateAuthority } from "../../../support/certificates.ts";
import { expectError } from "../../../support/errors.ts";
import { until } from "../../../support/eventually.ts";
import { AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { balanceOf, eventOf, eventsOf, newBucket } from "../support.ts";

const authority = new CertificateAuthority();
const stranger = new CertificateAuthority();
const host = authority.issue("localhost", "IP:127.0.0.1");
const issued = (name: string, by = authority, days = 4) => by.issue(name, `DNS:${name}`, days, "ca", "rsa");
const SNS_NAME = "sns.amazonaws.com";
const PAYPAL_NAME = "messageverificationcerts.paypal.com";
const sns = issued(SNS_NAME);
const paypal = issued(PAYPAL_NAME);
const foreign = issued(SNS_NAME, stranger);
const other = issued("other.example");
const keyOf = ({ key }: { key: string }): KeyObject => createPrivateKey(key);

/** Certificates by path; a number is the status of a response without one. */
const served = new Map<string, string | number>();
let fetched = 0;
const sender = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  tls: host,
  fetch(request) {
    fetched += 1;
    const pem = served.get(new URL(request.url).pathname) ?? 404;
    if (typeof pem === "string") return new Response(pem);
    return new Response("", { status: pem, headers: { location: "/SimpleNotificationService-good.pem" } });
  },
});
const origin = `https://127.0.0.1:${sender.port}`;

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  served.set("/SimpleNotificationService-good.pem", sns.cert);
  served.set("/paypal/certs/CERT-1", paypal.cert);
  const scale = { ...DEFAULT_TIERS.scale, requestsPerMinute: 1e6, catchPerMinute: 1e6 };
  const extra = join(process.env["TMPDIR"] ?? "/tmp", `ninefold-extra-${process.pid}.pem`);
  writeFileSync(extra, authority.pem);
  server = await startTestServer({
    // Certificates are valid from now.
    manualClock: { startMs: Date.now() + 60_000 },
    args: ["--allow-private-targets", "127.0.0.0/8", "--extra-ca", extra],
    config: {
      tiers: { ...DEFAULT_TIERS, scale },
      certificateHosts: { paypal: [`127.0.0.1:${sender.port}`], sns: [`127.0.0.1:${sender.port}`] },
    },
  });
  account = await server.account({ tier: "scale", balance: 10_000 });
});
afterAll(async () => {
  await server.stop();
  await sender.stop(true);
  authority.remove();
  stranger.remove();
});

const ARN = "arn:aws:sns:us-east-1:123456789012:orders";
const send = (id: string, body: string, headers: Record<string, string> = {}) =>
  server.client(null).post(`/v1/in/${id}`, body, { headers });

/** Fields of a message as Amazon documents them, with a signature over the documented ones. */
function message(fields: Record<string, string> = {}, key = keyOf(sns)): Record<string, string> {
  const body: Record<string, string> = {
    Type: "Notification",
    MessageId: "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
    TopicArn: ARN,
    Subject: "My First Message",
    Message: "Hello\nworld! Ünïcödé",
    Timestamp: "2012-05-02T00:54:06.655Z",
    SignatureVersion: "1",
    SigningCertURL: `${origin}/SimpleNotificationService-good.pem`,
    ...fields,
  };
  const names =
    body["Type"] === "Notification"
      ? ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
      : ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];
  const signed = names
    .flatMap((name) => (body[name] === undefined ? [] : `${name}\n${body[name]}\n`))
    .join("");
  const hash = body["SignatureVersion"] === "2" ? "sha256" : "sha1";
  return { ...body, Signature: sign(hash, Buffer.from(signed), key).toString("base64") };
}
const bucket = async (terms = {}) =>
  (await newBucket(account, { provider: "sns", signing_secret: ARN, ...terms })).id;
const verified = async (id: string, fields: object) => {
  const answer = await send(id, JSON.stringify(fields), { "content-type": "text/plain; charset=UTF-8" });
  return answer.status === 200 ? answer.body["verification"] : answer.status;
};

describe("sns", () => {
  test("versions 1 and 2, of every type; id and type are those of the message", async () => {
    const id = await bucket();
    for (const SignatureVersion of ["1", "2"])
      for (const Type of ["Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"])
        expect(
          await verified(id, message({ Type, SignatureVersion, Token: "t", SubscribeURL: `${origin}/s` })),
        ).toBe("valid");
    const { Subject: _, ...plain } = message();
    const unnamed = message({ Subject: undefined as never });
    expect([await verified(id, plain), await verified(id, unnamed)]).toEqual(["invalid", "valid"]);
    const [first] = await eventsOf(account, id);
    expect(await eventOf(account, id, first?.id ?? "")).toMatchObject({
      event_type: "Notification",
      provider_event_id: "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
    });
  });

  test("what the package of AWS accepts is valid, and what it rejects is invalid", async () => {
    const get = spyOn(https, "get").mockImplementation(((
      _url: unknown,
      answer: (response: object) => void,
    ) => {
      answer(Object.assign(Readable.from([sns.cert]), { statusCode: 200, setEncoding: () => undefined }));
      return { on: () => undefined };
    }) as never);
    const validator = new MessageValidator(/^127\.0\.0\.1:\d+$/);
    const accepts = (fields: object) =>
      new Promise<string>((settle) =>
        validator.validate(JSON.stringify(fields), (error) => settle(error === null ? "valid" : "invalid")),
      );
    const id = await bucket();
    // Confirmations have no subject.
    const { Subject: _, ...confirmation } = message({
      Type: "SubscriptionConfirmation",
      Token: "t",
      SubscribeURL: `${origin}/s`,
    });
    try {
      for (const fields of [
        message(),
        message({ SignatureVersion: "2" }),
        confirmation,
        { ...message(), Message: "another" },
        { ...message(), SignatureVersion: "2" },
        { ...message(), MessageId: "another" },
      ])
        expect(await verified(id, fields)).toBe(await accepts(fields));
      expect(get).toHaveBeenCalled();
    } finally {
      get.mockRestore();
    }
  });

  test("another topic, version, content or host of the certificate is invalid", async () => {
    const id = await bucket();
    const before = fetched;
    const good = message();
    for (const wrong of [
      { ...good, Message: "x" },
      { ...good, Signature: "" },
      { ...good, Type: "Other" },
      { Message: "raw" },
      message({ TopicArn: `${ARN}2` }),
      message({ SignatureVersion: "3" }),
      ...[
        "http://127.0.0.1/SimpleNotificationService-good.pem",
        `https://sns.us-east-1.amazonaws.com.evil.example/SimpleNotificationService-good.pem`,
        `https://localhost:${sender.port}/SimpleNotificationService-good.pem`,
        `https://a@127.0.0.1:${sender.port}/SimpleNotificationService-good.pem`,
        `${origin}/SimpleNotificationService-good.pem?x`,
        `${origin}/other.pem`,
        "",
      ].map((SigningCertURL) => message({ SigningCertURL })),
    ])
      expect(await verified(id, wrong)).toBe("invalid");
    expect(fetched - before).toBeLessThanOrEqual(1);
  });

  test("a certificate of another name, authority, or that is broken is invalid; another key too", async () => {
    const id = await bucket();
    const named = (name: string, pem: string, key: KeyObject) => {
      served.set(`/SimpleNotificationService-${name}.pem`, pem);
      return message({ SigningCertURL: `${origin}/SimpleNotificationService-${name}.pem` }, key);
    };
    expect(await verified(id, named("foreign", foreign.cert, keyOf(foreign)))).toBe("invalid");
    expect(await verified(id, named("other", other.cert, keyOf(other)))).toBe("invalid");
    expect(await verified(id, named("broken", sns.cert.replace(/[A-Z]{6}/g, "AAAAAA"), keyOf(sns)))).toBe(
      "invalid",
    );
    expect(await verified(id, named("empty", "", keyOf(sns)))).toBe("invalid");
    expect(await verified(id, message({}, keyOf(other)))).toBe("invalid");
    const between = authority.intermediate("between", 2);
    const leaf = authority.issue(SNS_NAME, `DNS:${SNS_NAME}`, 2, "between", "rsa");
    expect(await verified(id, named("alone", leaf.cert, keyOf(leaf)))).toBe("invalid");
    expect(await verified(id, named("chain", leaf.cert + between.cert, keyOf(leaf)))).toBe("valid");
  });

  test("while the certificate cannot be fetched: 503 with Retry-After, nothing stored, nothing charged", async () => {
    const id = await bucket();
    const [path, good] = ["/SimpleNotificationService-later.pem", sns.cert];
    const late = JSON.stringify(message({ SigningCertURL: origin + path }));
    const before = await balanceOf(account);
    for (const status of [500, 302, `${" ".repeat(CERTIFICATE_BYTES_MAX)}${good}`]) {
      served.set(path, status);
      const requests = fetched;
      const answer = await send(id, late);
      expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "30"]);
      expect((await send(id, late)).status).toBe(503);
      expect(fetched - requests).toBe(1);
      await server.clock.advance(CERTIFICATE_FAILURE_MS);
    }
    expect(await eventsOf(account, id)).toEqual([]);
    expect(await balanceOf(account)).toBe(before - 1);
    served.set(path, good);
    expect((await send(id, late)).body["verification"]).toBe("valid");
  });

  test("one fetch serves concurrent requests, and those of a day", async () => {
    const id = await bucket();
    served.set("/SimpleNotificationService-once.pem", sns.cert);
    const once = message({ SigningCertURL: `${origin}/SimpleNotificationService-once.pem` });
    const before = fetched;
    expect(await Promise.all([verified(id, once), verified(id, once)])).toEqual(["valid", "valid"]);
    await server.clock.advance(CERTIFICATE_LIFETIME_MS - 1_000);
    expect(await verified(id, once)).toBe("valid");
    expect(fetched - before).toBe(1);
  });

  test(`a bucket has ${CERTIFICATE_FETCHES_MAX} fetches a minute`, async () => {
    const id = await bucket();
    const named = (index: number) =>
      verified(id, message({ SigningCertURL: `${origin}/SimpleNotificationService-n${index}.pem` }));
    const before = fetched;
    for (let index = 0; index <= CERTIFICATE_FETCHES_MAX; index += 1) expect(await named(index)).toBe(503);
    expect(fetched - before).toBe(CERTIFICATE_FETCHES_MAX);
  });

  test("without a topic nothing is verified, and nothing is fetched; the secret must be an ARN", async () => {
    const before = fetched;
    expect(await verified(await bucket({ signing_secret: null }), message())).toBe("none");
    expect(fetched).toBe(before);
    const wrong = await account.post("/v1/catch/buckets", {
      target_url: "https://hooks.example.com/in",
      provider: "sns",
      signing_secret: "orders",
    });
    expect(wrong.status).toBe(400);
  });
});

describe("subscriptions", () => {
  const confirmation = (fields: Record<string, string> = {}) =>
    message({
      Type: "SubscriptionConfirmation",
      Token: "2336412f37",
      Message: "You have chosen to subscribe",
      SubscribeURL: `${origin}/confirm?Action=ConfirmSubscription&Token=2336412f37`,
      ...fields,
    });
  const stored = async (id: string, fields: object) =>
    String((await send(id, JSON.stringify(fields))).body["event_id"]);
  const confirm = (id: string, event: string) => account.post(`/v1/catch/${id}/events/${event}/confirm`);
  const logOf = async (id: string, event: string) =>
    (await eventOf(account, id, event)).attempt_log.map(({ kind, response_status }) => [
      kind,
      response_status,
    ]);

  test("on request: once, for a credit, and never forwarded or replayed", async () => {
    const id = await bucket({ target_url: `${origin}/target`, state: "live" });
    const event = await stored(id, confirmation());
    const gone = await stored(id, { ...confirmation(), Type: "UnsubscribeConfirmation" });
    expect((await eventOf(account, id, event)).status).toBe("delivered");
    served.set("/confirm", 500);
    const before = await balanceOf(account);
    expectError(await confirm(id, event), "catch.confirmation_failed");
    expect(await balanceOf(account)).toBe(before);
    served.set("/confirm", "<ConfirmSubscriptionResponse/>");
    const answer = await confirm(id, event);
    expect([answer.status, answer.body]).toEqual([200, { status: "confirmed" }]);
    expect(await balanceOf(account)).toBe(before - 1);
    expectError(await confirm(id, event), "conflict");
    expect(await logOf(id, event)).toEqual([
      ["confirm", 500],
      ["confirm", 200],
    ]);
    expectError(await account.post(`/v1/catch/${id}/events/${event}/replay`), "conflict");
    expectError(await confirm(id, gone), "conflict");
    expect(await logOf(id, gone)).toEqual([]);
    const { body: log } = await account.get("/v1/audit?limit=5");
    expect(JSON.stringify(log)).toContain("Subscription confirmed for bucket");
  });

  test("not without a valid signature, a topic, or a host of Amazon SNS", async () => {
    const id = await bucket();
    served.set("/confirm", "ok");
    const before = fetched;
    const invalid = await stored(id, { ...confirmation(), Signature: "AAAA" });
    expectError(await confirm(id, invalid), "catch.signature_invalid");
    for (const SubscribeURL of [
      "https://evil.example/confirm",
      `http://127.0.0.1:${sender.port}/confirm`,
      `https://localhost:${sender.port}/confirm`,
      "",
    ])
      expectError(await confirm(id, await stored(id, confirmation({ SubscribeURL }))), "conflict");
    expectError(await confirm(id, await stored(id, message())), "conflict");
    const open = await bucket({ signing_secret: null });
    expectError(await confirm(open, await stored(open, confirmation())), "conflict");
    expectError(await confirm(id, "evt_0"), "catch.event_not_found");
    expect(fetched).toBe(before);
  });

  test("automatically: three attempts, over a restart, also while the bucket is paused", async () => {
    const id = await bucket({ auto_confirm: true });
    served.set("/confirm", 503);
    const event = await stored(id, confirmation());
    const lost = await stored(id, { ...confirmation(), Signature: "AAAA" });
    const attempts = (count: number) =>
      until(async () => {
        // A job that fell due in the meantime begins with the next step of the clock.
        await server.clock.advance(1);
        return (await logOf(id, event)).length === count;
      });
    await attempts(1);
    await server.restart();
    const { key, userId, email } = account;
    account = new AccountClient(server.url, key ?? "", userId, email);
    await server.clock.advance(10_000);
    await attempts(2);
    served.set("/confirm", "ok");
    await server.clock.advance(60_000);
    await attempts(3);
    expect(await logOf(id, event)).toEqual([
      ["confirm", 503],
      ["confirm", 503],
      ["confirm", 200],
    ]);
    expect(await logOf(id, lost)).toEqual([]);
    const wrong = await account.post("/v1/catch/buckets", {
      target_url: "https://hooks.example.com/in",
      auto_confirm: true,
    });
    expectError(wrong, "validation_error");
    expect(await account.patch(`/v1/catch/buckets/${id}`, { auto_confirm: false })).toMatchObject({
      body: { auto_confirm: false },
    });
  });
});

describe("paypal", () => {
  const WEBHOOK = "1JE4291016473214C";
  const BODY =
    '{"id":"WH-58D329510W468432D-8HN650336L201105X","event_type":"PAYMENT.CAPTURE.COMPLETED","n":"é"}';
  const headersOf = (body: string, terms: Record<string, string> = {}, key = keyOf(paypal)) => {
    const [id, time] = ["69cd13f0-d67a-11e5-baa3-778b53f4ae55", "2016-02-18T20:01:35Z"];
    // The checksum of the body, by another implementation than the server's.
    const signed = `${id}|${time}|${WEBHOOK}|${crc32(Buffer.from(body))}`;
    return {
      "paypal-transmission-id": id,
      "paypal-transmission-time": time,
      "paypal-transmission-sig": sign("sha256", Buffer.from(signed), key).toString("base64"),
      "paypal-cert-url": `${origin}/paypal/certs/CERT-1`,
      "paypal-auth-algo": "SHA256withRSA",
      ...terms,
    };
  };

  /** CRC-32 by its definition, bit by bit (ISO 3309). */
  function crc32(bytes: Uint8Array): number {
    let crc = 0xffffffff;
    for (const byte of bytes) {
      crc ^= byte;
      for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
    }
    return (crc ^ 0xffffffff) >>> 0;
  }

  test("the signature covers id, time, webhook and body", async () => {
    const { id } = await newBucket(account, { provider: "paypal", signing_secret: WEBHOOK });
    const verification = async (body: string, headers: Record<string, string>) =>
      (await send(id, body, headers)).body["verification"];
    expect(await verification(BODY, headersOf(BODY))).toBe("valid");
    const [event] = await eventsOf(account, id);
    expect(await eventOf(account, id, event?.id ?? "")).toMatchObject({
      provider_event_id: "WH-58D329510W468432D-8HN650336L201105X",
      event_type: "PAYMENT.CAPTURE.COMPLETED",
      headers: expect.objectContaining({ "paypal-auth-algo": "SHA256withRSA" }),
    });
    expect(await verification(`${BODY} `, headersOf(BODY))).toBe("invalid");
    for (const wrong of [
      { "paypal-auth-algo": "SHA1withRSA" },
      { "paypal-transmission-id": "x" },
      { "paypal-transmission-time": "2016-02-18T20:01:36Z" },
      { "paypal-transmission-sig": "AAAA" },
      { "paypal-cert-url": "https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1" },
    ])
      expect(await verification(BODY, headersOf(BODY, wrong))).toBe("invalid");
    expect(await verification(BODY, headersOf(BODY, {}, keyOf(sns)))).toBe("invalid");
    await account.patch(`/v1/catch/buckets/${id}`, { signing_secret: "0AB12345CD678901E" });
    expect(await verification(BODY, headersOf(BODY))).toBe("invalid");
  });
});
