import { expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { duration, orNull, timeZone } from "../../../../src/kernel/data/schema.ts";
import { aliasReader } from "../../../../src/kernel/http/requests/aliases.ts";

const wait = duration({ unit: "ms", min: 250, max: 604_800_000 });
const SCHEMA = Type.Object({
  tz: timeZone({ description: "Zone.", examples: [] }),
  period_ms: Type.Optional(wait),
  grace_ms: Type.Optional(orNull(wait)),
});
const read = aliasReader(SCHEMA);

test.each([
  [{ tz: "UTC" }, { tz: "UTC" }],
  [{ timezone: "UTC" }, { tz: "UTC" }],
  [{ time_zone: "UTC", tz: "UTC" }, { tz: "UTC" }],
  [
    { period: "90s", grace: "1h" },
    { period_ms: 90_000, grace_ms: 3_600_000 },
  ],
  [
    { period_ms: "5m", grace: "250ms" },
    { period_ms: 300_000, grace_ms: 250 },
  ],
  [
    { period: 86_400_000, grace: "1w" },
    { period_ms: 86_400_000, grace_ms: 604_800_000 },
  ],
  [{ grace: null }, { grace_ms: null }],
  [{ period: "1h", period_ms: 3_600_000 }, { period_ms: 3_600_000 }],
  // The check of the schema rejects it.
  [{ period_ms: "1x" }, { period_ms: "1x" }],
])("%j is read as %j", (body, expected) => {
  expect(read?.(body)).toEqual(expected);
});

test.each([
  [{ period: 60 }],
  [{ period: "1 hour" }],
  [{ period: "1x" }],
  [{ grace: "soon" }],
  [{ timezone: 5 }],
])("%j is rejected with an example", (body) => {
  const [name = ""] = Object.keys(body);
  expect(() => read?.(body)).toThrow(new RegExp(`^${name} must be .*such as "`));
});

test.each([
  [{ tz: "UTC", timezone: "Europe/Berlin" }],
  [{ timezone: "UTC", time_zone: "Europe/Berlin" }],
  [{ period: "1h", period_ms: 250 }],
])("%j has two values for one field", (body) => {
  expect(() => read?.(body)).toThrow("send one of them");
});

test("a schema without such fields needs no reader, and one that declares the name itself keeps it", () => {
  expect(aliasReader(Type.Object({ name: Type.String() }))).toBeNull();
  const both = aliasReader(Type.Object({ period: Type.String(), period_ms: wait }));
  expect(both?.({ period: "weekly" })).toEqual({ period: "weekly" });
});

test("a single address is read as a list of one, also in a member", () => {
  const to = Type.Array(Type.String());
  const nested = aliasReader(Type.Object({ config: Type.Optional(Type.Object({ to })), names: to }));
  expect(nested?.({ config: { to: "a@example.com" }, names: "x" })).toEqual({
    config: { to: ["a@example.com"] },
    names: "x",
  });
  expect(nested?.({ config: { to: ["a@example.com"] } })).toEqual({ config: { to: ["a@example.com"] } });
  expect(nested?.({ config: null })).toEqual({ config: null });
  expect(nested?.({ config: { to: 5 } })).toEqual({ config: { to: 5 } });
});
