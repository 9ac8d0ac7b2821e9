import { describe, expect, test } from "bun:test";
import { isPrefixedId, prefixedId } from "../../src/kernel/data/uuid.ts";
import { createIds } from "../../src/kernel/ids.ts";

describe("ids", () => {
  let now = 1_700_000_000_000;
  const ids = createIds(() => now);

  test("UUIDv7s contain the clock's time and sort by it as text", () => {
    const first = ids.uuidV7();
    now += 1;
    const second = ids.uuidV7();
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Number.parseInt(first.replaceAll("-", "").slice(0, 12), 16)).toBe(1_700_000_000_000);
    expect(Number.parseInt(second.replaceAll("-", "").slice(0, 12), 16)).toBe(1_700_000_000_001);
    expect(first < second).toBe(true);
  });

  test("UUIDv4s are random and have the version 4", () => {
    expect(ids.uuidV4()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(new Set(Array.from({ length: 1_000 }, () => ids.uuidV4())).size).toBe(1_000);
  });

  test.each([0, 1, 20, 43, 1_000])("Base62 of %p characters", (length) => {
    expect(ids.base62(length)).toMatch(new RegExp(`^[0-9A-Za-z]{${length}}$`));
  });

  test("Base62 characters are evenly distributed", () => {
    const counts = new Map<string, number>();
    for (const character of ids.base62(62_000)) counts.set(character, (counts.get(character) ?? 0) + 1);
    expect(counts.size).toBe(62);
    // A thousand each on average; a remainder of 256 by 62 would give the first eight a quarter more. Seven deviations.
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(225);
  });

  test("bytes and fractions", () => {
    expect(ids.bytes(32)).toHaveLength(32);
    expect(ids.bytes(32)).not.toEqual(ids.bytes(32));
    const fraction = ids.fraction();
    expect(fraction).toBeGreaterThanOrEqual(0);
    expect(fraction).toBeLessThan(1);
  });
});

test("ids with a prefix are distinguished from similar texts", () => {
  const digits = "019a1b2c30c071d9bf080e3cb4a7b202";
  expect(prefixedId("job", "019a1b2c-30c0-71d9-bf08-0e3cb4a7b202")).toBe(`job_${digits}`);
  expect(isPrefixedId("job", `job_${digits}`)).toBe(true);
  const others = [
    `jobs_${digits}`,
    `jo_${digits}`,
    digits,
    "job_",
    `job_${digits}0`,
    `job_${digits.slice(1)}`,
  ];
  const spelled = [`job_${digits.toUpperCase()}`, `job_${digits}\n`, ` job_${digits}`];
  for (const text of [...others, ...spelled]) expect(isPrefixedId("job", text), text).toBe(false);
});
