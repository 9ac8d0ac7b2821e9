import { describe, expect, test } from "bun:test";
import { parseJson } from "../../../src/json-text.ts";
import {
  assertFilter,
  compileFilter,
  FILTER_BYTES_MAX,
  FILTER_CONDITIONS_MAX,
  FILTER_DEPTH_MAX,
} from "../../../src/kernel/data/filter.ts";
import { ApiError, rejectionBy } from "../../../src/kernel/errors.ts";
import { processorMs } from "../../support/processor-time.ts";

const PAYLOAD = {
  type: "invoice.paid",
  amount: 120,
  live: true,
  note: null,
  tags: ["vip", 7],
  "a/b": { "~c": 1 },
  customer: { country: "DE", address: { city: "Berlin" } },
  items: [{ sku: "x-1" }],
};

const passes = (filter: unknown, value: unknown = PAYLOAD): boolean => compileFilter("filter", filter)(value);

describe("accepts", () => {
  test.each<[filter: unknown, expected: boolean]>([
    [{}, true],
    [{ type: "invoice.paid" }, true],
    [{ type: "invoice" }, false],
    [{ amount: 120, live: true, note: null }, true],
    [{ amount: "120" }, false],
    [{ note: { $exists: true } }, true],
    [{ tags: "vip" }, true],
    [{ tags: "v" }, false],
    [{ tags: { $in: [7, 8] } }, true],
    [{ tags: { $nin: [7, 8] } }, false],
    [{ tags: { $ne: "vip" } }, false],
    [{ customer: { country: "DE", address: { city: { $startsWith: "Ber", $endsWith: "lin" } } } }, true],
    [{ customer: {} }, true],
    [{ amount: {} }, false],
    [{ "/customer/address/city": "Berlin" }, true],
    [{ "/a~1b/~0c": 1 }, true],
    [{ "/items/0/sku": "x-1" }, true],
    [{ "/items/1/sku": { $exists: false } }, true],
    [{ "/items/length": { $exists: true } }, false],
    [{ "/": { $exists: false } }, true],
    [{ amount: { $gt: 119, $lte: 120 } }, true],
    [{ amount: { $gt: 120 } }, false],
    [{ amount: { $gte: 120, $lt: 121 } }, true],
    [{ amount: { $gt: "1" } }, false],
    [{ type: { $gte: "invoice" } }, true],
    [{ live: { $in: [true, null] } }, true],
    [{ $or: [{ amount: 1 }, { live: true }] }, true],
    [{ $or: [{ amount: 1 }, { live: false }] }, false],
    [{ $and: [{ amount: 120 }, { live: true }], type: "invoice.paid" }, true],
    [{ $not: { amount: 1 } }, true],
    [{ customer: { $or: [{ country: "AT" }, { country: "DE" }] } }, true],
    [{ customer: { $not: { country: "DE" } } }, false],
  ])("%j: %p", (filter, expected) => {
    expect(passes(filter)).toBe(expected);
  });

  test("accepts a missing member only for operators that allow it", () => {
    const holding = [{ $exists: false }, { $ne: 1 }, { $nin: [1] }];
    const failing = [
      ...[{ $exists: true }, { $eq: null }, { $in: [null] }, { $gt: 0 }, { $lt: 0 }, { $gte: 0 }],
      ...[{ $lte: 0 }, { $startsWith: "" }, { $endsWith: "" }, null, {}],
    ];
    for (const missing of holding) expect(passes({ absent: missing })).toBe(true);
    for (const missing of failing) expect(passes({ absent: missing })).toBe(false);
    expect(passes({ absent: { $ne: 1, $exists: true } })).toBe(false);
  });

  test("ignores inherited members", () => {
    expect(passes({ constructor: { $exists: true } })).toBe(false);
    expect(passes({ "/__proto__/toString": { $exists: true } })).toBe(false);
    expect(passes(JSON.parse('{"__proto__": {"a": 1}}'), JSON.parse('{"__proto__": {"a": 1}}'))).toBe(true);
  });
});

describe("rejects with the position of the error", () => {
  test.each<[filter: unknown, field: string]>([
    [[], "filter"],
    ["x", "filter"],
    [{ a: { $regex: ".*" } }, "filter.a.$regex"],
    [{ $eq: 1 }, "filter.$eq"],
    [{ a: { $gt: 1, b: 2 } }, "filter.a.b"],
    [{ a: [1] }, "filter.a"],
    [{ a: { $gt: null } }, "filter.a.$gt"],
    [{ a: { $eq: { b: 1 } } }, "filter.a.$eq"],
    [{ a: { $in: [] } }, "filter.a.$in"],
    [{ a: { $in: [1, [2]] } }, "filter.a.$in.1"],
    [{ a: { $exists: 1 } }, "filter.a.$exists"],
    [{ a: { $startsWith: 1 } }, "filter.a.$startsWith"],
    [{ $or: [] }, "filter.$or"],
    [{ $or: [{ a: 1 }, 2] }, "filter.$or.1"],
    [{ $not: 1 }, "filter.$not"],
    [{ "/a~2": 1 }, "filter./a~2"],
  ])("%j", (filter, field) => {
    const refusal = rejectionBy(() => compileFilter("filter", filter));
    expect(refusal).toBeInstanceOf(ApiError);
    expect(Object.keys(refusal?.details.fields ?? {})).toEqual([field]);
  });

  test("rejects deeper, longer, or more conditions than allowed", () => {
    const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) });
    expect(passes(nested(FILTER_DEPTH_MAX), nested(FILTER_DEPTH_MAX))).toBe(true);
    expect(rejectionBy(() => passes(nested(FILTER_DEPTH_MAX + 1)))?.code).toBe("validation_error");
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`m${n}`, n]));
    expect(passes(many(FILTER_CONDITIONS_MAX), many(FILTER_CONDITIONS_MAX))).toBe(true);
    expect(rejectionBy(() => passes(many(FILTER_CONDITIONS_MAX + 1)))?.code).toBe("validation_error");
    const long = (bytes: number) => ({ a: "x".repeat(bytes - JSON.stringify({ a: "" }).length) });
    expect(passes(long(FILTER_BYTES_MAX), long(FILTER_BYTES_MAX))).toBe(true);
    expect(rejectionBy(() => passes(long(FILTER_BYTES_MAX + 1)))?.code).toBe("validation_error");
  });
});

describe("an array", () => {
  test.each([16, 17])("of %d elements equals each of them, and nothing else", (count) => {
    const list = [...Array.from({ length: count - 3 }, (_, n) => n), null, "x", true];
    for (const one of list) {
      expect(passes({ list: one }, { list })).toBe(true);
      expect(passes({ list: { $in: ["no", one] } }, { list })).toBe(true);
      expect(passes({ list: { $nin: ["no", one] } }, { list })).toBe(false);
    }
    expect(passes({ list: "1" }, { list })).toBe(false);
    expect(passes({ list: { $in: [count, false] } }, { list })).toBe(false);
  });

  test("that is long is scanned once for all conditions", async () => {
    const value = { list: Array.from({ length: 200_000 }, (_, n) => `element ${n}`) };
    const conditions = Array.from({ length: FILTER_CONDITIONS_MAX }, (_, n) => ({
      list: n % 2 === 0 ? `no ${n}` : { $in: [`no ${n}`, `nor ${n}`] },
    }));
    const filters = Array.from({ length: 100 }, () => compileFilter("filter", { $or: conditions }));
    const used = await processorMs(() => expect(filters.some((filter) => filter(value))).toBe(false));
    // A scan for each condition would take half a minute.
    expect(used).toBeLessThan(10_000);
  });
});

describe("numbers with more digits than a double holds", () => {
  const value = parseJson(
    '{"id":1234567890123456789,"ids":[1,9007199254740993],"x":{"n":1.00000000000000000001}}',
  );

  test.each<[filter: unknown, expected: boolean]>([
    [{ id: "1234567890123456789" }, true],
    [{ id: "1234567890123456788" }, false],
    [{ id: 1234567890123456800 }, false],
    [{ id: { $ne: "1234567890123456789" } }, false],
    [{ id: { $in: ["7", "1234567890123456789"] } }, true],
    [{ id: { $nin: ["1234567890123456789"] } }, false],
    [{ id: { $exists: true } }, true],
    [{ id: { rawJSON: "1234567890123456789" } }, false],
    [{ "/id/rawJSON": { $exists: true } }, false],
    [{ id: { $gt: 1 } }, true],
    [{ id: { $gt: "1234567890123456788", $lt: "1234567890123456790" } }, true],
    [{ id: { $gte: "x" } }, false],
    [{ ids: "9007199254740993" }, true],
    [{ ids: 9007199254740992 }, false],
    [{ ids: { $in: ["9007199254740993"] } }, true],
    [{ x: { n: 1 } }, false],
    [{ x: { n: { $gt: 1 } } }, true],
  ])("%j: %p", (filter, expected) => expect(passes(filter, value)).toBe(expected));

  test.each([
    [{ id: 9007199254740992 }, "filter.id"],
    [{ id: { $in: [1, -1e20] } }, "filter.id.$in.1"],
    [{ $or: [{ a: { $gt: Number.POSITIVE_INFINITY } }] }, "filter.$or.0.a.$gt"],
  ])("are rejected in a filter before it is stored: %j", (filter, place) => {
    const error = rejectionBy(() => assertFilter("filter", filter));
    expect(error).toBeInstanceOf(ApiError);
    expect(String(error)).toContain(place);
    // What was stored before keeps working.
    expect(rejectionBy(() => compileFilter("filter", filter))).toBeNull();
  });

  test("do not concern others", () => {
    expect(
      rejectionBy(() => assertFilter("filter", { a: 9007199254740991, b: 0.30000000000000004 })),
    ).toBeNull();
  });
});
