import { useEffect, useState } from "preact/hooks";
import type { Evaluation, FlagDefinition } from "../../../../client/generated/api.ts";
import { call, Failure, requestOf } from "../../core/api.ts";
import { may, messageOf } from "../../core/session.ts";
import { CurlButton } from "../../ui/button.tsx";
import { TextField } from "../../ui/field.tsx";
import { Facts, Panel } from "../../ui/page.tsx";

/** Pause in typing before a request is sent: each evaluation costs a credit. */
const QUIET_MS = 400;
const EXAMPLE = '{"targetingKey": "user-1"}';
const SCOPE = "ofrep:read";

/** The result of a context, or its error. */
type Outcome = { readonly outcome: Evaluation } | { readonly problem: string };

type Context = Record<string, unknown>;

/** Evaluates the saved flag for a context that the user enters. */
export function FlagTest({ flag }: { flag: FlagDefinition }) {
  const [text, setText] = useState(EXAMPLE);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const { flag_key, version } = flag;
  const context = contextIn(text);
  useEffect(() => {
    if (context === null || !may(SCOPE)) return undefined;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      evaluate(flag_key, context, controller.signal).then(setOutcome, () => undefined);
    }, QUIET_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text, flag_key, version]);
  const request = { params: { key: flag_key }, body: { context: context ?? {} } };
  return (
    <Panel title="Test evaluation" actions={<CurlButton request={requestOf("ofrep.evaluate", request)} />}>
      <TextField
        name="context"
        label="Context"
        rows={4}
        mono
        value={EXAMPLE}
        onInput={setText}
        hint="Attributes of a user. Evaluates the saved flag through OFREP; each evaluation costs 1 credit."
      />
      <div role="status">
        {may(SCOPE) ? (
          <Verdict outcome={context === null ? INVALID_CONTEXT : outcome} />
        ) : (
          <p class="quiet">Your key needs the scope {SCOPE}.</p>
        )}
      </div>
    </Panel>
  );
}

const INVALID_CONTEXT: Outcome = { problem: "The context must be a JSON object." };

function Verdict({ outcome }: { outcome: Outcome | null }) {
  if (outcome === null) return <p class="quiet">…</p>;
  if ("problem" in outcome) return <p class="quiet">{outcome.problem}</p>;
  const { value, variant, reason } = outcome.outcome;
  return (
    <Facts
      of={[
        ["Value", value === undefined ? "none (the caller's default)" : <code>{JSON.stringify(value)}</code>],
        ["Variant", variant ?? "–"],
        ["Reason", reason],
      ]}
    />
  );
}

/** @throws Error when the request was aborted */
async function evaluate(key: string, context: Context, signal: AbortSignal): Promise<Outcome> {
  try {
    return { outcome: await call("ofrep.evaluate", { params: { key }, body: { context } }, signal) };
  } catch (error) {
    if (signal.aborted) throw error;
    return { problem: error instanceof Failure ? error.message : messageOf(error) };
  }
}

function contextIn(text: string): Context | null {
  try {
    const value: unknown = text.trim() === "" ? {} : JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Context) : null;
  } catch {
    return null;
  }
}
