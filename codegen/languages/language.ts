import { MARK, type Path } from "./shell.ts";

/** How a language writes values. */
export interface Syntax {
  text(text: string): string;
  /** A text of parts, of which every second one is the name of a variable. */
  joined(parts: readonly string[]): string;
  variable(name: string): string;
  readonly constants: Readonly<Record<"true" | "false" | "null", string>>;
  object(members: readonly (readonly [name: string, value: string])[]): Brackets;
  list(items: readonly string[]): Brackets;
  /** Spaces or a tab per level. */
  readonly indent: string;
}

/** Parts between brackets, on one line if they fit. */
export interface Brackets {
  readonly open: string;
  readonly parts: readonly string[];
  readonly close: string;
  /** Whether the last line ends with a comma. */
  readonly lastComma: boolean;
  /** Spaces within the brackets on one line. */
  readonly space: string;
}

/** Longest line of an example. */
const WIDTH = 100;

/** A value of JSON, whose texts may contain variables. */
export function valueText(value: unknown, syntax: Syntax): string {
  if (typeof value === "string") return textOf(value, syntax);
  if (Array.isArray(value)) return bracketed(syntax.list(value.map((one) => valueText(one, syntax))), syntax);
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(([name, one]) => [name, valueText(one, syntax)] as const);
    return bracketed(syntax.object(members), syntax);
  }
  if (value === true || value === false || value === null) return syntax.constants[`${value}`];
  return String(value);
}

/** A text that may contain variables. */
export function textOf(text: string, syntax: Syntax): string {
  const parts = text.split(MARK);
  if (parts.length === 1) return syntax.text(text);
  if (parts.length === 3 && parts[0] === "" && parts[2] === "") return syntax.variable(parts[1] ?? "");
  return syntax.joined(parts);
}

/** Parts in brackets, on one line if they fit. */
export function bracketed(brackets: Brackets, { indent }: Pick<Syntax, "indent">): string {
  const { open, parts, close, lastComma, space } = brackets;
  if (parts.length === 0) return open + close;
  const line = `${open}${space}${parts.join(", ")}${space}${close}`;
  if (line.length <= WIDTH - 20 && !line.includes("\n")) return line;
  const lines = parts.map((part) => indent + part.replaceAll("\n", `\n${indent}`));
  return `${open}\n${lines.join(",\n")}${lastComma ? "," : ""}\n${close}`;
}

/** A path into a response, by a function for each step. */
export function reach(start: string, path: Path, step: (name: string | number) => string): string {
  return start + path.map(step).join("");
}

/** `ENDPOINT_ID` as `endpointId`. */
export function camelOf(name: string): string {
  return name.toLowerCase().replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
