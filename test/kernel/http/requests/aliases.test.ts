import { expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { aliasReader } from "../../../../src/kernel/http/requests/aliases.ts";

const SCHEMA = Type.Object({ tz: Type.String(), period_ms: Type.Integer(), grace_ms: Type.Integer() });
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
    { period: "5m", grace: "250ms" },
    { period_ms: 300_000, grace_ms: 250 },
  ],
  [
    { period: "1d", grace: "1w" },
    { period_ms: 86_400_000, grace_ms: 604_800_000 },
  ],
  [{ period: "1h", period_ms: 3_600_000 }, { period_ms: 3_600_000 }],
  // Not a duration: an unknown field, as before.
  [{ period: 60 }, { period: 60 }],
  [{ period: "1 hour" }, { period: "1 hour" }],
])("%j is read as %j", (body, expected) => {
  expect(read?.(body)).toEqual(expected);
});

test.each([
  [{ tz: "UTC", timezone: "Europe/Berlin" }],
  [{ timezone: "UTC", time_zone: "Europe/Berlin" }],
  [{ period: "1h", period_ms: 1 }],
])("%j has two values for one field", (body) => {
  expect(() => read?.(body)).toThrow("send one of them");
});

test("a schema without such fields needs no reader, and one that declares the name itself keeps it", () => {
  expect(aliasReader(Type.Object({ name: Type.String() }))).toBeNull();
  expect(aliasReader(Type.Object({ period: Type.String(), name: Type.String() }))).toBeNull();
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
