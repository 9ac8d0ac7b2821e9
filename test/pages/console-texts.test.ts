import { expect, test } from "bun:test";
import type { Channel } from "../../src/client/generated/api.ts";
import { axisNumber } from "../../src/pages/dashboard/core/format.ts";
import { alertText } from "../../src/pages/dashboard/pages/monitors/alert-text.ts";

const channel = (name: string, isDefault: boolean, events: Channel["events"] = ["monitor.down"]) => ({
  id: name,
  name,
  default: isDefault,
  events,
});
const ALL = [
  channel("Chat", true),
  channel("Phone", true),
  channel("Log", false),
  channel("Up", true, ["monitor.up"]),
];
const NONE = { channels: null, webhook_url: null, email_alert: false };

test.each([
  ["the default channels", NONE, ALL, "Chat and Phone (default channels)"],
  ["its own channels", { ...NONE, channels: ["Log"] }, ALL, "Log"],
  ["no channel", { ...NONE, channels: [] }, ALL, "nobody"],
  ["a project without channels", NONE, [], "nobody"],
  ["channels that do not report outages", { ...NONE, channels: ["Up"] }, ALL, "nobody"],
  [
    "channels, a webhook and e-mail",
    { channels: ["Log", "Chat"], webhook_url: "https://example.com/a", email_alert: true },
    ALL,
    "Chat and Log, https://example.com/a and e-mail",
  ],
])("a monitor with %s says who is notified", (_, alerts, channels, text) => {
  expect(alertText(alerts, channels)).toBe(text);
});

test.each([
  [950, "950"],
  [9_500, "9,500"],
  [100_000, "100K"],
  [1_250_000, "1.25M"],
  [-2_000_000, "-2M"],
  [Number.MAX_SAFE_INTEGER, "9007.2T"],
])("an axis shows %d in few characters", (value, text) => {
  expect(axisNumber(value)).toBe(text);
});
