import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createServer, type Server as TlsServer } from "node:tls";
import {
  daysLeft,
  type StoredCertificate,
  updatedCertificate,
} from "../../../src/areas/monitors/certificate.ts";
import { CertificateAuthority, type Certificate as Files } from "../../support/certificates.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const DAY = 86_400_000;
const EVENT = "monitor.certificate";

describe("when a certificate is reported", () => {
  const NOW = Date.UTC(2026, 0, 1);

  /** The days left at which an alert is sent, for daily checks of certificates with these days left. */
  function toldAt(lefts: readonly number[], expiryDays: number, manual = false): number[] {
    let met: StoredCertificate | null = null;
    const told: number[] = [];
    for (const [day, left] of lefts.entries()) {
      const at = NOW + day * DAY;
      const before = met as StoredCertificate | null;
      met = updatedCertificate(
        before,
        { notAfter: at + left * DAY, issuer: "X" },
        { at, manual },
        expiryDays,
      );
      if (met.told !== (before?.told ?? null)) told.push(left);
    }
    return told;
  }
  const down = (from: number) => Array.from({ length: from + 1 }, (_, day) => from - day);

  for (const [name, lefts, expiryDays, told] of [
    ["once at each of its days", down(20), 14, [14, 7, 3, 1]],
    ["earlier if wanted", down(95), 90, [90, 7, 3, 1]],
    ["later if wanted", down(20), 5, [5, 3, 1]],
    ["at a day that is one of the others", down(20), 7, [7, 3, 1]],
    ["never", down(20), 0, []],
    ["at the first check of one that ends soon, once", [2, 1, 0], 14, [2, 1]],
    ["again after a renewal", [14, 13, 60, ...down(14)], 14, [14, 14, 7, 3, 1]],
    ["not at every check of two servers with two certificates", [5, 60, 3 + 0, 58, 1, 56], 14, [5, 3, 1]],
  ] as const) {
    test(name, () => expect(toldAt(lefts, expiryDays)).toEqual([...told]));
  }

  test("two certificates that expire soon are reported a few times, not at every check", () => {
    const lefts = Array.from({ length: 12 }, (_, day) => (day % 2 === 0 ? 12 : 24) - day);
    expect(toldAt(lefts, 14).length).toBeLessThanOrEqual(6);
  });

  test("manual checks send no notice and suppress none", () => {
    expect(toldAt(down(5), 14, true)).toEqual([]);
    const manual = updatedCertificate(
      null,
      { notAfter: NOW + DAY, issuer: "X" },
      { at: NOW, manual: true },
      14,
    );
    const next = updatedCertificate(manual, manual, { at: NOW + 1, manual: false }, 14);
    expect(next.told).toEqual({ notAfter: NOW + DAY, days: 1 });
  });

  test("the remaining days are whole, and negative after the expiry", () => {
    const left = (ms: number) => daysLeft({ notAfter: NOW + ms, issuer: "" }, NOW);
    expect([left(2 * DAY), left(2 * DAY - 1), left(0), left(-1)]).toEqual([2, 1, 0, -1]);
  });
});

describe("over real connections", () => {
  let authority: CertificateAuthority;
  let soon: Files;
  let later: Files;
  let server: TestServer;
  let account: AccountClient;
  let hooks: WebhookSink;
  let site: TlsServer | null = null;
  let port = 0;

  beforeAll(() => {
    authority = new CertificateAuthority();
    soon = authority.issue("soon", "IP:127.0.0.1", 5);
    later = authority.issue("later", "IP:127.0.0.1", 40);
  });
  afterAll(() => authority.remove());
  beforeEach(async () => {
    hooks = new WebhookSink();
    server = await startTestServer({
      manualClock: { startMs: Date.now() },
      args: ["--allow-private-targets", "127.0.0.0/8"],
      deps: { outbound: { certificateAuthorities: authority.pem } },
    });
    account = await server.account({ tier: "unlimited" });
    await account.post("/v1/pulse/channels", {
      name: "hooks",
      kind: "webhook",
      config: { url: hooks.url() },
      default: true,
      events: [EVENT],
    });
  });
  afterEach(async () => {
    site?.close();
    await server.stop();
    hooks.stop();
  });

  /** An HTTPS server with a fixed port, which sends the response that the path describes. */
  async function serve(files: Files): Promise<void> {
    await new Promise<void>((resolve) => (site === null ? resolve() : site.close(() => resolve())));
    const next = createServer(files, (socket) => {
      socket.on("error", () => {});
      socket.on("data", (bytes) => {
        const status = bytes.toString("latin1").includes(" /broken ") ? "500 Broken" : "200 OK";
        socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok`);
      });
    });
    next.on("tlsClientError", () => {});
    await new Promise<void>((resolve) => next.listen(port, "127.0.0.1", resolve));
    const address = next.address();
    port = typeof address === "object" && address !== null ? address.port : 0;
    site = next;
  }

  const create = async (change: object = {}): Promise<string> => {
    const url = `https://127.0.0.1:${port}/`;
    const { status, body } = await account.post("/v1/pulse", {
      url,
      interval: 300_000,
      name: "Shop",
      ...change,
    });
    expect(status).toBe(201);
    return String(body["id"]);
  };
  const certificateOf = async (id: string) =>
    (await account.get(`/v1/pulse/${id}`)).body["certificate"] as Record<string, unknown> | null;
  const told = () =>
    hooks
      .take()
      .filter(({ method }) => method === "POST")
      .map(({ body }) => JSON.parse(body) as Record<string, unknown>);

  test("a certificate that expires soon is shown and reported once per step, and the target stays up", async () => {
    await serve(soon);
    const id = await create();
    expect(await certificateOf(id)).toBe(null);
    await server.clock.advance(5_000);
    const shown = await certificateOf(id);
    expect(shown).toMatchObject({ days_left: 4, issuer: "Test Authority" });
    expect(Number(shown?.["not_after"])).toBeWithin(
      Math.floor((Date.now() + 5 * DAY) / 1_000) - 60,
      Math.floor((Date.now() + 5 * DAY) / 1_000) + 1,
    );
    const [first, ...more] = told();
    expect(more).toEqual([]);
    const date = new Date(Number(shown?.["not_after"]) * 1_000).toISOString().slice(0, 10);
    expect(first).toMatchObject({
      event: EVENT,
      monitor_id: id,
      name: "Shop",
      status: "up",
      days_left: 4,
      issuer: "Test Authority",
      not_after: shown?.["not_after"],
      text: `the certificate expires in 4 days, on ${date}`,
    });
    await server.clock.advance(1_000 * 1_000);
    expect(told()).toEqual([]);
    await server.restart();
    await server.clock.advance(1_000 * 1_000);
    expect(told()).toEqual([]);
    await server.clock.advance(DAY);
    expect(told()).toMatchObject([{ days_left: 3 }]);
    await server.clock.advance(2 * DAY);
    expect(told()).toMatchObject([{ days_left: 1, text: `the certificate expires in 1 day, on ${date}` }]);
    account = server.client(account.key) as AccountClient;
    expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject({
      status: "up",
      consecutive_failures: 0,
    });
    // Renewed: the alerts depend on the new expiry.
    await serve(later);
    await server.clock.advance(600_000);
    expect(told()).toEqual([]);
    expect(await certificateOf(id)).toMatchObject({ days_left: 36 });
    server.clock.freeze(22 * DAY);
    await server.clock.advance(DAY);
    expect(told()).toMatchObject([{ days_left: 14 }]);
  }, 60_000);

  describe("an intermediate certificate that expires before the target's own", () => {
    /** What is shown and reported of a target with these certificates. */
    async function seen(own: Files, ...others: Files[]): Promise<unknown[]> {
      await serve({ ...own, cert: own.cert + others.map(({ cert }) => cert).join("") });
      const id = await create();
      await server.clock.advance(5_000);
      const { days_left, intermediate } = (await certificateOf(id)) ?? {};
      return [days_left, intermediate, ...told().map(({ text }) => String(text).replace(/, on .*/, ""))];
    }
    let between: Files;
    let own: Files;
    beforeAll(() => {
      between = authority.intermediate("R3", 10);
      own = authority.issue("own", "IP:127.0.0.1", 25, "R3");
    });

    test("is reported", async () => {
      expect(await seen(own, between)).toEqual([
        9,
        "R3",
        "the intermediate certificate R3 expires in 9 days",
      ]);
    });

    test("is reported behind others, and with the root", async () => {
      const unrelated = authority.issue("unrelated", null, 3);
      const root = { cert: authority.pem, key: "" };
      expect(await seen(own, unrelated, between, root)).toEqual([
        ...[9, "R3", "the intermediate certificate R3 expires in 9 days"],
      ]);
    });

    test("is not reported where no client needs it", async () => {
      const unrelated = authority.intermediate("Unrelated", 3);
      expect(await seen(later, unrelated)).toEqual([39, undefined]);
    });

    test("is not reported of an authority that is trusted itself, also if an old one has signed it", async () => {
      expect(await seen(later, authority.crossSigned(3))).toEqual([39, undefined]);
    });
  });

  test("0 reports nothing; a malformed response has a certificate; plain HTTP has none", async () => {
    await serve(soon);
    const silent = await create({ name: "silent", tls_expiry_days: 0 });
    const broken = await create({ name: "broken", url: `https://127.0.0.1:${port}/broken` });
    const plain = await create({ name: "plain", url: hooks.url() });
    await account.post(`/v1/pulse/${silent}/check`);
    expect(await certificateOf(silent)).toMatchObject({ days_left: 4 });
    await server.clock.advance(5_000);
    expect(told().map((notice) => notice["name"])).toEqual(["broken"]);
    expect(await certificateOf(broken)).toMatchObject({ days_left: 4 });
    expect(await certificateOf(plain)).toBe(null);
    await account.put(`/v1/pulse/${silent}`, { url: hooks.url("/moved") });
    expect(await certificateOf(silent)).toBe(null);
    // The result of a check that was in progress belongs to the other URL.
    await server.clock.advance(5_000);
    expect(await certificateOf(silent)).toBe(null);
  });

  test("nothing is reported during maintenance, but after it", async () => {
    await serve(soon);
    const now = server.clock.now();
    const at = (ms: number) => new Date(now + ms).toISOString();
    const planned = await account.post("/v1/pulse/maintenance", {
      title: "Work",
      monitor_ids: [await create()],
      starts_at: at(0),
      ends_at: at(1_800_000),
    });
    expect(planned.status).toBe(201);
    await server.clock.advance(1_500_000);
    expect(told()).toEqual([]);
    await server.clock.advance(900_000);
    expect(told()).toMatchObject([{ event: EVENT, days_left: 4 }]);
  });

  test("an invalid certificate makes the target down, and the last valid one is still shown", async () => {
    await serve(later);
    const id = await create();
    await server.clock.advance(5_000);
    const foreign = new CertificateAuthority();
    try {
      await serve(foreign.issue("foreign", "IP:127.0.0.1", 3));
    } finally {
      foreign.remove();
    }
    await server.clock.advance(450_000);
    expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject({
      status: "down",
      certificate: { days_left: 39 },
    });
    expect(told()).toEqual([]);
  });
});
