import { Button } from "../../ui/button.tsx";
import { InlineSelect, InlineText } from "../../ui/inline.tsx";
import {
  type FlagDraft,
  type FlagType,
  numbered,
  replaced,
  type VariantDraft,
  without,
} from "./flag-draft.ts";

const TYPES: readonly (readonly [FlagType, string])[] = [
  ["boolean", "true or false"],
  ["string", "texts"],
  ["number", "numbers"],
  ["object", "objects"],
];
const TRUE_OR_FALSE = [
  ["true", "true"],
  ["false", "false"],
] as const;
/** Value of a new variant. */
const BLANK: Readonly<Record<FlagType, string>> = { boolean: "true", string: "", number: "0", object: "{}" };

/** The flag's type and its values by name. */
export function Variants(props: { draft: FlagDraft; onChange: (change: Partial<FlagDraft>) => void }) {
  const { draft, onChange } = props;
  const { type, variants, off } = draft;
  const changeType = (text: string): void => {
    const next = TYPES.find(([name]) => name === text)?.[0] ?? "boolean";
    onChange({ type: next, variants: variants.map((variant) => ({ ...variant, text: BLANK[next] })) });
  };
  return (
    <fieldset class="group">
      <legend>Variants</legend>
      <div class="line">
        <span>Values are</span>
        <InlineSelect label="Value type" value={type} onInput={changeType} options={TYPES} />
        <span>while the flag is off,</span>
        <InlineSelect
          label="While the flag is off"
          value={off}
          onInput={(name) => onChange({ off: name })}
          options={[["", "no value (the caller's default)"], ...variants.map(nameOption)]}
        />
      </div>
      {variants.map((variant) => (
        <div key={variant.id} class="line variant">
          <InlineText
            label="Variant name"
            mono
            value={variant.name}
            onInput={(name) => onChange(renamed(draft, variant, name))}
          />
          <ValueField
            type={type}
            variant={variant}
            onInput={(text) => onChange({ variants: replaced(variants, variant, { text }) })}
          />
          <Button
            icon="delete"
            kind="quiet"
            label={`Remove variant ${variant.name}`}
            disabled={variants.length === 1}
            onClick={() => onChange({ variants: without(variants, variant) })}
          />
        </div>
      ))}
      <div class="line">
        <Button
          icon="new"
          onClick={() => onChange({ variants: [...variants, numbered({ name: "", text: BLANK[type] })] })}
        >
          Add variant
        </Button>
      </div>
    </fieldset>
  );
}

/** The variants as options. */
export function nameOption({ name }: VariantDraft): readonly [string, string] {
  return [name, name];
}

function ValueField(props: { type: FlagType; variant: VariantDraft; onInput: (text: string) => void }) {
  const { type, variant, onInput } = props;
  const label = `Value of ${variant.name}`;
  if (type === "boolean")
    return <InlineSelect label={label} value={variant.text} onInput={onInput} options={TRUE_OR_FALSE} />;
  const rows = type === "object" ? 2 : undefined;
  return <InlineText label={label} mono value={variant.text} onInput={onInput} rows={rows} />;
}

/** Keeps references to a renamed variant. */
function renamed(draft: FlagDraft, variant: VariantDraft, name: string): Partial<FlagDraft> {
  const follow = (served: string): string => (served === variant.name && served !== "" ? name : served);
  const serve = (served: FlagDraft["fallback"]): FlagDraft["fallback"] => ({
    ...served,
    variant: follow(served.variant),
    split: served.split.map((share) => ({ ...share, variant: follow(share.variant) })),
  });
  return {
    variants: replaced(draft.variants, variant, { name }),
    off: follow(draft.off),
    fallback: serve(draft.fallback),
    rules: draft.rules.map((rule) => ({ ...rule, serve: serve(rule.serve) })),
  };
}
