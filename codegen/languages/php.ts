import { camelOf, reach, type Syntax, textOf, valueText } from "./language.ts";
import type { ExampleStep } from "./shell.ts";

const quoted = (text: string): string => `'${text.replace(/[\\']/g, "\\$&")}'`;

const SYNTAX: Syntax = {
  text: quoted,
  joined: (parts) =>
    parts
      .flatMap((part, at) => (part === "" ? [] : [at % 2 === 0 ? quoted(part) : `$${camelOf(part)}`]))
      .join(" . "),
  variable: (name) => `$${camelOf(name)}`,
  constants: { true: "true", false: "false", null: "null" },
  object: (members) =>
    members.length === 0
      ? { open: "(object) [", parts: [], close: "]", lastComma: true, space: "" }
      : {
          open: "[",
          parts: members.map(([name, value]) => `${quoted(name)} => ${value}`),
          close: "]",
          lastComma: true,
          space: "",
        },
  list: (parts) => ({ open: "[", parts, close: "]", lastComma: true, space: "" }),
  indent: "    ",
};

/** What the first example says. */
export const SETUP =
  "// The function call is defined in the guide \"Other languages\".\nconnect('http://127.0.0.1:9909', 'sm_…');";

/** A step by the functions of the page about other languages. */
export function php(step: ExampleStep): string {
  if (step.kind === "setup") return SETUP;
  const start = step.kind === "read" ? `$${camelOf(step.from)}` : called(step);
  const value = reach(start, step.path, (name) => `[${typeof name === "number" ? name : quoted(name)}]`);
  return step.variable === null
    ? `echo json_encode(${value}), "\\n";`
    : `$${camelOf(step.variable)} = ${value};`;
}

function called({ call }: Extract<ExampleStep, { kind: "call" }>): string {
  const sent = call.body === undefined ? [] : [valueText(call.body, SYNTAX)];
  return `call(${[quoted(call.method), textOf(call.path, SYNTAX), ...sent].join(", ")})`;
}
