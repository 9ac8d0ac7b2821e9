import type { JsonObject } from "../api/http-api.ts";
import { type Column, type ListSpec, listing } from "./api.ts";

const BUCKETS: ListSpec = { path: "/v1/catch/buckets", items: "buckets", cursor: "cursor" };

/** `ninefold bucket list`. */
export const bucketList = listing(BUCKETS, ["name", "state", "ingest_url", "id"]);

const CHANNELS: ListSpec = { path: "/v1/pulse/channels", items: "channels", cursor: "cursor" };

/** `ninefold channel list`: with the result of each channel's last message. */
export const channelList = listing(CHANNELS, ["id", "name", "kind", "default", "last_sent_at", "last_error"]);

const MONITORS: ListSpec = { path: "/v1/pulse", items: "monitors", cursor: "cursor" };

/** What a person wants to know of the status in one word. */
const STATE: Column = {
  name: "state",
  of({ active, overdue, degraded, status }: JsonObject): unknown {
    if (active === false) return "paused";
    if (overdue === true) return "overdue";
    return status === "up" && degraded === true ? "degraded" : status;
  },
};

/** The URL that a heartbeat waits for, or that the server requests. */
const URL: Column = { name: "url", of: (item) => (isHeartbeat(item) ? item["ping_url"] : item["url"]) };

function isHeartbeat({ type }: JsonObject): boolean {
  return type === "heartbeat";
}

/** `ninefold monitor list`. */
export const monitorList = listing(MONITORS, ["name", STATE, URL, "monitor_id"]);

/** `ninefold monitor pings`: heartbeats with all of their ping URLs. */
export const monitorPings = listing(
  MONITORS,
  ["name", STATE, "ping_url", "ping_slug_url", "push_url"],
  isHeartbeat,
);
