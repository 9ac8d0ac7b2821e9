import { go } from "../../core/route.ts";
import { Choice } from "../../ui/field.tsx";

const VIEWS = [
  ["deliveries", "Deliveries"],
  ["endpoints", "Endpoints"],
  ["messages", "Messages"],
  ["schedules", "Schedules"],
] as const;

/** A tab of the relay page. */
export type RelayView = (typeof VIEWS)[number][0];

/** The tabs of the relay page. */
export function RelayViews({ view }: { view: RelayView }) {
  return (
    <div class="toolbar">
      <Choice<RelayView>
        label="Show"
        options={VIEWS}
        value={view}
        onChange={(one) => go(one === "deliveries" ? ["relay"] : ["relay", one])}
      />
    </div>
  );
}
