import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  GUESSED_LENGTH_MAX,
  GUESSED_SEGMENTS_MAX,
  type Paths,
} from "../../../../src/kernel/http/requests/paths.ts";
import { processorMs } from "../../../support/processor-time.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";

const OTHERWISE = "GET /openapi.json lists every path.";
let server: TestServer;
let paths: Paths;

beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  ({ paths } = server.server.app.http);
});
afterAll(() => server.stop());

/** The text after "There is no …". */
function advice(method: string, path: string): string {
  const { message } = paths.refusal(method, path);
  return message.slice(message.indexOf(". ") + 2);
}

const SAID: readonly (readonly [string, string, string])[] = [
  ["other names of areas", "GET /v1/flags", "Did you mean GET /v1/gate?"],
  ["", "GET /v1/flag/dark-mode", "Did you mean GET /v1/gate/{flagKey}?"],
  ["", "POST /v1/locks/job/acquire", "Did you mean POST /v1/latch/{key}/acquire?"],
  ["", "POST /v1/lock/job/release", "Did you mean POST /v1/latch/{key}/release?"],
  ["", "GET /v1/monitors", "Did you mean GET /v1/pulse?"],
  ["", "PUT /v1/Monitor/7", "Did you mean PUT /v1/pulse/{monitorId}?"],
  ["", "POST /v1/notary/log", "Did you mean POST /v1/witness/log?"],
  ["", "POST /v1/webhooks", "Did you mean POST /v1/relay?"],
  ["", "GET /v1/users", "Did you mean GET /v1/people?"],
  ["typos", "GET /v1/project", "Did you mean GET /v1/projects?"],
  ["", "GET /v1/metre/acme/balance", "Did you mean GET /v1/meter/{meterId}/balance?"],
  ["", "GET /v1/KEYS", "Did you mean GET /v1/keys?"],
  ["a part too few", "GET /v1/balance", "Did you mean GET /v1/meter/balance?"],
  ["", "POST /v1/notary/init", "Did you mean POST /v1/witness/sys/init?"],
  ["", "POST /signup", "Did you mean POST /v1/signup?"],
  ["a part too many", "GET /v1/v1/ping", "Did you mean GET /v1/ping?"],
  ["", "GET /api/v1/projects", "Did you mean GET /v1/projects?"],
  ["a value too few", "GET /v1/witness/pubkey/", "Did you mean GET /v1/witness/pubkey/{chainId}?"],
  [
    "",
    "POST /v1/meter//deduct",
    "Did you mean POST /v1/meter/{meterId}/deduct? A part of this path is empty.",
  ],
  ["another method", "GET /v1/meter/deduct", "This path takes POST."],
  ["", "POST /v1/pulse/7", "This path takes GET, PUT and DELETE."],
  ["", "PROPFIND /v1/meter/balance", "This path takes GET."],
  ["", "HEAD /v1/meter/deduct", "This path takes POST."],
  ["a word comes before a value", "PUT /v1/keys/rotate", "This path takes POST."],
  [
    "another method of another path: what saves is offered, and not what removes",
    "PATCH /v1/flags/dark-mode",
    "Did you mean POST /v1/gate?",
  ],
  ["a slash at the end", "GET /v1/ping/", "Remove the slash at the end."],
  ["", "HEAD /v1/pulse//", "Remove the slash at the end."],
  ["", "POST /v1/meter/balance/", "This path takes GET, without the slash at the end."],
  ["pages", "GET /doc", "Did you mean GET /docs?"],
  ["nothing near", "GET /v1/nothing", OTHERWISE],
  ["", "GET /v1", OTHERWISE],
  ["", "GET /v1/", OTHERWISE],
  ["", "GET /v1/foo/bar", OTHERWISE],
  ["", "POST /v1/deduct/a/b/c", OTHERWISE],
  ["what not everybody may read is not named", "GET /metrics", OTHERWISE],
  ["", "GET /metric", OTHERWISE],
  ["", "GET /healthx", OTHERWISE],
];

describe("messages for unknown paths", () => {
  test.each(SAID)("%s %s", (_, request, says) => {
    const [method = "", path = ""] = request.split(" ");
    expect(paths.refusal(method, path).message).toBe(`There is no ${request}. ${says}`);
  });

  test("each endpoint is suggested for a typo in any of its words", () => {
    const routes = server.server.app.http.routes.filter(({ operation }) => !operation.monitoring);
    const typos = routes.flatMap(({ method, path }) => {
      const segments = path.slice(1).split("/");
      const words = segments.flatMap((word, at) => (/^(:.*|v1|.{1,2})$/.test(word) ? [] : [at]));
      return words.map((at) => {
        const asked = segments.map((segment) => (segment.startsWith(":") ? "my-7" : segment));
        asked[at] = `${segments[at]}z`;
        return { method, asked: `/${asked.join("/")}`, meant: path.replace(/:(\w+)/g, "{$1}") };
      });
    });
    // After /v1/gate any word is a flag's key, for example: those paths exist.
    const isThere = (asked: string): boolean =>
      routes.some(({ path }) => {
        const [given, declared] = [asked.split("/"), path.split("/")];
        const fits = declared.every((word, at) => word.startsWith(":") || word === given[at]);
        return fits && declared.length === given.length;
      });
    const notFound = typos.filter(({ asked }) => !isThere(asked));
    expect(notFound.length).toBeGreaterThan(100);
    for (const { method, asked, meant } of notFound) {
      const said = advice(method, asked);
      if (said.startsWith("This path takes ")) continue;
      expect([asked, said]).toEqual([asked, `Did you mean ${method} ${meant}?`]);
    }
  });
});

describe("limits", () => {
  test(`a path of more than ${GUESSED_LENGTH_MAX} characters gets no suggestion`, () => {
    const path = (length: number) => "/v1/flags/".padEnd(length, "a");
    expect(advice("GET", path(GUESSED_LENGTH_MAX))).toBe("Did you mean GET /v1/gate/{flagKey}?");
    expect(advice("GET", path(GUESSED_LENGTH_MAX + 1))).toBe(OTHERWISE);
  });

  test(`a path of more than ${GUESSED_SEGMENTS_MAX} segments gets no suggestion`, () => {
    const path = (segments: number) => `/v1/catch/b/events/e/replay${"/x".repeat(segments - 6)}`;
    expect(advice("POST", path(GUESSED_SEGMENTS_MAX))).toBe(
      "Did you mean POST /v1/catch/{bucket_id}/events/{event_id}/replay?",
    );
    expect(advice("POST", path(GUESSED_SEGMENTS_MAX + 1))).toBe(OTHERWISE);
  });

  test("every path takes limited work", async () => {
    const worst = [
      "/v1/keyx/meterx/pulsx/relax/catcx",
      "/v1/keys/meter/pulse/relay",
      `/v1/${"meterx/".repeat(27)}`.slice(0, GUESSED_LENGTH_MAX),
      `/${"/".repeat(16_000)}`,
      `/v1/${"a".repeat(16_000)}`,
      `/v1/${"a/".repeat(8_000)}`,
    ];
    const times = 200;
    for (const path of worst) {
      const used = await processorMs(() => {
        for (let time = 0; time < times; time += 1) paths.refusal("GET", path);
      });
      // About 80 µs, while a request takes about 30 µs in total: twenty times as much would be a denial of service.
      expect(used / times, path.slice(0, 40)).toBeLessThan(2);
    }
  });
});
