import { type Static, Type } from "@sinclair/typebox";
import { orNull } from "../../kernel/data/schema.ts";
import { PACKETS_MAX } from "./options.ts";

/** Longest round-trip time, in milliseconds: more than any timeout. */
const ROUND_TRIP_MS_MAX = 60_000;

const roundTrip = (description: string) =>
  orNull(Type.Number({ minimum: 0, maximum: ROUND_TRIP_MS_MAX, examples: [11.2] }), { description });

/** What became of the packets of a check. */
export const IcmpResult = Type.Object({
  sent: Type.Integer({ minimum: 0, maximum: PACKETS_MAX, description: "Packets sent.", examples: [3] }),
  received: Type.Integer({ minimum: 0, maximum: PACKETS_MAX, description: "Responses.", examples: [3] }),
  loss_percent: Type.Number({
    minimum: 0,
    maximum: 100,
    description: "Share of the packets without a response, in percent.",
    examples: [0],
  }),
  min_ms: roundTrip("Shortest round-trip time, in milliseconds; null without a response."),
  avg_ms: roundTrip("Average round-trip time, in milliseconds; null without a response."),
  max_ms: roundTrip("Longest round-trip time, in milliseconds; null without a response."),
});
export type IcmpResult = Static<typeof IcmpResult>;

/** Share of packets without a response, in percent with one decimal. */
export function lossPercent(sent: number, received: number): number {
  return sent === 0 ? 0 : Math.round((1_000 * (sent - received)) / sent) / 10;
}
