import { useState } from "preact/hooks";
import type { CheckAnswer, CheckBody } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { formatNumber } from "../../core/format.ts";
import { Code, pretty } from "../../ui/code.tsx";
import { DataForm } from "../../ui/form.tsx";
import { SECRET, WORDS } from "../../ui/kinds.ts";
import { Facts, Page, Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";

const EXAMPLE: CheckBody = { secret: "acme_live_…", require: ["orders:read"], deduct: { amount: 1 } };

const CHARGES = [
  ["deduct", "deducted"],
  ["hold", "held"],
] as const;

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
        <DataForm
          submit="Check"
          operation="check"
          fields={(get) => {
            const claim = get("$charge") === "hold" ? "hold" : "deduct";
            return [
              { name: "secret", label: "Customer’s key", kind: SECRET, placeholder: "" },
              [
                {
                  name: "require",
                  label: "Required scopes",
                  // The combinations that the API takes as well are for programs.
                  kind: WORDS,
                  placeholder: "orders:read",
                  hint: "Separated by spaces.",
                },
                { name: "meta.ip", label: "Client IP address", placeholder: "203.0.113.7" },
              ],
              [
                { name: "$charge", label: "Charge", options: CHARGES },
                { name: `${claim}.amount`, label: "Credits", required: false, hint: "Leave empty for none." },
              ],
              [
                {
                  name: `${claim}.meter_id`,
                  label: "Meter",
                  placeholder: "",
                  hint: "Leave empty for the meter of the key or its owner.",
                },
                { name: "flags", placeholder: "new-checkout", hint: "Separated by spaces." },
              ],
            ];
          }}
          send={async (sent) => {
            setRequest(sent as CheckBody);
            setOutcome(null);
            return call("check", { body: sent as CheckBody });
          }}
          // The form sends one check, so that the response is one result.
          onDone={(outcome) => setOutcome("results" in outcome ? null : outcome)}
        />
      </Panel>
      {outcome === null ? null : <Outcome of={outcome} />}
    </Page>
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
          <Status state={allowed ? "allowed" : "rejected"} tone={allowed ? "good" : "bad"} />
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
