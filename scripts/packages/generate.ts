import { type ApiOperation, type Document, operationsOf, type Schema } from "./document.ts";
import { type Direction, referenceOf, TypeWriter } from "./types.ts";

/** Where the generated files stand. */
export const GENERATED_FOLDER = "src/client/generated";
/** Writes the generated files anew, from the repository's root. */
export const GENERATE_COMMAND = "bun scripts/package-types.ts";

const HEADER = `// Written by \`${GENERATE_COMMAND}\` from test/golden/openapi.json. Change the schemas of the areas instead.\n`;

const ERROR = "Error";

/** The client's types and its table of operations, by file name. */
export function generate(document: Document): Map<string, string> {
  const operations = operationsOf(document);
  const writer = new TypeWriter();
  const uses = usesOf(document, operations);
  const names = Object.keys(document.components.schemas).filter((name) => name !== ERROR);
  const types = names.map((name) => declaration(name, document, uses.get(name), writer)).join("\n");
  const table = operationTypes(operations, writer);
  const used = names.filter((name) =>
    new RegExp(`\\b${name}\\b(?!["\`])`).test(table.replaceAll(/`[^`]*`/g, "")),
  );
  return new Map([
    ["types.ts", `${HEADER}${types}`],
    ["operations.ts", `${HEADER}import type { ${used.join(", ")} } from "./types.ts";\n\n${table}`],
    ["routes.ts", HEADER + routes(operations)],
    ["codes.ts", HEADER + codes(document)],
  ]);
}

/** Where a component stands: in what it goes out or comes in, and in words. */
interface Use {
  readonly direction: Direction;
  readonly note: string;
}

/** The first use of each component; what is sent anywhere is of the form that is sent. */
function usesOf(document: Document, operations: readonly ApiOperation[]): Map<string, Use> {
  const uses = new Map<string, Use>();
  const visit = (schema: Schema | null, direction: Direction, note: string): void => {
    if (schema === null) return;
    const name = referenceOf(schema);
    const known = name === null ? undefined : uses.get(name);
    if (known !== undefined && (known.direction === "sent" || direction === "answered")) return;
    if (name !== null) uses.set(name, { direction, note });
    const target = name === null ? schema : document.components.schemas[name];
    for (const [part, inner] of partsOf(target)) {
      visit(inner, direction, `${note.replace(/\.$/, "")}, \`${part}\`.`);
    }
  };
  for (const { method, path, body, answers } of operations) {
    visit(body, "sent", `The body of \`${method} ${path}\`.`);
    for (const answer of Object.values(answers)) {
      visit(answer, "answered", `What \`${method} ${path}\` answers.`);
    }
  }
  return uses;
}

function partsOf(schema: Schema | undefined): [name: string, Schema][] {
  return [
    ...Object.entries(schema?.properties ?? {}),
    ...Object.values(schema?.patternProperties ?? {}).map((one): [string, Schema] => ["…", one]),
    ...(schema?.anyOf ?? []).map((one): [string, Schema] => ["one of", one]),
    ...(schema?.items === undefined ? [] : [["[]", schema.items] as [string, Schema]]),
  ];
}

function declaration(name: string, document: Document, use: Use | undefined, writer: TypeWriter): string {
  const schema = document.components.schemas[name];
  if (schema === undefined || use === undefined) throw new Error(`the component ${name} is used nowhere`);
  const text = writer.written(schema, use.direction);
  const head = `/** ${schema.description ?? use.note} */\nexport `;
  return text.startsWith("{") ? `${head}interface ${name} ${text}\n` : `${head}type ${name} = ${text};\n`;
}

function operationTypes(operations: readonly ApiOperation[], writer: TypeWriter): string {
  const rows = operations.map((operation) => {
    const { params, query, body, takesAnyBody, answers } = operation;
    const answer = Object.values(answers).map((one) =>
      one === null ? "undefined" : writer.typeOf(one, "answered"),
    );
    const sent = (schema: Schema | null): string =>
      schema === null ? "undefined" : writer.typeOf(schema, "sent");
    const types = [
      Object.keys(params?.properties ?? {})
        .map((name) => JSON.stringify(name))
        .join(" | ") || "never",
      sent(query),
      takesAnyBody ? "AnyBody" : sent(body),
      [...new Set(answer)].join(" | "),
    ];
    return `${JSON.stringify(operation.id)}: Operation<${types.join(", ")}>;\n`;
  });
  return `${OPERATION_TYPES}\n/** What each operation takes and answers. */\nexport interface Operations {\n${rows.join("")}}\n`;
}

const OPERATION_TYPES = `/** A body that is sent as it is. */
export type AnyBody = string | Uint8Array;

/** An operation: the names of its path's parameters, its query, its body, its answer. */
export interface Operation<Params extends string, Query, Body, Answer> {
  params: Record<Params, string>;
  query: Query;
  body: Body;
  answer: Answer;
}
`;

function routes(operations: readonly ApiOperation[]): string {
  const names = (pass: (operation: ApiOperation) => boolean): string =>
    JSON.stringify(operations.filter(pass).map(({ id }) => id));
  const rows = operations.map(({ id, method, path }) => `${JSON.stringify(id)}: "${method} ${path}",\n`);
  return [
    `/** Method and path of every operation. */\nexport const ROUTES = {\n${rows.join("")}} as const;\n`,
    "/** Operations that take no key. */",
    `export const PUBLIC: readonly string[] = ${names(({ isPublic }) => isPublic)};\n`,
    "/** Changes that take no `Idempotency-Key`, though they take a key. */",
    `export const WITHOUT_IDEMPOTENCY_KEY: readonly string[] = ${names(takesKeyAlone)};\n`,
  ].join("\n");
}

function takesKeyAlone({ isPublic, method, takesIdempotencyKey }: ApiOperation): boolean {
  return !isPublic && method !== "GET" && !takesIdempotencyKey;
}

function codes({ components }: Document): string {
  const all = components.schemas["Error"]?.properties?.["code"]?.enum ?? [];
  return `/** Every code of the API's errors. */\nexport type ErrorCode = ${all.map((code) => JSON.stringify(code)).join(" | ")};\n`;
}
