import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { BODY_BYTES_MAX } from "../../src/cli/verify-signature.ts";
import { ninefold } from "./run.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY = '{"order":1042,"lines":[{"sku":"a"}],"none":[],"at":{}}';
const folder = mkdtempSync(join(tmpdir(), "ninefold-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The headers of Standard Webhooks for a body, as its library signs them. */
function standard(body: string, at = new Date()): string[] {
  const signature = new Webhook(SECRET).sign("msg_1", at, body);
  const seconds = Math.floor(at.getTime() / 1000);
  return ["Webhook-Id: msg_1", `Webhook-Timestamp: ${seconds}`, `Webhook-Signature: ${signature}`];
}

function github(body: string, secret: string): string[] {
  return [`X-Hub-Signature-256: sha256=${new Bun.CryptoHasher("sha256", secret).update(body).digest("hex")}`];
}

interface Case {
  readonly body?: string;
  readonly secret?: string;
  readonly headers: readonly string[];
  readonly args?: readonly string[];
}

function run({ body = BODY, secret = SECRET, headers, args = [] }: Case) {
  writeFileSync(join(folder, "body"), body);
  writeFileSync(join(folder, "secret"), `${secret}\n`);
  const given = headers.flatMap((header) => ["--header", header]);
  return ninefold(["verify-signature", "body", "--secret-file", "secret", ...given, ...args], {
    cwd: folder,
  });
}

const OLD = new Date(Date.now() - 3_600_000);
const PYTHON = '{"order": 1042, "lines": [{"sku": "a"}], "none": [], "at": {}}';

const CASES: readonly (readonly [name: string, one: Case, code: number, says: string])[] = [
  ["a valid one", { headers: standard(BODY) }, 0, "valid: signed by standard\n"],
  [
    "one of GitHub, by its headers",
    { secret: "s", headers: github(BODY, "s") },
    0,
    "valid: signed by github\n",
  ],
  ["an old one", { headers: standard(BODY, OLD) }, 1, "not valid: the signature matches, but its timestamp"],
  ["an old one, if any age is accepted", { headers: standard(BODY, OLD), args: ["--any-age"] }, 0, "valid: "],
  ["no signature", { headers: [] }, 1, "not valid: the request has no header webhook-signature and "],
  [
    "another provider's secret",
    { secret: "sk_live_1", headers: ["Stripe-Signature: t=1,v1=00"] },
    1,
    "not valid: this cannot be a signing secret of stripe",
  ],
  [
    "a line break after the body",
    { body: `${BODY}\n`, headers: standard(BODY) },
    1,
    "not valid: the signature matches the body without the line break",
  ],
  [
    "a body that was parsed and written again",
    { body: PYTHON, headers: standard(BODY) },
    1,
    "not valid: the signature matches the body as compact JSON.",
  ],
  [
    "a body of Python that was written again",
    { headers: standard(PYTHON) },
    1,
    "not valid: the signature matches the body as the JSON that Python writes.",
  ],
  [
    "another secret",
    { secret: "t", headers: github(BODY, "s") },
    1,
    "not valid: the signature is of another secret, or of another body.",
  ],
];

test.each(CASES)("%s", async (_name, one, code, says) => {
  const ended = await run(one);
  expect({ code: ended.code, error: ended.error }).toEqual({ code, error: "" });
  expect(ended.out).toStartWith(says);
});

test.each([
  [["--provider", "meta"], "--provider must be one of stripe, "],
  [["--url", "example"], "--url must be the URL that the sender calls."],
  [["--header", "a b: c"], "--header must be a header of the request"],
])("an invalid command line: %p", async (args, says) => {
  const { code, error } = await run({ headers: standard(BODY), args });
  expect(code).toBe(2);
  expect(error).toContain(says);
});

test("a body of the largest size is read, a larger one is not", async () => {
  const body = "a".repeat(BODY_BYTES_MAX);
  expect((await run({ body, headers: standard(body) })).code).toBe(0);
  const { code, error } = await run({ body: `${body}a`, headers: standard(body) });
  expect(code).toBe(1);
  expect(error).toContain(`is larger than ${BODY_BYTES_MAX} bytes`);
});
