import { type ListSpec, listing } from "./api.ts";

const CHANNELS: ListSpec = { path: "/v1/pulse/channels", items: "channels", cursor: "cursor" };

/** `ninefold channel list`: with the result of each channel's last message. */
export const channelList = listing(CHANNELS, ["id", "name", "kind", "default", "last_sent_at", "last_error"]);
