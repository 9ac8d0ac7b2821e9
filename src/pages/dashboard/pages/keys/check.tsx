import { useState } from "preact/hooks";
import type { CheckAnswer, CheckBody } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { figure } from "../../core/format.ts";
import { Code, pretty } from "../../ui/code.tsx";
import { Form } from "../../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";

const EXAMPLE: CheckBody = { secret: "acme_live_…", require: ["orders:read"], deduct: { amount: 1 } };

/** What a request of a customer would be told. It is no rehearsal: what is allowed is taken. */
export function CheckPage() {
  const [asked, setAsked] = useState<CheckBody>(EXAMPLE);
  const [answer, setAnswer] = useState<CheckAnswer | null>(null);
  return (
    <Page
      title="Try a check"
      lead="Lets a customer’s request in, as your API would ask. What is allowed is taken, and a check costs 1 credit."
      // Nobody copies a secret by copying the line.
      request={requestOf("check", { body: { ...asked, secret: EXAMPLE.secret } })}
    >
      <Panel title="The request">
        <Form
          submit="Check"
          scope="check:write"
          onSubmit={async (data) => {
            const body = bodyOf(data);
            setAsked(body);
            setAnswer(null);
            setAnswer(await call("check", { body }));
          }}
        >
          <Fields />
        </Form>
      </Panel>
      {answer === null ? null : <Answer of={answer} />}
    </Page>
  );
}

function Fields() {
  return (
    <div class="stack">
      <TextField name="secret" label="The customer’s key" type="password" required />
      <div class="two">
        <TextField
          name="require"
          label="Scopes that it needs"
          placeholder="orders:read"
          hint="With spaces between them."
        />
        <TextField name="ip" label="Address it comes from" placeholder="203.0.113.7" />
      </div>
      <div class="two">
        <SelectField
          name="kind"
          label="Credits are"
          value="deduct"
          options={[
            ["deduct", "deducted"],
            ["hold", "held"],
          ]}
        />
        <TextField name="amount" label="Credits" type="number" min={1} hint="Empty: none." />
      </div>
      <div class="two">
        <TextField name="meter" label="Meter" hint="Empty: the key’s, or its owner’s." />
        <TextField name="flags" label="Flags" placeholder="new-checkout" hint="With spaces between them." />
      </div>
    </div>
  );
}

function Answer({ of: answer }: { of: CheckAnswer }) {
  const { allowed, code, status, retry_after_seconds: wait, owner_id, meter, flags, ratelimits } = answer;
  const limits = (ratelimits ?? []).map(({ name, remaining, limit }) => `${name}: ${remaining} of ${limit}`);
  const variants = Object.entries(flags ?? {}).map(
    ([key, { variant, error }]) => `${key}: ${variant ?? error ?? "–"}`,
  );
  return (
    <Panel title="The answer">
      <div role="status" class="stack">
        <p>
          <Status state={allowed ? "allowed" : "denied"} tone={allowed ? "good" : "bad"} />
        </p>
        <Facts
          of={[
            ["Code", <code key="code">{code}</code>],
            ["Status for the customer", String(status)],
            ["Owner", owner_id ?? "–"],
            ["Worth another try", wait === null ? "–" : `in ${wait} s`],
            ["Credits left", meter === null ? "–" : `${figure(meter.available)} of meter ${meter.meter_id}`],
            ["Uses left", answer.uses_remaining === null ? "–" : figure(answer.uses_remaining)],
            ["Rate limits", limits.join(", ") || "–"],
            ["Flags", variants.join(", ") || "–"],
          ]}
        />
        <Code text={pretty(answer)} what="Answer" />
      </div>
    </Panel>
  );
}

function bodyOf(data: FormData): CheckBody {
  const [scopes, flags] = [wordsOf(data, "require"), wordsOf(data, "flags")];
  const ip = textOf(data, "ip");
  const amount = textOf(data, "amount");
  const meter = textOf(data, "meter");
  const claim = { amount: Number(amount), ...(meter === undefined ? {} : { meter_id: meter }) };
  return {
    secret: textOf(data, "secret") ?? "",
    ...(ip === undefined ? {} : { meta: { ip } }),
    ...(scopes.length === 0 ? {} : { require: scopes }),
    ...(flags.length === 0 ? {} : { flags }),
    ...(amount === undefined ? {} : data.get("kind") === "hold" ? { hold: claim } : { deduct: claim }),
  };
}

function wordsOf(data: FormData, name: string): string[] {
  return (textOf(data, name) ?? "").split(/[\s,]+/).filter((word) => word !== "");
}
