import { afterEach, describe, expect, test } from "bun:test";
import { COOKIES_MAX, Cookies } from "../../../src/kernel/outbound/cookies.ts";
import { HEADER_VALUE_LENGTH_MAX } from "../../../src/kernel/outbound/headers.ts";
import { RawServer } from "../../support/raw-server.ts";
import { get, Opened, textOf } from "./support.ts";

const opened = new Opened();
afterEach(() => opened.close());

/** The `Cookie` of a request to `to` after a response of `from`. */
function sent(header: string, to: string, from = "https://shop.example/a/login", headers = {}): unknown {
  const cookies = new Cookies();
  cookies.take(header, new URL(from));
  return Object.entries(cookies.addTo(headers, new URL(to))).find(
    ([name]) => name.toLowerCase() === "cookie",
  )?.[1];
}

const SHOP = "https://shop.example/a/b";
const DATE = "Wed, 21 Oct 2115 07:28:00 GMT";

describe("cookies of a response", () => {
  const cases: readonly (readonly [header: string, to: string, expected: string | undefined])[] = [
    ["a=1", SHOP, "a=1"],
    ["a=1; Path=/", "https://shop.example/", "a=1"],
    ["a=1", "https://shop.example/c", undefined],
    ["a=1; Path=/a", "https://shop.example/ab", undefined],
    ["a=1; Path=/a/", SHOP, "a=1"],
    ["a=1", "https://other.example/a/b", undefined],
    ["a=1", "https://www.shop.example/a/b", undefined],
    ["a=1; Domain=shop.example", "https://www.shop.example/a/b", "a=1"],
    ["a=1; Domain=.SHOP.example", SHOP, "a=1"],
    ["a=1; Domain=example", SHOP, undefined],
    ["a=1; Domain=op.example", SHOP, undefined],
    ["a=1; Domain=other.example", SHOP, undefined],
    ["a=1; Secure", "http://shop.example/a/b", undefined],
    ["a=1; Secure; HttpOnly; SameSite=Lax", SHOP, "a=1"],
    ["a=1; Max-Age=0", SHOP, undefined],
    ["a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", SHOP, "a=1"],
    ["a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", SHOP, undefined],
    [`a=1; Expires=${DATE}, b=2; Expires=${DATE}`, SHOP, "a=1; b=2"],
    ["a=1, a=2; Path=/a, b=3", SHOP, "a=2; b=3"],
    ["a=1, a=; Max-Age=-1", SHOP, undefined],
    ["a=b=c", SHOP, "a=b=c"],
    ["a", SHOP, undefined],
    ["=1", SHOP, undefined],
    ["a=\u00e4", SHOP, undefined],
  ];
  for (const [header, to, expected] of cases)
    test(`${header} to ${to}`, () => expect(sent(header, to)).toBe(expected));

  test("of an address are of that address alone", () => {
    const from = "http://10.0.0.7/";
    expect(sent("a=1; Domain=10.0.0.7", from, from)).toBe("a=1");
    expect(sent("a=1; Domain=0.0.7", from, from)).toBeUndefined();
    expect(sent("a=1; Domain=10.0.0.7", "http://1.10.0.0.7.example/", from)).toBeUndefined();
  });

  test("follow the cookies that the request has", () => {
    expect(sent("a=1", SHOP, SHOP, { cookie: "own=1" })).toBe("own=1; a=1");
  });

  test("are limited in number and length", () => {
    const many = Array.from({ length: COOKIES_MAX + 1 }, (_, at) => `c${at}=1`).join(", ");
    expect(String(sent(many, SHOP)).split("; ")).toHaveLength(COOKIES_MAX);
    const long = "x".repeat(HEADER_VALUE_LENGTH_MAX - 2);
    expect(sent(`a=${long}, b=1`, SHOP)).toBe(`a=${long}`);
    expect(sent(`a=${long}x, b=1`, SHOP)).toBe("b=1");
  });
});

test("a request that keeps cookies sends them with its redirects, and no other request does", async () => {
  const server = new RawServer((socket, request) => {
    const isKnown = request.includes("\r\nCookie: visit=7\r\n");
    const head = isKnown ? "HTTP/1.1 200 OK" : "HTTP/1.1 302 Found\r\nLocation: /\r\nSet-Cookie: visit=7";
    socket.write(`${head}\r\nContent-Length: 0\r\n\r\n`);
  });
  opened.add(await server.start());
  const outbound = opened.client();
  const url = `http://127.0.0.1:${server.port}/`;
  const kept = { redirectsMax: 5, keepsCookies: true };
  expect(textOf(await outbound.send(get(url, kept)))).toBe("");
  expect(server.requests).toHaveLength(2);
  await outbound.send(get(url, kept));
  expect(server.requests).toHaveLength(4);
  const without = await outbound.send(get(url, { redirectsMax: 5 }));
  expect(without.answered ? null : without.failure.kind).toBe("redirects");
});
