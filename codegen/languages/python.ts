import { isKeyword, snake } from "../python/names.ts";
import { bracketed, reach, type Syntax, textOf, valueText } from "./language.ts";
import { boundOf, type MethodFinder } from "./operations.ts";
import type { ExampleCall, ExampleStep, Path } from "./shell.ts";

const lower = (name: string): string => name.toLowerCase();

const SYNTAX: Syntax = {
  text: (text) => JSON.stringify(text),
  joined: (parts) =>
    `f"${parts
      .map((part, at) =>
        at % 2 === 0 ? JSON.stringify(part).slice(1, -1).replace(/[{}]/g, "$&$&") : `{${lower(part)}}`,
      )
      .join("")}"`,
  variable: lower,
  constants: { true: "True", false: "False", null: "None" },
  object: (members) => ({
    open: "{",
    parts: members.map(([name, value]) => `${JSON.stringify(name)}: ${value}`),
    close: "}",
    lastComma: true,
    space: "",
  }),
  list: (parts) => ({ open: "[", parts, close: "]", lastComma: true, space: "" }),
  indent: "    ",
};

/** The client, before its first use. */
export const SETUP = `from ninefold import Ninefold

nf = Ninefold(url="http://127.0.0.1:9909", api_key="sm_…")`;

/** A step by the Python package. */
export function python(step: ExampleStep, finder: MethodFinder): string {
  if (step.kind === "setup") return SETUP;
  const at = (start: string, path: Path): string => reach(start, path, (name) => `[${JSON.stringify(name)}]`);
  const value = at(step.kind === "read" ? lower(step.from) : called(step.call, finder), step.path);
  return step.variable === null ? `print(${value})` : `${lower(step.variable)} = ${value}`;
}

function called(call: ExampleCall, finder: MethodFinder): string {
  const found = finder.find(call);
  const invoked = (name: string, parts: readonly string[]): string =>
    bracketed({ open: `${name}(`, parts, close: ")", lastComma: true, space: "" }, SYNTAX);
  if (found === null) {
    const sent = call.body === undefined ? [] : [valueText(call.body, SYNTAX)];
    return `${invoked("nf.request", [JSON.stringify(call.method), textOf(call.path, SYNTAX), ...sent])}.body`;
  }
  const { method, params, query, body, written, isList } = found;
  const bound = boundOf(method);
  const object = [
    "nf",
    ...(bound === undefined
      ? snake(method.object).split(".")
      : [`${snake(method.object)}(${textOf(params[bound] ?? "", SYNTAX)})`]),
  ].filter((one) => one !== "");
  const manual = written && [
    ...Object.values(params).map((value) => textOf(value, SYNTAX)),
    ...written.args.map((value) => valueText(value, SYNTAX)),
    ...[...written.options].map(([name, value]) => `${snake(name)}=${valueText(value, SYNTAX)}`),
  ];
  const args = method.args.flatMap(({ place, field }) => {
    if (place === "path") return [textOf(params[field] ?? "", SYNTAX)];
    if (place === "field") return [valueText(Reflect.get(Object(body), field), SYNTAX)];
    const fields = Object.entries((place === "body" ? body : query) ?? {});
    const isPlain = fields.every(([name]) => /^[a-z_]\w*$/i.test(name));
    if (!isPlain) return [valueText(body, SYNTAX)];
    return fields.map(([name, value]) => `${name}${isKeyword(name) ? "_" : ""}=${valueText(value, SYNTAX)}`);
  });
  return invoked([...object, snake(method.name)].join("."), manual ?? args) + (isList ? ".page()" : "");
}
