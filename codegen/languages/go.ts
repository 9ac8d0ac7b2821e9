import { bracketed, camelOf, type Syntax, textOf, valueText } from "./language.ts";
import type { ExampleStep } from "./shell.ts";

const SYNTAX: Syntax = {
  text: (text) => JSON.stringify(text),
  joined: (parts) =>
    parts
      .flatMap((part, at) => (part === "" ? [] : [at % 2 === 0 ? JSON.stringify(part) : camelOf(part)]))
      .join("+"),
  variable: camelOf,
  constants: { true: "true", false: "false", null: "nil" },
  object: (members) => ({
    open: "object{",
    parts: members.map(([name, value]) => `${JSON.stringify(name)}: ${value}`),
    close: "}",
    lastComma: true,
    space: "",
  }),
  list: (parts) => ({ open: "list{", parts, close: "}", lastComma: true, space: "" }),
  indent: "\t",
};

/** What the first example says. */
export const SETUP =
  '// The functions call and get are defined in the guide "Other languages".\nconnect("http://127.0.0.1:9909", "sm_…")';

/** A step by the functions of the page about other languages. */
export function go(step: ExampleStep, uses: ReadonlySet<string>): string {
  if (step.kind === "setup") return SETUP;
  const path = step.path.map((name) => JSON.stringify(name));
  const start = step.kind === "read" ? camelOf(step.from) : called(step);
  const value =
    path.length === 0
      ? start
      : bracketed({ open: "get(", parts: [start, ...path], close: ")", lastComma: true, space: "" }, SYNTAX);
  if (step.variable === null) return `fmt.Println(${value})`;
  // A variable that is not used is an error.
  return uses.has(step.variable) ? `${camelOf(step.variable)} := ${value}` : value;
}

function called({ call }: Extract<ExampleStep, { kind: "call" }>): string {
  const body = call.body === undefined ? "nil" : valueText(call.body, SYNTAX);
  return `call(${[JSON.stringify(call.method), textOf(call.path, SYNTAX), body].join(", ")})`;
}
