import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ApiError } from "../../../../src/kernel/errors.ts";
import {
  decodeNumberCursor,
  encodeCursor,
  PAGE_LIMIT_MAX,
  pageOf,
  pageQuery,
} from "../../../../src/kernel/http/requests/pagination.ts";
import { compileValidator } from "../../../../src/kernel/http/requests/validate.ts";
import { thrown } from "../../support.ts";

function refusal(run: () => unknown): ApiError {
  const error = thrown(run);
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

describe("cursor", () => {
  test("property: every number is restored, and its cursor needs no escaping in a URL", () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (value) => {
        const cursor = encodeCursor([value]);
        expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(decodeNumberCursor(cursor)).toBe(value);
      }),
    );
  });

  test.each([0, 1, 42, -7, Number.MAX_SAFE_INTEGER])("%p is restored", (value) => {
    expect(decodeNumberCursor(encodeCursor([value]))).toBe(value);
  });

  const foreign = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const ours = encodeCursor([42]);
  test.each([
    ["empty", ""],
    ["rubbish", "rubbish"],
    ["a plain number", "42"],
    ["no JSON inside", Buffer.from("[42").toString("base64url")],
    ["an object inside", foreign({ position: 42 })],
    ["a number inside", foreign(42)],
    ["a list in a list", foreign([[42]])],
    ["null in a list", foreign([null])],
    ["a truth value in a list", foreign([true])],
    ["padded", Buffer.from("[4]").toString("base64").padEnd(8, "=")],
    ["in the other base64 alphabet", Buffer.from('["???>>>"]').toString("base64")],
    ["with a space", `${ours.slice(0, 2)} ${ours.slice(2)}`],
    ["with a character that decoding passes over", `${ours}!`],
    ["in another spelling of the same JSON", Buffer.from("[ 42 ]").toString("base64url")],
    ["in another spelling of the same number", Buffer.from("[4.2e1]").toString("base64url")],
    ["in hexadecimal", Buffer.from("[0x2a]").toString("base64url")],
    ["between other brackets", Buffer.from("(42)").toString("base64url")],
    ["of a text", foreign(["42"])],
    ["of two numbers", foreign([4, 2])],
    ["of none", foreign([])],
    ["of a fraction", foreign([4.2])],
    ["beyond the safe integers", foreign([2 ** 53])],
    ["cut off", ours.slice(0, -1)],
  ])("%s is rejected with 400 that names the field", (_, cursor) => {
    const error = refusal(() => decodeNumberCursor(cursor));
    expect(error.code).toBe("validation_error");
    expect(Object.keys(error.details.fields ?? {})).toEqual(["cursor"]);
  });
});

describe("page", () => {
  const rows = Array.from({ length: 7 }, (_, index) => ({ id: 100 - index }));
  const page = (limit: number) => pageOf(rows.slice(0, limit + 1), limit, ({ id }) => [id]);

  test.each([
    [3, [100, 99, 98], encodeCursor([98])],
    [6, [100, 99, 98, 97, 96, 95], encodeCursor([95])],
    // The last page has no cursor, also when it is exactly full.
    [7, [100, 99, 98, 97, 96, 95, 94], undefined],
    [8, [100, 99, 98, 97, 96, 95, 94], undefined],
  ])("of %p out of seven", (limit, ids, cursor) => {
    const { items, cursor: given } = page(limit);
    expect(items.map(({ id }) => id)).toEqual(ids);
    expect(given).toBe(cursor);
  });

  test("of nothing", () => {
    expect(pageOf([], 10, () => [1])).toStrictEqual({ items: [] });
  });
});

describe("query of a list", () => {
  const check = compileValidator(pageQuery(50));

  test.each([{}, { limit: 1 }, { limit: PAGE_LIMIT_MAX }, { cursor: "x".repeat(256) }])(
    "%j is accepted",
    (query) => {
      expect(check(query)).toEqual(query);
    },
  );

  test.each([
    [{ limit: 0 }, "limit"],
    [{ limit: PAGE_LIMIT_MAX + 1 }, "limit"],
    [{ limit: -1 }, "limit"],
    [{ limit: 1.5 }, "limit"],
    [{ limit: "ten" }, "limit"],
    [{ cursor: "x".repeat(257) }, "cursor"],
  ])("%j is rejected", (query, field) => {
    const error = refusal(() => check(query));
    expect(Object.keys(error.details.fields ?? {})).toEqual([field]);
    if (field === "limit") expect(error.message).toBe("limit must be an integer from 1 to 100");
  });
});
