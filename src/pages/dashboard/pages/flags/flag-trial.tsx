import { useEffect, useState } from "preact/hooks";
import type { Evaluation, FlagDefinition } from "../../../../client/generated/api.ts";
import { call, Failure, requestOf } from "../../core/api.ts";
import { may, messageOf } from "../../core/session.ts";
import { CurlButton } from "../../ui/button.tsx";
import { TextField } from "../../ui/field.tsx";
import { Facts, Panel } from "../../ui/page.tsx";

/** How long nobody has to type before it is asked: every answer costs a credit. */
const QUIET_MS = 400;
const EXAMPLE = '{"targetingKey": "user-1"}';
const SCOPE = "ofrep:read";

/** What is known of one context: its outcome, or why there is none. */
type Answer = { readonly outcome: Evaluation } | { readonly trouble: string };

type Context = Record<string, unknown>;

/** Who gets what: a context is typed, and the server says what the flag is for it, as it is saved. */
export function FlagTrial({ flag }: { flag: FlagDefinition }) {
  const [text, setText] = useState(EXAMPLE);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const { flag_key, version } = flag;
  const context = contextIn(text);
  useEffect(() => {
    if (context === null || !may(SCOPE)) return undefined;
    const asking = new AbortController();
    const timer = setTimeout(() => {
      ask(flag_key, context, asking.signal).then(setAnswer, () => undefined);
    }, QUIET_MS);
    return () => {
      clearTimeout(timer);
      asking.abort();
    };
  }, [text, flag_key, version]);
  const request = { params: { key: flag_key }, body: { context: context ?? {} } };
  return (
    <Panel title="Who gets what" actions={<CurlButton request={requestOf("ofrep.evaluate", request)} />}>
      <TextField
        name="context"
        label="Context"
        rows={4}
        mono
        value={EXAMPLE}
        onInput={setText}
        hint="What a program knows of whom it asks for. Asked by OFREP of what is saved; each answer costs 1 credit."
      />
      <div role="status">
        {may(SCOPE) ? (
          <Verdict answer={context === null ? NO_JSON : answer} />
        ) : (
          <p class="quiet">This key lacks the scope {SCOPE}.</p>
        )}
      </div>
    </Panel>
  );
}

const NO_JSON: Answer = { trouble: "The context is no JSON object." };

function Verdict({ answer }: { answer: Answer | null }) {
  if (answer === null) return <p class="quiet">…</p>;
  if ("trouble" in answer) return <p class="quiet">{answer.trouble}</p>;
  const { value, variant, reason } = answer.outcome;
  return (
    <Facts
      of={[
        [
          "Value",
          value === undefined ? "none: the program's own default" : <code>{JSON.stringify(value)}</code>,
        ],
        ["Variant", variant ?? "–"],
        ["Reason", reason],
      ]}
    />
  );
}

/** @throws Error when it was given up. */
async function ask(key: string, context: Context, signal: AbortSignal): Promise<Answer> {
  try {
    return { outcome: await call("ofrep.evaluate", { params: { key }, body: { context } }, signal) };
  } catch (error) {
    if (signal.aborted) throw error;
    return { trouble: error instanceof Failure ? error.message : messageOf(error) };
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
