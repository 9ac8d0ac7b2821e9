// What probes see of a monitor, which views of monitors, alerts and incidents share.

import { type Static, Type } from "@sinclair/typebox";
import { oneOf, orNull } from "./schema.ts";

/** What a probe sees of a monitor. */
export const ProbeState = Type.Object({
  name: Type.String({ examples: ["fra"] }),
  status: oneOf(["up", "down", "unknown"]),
  online: Type.Boolean({ description: "Whether the probe is online. Offline probes do not vote." }),
  latency_ms: orNull(Type.Integer({ examples: [84] })),
  last_checked_at: orNull(Type.Integer(), { description: "Time of its last check, Unix seconds." }),
  error: orNull(Type.String(), { examples: [null] }),
});
export type ProbeState = Static<typeof ProbeState>;
