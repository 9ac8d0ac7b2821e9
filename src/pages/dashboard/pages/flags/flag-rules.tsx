import { Button } from "../../ui/button.tsx";
import { CheckField } from "../../ui/field.tsx";
import { InlineSelect, InlineText } from "../../ui/inline.tsx";
import {
  type ConditionDraft,
  moved,
  numbered,
  type RuleDraft,
  replaced,
  type VariantDraft,
  without,
} from "./flag-draft.ts";
import { Serve } from "./flag-serve.tsx";

const OPS: readonly (readonly [ConditionDraft["op"], string])[] = [
  ["in", "is one of"],
  ["starts_with", "starts with"],
  ["ends_with", "ends with"],
  ["contains", "contains"],
  ["gt", "> "],
  ["gte", "≥"],
  ["lt", "<"],
  ["lte", "≤"],
  ["before", "is before"],
  ["after", "is after"],
  ["semver_eq", "is the version"],
  ["semver_gt", "is above the version"],
  ["semver_gte", "is the version or above"],
  ["semver_lt", "is below the version"],
  ["semver_lte", "is the version or below"],
  ["exists", "exists"],
];
/** Operators that can ignore case. */
const TEXTS: ReadonlySet<string> = new Set(["in", "starts_with", "ends_with", "contains"]);
const ATTRIBUTES = ["targetingKey", "email", "plan", "country", "app.version", "$now"];
/** Visible lines of the field for values. */
const VALUE_ROWS_MAX = 6;

interface RulesProps {
  readonly rules: readonly RuleDraft[];
  readonly variants: readonly VariantDraft[];
  readonly onChange: (rules: readonly RuleDraft[]) => void;
}

/** The rules in order: the first one that matches decides. */
export function Rules({ rules, variants, onChange }: RulesProps) {
  const add = (): void => {
    const serve = { variant: variants[0]?.name ?? "", split: [], by: "", seed: undefined };
    onChange([...rules, numbered({ name: "", when: [newCondition()], serve })]);
  };
  return (
    <fieldset class="group">
      <legend>Rules</legend>
      {rules.length === 0 ? <p class="quiet">No rules: everyone gets the variant below.</p> : null}
      {rules.map((rule, at) => (
        <section key={rule.id} class="rule" aria-label={`Rule ${at + 1}`}>
          <div class="line">
            <strong>{at + 1}</strong>
            <InlineText
              label={`Name of rule ${at + 1}`}
              placeholder="Name"
              value={rule.name}
              onInput={(name) => onChange(replaced(rules, rule, { name }))}
            />
            <Button
              kind="quiet"
              label={`Move rule ${at + 1} up`}
              disabled={at === 0}
              onClick={() => onChange(moved(rules, at, at - 1))}
            >
              ↑
            </Button>
            <Button
              kind="quiet"
              label={`Move rule ${at + 1} down`}
              disabled={at === rules.length - 1}
              onClick={() => onChange(moved(rules, at, at + 1))}
            >
              ↓
            </Button>
            <Button
              icon="delete"
              kind="quiet"
              label={`Remove rule ${at + 1}`}
              onClick={() => onChange(without(rules, rule))}
            />
          </div>
          <Conditions when={rule.when} onChange={(when) => onChange(replaced(rules, rule, { when }))} />
          <Serve
            serve={rule.serve}
            variants={variants}
            otherwise="continue with the next rule"
            onChange={(serve) => onChange(replaced(rules, rule, { serve }))}
          />
        </section>
      ))}
      <div class="line">
        <Button icon="new" onClick={add}>
          Add rule
        </Button>
      </div>
    </fieldset>
  );
}

function newCondition(): ConditionDraft {
  return numbered({ attribute: "", op: "in" as const, lines: "", not: false, ignoreCase: false });
}

interface ConditionsProps {
  readonly when: readonly ConditionDraft[];
  readonly onChange: (when: readonly ConditionDraft[]) => void;
}

function Conditions({ when, onChange }: ConditionsProps) {
  return (
    <>
      {when.map((condition, at) => (
        <div key={condition.id} class="line condition">
          <span>{at === 0 ? "if" : "and"}</span>
          <ConditionFields
            condition={condition}
            onChange={(change) => onChange(replaced(when, condition, change))}
          />
          <Button
            icon="delete"
            kind="quiet"
            label="Remove condition"
            disabled={when.length === 1}
            onClick={() => onChange(without(when, condition))}
          />
        </div>
      ))}
      <div class="line">
        <Button icon="new" kind="quiet" onClick={() => onChange([...when, newCondition()])}>
          Add condition
        </Button>
      </div>
    </>
  );
}

function ConditionFields(props: {
  condition: ConditionDraft;
  onChange: (change: Partial<ConditionDraft>) => void;
}) {
  const { condition, onChange } = props;
  const { attribute, op, lines, not, ignoreCase } = condition;
  const isText = TEXTS.has(op);
  return (
    <>
      <InlineText
        label="Attribute"
        mono
        placeholder="plan"
        offers={ATTRIBUTES}
        value={attribute}
        onInput={(name) => onChange({ attribute: name })}
      />
      <CheckField label="not" checked={not} onChange={(isNot) => onChange({ not: isNot })} />
      <InlineSelect
        label="Comparison"
        value={op}
        onInput={(chosen) => onChange({ op: OPS.find(([operator]) => operator === chosen)?.[0] ?? "in" })}
        options={OPS}
      />
      {op === "exists" ? null : (
        <InlineText
          label={isText ? "Values, one per line" : "Value"}
          mono
          placeholder={isText ? "one per line" : undefined}
          rows={isText ? Math.min(VALUE_ROWS_MAX, lines.split("\n").length) : undefined}
          value={lines}
          onInput={(text) => onChange({ lines: text })}
        />
      )}
      {isText ? (
        <CheckField
          label="ignore case"
          checked={ignoreCase}
          onChange={(ignores) => onChange({ ignoreCase: ignores })}
        />
      ) : null}
    </>
  );
}
