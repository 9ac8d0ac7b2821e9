import { useId } from "preact/hooks";

interface InlineProps {
  /** Accessible name of a field without a visible label. */
  readonly label: string;
  readonly value: string;
  readonly onInput: (text: string) => void;
}

interface InlineTextProps extends InlineProps {
  readonly placeholder?: string | undefined;
  readonly type?: "text" | "number";
  readonly mono?: boolean;
  /** A multi-line field. */
  readonly rows?: number | undefined;
  /** Suggestions. */
  readonly offers?: readonly string[] | undefined;
}

/** A text field within a row of fields. */
export function InlineText({
  label,
  value,
  onInput,
  placeholder,
  type = "text",
  mono,
  rows,
  offers,
}: InlineTextProps) {
  const id = useId();
  const shared = {
    "aria-label": label,
    class: mono === true ? "mono" : "",
    value,
    placeholder,
    autocomplete: "off" as const,
    spellcheck: false,
    onInput: (event: { currentTarget: { value: string } }) => onInput(event.currentTarget.value),
  };
  if (rows !== undefined) return <textarea rows={rows} {...shared} />;
  return (
    <>
      <input type={type} list={offers === undefined ? undefined : id} {...shared} />
      {offers === undefined ? null : (
        <datalist id={id}>
          {offers.map((offer) => (
            <option key={offer} value={offer} />
          ))}
        </datalist>
      )}
    </>
  );
}

/** A select field within a row of fields. */
export function InlineSelect(
  props: InlineProps & { readonly options: readonly (readonly [value: string, label: string])[] },
) {
  const { label, value, onInput, options } = props;
  return (
    <select aria-label={label} value={value} onChange={(event) => onInput(event.currentTarget.value)}>
      {options.map(([option, text]) => (
        <option key={option} value={option} selected={option === value}>
          {text}
        </option>
      ))}
    </select>
  );
}
