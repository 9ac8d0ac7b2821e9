import { repeatOf, SLOW_MS } from "../../src/client/api.ts";
import { type ApiOperation, type Document, operationsOf, type Schema } from "../document.ts";
import { BOUND } from "../method-names.ts";
import { describe } from "../method-text.ts";
import { type Argument, type ClientObject, isField, type Method, objectsOf } from "../methods.ts";
import { referenceOf } from "../types.ts";
import { queryName, responseType, valueType } from "./models.ts";
import { snake, textLines } from "./names.ts";

/** The classes of the client's objects. */
export function methods(document: Document): string {
  const objects = objectsOf(document);
  // A class is used by the one that it is a field of.
  const ordered = [...objects].sort((a, b) => depth(b.path) - depth(a.path));
  return ordered.map((object) => classText(object, objects, document)).join("\n\n");
}

/** How operations are repeated and whether they take the key, where that differs from other operations; and slow ones. */
export function operationTable(document: Document): string {
  const operations = operationsOf(document);
  const unusual = operations.flatMap(({ id, method, path, isPublic }) => {
    const repeat = repeatOf(id, method);
    const isUsual = !isPublic && repeat === (method === "GET" ? "free" : "keyed");
    return isUsual ? [] : [`    "${method} ${path}": ("${repeat}", ${isPublic ? "False" : "True"}),\n`];
  });
  const slow = operations.flatMap(({ id, method, path }) => {
    const ms = SLOW_MS[id];
    return ms === undefined ? [] : [`    "${method} ${path}": ${(ms / 1000).toFixed(1)},\n`];
  });
  return [
    "#: Operations with another rule for repeats (free: always, keyed: with an Idempotency-Key, never: only what was certainly\n",
    "#: not carried out), and whether they take a key.\n",
    `UNUSUAL: Dict[str, Tuple[str, bool]] = {\n${unusual.join("")}}\n\n`,
    "#: Timeouts of operations that may take longer than the default, in seconds.\n",
    `SLOW: Dict[str, float] = {\n${slow.join("")}}\n`,
  ].join("");
}

/** The names of methods and arguments, for the guide: `create(body)` is `create(**body)`. */
export function pythonSignatureOf({ name, args, written }: Method): string {
  if (written !== null) return `${snake(name)}(…)`;
  const texts = args.map((one) => {
    if (one.place === "body") return "**body";
    if (one.place === "query") return "**query";
    return snake(one.name);
  });
  return `${snake(name)}(${texts.join(", ")})`;
}

function depth(path: string): number {
  return path === "" ? 0 : path.split(".").length;
}

function classText(object: ClientObject, objects: readonly ClientObject[], document: Document): string {
  const { path, className, description, isExtended } = object;
  const name = isExtended ? `${className}Methods` : className;
  const children = objects.filter((one) => isField(one, path));
  const lines = [`class ${name}(Methods):`, ...quoted(withoutLinks(description), 4)];
  const bound = BOUND[path];
  const fields = children.flatMap((child) => [
    `        #: ${withoutLinks(child.description)}`,
    `        self.${snake(child.path.slice(child.path.lastIndexOf(".") + 1))} = ${child.className}(api)`,
  ]);
  if (bound !== undefined)
    lines.push(
      "",
      "    def __init__(self, api: Api, id: str) -> None:",
      "        super().__init__(api)",
      "        #: The id of the resource.",
      "        self.id = id",
    );
  else if (fields.length > 0)
    lines.push("", "    def __init__(self, api: Api) -> None:", "        super().__init__(api)", ...fields);
  for (const method of object.methods)
    if (method.written === null)
      lines.push("", ...methodLines(method, object.path, document), ...formerLines(method));
  return `${lines.join("\n")}\n`;
}

/** Comments link to names of the TypeScript client. */
function withoutLinks(text: string): string {
  return text.replace(/\{@link (?:\w+\.)*(\w+)\}/g, (_, name: string) => `\`\`${snake(name)}\`\``);
}

/** Options of every method; a field of the body with the same name takes precedence. */
const OPTIONS: Readonly<Record<string, string>> = {
  timeout: "timeout: Optional[float] = None",
  retries: "retries: Optional[int] = None",
  idempotency_key: "idempotency_key: Union[str, None, Default] = DEFAULT",
};

/** The same method under its former name. */
function formerLines({ name, former }: Method): string[] {
  if (former === null) return [];
  return [
    "",
    `    #: Deprecated: use \`\`${snake(name)}\`\`, which is the same.`,
    `    ${snake(former)} = ${snake(name)}`,
  ];
}

/** A method: alone, or with the forms of its body (a dict or keyword arguments) as overloads. */
function methodLines(method: Method, object: string, document: Document): string[] {
  const { operation, args, items } = method;
  const name = snake(method.name);
  const whole = args.find(({ place }) => place === "body" || place === "query");
  const fields = whole === undefined ? [] : Object.keys(membersOf(whole, operation, document));
  const options = Object.keys(OPTIONS).filter(
    (option) => !fields.includes(option) && (option !== "idempotency_key" || operation.takesIdempotencyKey),
  );
  const positional = args
    .filter((one) => one !== whole)
    .map((one) => `${snake(one.name)}: ${argumentType(one, operation, document)}`);
  const given = options.map((option) => OPTIONS[option] ?? "");
  const response = responseType(operation, document);
  const returns = items === null ? response : `Pages[${itemType(operation, items, document)}, ${response}]`;
  const call = callLines(method, object, options, whole, fields, returns);
  const doc = quoted(describe(method), 8);
  if (whole === undefined)
    return [...definition(name, [...positional, "*", ...given], returns), ...doc, ...call];
  const type = `models.${whole.place === "body" ? bodyName(operation) : (queryName(operation) ?? "")}`;
  const parameter = positionalName(whole, fields);
  const keywords = `**fields: Unpack[${type}]`;
  const required = requiredOf(whole, operation, document).length > 0;
  if (!required)
    return [
      ...definition(
        name,
        [...positional, `${parameter}: Optional[${type}] = None`, "/", "*", ...given, keywords],
        returns,
      ),
      ...doc,
      ...call,
    ];
  return [
    "    @overload",
    ...definition(name, [...positional, `${parameter}: ${type}`, "/", "*", ...given], returns, " ..."),
    "    @overload",
    ...definition(name, [...positional, "/", "*", ...given, keywords], returns, " ..."),
    ...definition(
      name,
      [...positional, `${parameter}: Any = None`, "/", "*", ...given, "**fields: Any"],
      returns,
    ),
    ...doc,
    ...call,
  ];
}

/** Name of the dict; a field can have the name `body`, too. */
function positionalName({ place }: Argument, fields: readonly string[]): string {
  return fields.includes(place) ? `${place}_` : place;
}

/** Longest line of a definition. */
const WIDTH = 118;

function definition(name: string, given: readonly string[], returns: string, end = ""): string[] {
  // A star without names after it is an error.
  const parameters = given.filter(
    (one, at) => one !== "*" || (given[at + 1] !== undefined && !given[at + 1]?.startsWith("**")),
  );
  const line = `    def ${name}(${["self", ...parameters].join(", ")}) -> ${returns}:${end}`;
  if (line.length <= WIDTH) return [line];
  return [
    `    def ${name}(`,
    ...["self", ...parameters].map((one) => `        ${one}${one.startsWith("**") ? "" : ","}`),
    `    ) -> ${returns}:${end}`,
  ];
}

function callLines(
  { operation, args, items }: Method,
  object: string,
  options: readonly string[],
  whole: Argument | undefined,
  fields: readonly string[],
  returns: string,
): string[] {
  const bound = BOUND[object];
  const params = [
    ...(bound === undefined ? [] : [`"${bound}": self.id`]),
    ...args.filter(({ place }) => place === "path").map(({ name, field }) => `"${field}": ${snake(name)}`),
  ];
  const body = args
    .filter(({ place }) => place === "field")
    .map(({ name, field }) => `"${field}": ${snake(name)}`);
  const parts = [
    `"${operation.method} ${operation.path}"`,
    ...(items === null ? [] : [`"${items}"`]),
    ...(params.length === 0 ? [] : [`{${params.join(", ")}}`]),
    ...(body.length === 0 ? [] : [`body={${body.join(", ")}}`]),
    ...(whole === undefined ? [] : [`${whole.place}=fields_of(${positionalName(whole, fields)}, fields)`]),
    ...options.map((option) => `${option}=${option}`),
  ];
  const start = `self._api.${items === null ? "call" : "pages"}`;
  const lines = [`        response = ${start}(`, ...parts.map((part) => `            ${part},`), "        )"];
  return [...lines, `        return cast("${returns.replaceAll('"', "'")}", response)`];
}

function bodyName({ id, body }: ApiOperation): string {
  const name = body === null ? null : referenceOf(body);
  if (name === null) throw new Error(`the body of ${id} needs a name: named("…", { … })`);
  return name;
}

function schemaOf({ place }: Argument, { body, query }: ApiOperation, document: Document): Schema {
  const schema = (place === "body" ? body : query) ?? {};
  const name = referenceOf(schema);
  return (name === null ? undefined : document.components.schemas[name]) ?? schema;
}

function membersOf(
  whole: Argument,
  operation: ApiOperation,
  document: Document,
): Readonly<Record<string, Schema>> {
  return schemaOf(whole, operation, document).properties ?? {};
}

function requiredOf(whole: Argument, operation: ApiOperation, document: Document): readonly string[] {
  return schemaOf(whole, operation, document).required ?? [];
}

function argumentType({ place, field }: Argument, operation: ApiOperation, document: Document): string {
  if (place === "path") {
    const { pattern } = operation.params?.properties?.[field] ?? {};
    return /^\^(\[[\d-]+\](\{[\d,]+\})?)+\$$/.test(pattern ?? "") ? "Union[str, int]" : "str";
  }
  const { properties = {} } = document.components.schemas[bodyName(operation)] ?? {};
  return valueType(properties[field] ?? {}, document);
}

function itemType({ successes }: ApiOperation, items: string, document: Document): string {
  const [page] = Object.values(successes);
  const name = page == null ? null : referenceOf(page);
  const schema = (name === null ? page : document.components.schemas[name])?.properties?.[items]?.items ?? {};
  return valueType(schema, document);
}

/** A docstring with its indentation. */
function quoted(text: string, indent: number): string[] {
  const safe = text
    .replaceAll("\\", "\\\\")
    .replaceAll('"""', "'''")
    .replaceAll(/`+([^`]*)`+/g, "``$1``");
  const [first = "", ...others] = textLines(safe, WIDTH - indent - 3);
  const space = " ".repeat(indent);
  if (others.length === 0) return [`${space}"""${first}"""`];
  const [summary = "", ...rest] = safe.split(/(?<=\.) /);
  const lines =
    rest.length === 0 ? [first, ...others] : [summary, "", ...textLines(rest.join(" "), WIDTH - indent)];
  return [
    `${space}"""${lines[0]}`,
    ...lines.slice(1).map((line) => (line === "" ? "" : space + line)),
    `${space}"""`,
  ];
}
