import { useLayoutEffect, useState } from "preact/hooks";
import type { FlagDefinition } from "../../../../client/generated/api.ts";
import { toast } from "../../core/toasts.ts";
import { Button } from "../../ui/button.tsx";
import { Form } from "../../ui/dialog.tsx";
import { CheckField } from "../../ui/field.tsx";
import { InlineText } from "../../ui/inline.tsx";
import { Panel } from "../../ui/page.tsx";
import { changesOf, draftOf, type FlagDraft, isSameDefinition } from "./flag-draft.ts";
import { PreviewPanel } from "./flag-preview.tsx";
import { Rules } from "./flag-rules.tsx";
import { SchedulePanel } from "./flag-schedule.tsx";
import { Serve } from "./flag-serve.tsx";
import { Variants } from "./flag-variants.tsx";
import { PROPOSED, saveFlag } from "./save-flag.ts";

/** Edits a flag's definition. Changes by others are loaded, unless that would discard unsaved changes. */
export function FlagEditor({ flag, onChanged }: { flag: FlagDefinition; onChanged: () => void }) {
  const [base, setBase] = useState(() => ({ flag, draft: draftOf(flag) }));
  const [draft, setDraft] = useState(base.draft);
  const [isTouched, setTouched] = useState(false);
  const change = (fields: Partial<FlagDraft>): void => {
    setTouched(true);
    setDraft((known) => ({ ...known, ...fields }));
  };
  const load = (): void => {
    const next = draftOf(flag);
    setBase({ flag, draft: next });
    setDraft(next);
    setTouched(false);
  };
  const isBehind = flag.version !== base.flag.version;
  const isSame = isSameDefinition(flag, base.flag);
  // Runs in the same turn as the rendering: what is typed in between would be discarded.
  useLayoutEffect(() => {
    if (isBehind && isSame) setBase({ flag, draft: base.draft });
    else if (isBehind && !isTouched) load();
  }, [isBehind, isSame, isTouched]);
  const save = async (): Promise<void> => {
    const { flag_key, version } = base.flag;
    const body = { flag_key, enabled: flag.enabled, ...changesOf(base.draft, draft), if_version: version };
    const done = await saveFlag(body);
    toast(done === "saved" ? "Saved" : PROPOSED);
    setTouched(false);
    onChanged();
  };
  const unsaved = () => changesOf(base.draft, draft);
  return (
    <>
      <Panel>
        {isBehind && !isSame && isTouched ? (
          <div class="line" role="status">
            <span>This flag was changed by someone else.</span>
            <Button icon="reload" onClick={load}>
              Discard my changes
            </Button>
          </div>
        ) : null}
        <Form submit="Save" operation="gate.save" changed={isTouched} onSubmit={save}>
          <Fields draft={draft} onChange={change} />
        </Form>
      </Panel>
      {flag.archived ? null : (
        <>
          <PreviewPanel flag={flag} changes={unsaved} />
          <SchedulePanel flag={flag} changes={unsaved} onChanged={onChanged} />
        </>
      )}
    </>
  );
}

function Fields({ draft, onChange }: { draft: FlagDraft; onChange: (fields: Partial<FlagDraft>) => void }) {
  return (
    <>
      <div class="two">
        <Labelled
          label="Description"
          value={draft.description}
          onInput={(description) => onChange({ description })}
        />
        <Labelled
          label="Tags"
          placeholder="team:checkout, beta"
          value={draft.tags}
          onInput={(tags) => onChange({ tags })}
        />
      </div>
      <Variants draft={draft} onChange={onChange} />
      <Rules rules={draft.rules} variants={draft.variants} onChange={(rules) => onChange({ rules })} />
      <fieldset class="group">
        <legend>Everyone else</legend>
        <Serve
          serve={draft.fallback}
          variants={draft.variants}
          otherwise="same as when the flag is off"
          onChange={(fallback) => onChange({ fallback })}
        />
      </fieldset>
      <Labelled
        label="Metadata (JSON), returned with every evaluation"
        placeholder='{"owner": "checkout"}'
        mono
        value={draft.metadata}
        onInput={(metadata) => onChange({ metadata })}
      />
      <CheckField
        label="Server only: hidden from keys without gate:read, such as browser keys"
        checked={draft.serverOnly}
        onChange={(serverOnly) => onChange({ serverOnly })}
      />
    </>
  );
}

function Labelled(props: {
  label: string;
  value: string;
  placeholder?: string;
  mono?: boolean;
  onInput: (text: string) => void;
}) {
  return (
    <p class="field">
      <span class="small" aria-hidden="true">
        <strong>{props.label}</strong>
      </span>
      <InlineText {...props} />
    </p>
  );
}
