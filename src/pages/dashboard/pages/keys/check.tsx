import { useState } from "preact/hooks";
import type { CheckAnswer, CheckBody } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { Code, pretty } from "../../ui/code.tsx";
import { Form } from "../../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";

const EXAMPLE: CheckBody = { secret: "acme_live_…", require: ["orders:read"], deduct: { amount: 1 } };

/** Sends a check for a customer's key. It is not a dry run: uses and credits are taken. */
export function CheckPage() {
  const [request, setRequest] = useState<CheckBody>(EXAMPLE);
  const [outcome, setOutcome] = useState<CheckAnswer | null>(null);
  return (
    <Page
      title="Test a check"
      lead="Checks a customer’s request as your API would. Uses and credits are really taken, and a check costs 1 credit."
      // The secret is left out, so that copying the command does not reveal it.
      request={requestOf("check", { body: { ...request, secret: EXAMPLE.secret } })}
    >
      <Panel title="Request">
        <Form
          submit="Check"
          scope="check:write"
          onSubmit={async (data) => {
            const body = bodyOf(data);
            setRequest(body);
            setOutcome(null);
            setOutcome(await call("check", { body }));
          }}
        >
          <Fields />
        </Form>
      </Panel>
      {outcome === null ? null : <Outcome of={outcome} />}
    </Page>
  );
}

function Fields() {
  return (
    <div class="stack">
      <TextField name="secret" label="Customer’s key" type="password" required />
      <div class="two">
        <TextField
          name="require"
          label="Required scopes"
          placeholder="orders:read"
          hint="Separated by spaces."
        />
        <TextField name="ip" label="Client IP address" placeholder="203.0.113.7" />
      </div>
      <div class="two">
        <SelectField
          name="kind"
          label="Charge"
          value="deduct"
          options={[
            ["deduct", "deducted"],
            ["hold", "held"],
          ]}
        />
        <TextField name="amount" label="Credits" type="number" min={1} hint="Leave empty for none." />
      </div>
      <div class="two">
        <TextField name="meter" label="Meter" hint="Leave empty for the meter of the key or its owner." />
        <TextField name="flags" label="Flags" placeholder="new-checkout" hint="Separated by spaces." />
      </div>
    </div>
  );
}

function Outcome({ of: outcome }: { of: CheckAnswer }) {
  const { allowed, code, status, retry_after_seconds: wait, owner_id, meter, flags, ratelimits } = outcome;
  const limits = (ratelimits ?? []).map(({ name, remaining, limit }) => `${name}: ${remaining} of ${limit}`);
  const variants = Object.entries(flags ?? {}).map(
    ([key, { variant, error }]) => `${key}: ${variant ?? error ?? "–"}`,
  );
  return (
    <Panel title="Result">
      <div role="status" class="stack">
        <p>
          <Status state={allowed ? "allowed" : "denied"} tone={allowed ? "good" : "bad"} />
        </p>
        <Facts
          of={[
            ["Code", <code key="code">{code}</code>],
            ["HTTP status for the customer", String(status)],
            ["Owner", owner_id ?? "–"],
            ["Retry", wait === null ? "–" : `in ${wait} s`],
            [
              "Credits left",
              meter === null ? "–" : `${formatNumber(meter.available)} of meter ${meter.meter_id}`,
            ],
            ["Uses left", outcome.uses_remaining === null ? "–" : formatNumber(outcome.uses_remaining)],
            ["Rate limits", limits.join(", ") || "–"],
            ["Flags", variants.join(", ") || "–"],
          ]}
        />
        <Code text={pretty(outcome)} what="Response" />
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
