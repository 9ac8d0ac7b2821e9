import { useEffect, useState } from "preact/hooks";
import type { FlagChange, FlagDefinition, FlagPreview } from "../../../../client/generated/api.ts";
import { call, Failure, requestOf } from "../../core/api.ts";
import { messageOf } from "../../core/session.ts";
import { CurlButton } from "../../ui/button.tsx";
import { TextField } from "../../ui/field.tsx";
import { Panel } from "../../ui/page.tsx";
import { Table } from "../../ui/table.tsx";

/** Pause in typing before a request is sent: each preview costs a credit. */
const QUIET_MS = 400;
const EXAMPLE = '[{"targetingKey": "user-1"}, {"targetingKey": "user-2"}]';

type Context = Record<string, unknown>;
type Result = FlagPreview["results"][number];

/** The results of contexts, or an error. */
type Outcome =
  | { readonly contexts: readonly Context[]; readonly results: readonly Result[] }
  | { readonly problem: string };

type Rules = readonly FlagDefinition["rules"][number][];

interface Previewed {
  readonly contexts: Context[];
  readonly definition?: FlagChange;
}

interface Props {
  readonly flag: FlagDefinition;
  /** The changes that are not saved. @throws Error while they are incomplete */
  readonly changes: () => FlagChange;
}

/** Shows who would see what: the flag with the unsaved changes, for contexts that the user enters. */
export function PreviewPanel({ flag, changes }: Props) {
  const [text, setText] = useState(EXAMPLE);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const { flag_key, version } = flag;
  const body = bodyOf(text, changes);
  useEffect(() => {
    if ("problem" in body) return undefined;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      preview(flag_key, body, controller.signal).then(setOutcome, () => undefined);
    }, QUIET_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [JSON.stringify(body), flag_key, version]);
  const request = { params: { flagKey: flag_key }, body: "problem" in body ? { contexts: [] } : body };
  return (
    <Panel title="Preview" actions={<CurlButton request={requestOf("gate.preview", request)} />}>
      <TextField
        name="contexts"
        label="Contexts"
        rows={4}
        mono
        value={EXAMPLE}
        onInput={setText}
        hint="Attributes of one user, or a list of up to 100. Unsaved changes are included; each preview costs 1 credit and is not counted as an evaluation."
      />
      <div role="status">
        <Verdict outcome={"problem" in body ? body : outcome} rules={rulesOf(flag, body)} />
      </div>
    </Panel>
  );
}

function Verdict({ outcome, rules }: { outcome: Outcome | null; rules: Rules }) {
  if (outcome === null) return <p class="quiet">…</p>;
  if ("problem" in outcome) return <p class="quiet">{outcome.problem}</p>;
  const rows = outcome.results.map((result, index) => ({
    ...result,
    index,
    subject: subjectOf(outcome.contexts[index] ?? {}),
  }));
  return (
    <Table
      label="Results"
      rows={rows}
      keyOf={({ index }) => String(index)}
      columns={[
        { head: "Context", cell: ({ index, subject }) => subject ?? `${index + 1}` },
        {
          head: "Value",
          cell: ({ value, variant }) =>
            variant === null ? "none (the caller's default)" : <code>{JSON.stringify(value)}</code>,
        },
        { head: "Variant", layout: "wide", cell: ({ variant }) => variant ?? "–" },
        { head: "Reason", cell: ({ reason }) => reason },
        { head: "Rule", cell: ({ rule }) => ruleName(rule, rules) },
      ]}
    />
  );
}

function rulesOf(flag: FlagDefinition, body: ReturnType<typeof bodyOf>): Rules {
  const changed = "problem" in body ? undefined : body.definition?.rules;
  return changed ?? flag.rules;
}

function ruleName(rule: number | null, rules: Rules): string {
  if (rule === null) return "–";
  return rules[rule]?.name ?? `Rule ${rule + 1}`;
}

function subjectOf({ targetingKey }: Context): string | null {
  return typeof targetingKey === "string" && targetingKey !== "" ? targetingKey : null;
}

/** @throws Error when the request was aborted */
async function preview(flagKey: string, body: Previewed, signal: AbortSignal): Promise<Outcome> {
  try {
    const { results } = await call("gate.preview", { params: { flagKey }, body }, signal);
    return { contexts: body.contexts, results };
  } catch (error) {
    if (signal.aborted) throw error;
    return { problem: error instanceof Failure ? error.message : messageOf(error) };
  }
}

function bodyOf(text: string, changes: () => FlagChange): Previewed | { readonly problem: string } {
  const contexts = contextsIn(text);
  if (contexts === null) return { problem: "The contexts must be a JSON object, or a list of them." };
  try {
    const definition = changes();
    return { contexts, ...(Object.keys(definition).length === 0 ? {} : { definition }) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

function contextsIn(text: string): Context[] | null {
  try {
    const value: unknown = text.trim() === "" ? {} : JSON.parse(text);
    const list = Array.isArray(value) ? value : [value];
    const isContexts = list.every(
      (item) => typeof item === "object" && item !== null && !Array.isArray(item),
    );
    return isContexts ? list : null;
  } catch {
    return null;
  }
}
