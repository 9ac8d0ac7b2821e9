import { go } from "../../core/route.ts";
import { Choice } from "../../ui/field.tsx";

const VIEWS = [
  ["monitors", "Monitors"],
  ["incidents", "Incidents"],
  ["channels", "Channels"],
  ["maintenance", "Maintenance"],
  ["pages", "Status pages"],
] as const;

/** A tab of the monitors page. */
export type MonitorView = (typeof VIEWS)[number][0];

/** The tabs of the monitors page. */
export function MonitorViews({ view }: { view: MonitorView }) {
  return (
    <div class="toolbar">
      <Choice<MonitorView>
        label="Show"
        options={VIEWS}
        value={view}
        onChange={(one) => go(one === "monitors" ? ["monitors"] : ["monitors", one])}
      />
    </div>
  );
}
