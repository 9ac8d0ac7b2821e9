import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { allowedAddresses, wordFor } from "../../../src/kernel/outbound/address.ts";
import { TargetPolicy } from "../../../src/kernel/outbound/target.ts";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const LOOPBACK = ["127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"];
const PRIVATE = ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fdff::1"];
/** Shared, link-local, multicast and reserved addresses, and those of cloud metadata services. */
const NEITHER = [
  ...["0.0.0.0", "100.64.0.1", "100.100.100.200", "169.254.169.254", "168.63.129.16", "224.0.0.1", "::"],
  ...["fe80::1", "ff02::1", "172.32.0.1", "fd00:ec2::254", "fd00:ec2:0:1::", "fd20:ce::254"],
  ...["fd00:c1::a9fe:a9fe", "2002:7f00:1::", "64:ff9b::7f00:1", "example.com"],
];

describe("the words of --allow-private-targets", () => {
  test.each([
    ["loopback", LOOPBACK, [...PRIVATE, ...NEITHER]],
    ["private", [...LOOPBACK, ...PRIVATE], NEITHER],
    ["all", [...LOOPBACK, ...PRIVATE, ...NEITHER], []],
  ] as const)("%s permits exactly its addresses", (word, permitted, others) => {
    const { any, includes } = allowedAddresses([word]);
    expect(any).toBe(true);
    for (const address of permitted) expect([address, includes(address)]).toEqual([address, true]);
    for (const address of others) expect([address, includes(address)]).toEqual([address, false]);
  });

  test("can be combined with ranges", () => {
    const { includes } = allowedAddresses(["loopback", "100.64.0.0/10"]);
    expect(["127.0.0.1", "100.64.0.1", "10.0.0.1"].map(includes)).toEqual([true, true, false]);
  });

  test("the error names the narrowest one", () => {
    expect(wordFor(LOOPBACK)).toBe("loopback");
    expect(wordFor([...LOOPBACK, ...PRIVATE])).toBe("private");
    for (const address of NEITHER)
      expect([address, wordFor(["127.0.0.1", address])]).toEqual([address, null]);
  });
});

/** The error of each of these URLs if nothing is permitted. */
const SAYS = [
  [
    "http://localhost:3000/",
    "To allow loopback addresses, start the server with --allow-private-targets loopback",
  ],
  [
    "https://127.0.0.1/",
    "To allow loopback addresses, start the server with --allow-private-targets loopback",
  ],
  [
    "http://192.168.1.7/",
    "To allow private addresses, start the server with --allow-private-targets private",
  ],
  ["http://[fd12::7]/", "To allow private addresses, start the server with --allow-private-targets private"],
  [
    "http://169.254.169.254/",
    "To allow such addresses, start the server with --allow-private-targets and their range",
  ],
] as const;

test.each(SAYS)("the rejection of %s explains how the operator permits it", (url, says) => {
  const policy = new TargetPolicy(allowedAddresses([]));
  for (const rules of [{}, { requireHttps: true }]) {
    const refused = `must have a public address. ${says}`;
    expect(policy.examine(url, rules)).toEqual({ refused, isBlocked: true });
  }
});

/** Addresses of the tests' names. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  app: ["127.0.0.1"],
  "public.example": ["93.184.215.14"],
  "inner.example": ["10.0.0.1"],
};
const resolver = { resolve: async (name: string) => NAMES[name] ?? [] };
const HTTPS_ONLY =
  "must be an https URL: for plain HTTP within your own network, start the server with --allow-private-targets private";

const NOTARY = {
  bucket: "receipts",
  region: "eu",
  accessKeyId: "A".repeat(20),
  secretAccessKey: "s".repeat(40),
};

test("a host that the operator has named may be in the own network, and only there plain HTTP will do", () => {
  const policy = new TargetPolicy(allowedAddresses([]));
  const rules = { ofOperator: true };
  const rejection = (url: string, address: string): string | null => {
    const target = policy.examine(url, rules);
    const refusal = "refused" in target ? target : policy.rejectionOf(target, [address], rules);
    return refusal?.refused ?? null;
  };
  for (const address of ["127.0.0.1", "10.0.0.1", "::1", "fd12::1"])
    for (const scheme of ["http", "https"]) expect(rejection(`${scheme}://sso/`, address)).toBeNull();
  expect(rejection("http://127.0.0.1:3000/", "127.0.0.1")).toBeNull();
  expect(rejection("https://sso.example/", "93.184.215.14")).toBeNull();
  expect(rejection("http://sso.example/", "93.184.215.14")).toBe(HTTPS_ONLY);
  expect(rejection("http://93.184.215.14/", "93.184.215.14")).toBe(HTTPS_ONLY);
  // Where clouds hand out credentials.
  for (const address of ["169.254.169.254", "fd00:ec2::254"])
    expect(rejection("https://sso.example/", address)).toContain("must have a public address");
});

describe("a server without the option", () => {
  let server: TestServer;
  let owner: AccountClient;
  beforeAll(async () => {
    server = await startTestServer({ manualClock: true, deps: { outbound: { resolver } } });
    owner = await server.account();
  });
  afterAll(() => server.stop());

  test.each([
    ["a bucket", "/v1/catch/buckets", {}, "target_url"],
    ["an alert", "/v1/pulse", { url: "https://example.com/", interval: 60_000 }, "webhook_url"],
    ["the notary's endpoint", "/v1/witness/config", NOTARY, "endpoint"],
  ])("%s over plain HTTP to a name is rejected with the name of the option", async (_, path, body, field) => {
    const answer = await owner.post(path, { ...body, [field]: "http://app:3000/" });
    expect(expectError(answer, "validation_error").fields).toEqual({ [field]: [HTTPS_ONLY] });
  });

  test("a private address fails the delivery, and its error names the option", async () => {
    const target = { target_url: "http://app:3000/", method: "POST", delay: "1s", payload: {}, headers: {} };
    const { body } = await owner.post("/v1/relay", target);
    await server.clock.advance(2_000);
    expect((await owner.get(`/v1/relay/${body["relay_id"]}`)).body).toMatchObject({
      status: "failed",
      error:
        "blocked: the URL must have a public address. To allow loopback addresses, start the server with --allow-private-targets loopback",
    });
  });
});

describe("a server that permits loopback", () => {
  const sink = new WebhookSink();
  let server: TestServer;
  let owner: AccountClient;
  beforeAll(async () => {
    server = await startTestServer({
      manualClock: true,
      args: ["--allow-private-targets", "loopback"],
      deps: { outbound: { resolver } },
    });
    owner = await server.account();
  });
  afterAll(async () => {
    sink.stop();
    await server.stop();
  });

  /** The outcome of an alert to this host, from a monitor that is down immediately. */
  async function alertTo(host: string): Promise<Record<string, unknown>> {
    const created = await owner.post("/v1/pulse", {
      url: "http://127.0.0.1:1/",
      interval: 60_000,
      webhook_url: `http://${host}:${sink.port}/alert`,
    });
    expect(created.status).toBe(201);
    await server.clock.advance(60_000);
    const { body } = await owner.get("/v1/relay?filter=pulse");
    return (body["deliveries"] as Record<string, unknown>[])[0] ?? {};
  }

  test("plain HTTP to a name is accepted, and sent if it resolves to a permitted address", async () => {
    expect(await alertTo("app")).toMatchObject({ status: "delivered" });
    expect(sink.take().map(({ path }) => path)).toEqual(["/alert"]);
  });

  test.each([
    ["public.example", `invalid: the URL ${HTTPS_ONLY}`],
    [
      "inner.example",
      "blocked: the URL must have a public address. To allow private addresses, start the server with --allow-private-targets private",
    ],
  ])("it is not sent to %s", async (host, error) => {
    expect(await alertTo(host)).toMatchObject({ status: "failed", response_status: null, error });
  });
});
