import type { Impact } from "../../kernel/data/incident-words.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Alerting } from "./alerting.ts";
import type { Checks, GivenState } from "./checks/checks.ts";
import type { MonitorStore } from "./store.ts";

/** Sets the states of manual monitors, which follow from the open manual incidents that name them. Nobody is notified. */
export class ManualMonitors {
  constructor(
    private readonly deps: { readonly monitors: Pick<MonitorStore, "find"> } & {
      readonly alerting: Pick<Alerting, "impactsIn">;
      readonly checks: Pick<Checks, "recordState">;
    },
  ) {}

  /** Gives manual monitors among some monitors of one project the states of their incidents. Ids of other monitors are ignored. */
  follow(tx: Tx, monitorIds: readonly string[]): void {
    const { monitors, alerting, checks } = this.deps;
    let impacts: ReadonlyMap<string, Impact> | null = null;
    for (const id of monitorIds) {
      const monitor = monitors.find(id);
      if (monitor?.settings.type !== "manual") continue;
      impacts ??= alerting.impactsIn(monitor.projectRef);
      checks.recordState(tx, monitor, stateAt(impacts.get(id)));
    }
  }
}

function stateAt(impact: Impact | undefined): GivenState {
  return { up: impact !== "outage", degraded: impact === "degraded" };
}
