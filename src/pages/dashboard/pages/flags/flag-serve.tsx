import { Button } from "../../ui/button.tsx";
import { InlineSelect, InlineText } from "../../ui/inline.tsx";
import {
  numbered,
  replaced,
  type ServeDraft,
  type ShareDraft,
  type VariantDraft,
  without,
} from "./flag-draft.ts";
import { nameOption } from "./flag-variants.tsx";

const SPLIT = " split";

interface ServeProps {
  readonly serve: ServeDraft;
  readonly variants: readonly VariantDraft[];
  /** Effect of a share without a variant. */
  readonly otherwise: string;
  readonly onChange: (serve: ServeDraft) => void;
}

/** The choice of what is served: one variant, or a split by shares. */
export function Serve({ serve, variants, otherwise, onChange }: ServeProps) {
  const { split } = serve;
  const choose = (choice: string): void => {
    const evenly = variants.map(({ name }) => numbered({ variant: name, weight: "1" }));
    onChange(choice === SPLIT ? { ...serve, split: evenly } : { ...serve, variant: choice, split: [] });
  };
  return (
    <div class="serve">
      <div class="line">
        <span>serve</span>
        <InlineSelect
          label="Serve"
          value={split.length === 0 ? serve.variant : SPLIT}
          onInput={choose}
          options={[...variants.map(nameOption), [SPLIT, "a split"]]}
        />
        {split.length === 0 ? null : (
          <>
            <span>by</span>
            <InlineText
              label="Attribute to split by"
              mono
              placeholder="targetingKey"
              value={serve.by}
              onInput={(by) => onChange({ ...serve, by })}
            />
          </>
        )}
      </div>
      {split.map((share) => (
        <Share
          key={share.id}
          share={share}
          split={split}
          variants={variants}
          otherwise={otherwise}
          onChange={(shares) => onChange({ ...serve, split: shares })}
        />
      ))}
      {split.length === 0 ? null : (
        <div class="line">
          <Button
            icon="new"
            kind="quiet"
            onClick={() => onChange({ ...serve, split: [...split, numbered({ variant: "", weight: "0" })] })}
          >
            Add share
          </Button>
        </div>
      )}
    </div>
  );
}

interface ShareProps extends Pick<ServeProps, "variants" | "otherwise"> {
  readonly share: ShareDraft;
  readonly split: readonly ShareDraft[];
  readonly onChange: (split: readonly ShareDraft[]) => void;
}

function Share({ share, split, variants, otherwise, onChange }: ShareProps) {
  const sum = split.reduce((total, { weight }) => total + (Number(weight) || 0), 0);
  const part = sum > 0 ? (100 * (Number(share.weight) || 0)) / sum : 0;
  return (
    <div class="line share">
      <InlineText
        label="Weight"
        type="number"
        value={share.weight}
        onInput={(weight) => onChange(replaced(split, share, { weight }))}
      />
      <meter min={0} max={100} value={part} aria-label="Share" />
      <span class="part">{part.toFixed(part % 1 === 0 ? 0 : 2)} %</span>
      <InlineSelect
        label="Variant of the share"
        value={share.variant}
        onInput={(variant) => onChange(replaced(split, share, { variant }))}
        options={[...variants.map(nameOption), ["", otherwise]]}
      />
      <Button
        icon="delete"
        kind="quiet"
        label="Remove share"
        disabled={split.length === 1}
        onClick={() => onChange(without(split, share))}
      />
    </div>
  );
}
