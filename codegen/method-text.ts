import type { Document } from "./document.ts";
import { HEADER } from "./generate.ts";
import { BOUND } from "./method-names.ts";
import { type Argument, type ClientObject, camel, isField, type Method, objectsOf } from "./methods.ts";
import { referenceOf, typeOf } from "./types.ts";

/** Characters of a line of a comment, without its indentation and star. */
const COMMENT_WIDTH = 104;

/** The classes of the client's objects. */
export function generateMethods(document: Document): string {
  const objects = objectsOf(document);
  const classes = objects.map((object) => classText(object, objects));
  const bodies = new Set(classes.flatMap(({ types }) => types));
  const text = classes.map((one) => one.text).join("\n");
  const fromApi = ["Answers", "Api", "ListOf", "PageQuery", "QueryOf"].filter((name) =>
    new RegExp(`\\b${name}\\b`).test(text),
  );
  return `${HEADER}
import { Methods, ${fromApi.map((name) => `type ${name}`).join(", ")} } from "../api.ts";
import type { ${[...bodies].sort().join(", ")} } from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

${text}`;
}

interface Text {
  readonly text: string;
  /** Names of the types of bodies. */
  readonly types: readonly string[];
}

function classText(object: ClientObject, objects: readonly ClientObject[]): Text {
  const { path, className, description, isExtended } = object;
  const name = isExtended ? `${className}Methods` : className;
  const head = isExtended ? `Methods of {@link ${className}} that send one request.` : description;
  const children = objects.filter((one) => isField(one, path));
  const fields = children.map(
    (child) =>
      `${comment(child.description)}readonly ${child.path.slice(child.path.lastIndexOf(".") + 1)} = new ${child.className}(this.api);\n`,
  );
  const methods = object.methods.filter(({ written }) => written === null).map((one) => methodText(one));
  const body = [...fields, identityOf(path), ...methods.map(({ text }) => text)].filter((one) => one !== "");
  return {
    text: `${comment(head)}export class ${name} extends Methods {\n${body.join("\n")}}\n`,
    types: methods.flatMap(({ types }) => types),
  };
}

function identityOf(path: string): string {
  const parameter = BOUND[path];
  if (parameter === undefined) return "";
  return `constructor(api: Api, /** \`${parameter}\` of the requests. */ readonly id: string) {\nsuper(api);\n}\n`;
}

function methodText(method: Method): Text {
  const { operation, object, name, args, items } = method;
  const id = JSON.stringify(operation.id);
  const types: string[] = [];
  const typeOfArgument = (argument: Argument): string => {
    if (argument.place === "path") return pathType(method, argument);
    if (argument.place === "query") return isPageOnly(method) ? "PageQuery" : `QueryOf<${id}>`;
    const body = operation.body === null ? "" : typeOf(operation.body, "sent");
    if (operation.body === null || referenceOf(operation.body) === null)
      throw new Error(`the body of ${operation.id} needs a name: named("…", { … })`);
    types.push(body);
    if (argument.place === "body") return body;
    const field = `${body}["${argument.field}"]`;
    return argument.isRequired ? field : `NonNullable<${field}>`;
  };
  const parameters = args.map((one) =>
    one.isOptional ? `${one.name}: ${typeOfArgument(one)} = {}` : `${one.name}: ${typeOfArgument(one)}`,
  );
  const options = operation.takesIdempotencyKey ? "ChangeOptions" : "RequestOptions";
  const input = inputOf(method, object);
  const text =
    items === null
      ? `${name}(${[...parameters, `options?: ${options}`].join(", ")}): Answers<${id}> {
return this.api.call(${id}, ${input}, options);
}\n`
      : `${name}(${[...parameters, `options: ${options} = {}`].join(", ")}): ListOf<${id}, "${items}"> {
return this.api.list(${id}, "${items}", ${input}, options);
}\n`;
  return { text: comment(describe(method)) + text + formerText(method, text), types };
}

/** The same method under its former name. */
function formerText({ name, former }: Method, text: string): string {
  if (former === null) return "";
  return `\n/** @deprecated Use \`${name}\`, which is the same. */\n${former}${text.slice(name.length)}`;
}

/** A number in a path can be given as a number. */
function pathType({ operation }: Method, { field }: Argument): string {
  return isNumber(operation.params?.properties?.[field]) ? "string | number" : "string";
}

function isNumber(schema: { readonly pattern?: string } | undefined): boolean {
  return /^\^(\[[\d-]+\](\{[\d,]+\})?)+\$$/.test(schema?.pattern ?? "");
}

function isPageOnly({ operation }: Method): boolean {
  return (
    Object.keys(operation.query?.properties ?? {})
      .sort()
      .join() === "cursor,limit"
  );
}

/** The parameters, query and body of the request. */
function inputOf({ operation, args }: Method, object: string): string {
  const bound = BOUND[object];
  const paths = args.filter(({ place }) => place === "path");
  const params = [
    ...(bound === undefined ? [] : [`${bound}: this.id`]),
    ...paths.map(({ name, field }) => {
      const value = isNumber(operation.params?.properties?.[field]) ? `String(${name})` : name;
      return field === value ? field : `${field}: ${value}`;
    }),
  ];
  const fields = args.filter(({ place }) => place === "field");
  const body = fields.map(({ name, field }) => (field === name ? name : `${field}: ${name}`));
  const whole = args.filter(({ place }) => place === "body" || place === "query").map(({ name }) => name);
  const parts = [
    ...(params.length === 0 ? [] : [`params: { ${params.join(", ")} }`]),
    ...(body.length === 0 ? [] : [`body: { ${body.join(", ")} }`]),
    ...whole,
  ];
  return `{ ${parts.join(", ")} }`;
}

/** What a method does, and its price. */
export function describe({ operation: { summary, description, cost } }: Method): string {
  const price =
    cost === 0 || /\bCosts \d/.test(description) ? "" : ` Costs ${cost} credit${cost === 1 ? "" : "s"}.`;
  return `${summary}. ${description}`.trimEnd().replace(/\s+/g, " ") + price;
}

function comment(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= COMMENT_WIDTH) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  if (lines.length === 1) return `/** ${lines[0]} */\n`;
  return `/**\n${lines.map((line) => ` * ${line}\n`).join("")} */\n`;
}

/** The arguments of a method as the guides show them. */
export function signatureOf({ name, args, written }: Method): string {
  return `${name}(${written ?? args.map((one) => `${camel(one.name)}${one.isOptional ? "?" : ""}`).join(", ")})`;
}
