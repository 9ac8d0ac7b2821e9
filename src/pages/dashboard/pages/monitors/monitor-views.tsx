import { go } from "../../core/route.ts";
import { Choice } from "../../ui/field.tsx";

const VIEWS = [
  ["monitors", "Monitors"],
  ["incidents", "Incidents"],
  ["channels", "Channels"],
  ["maintenance", "Planned work"],
  ["pages", "Status pages"],
] as const;

/** One of the lists of the monitors. */
export type MonitorView = (typeof VIEWS)[number][0];

/** Leads from one list of the monitors to another. */
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
