import { afterEach, describe, expect, test } from "bun:test";
import { allowedAddresses } from "../../../src/kernel/outbound/address.ts";
import { ADDRESSES_TRIED_MAX } from "../../../src/kernel/outbound/client.ts";
import {
  IDLE_CONNECTIONS_MAX,
  IDLE_MS_MAX,
  IDLE_PER_TARGET_MAX,
} from "../../../src/kernel/outbound/connection.ts";
import { HEADER_VALUE_LENGTH_MAX, headerError } from "../../../src/kernel/outbound/headers.ts";
import {
  HEAD_BYTES_MAX,
  HEADER_LINES_MAX,
  ResponseReader,
} from "../../../src/kernel/outbound/response-reader.ts";
import {
  REMEMBERED_URL_LENGTH_MAX,
  TARGETS_REMEMBERED_MAX,
  TargetPolicy,
} from "../../../src/kernel/outbound/target.ts";
import { until } from "../../support/eventually.ts";
import { RawServer } from "../../support/raw-server.ts";
import { failureOf, get, LOOPBACK, Opened, textOf } from "./support.ts";

const opened = new Opened();
afterEach(() => opened.close());

const NO_BODY = { bodyBytesMax: 0, keepsBody: false };
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

describe("limits", () => {
  test(`a head of ${HEAD_BYTES_MAX} bytes is accepted, one more byte is not`, () => {
    const head = (length: number) => {
      const begin = "HTTP/1.1 204 No Content\r\nX: ";
      return Buffer.from(`${begin}${"a".repeat(length - begin.length)}\r\n\r\n`);
    };
    expect(new ResponseReader("GET", NO_BODY).push(head(HEAD_BYTES_MAX))).toBe(true);
    expect(() => new ResponseReader("GET", NO_BODY).push(head(HEAD_BYTES_MAX + 1))).toThrow();
  });

  test(`${HEADER_LINES_MAX} headers are accepted, one more is not`, () => {
    const head = (count: number) => Buffer.from(`HTTP/1.1 204 No Content\r\n${"X: y\r\n".repeat(count)}\r\n`);
    expect(new ResponseReader("GET", NO_BODY).push(head(HEADER_LINES_MAX))).toBe(true);
    expect(() => new ResponseReader("GET", NO_BODY).push(head(HEADER_LINES_MAX + 1))).toThrow();
  });

  test("a discarded body is read as far as a stored one", () => {
    for (const length of [1_000, 1_001]) {
      const [kept, counted] = [true, false].map((keepsBody) => {
        const reader = new ResponseReader("GET", { bodyBytesMax: 1_000, keepsBody });
        reader.push(Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${"x".repeat(length)}`));
        const { truncated, reusable, storedBody } = reader;
        return { truncated, reusable, kept: storedBody.length };
      });
      expect(kept).toEqual({ truncated: length > 1_000, reusable: length <= 1_000, kept: 1_000 });
      expect(counted).toEqual({ truncated: length > 1_000, reusable: length <= 1_000, kept: 0 });
    }
  });

  test("header names and values", () => {
    const long = "a".repeat(HEADER_VALUE_LENGTH_MAX);
    expect(headerError("X-Custom_1.~", "plain text\twith a tab")).toBe(null);
    expect(headerError("X", "")).toBe(null);
    expect(headerError("X", long)).toBe(null);
    expect(headerError("X", `${long}a`)).toBe("value");
    expect(headerError("a".repeat(128), "x")).toBe(null);
    expect(headerError("a".repeat(129), "x")).toBe("name");
    for (const name of ["", "a b", "a:b", "a\r\nb", "é", "a/b", "a(b)", '"a"', "a\0"]) {
      expect([name, headerError(name, "x")]).toEqual([name, "name"]);
    }
    for (const value of ["a\r\nb", "a\nb", "a\rb", "a\0b", "é", "\u007f", "snow☃"]) {
      expect([value, headerError("X", value)]).toEqual([value, "value"]);
    }
  });

  test(`at most ${IDLE_PER_TARGET_MAX} idle connections stay open to one target`, async () => {
    const waiting: (() => void)[] = [];
    const server = opened.add(await new RawServer((socket) => waiting.push(() => socket.write(OK))).start());
    const outbound = opened.client();
    const asked = IDLE_PER_TARGET_MAX + 1;
    const answers = Array.from({ length: asked }, () =>
      outbound.send(get(`http://127.0.0.1:${server.port}/`)),
    );
    await until(() => waiting.length === asked);
    for (const answer of waiting) answer();
    await Promise.all(answers);
    await until(() => server.open.size === IDLE_PER_TARGET_MAX);
  });

  test(`at most ${IDLE_CONNECTIONS_MAX} idle connections stay open in total`, async () => {
    const server = opened.add(await new RawServer((socket) => socket.write(OK)).start());
    const outbound = opened.client(LOOPBACK, { resolver: { resolve: async () => ["127.0.0.1"] } });
    for (let name = 0; name <= IDLE_CONNECTIONS_MAX; name += 1) {
      await outbound.send(get(`http://name-${name}.example:${server.port}/`));
    }
    expect(server.connections).toBe(IDLE_CONNECTIONS_MAX + 1);
    await until(() => server.open.size === IDLE_CONNECTIONS_MAX);
  });

  test(`an idle connection is closed after ${IDLE_MS_MAX} ms`, async () => {
    const server = opened.add(await new RawServer((socket) => socket.write(OK)).start());
    await opened.client().send(get(`http://127.0.0.1:${server.port}/`));
    const began = performance.now();
    await until(() => server.open.size === 0);
    expect(performance.now() - began).toBeGreaterThan(IDLE_MS_MAX - 1_100);
  }, 60_000);

  test(`at most ${TARGETS_REMEMBERED_MAX} recently used URLs are cached, and no long ones`, () => {
    const policy = new TargetPolicy(allowedAddresses([]));
    const url = (number: number) => `https://example.com/${number}`;
    const first = policy.examine(url(0));
    for (let number = 1; number < TARGETS_REMEMBERED_MAX; number += 1) policy.examine(url(number));
    expect(policy.examine(url(0))).toBe(first);
    for (let number = 1; number <= TARGETS_REMEMBERED_MAX; number += 1) policy.examine(url(-number));
    const again = policy.examine(url(0));
    expect(again).not.toBe(first);
    expect(again).toEqual(first);
    const long = (length: number) => url(0).padEnd(length, "a");
    const longest = long(REMEMBERED_URL_LENGTH_MAX);
    expect(policy.examine(longest)).toBe(policy.examine(longest));
    expect(policy.examine(`${longest}a`)).not.toBe(policy.examine(`${longest}a`));
  });

  test("a cached URL is checked by the rules of each use", () => {
    const policy = new TargetPolicy(allowedAddresses([]));
    expect(policy.examine("http://example.com/")).toMatchObject({ host: "example.com" });
    expect(policy.examine("http://example.com/", { requireHttps: true })).toMatchObject({
      refused: expect.stringMatching(/^must be an https URL: .*--allow-private-targets/),
    });
    for (let time = 0; time < 2; time += 1)
      expect(policy.examine("http://127.0.0.1/")).toMatchObject({ isBlocked: true });
  });

  test(`at most ${ADDRESSES_TRIED_MAX} addresses of a name are tried`, async () => {
    const server = opened.add(await new RawServer((socket) => socket.write(OK)).start());
    const dead = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];
    const ask = (before: number) =>
      opened
        .client(LOOPBACK, { resolver: { resolve: async () => [...dead.slice(0, before), "127.0.0.1"] } })
        .send(get(`http://many.example:${server.port}/`));
    expect(textOf(await ask(ADDRESSES_TRIED_MAX - 1))).toBe("ok");
    expect(failureOf(await ask(ADDRESSES_TRIED_MAX))).toBe("connect");
  });
});
