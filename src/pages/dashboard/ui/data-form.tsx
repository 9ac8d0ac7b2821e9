import { type ComponentChildren, isValidElement, type VNode } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf, OperationName } from "../../../client/api.ts";
import { BODIES, type BodyField } from "../../../client/generated/bodies.ts";
import { call, type InputOf, requestOf } from "../core/api.ts";
import { curlOf } from "../core/curl.ts";
import { toast } from "../core/toasts.ts";
import { Dialog, Form } from "./dialog.tsx";
import { CheckField, SelectField, TextField } from "./field.tsx";
import { type Kind, kindOf, problemOf } from "./kinds.ts";

/** An operation with a form. */
export type FormOperation = keyof typeof BODIES & OperationName;
/** A field of the body, or one that only the form has: `$way`. */
type NameOf<N extends FormOperation> = N extends FormOperation
  ? (keyof (typeof BODIES)[N] & string) | `$${string}`
  : never;

type Options = readonly (readonly [value: string, label: string])[];
/** Draws a field that no other control fits. */
export type Control = (props: { value: unknown; onChange: (value: unknown) => void }) => VNode | null;

/** A field of a form. What is omitted is derived from the schema of the body. */
export interface Field<Name extends string = string> {
  readonly name: Name;
  readonly label?: string;
  readonly hint?: ComponentChildren;
  readonly placeholder?: string;
  readonly kind?: Kind;
  readonly control?: Control;
  /** Labels of the values, or a subset of them. */
  readonly options?: Options;
  readonly rows?: number;
  readonly mono?: boolean;
  readonly required?: boolean | undefined;
  /** Fields of a group are sent together when one of them has changed. Those of an object are one. */
  readonly group?: string;
}

/** A field, several next to each other, collapsed ones, or other content. */
type Row<Name extends string = string> =
  | Name
  | Field<Name>
  | readonly (Name | Field<Name> | null)[]
  | { readonly more: readonly Row<Name>[] }
  | VNode
  | null;

/** A row of the form of an operation. */
export type RowOf<N extends FormOperation> = Row<NameOf<N>>;

/** Reads what has been entered: text, whether a box is ticked, or the value of a control. */
export type Entered = (name: string) => unknown;

type Start = Readonly<Record<string, unknown>>;

export interface DataFormProps<N extends FormOperation> {
  /** Title of the dialog; without one the form is part of the page. */
  readonly title?: string;
  readonly submit: string;
  readonly operation: N;
  readonly params?: Readonly<Record<string, string>>;
  readonly fields: readonly Row<NameOf<N>>[] | ((get: Entered) => readonly Row<NameOf<N>>[]);
  /** The item to edit: only changed fields are sent. */
  readonly of?: object | null | undefined;
  /** Initial values of a new item, and of what the item lacks; may depend on the schemas of the fields. */
  readonly start?: Start | ((schemas: Readonly<Record<string, BodyField>>) => Start);
  /** Changes the body before it is sent. */
  readonly adapt?: (body: Record<string, unknown>, get: Entered) => object;
  /** Sends the body in another way than with the operation. */
  readonly send?: (body: object, get: Entered) => Promise<AnswerOf<N>>;
  readonly disabled?: (get: Entered) => boolean;
  /** Whether the request is shown as a curl command. */
  readonly preview?: boolean;
  /** Shown when it has been saved. */
  readonly done?: string | undefined;
  readonly onDone?: (answer: AnswerOf<N>) => void;
  readonly onClose?: () => void;
}

/** A form that is derived from the schema of the body of an operation. */
export function DataForm<N extends FormOperation>(props: DataFormProps<N>) {
  const { title, submit, operation, params, of, onClose, onDone } = props;
  const schemas = BODIES[operation] as Readonly<Record<string, BodyField>>;
  const start = (typeof props.start === "function" ? props.start(schemas) : props.start) ?? {};
  const [drafts, setDrafts] = useState<Readonly<Record<string, unknown>>>({});
  const initial = (name: string): unknown => valueAt(of, name) ?? start[name];
  const rows = props.fields;
  const get: Entered = (name) => (name in drafts ? drafts[name] : initial(name));
  const shown = typeof rows === "function" ? rows(get) : rows;
  const fields = leavesOf(shown).map((field) => resolvedField(field, schemas[field.name], of, initial));
  const isChanged = ({ name, first }: Resolved): boolean =>
    name in drafts && JSON.stringify(drafts[name]) !== JSON.stringify(first);
  const body = (): object => {
    // A default that the form shows in place of a missing value is saved too.
    const isNew = ({ name }: Resolved): boolean => name in start && (valueAt(of, name) ?? null) === null;
    const changed = new Set(fields.filter((field) => isChanged(field) || isNew(field)).map(groupOf));
    const sent = fields.filter(
      (field) => !field.name.startsWith("$") && (!of || changed.has(groupOf(field))),
    );
    const found = bodyOf(sent, (field) => (field.name in drafts ? drafts[field.name] : field.first), !!of);
    return props.adapt?.(found, get) ?? found;
  };
  const onSubmit = async (): Promise<void> => {
    const sent = body();
    const input = { ...(params === undefined ? {} : { params }), body: sent } as unknown as InputOf<N>;
    if (!of || Object.keys(sent).length > 0) {
      const answer = await (props.send?.(sent, get) ?? call(operation, input));
      if (props.done !== undefined) toast(props.done);
      onDone?.(answer);
    }
    if (of) onClose?.();
  };
  const draw = (row: Row, at: number): ComponentChildren => {
    if (row === null || isValidElement(row)) return row;
    if (typeof row === "object" && "more" in row) return <More key={at}>{row.more.map(draw)}</More>;
    if (Array.isArray(row)) return <div class="two">{row.map(draw)}</div>;
    const name = typeof row === "string" ? row : (row as Field).name;
    const field = fields.find((field) => field.name === name);
    if (field === undefined) return null;
    const value = name in drafts ? drafts[name] : field.first;
    const onChange = (entered: unknown): void => setDrafts((all) => ({ ...all, [name]: entered }));
    return <FieldView key={name} of={field} value={value} onChange={onChange} />;
  };
  const form = (
    <Form
      submit={submit}
      onSubmit={onSubmit}
      changed={fields.some(isChanged)}
      {...(onClose === undefined ? {} : { onCancel: onClose })}
      operation={operation}
      {...(props.disabled === undefined ? {} : { disabled: props.disabled(get) })}
    >
      {shown.map(draw)}
      {props.preview === true ? (
        <Preview request={() => requestOf(operation, { body: body() } as never)} />
      ) : null}
    </Form>
  );
  if (title === undefined || onClose === undefined) return form;
  return (
    <Dialog title={title} onClose={onClose}>
      {form}
    </Dialog>
  );
}

/** Opened when a field inside is invalid. */
function More({ children }: { children: ComponentChildren }) {
  return (
    <details
      onInvalidCapture={(event) => {
        event.currentTarget.open = true;
      }}
    >
      <summary>More</summary>
      <div class="stack">{children}</div>
    </details>
  );
}

function Preview({ request }: { request: () => Parameters<typeof curlOf>[0] }) {
  try {
    return (
      <div class="curl">
        <pre>{curlOf(request())}</pre>
      </div>
    );
  } catch {
    // A field is invalid.
    return null;
  }
}

/** A field with everything that its schema says. */
interface Resolved extends Field {
  readonly schema: BodyField;
  readonly label: string;
  readonly kind: Kind;
  readonly required: boolean;
  /** What the form shows first. */
  readonly first: unknown;
}

function resolvedField(
  field: Field,
  schema: BodyField = { type: field.options === undefined && !field.control ? "boolean" : "any" },
  of: object | null | undefined,
  initial: (name: string) => unknown,
): Resolved {
  const { name, options, control } = field;
  const kind = field.kind ?? kindOf(name, schema);
  const value = initial(name);
  const isRaw = control !== undefined || schema.type === "boolean" || isChecks(schema);
  const choices = isRaw ? undefined : optionsOf(options, schema);
  const first = isRaw
    ? (value ?? (schema.type === "boolean" ? false : isChecks(schema) ? [] : null))
    : choices === undefined
      ? kind.show(value)
      : String(value ?? choices[0]?.[0] ?? "");
  const isKept = of && !schema.nullable && schema.type !== "array" && first !== "" && schema.minLength !== 0;
  const required =
    field.required ?? (schema.type !== "object" && (schema.required === true || (!!isKept && !isRaw)));
  const label = field.label ?? titled(name);
  const unit = field.kind?.unit;
  return {
    ...field,
    schema,
    kind,
    first,
    required,
    ...(choices === undefined ? {} : { options: choices }),
    label: unit === undefined ? label : `${label} (${unit[1]})`,
  };
}

/** Whether it is a list of a few possible values. */
function isChecks({ type, enum: values }: BodyField): boolean {
  return type === "array" && values !== undefined;
}

function optionsOf(options: Options | undefined, { enum: values }: BodyField): Options | undefined {
  return options ?? values?.map((value) => [String(value), String(value)] as const);
}

/** `target_url` as `Target URL`. */
function titled(name: string): string {
  const words = name.slice(name.lastIndexOf(".") + 1).replaceAll("_", " ");
  const text = words.replace(/\b(url|id|ip|tz)\b/g, (word) => word.toUpperCase());
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The first sentence of a description; without its unit, where values are entered in another one. */
function helpOf({ hint, kind, schema: { description } }: Resolved): ComponentChildren {
  if (hint !== undefined) return hint === "" ? undefined : hint;
  if (description === undefined) return kind.hint;
  const ends = [". ", "; "].map((end) => description.indexOf(end)).filter((at) => at > 0);
  const text = description
    .slice(0, Math.min(...ends, description.length))
    .replace(/,? in milliseconds/, "")
    .replace(/\.$/, "");
  return [
    ...text.split("`").map((part, at) => (at % 2 === 0 ? part : <code key={at}>{part}</code>)),
    ".",
  ].concat(kind.hint === undefined ? [] : [` ${kind.hint}`]);
}

function FieldView(props: { of: Resolved; value: unknown; onChange: (value: unknown) => void }) {
  const { of: field, value, onChange } = props;
  const { name, label, schema, kind, required, options, control: Control, placeholder } = field;
  if (Control !== undefined) return <Control value={value} onChange={onChange} />;
  if (schema.type === "boolean")
    return <CheckField name={name} label={label} checked={value === true} onChange={onChange} />;
  const hint = helpOf(field);
  if (isChecks(schema)) return <Checks of={field} value={value as readonly string[]} onChange={onChange} />;
  if (options !== undefined)
    return (
      <SelectField
        name={name}
        label={label}
        hint={hint}
        value={String(value)}
        options={options}
        onChange={onChange}
      />
    );
  const [factor] = kind.unit ?? [1];
  const text = String(value ?? "");
  const rows = field.rows ?? kind.rows;
  const { minimum, maximum, maxLength, example } = schema;
  return (
    <TextField
      name={name}
      label={label}
      hint={hint}
      value={text}
      required={required}
      mono={field.mono ?? kind.mono ?? false}
      problem={problemOf(kind, schema, text)}
      placeholder={placeholder ?? (rows === undefined ? example : undefined)}
      {...(rows === undefined ? {} : { rows })}
      {...(schema.type === "string" && maxLength !== undefined ? { maxLength } : {})}
      {...(minimum === undefined ? {} : { min: minimum / factor })}
      {...(maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER ? {} : { max: maximum / factor })}
      {...kind.input}
      onInput={onChange}
    />
  );
}

/** A box for each possible value of a list. */
function Checks({
  of,
  value,
  onChange,
}: {
  of: Resolved;
  value: readonly string[];
  onChange: (value: unknown) => void;
}) {
  const all = optionsOf(of.options, of.schema) ?? [];
  return (
    <fieldset class="checks">
      <legend>{of.label}</legend>
      {all.map(([name, label]) => (
        <CheckField
          key={name}
          name={name}
          label={label}
          checked={value.includes(name)}
          onChange={(on) =>
            onChange(
              all.map(([other]) => other).filter((other) => (other === name ? on : value.includes(other))),
            )
          }
        />
      ))}
    </fieldset>
  );
}

function leavesOf(rows: readonly Row[]): Field[] {
  return rows.flatMap((row): Field[] => {
    if (row === null || isValidElement(row)) return [];
    if (typeof row === "string") return [{ name: row }];
    if (Array.isArray(row)) return leavesOf(row);
    return "more" in row ? leavesOf(row.more as readonly Row[]) : [row as Field];
  });
}

function groupOf({ name, group }: Field): string {
  return group ?? name.split(".", 1)[0] ?? name;
}

function valueAt(of: object | null | undefined, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>(
      (value, part) => (value === null || value === undefined ? undefined : Reflect.get(Object(value), part)),
      of,
    );
}

/** The body with the values that were entered. */
function bodyOf(
  fields: readonly Resolved[],
  draftOf: (field: Resolved) => unknown,
  isEdit: boolean,
): Record<string, unknown> {
  const body: Record<string, unknown> = {};
  for (const field of fields) {
    const value = enteredValue(field, draftOf(field), isEdit);
    if (value === undefined) continue;
    const path = field.name.split(".");
    const last = path.pop() ?? "";
    const parent = path.reduce<Record<string, unknown>>((at, part) => {
      at[part] ??= {};
      return at[part] as Record<string, unknown>;
    }, body);
    parent[last] = value;
  }
  return body;
}

function enteredValue(
  { control, schema, kind, options }: Resolved,
  draft: unknown,
  isEdit: boolean,
): unknown {
  if (control !== undefined) return draft ?? (isEdit ? draft : undefined);
  if (typeof draft !== "string") return draft;
  if (draft.trim() !== "") {
    const isNumber = schema.type === "integer" || schema.type === "number";
    return options !== undefined ? (isNumber ? Number(draft) : draft) : kind.read(draft);
  }
  if (!isEdit) return schema.required === true && schema.type === "object" ? {} : undefined;
  if (schema.nullable) return null;
  if (schema.type === "array") return [];
  if (schema.type === "object") return {};
  return schema.type === "string" && !schema.minLength ? "" : undefined;
}
