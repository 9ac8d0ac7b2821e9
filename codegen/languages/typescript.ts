import { camel } from "../methods.ts";
import { bracketed, camelOf, reach, type Syntax, textOf, valueText } from "./language.ts";
import { boundOf, type MethodFinder } from "./operations.ts";
import type { ExampleCall, ExampleStep, Path } from "./shell.ts";

const SYNTAX: Syntax = {
  text: (text) => JSON.stringify(text),
  joined: (parts) =>
    `\`${parts.map((part, at) => (at % 2 === 0 ? part.replace(/[`\\$]/g, "\\$&") : `\${${camelOf(part)}}`)).join("")}\``,
  variable: camelOf,
  constants: { true: "true", false: "false", null: "null" },
  object: (members) => ({
    open: "{",
    parts: members.map(
      ([name, value]) => `${/^[a-zA-Z_]\w*$/.test(name) ? name : JSON.stringify(name)}: ${value}`,
    ),
    close: "}",
    lastComma: true,
    space: " ",
  }),
  list: (parts) => ({ open: "[", parts, close: "]", lastComma: true, space: "" }),
  indent: "  ",
};

/** The client, before its first use. */
export const SETUP = `import { Ninefold } from "ninefold/client";

const nf = new Ninefold({ url: "http://127.0.0.1:9909", apiKey: "sm_…" });`;

/** A step by the TypeScript client. */
export function typescript(step: ExampleStep, finder: MethodFinder): string {
  if (step.kind === "setup") return SETUP;
  const at = (start: string, path: Path): string =>
    reach(start, path, (name) => (typeof name === "number" ? `[${name}]` : `.${name}`));
  const value =
    step.kind === "read" ? at(camelOf(step.from), step.path) : called(step.call, step.path, finder, at);
  return step.variable === null ? `console.log(${value});` : `const ${camelOf(step.variable)} = ${value};`;
}

function called(
  call: ExampleCall,
  path: Path,
  finder: MethodFinder,
  at: (start: string, path: Path) => string,
): string {
  const found = finder.find(call);
  if (found === null) {
    const sent = call.body === undefined ? [] : [valueText(call.body, SYNTAX)];
    const args = [JSON.stringify(call.method), textOf(call.path, SYNTAX), ...sent];
    return at(`(await ${invoked("nf.request", args)}).body`, path);
  }
  const { method, params, query, body, written, isList } = found;
  const bound = boundOf(method);
  const object = [
    "nf",
    ...(bound === undefined ? [method.object] : [`${method.object}(${textOf(params[bound] ?? "", SYNTAX)})`]),
  ].filter((one) => one !== "");
  const manual = written && [
    ...Object.values(params).map((value) => textOf(value, SYNTAX)),
    ...written.args.map((value) => valueText(value, SYNTAX)),
    ...(written.options.size === 0 ? [] : [valueText(Object.fromEntries(written.options), SYNTAX)]),
  ];
  const args = method.args.flatMap(({ place, field, isOptional }) => {
    if (place === "path") return [textOf(params[field] ?? "", SYNTAX)];
    if (place === "field") return [valueText(Reflect.get(Object(body), field), SYNTAX)];
    const whole = place === "body" ? body : query;
    return whole === undefined || whole === null ? (isOptional ? [] : ["{}"]) : [valueText(whole, SYNTAX)];
  });
  const text = invoked([...object, camel(method.name)].join("."), manual ?? args);
  const awaited = `await ${text}${isList ? ".page()" : ""}`;
  return path.length === 0 ? awaited : at(`(${awaited})`, path);
}

/** A call, whose last argument can have lines of its own. */
function invoked(name: string, args: readonly string[]): string {
  const flat = args.every((one) => !one.includes("\n"));
  return flat || args.length < 2 || !args.slice(0, -1).some((one) => one.includes("\n"))
    ? `${name}(${args.join(", ")})`
    : bracketed({ open: `${name}(`, parts: args, close: ")", lastComma: true, space: "" }, SYNTAX);
}
