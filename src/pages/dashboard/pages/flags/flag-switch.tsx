import { useState } from "preact/hooks";
import type { FlagDefinition } from "../../../../client/generated/api.ts";
import { showError, whyNot } from "../../core/session.ts";
import { toast } from "../../core/toasts.ts";
import { PROPOSED, type Saved, saveFlag } from "./save-flag.ts";

type Switched = Pick<FlagDefinition, "flag_key" | "enabled">;

async function save(flag: Switched, enabled: boolean, onChanged: () => void): Promise<Saved> {
  const done = await saveFlag({ flag_key: flag.flag_key, enabled });
  onChanged();
  return done;
}

/** Switches a flag immediately; the message offers to undo it. */
export function FlagSwitch({ flag, onChanged }: { flag: Switched; onChanged: () => void }) {
  const [pending, setPending] = useState<boolean | null>(null);
  const isOn = pending ?? flag.enabled;
  const back = (): void => {
    save(flag, flag.enabled, onChanged).catch(showError);
  };
  const change = async (): Promise<void> => {
    setPending(!flag.enabled);
    try {
      const done = await save(flag, !flag.enabled, onChanged);
      if (done === "proposed") toast(PROPOSED);
      else toast(`${flag.flag_key} is ${flag.enabled ? "off" : "on"}`, back);
    } catch (error) {
      showError(error);
    } finally {
      setPending(null);
    }
  };
  const reason = whyNot("gate.save");
  return (
    <button
      type="button"
      role="switch"
      class="switch"
      aria-checked={isOn}
      aria-label={flag.flag_key}
      disabled={reason !== null || pending !== null}
      title={reason ?? undefined}
      onClick={() => void change()}
    >
      {isOn ? "on" : "off"}
    </button>
  );
}
