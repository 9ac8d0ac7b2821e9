import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  readonly name: string;
  readonly label: string;
  readonly hint?: ComponentChildren | undefined;
  readonly value?: string | undefined;
  readonly required?: boolean;
}

interface TextProps extends FieldProps {
  readonly type?: "text" | "url" | "number" | "datetime-local" | "password" | "search" | "email";
  /** What browsers may suggest; nothing by default. */
  readonly autocomplete?: string;
  readonly placeholder?: string | undefined;
  /** What is wrong with the text; the form cannot be submitted with it. */
  readonly problem?: string;
  readonly maxLength?: number;
  readonly min?: number;
  readonly max?: number;
  /** `any` allows decimals. */
  readonly step?: "any";
  readonly pattern?: string;
  /** A multi-line field. */
  readonly rows?: number;
  readonly mono?: boolean;
  readonly onInput?: (text: string) => void;
}

/** A text field. */
export function TextField(props: TextProps) {
  const {
    name,
    label,
    hint,
    value,
    required = false,
    type = "text",
    rows,
    mono = false,
    onInput,
    problem,
    ...more
  } = props;
  const id = useId();
  const shared: object = {
    ...(rows === undefined ? { type } : { rows }),
    id,
    name,
    required,
    class: mono ? "mono" : "",
    autocomplete: "off" as const,
    spellcheck: false,
    defaultValue: value ?? "",
    "aria-describedby": hint === undefined ? undefined : `${id}-hint`,
    ...(problem === undefined
      ? {}
      : { ref: (box: HTMLInputElement | null) => box?.setCustomValidity(problem) }),
    ...more,
  };
  const typed = (event: { currentTarget: { value: string } }): void => onInput?.(event.currentTarget.value);
  return (
    <p class="field">
      <label for={id}>{label}</label>
      {rows === undefined ? (
        <input onInput={typed} onFocus={selectNumber} {...shared} />
      ) : (
        <textarea onInput={typed} {...shared} />
      )}
      {hint === undefined ? null : (
        <small id={`${id}-hint`} class="quiet">
          {hint}
        </small>
      )}
    </p>
  );
}

/** Selects a number in focus: typing replaces it, instead of adding digits before it. */
function selectNumber({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void {
  if (currentTarget.type === "number") currentTarget.select();
}

interface SelectProps extends FieldProps {
  readonly options: readonly (readonly [value: string, label: string])[];
  readonly onChange?: (value: string) => void;
}

/** A select field. */
export function SelectField({ name, label, hint, value, options, onChange }: SelectProps) {
  const id = useId();
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        name={name}
        defaultValue={value}
        onChange={(event) => onChange?.(event.currentTarget.value)}
      >
        {options.map(([option, text]) => (
          <option key={option} value={option} selected={option === value}>
            {text}
          </option>
        ))}
      </select>
      {hint === undefined ? null : <small class="quiet">{hint}</small>}
    </p>
  );
}

interface CheckProps {
  readonly name?: string;
  readonly label: ComponentChildren;
  readonly checked?: boolean;
  readonly value?: string;
  readonly onChange?: (checked: boolean) => void;
}

/** A checkbox. */
export function CheckField({ name, label, checked = false, value, onChange }: CheckProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        name={name}
        value={value}
        checked={checked}
        onChange={(event) => onChange?.(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  );
}

/** The text of a field; undefined when it is empty. */
export function textOf(data: FormData, name: string): string | undefined {
  const value = data.get(name);
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

/** The search field above a list; `/` focuses it. */
export function SearchField(props: { label: string; value: string; onInput: (text: string) => void }) {
  const { label, value, onInput } = props;
  return (
    <input
      type="search"
      class="search"
      data-search
      aria-label={label}
      placeholder={label}
      value={value}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  );
}

/** A choice between a few options, such as the state filter of a list. */
export function Choice<T extends string>(props: {
  label: string;
  options: readonly (readonly [value: T, label: string])[];
  value: T;
  onChange: (value: T) => void;
}) {
  const { label, options, value, onChange } = props;
  return (
    <fieldset class="choice" aria-label={label}>
      {options.map(([option, text]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => onChange(option)}>
          {text}
        </button>
      ))}
    </fieldset>
  );
}
