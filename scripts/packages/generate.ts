import { type ApiOperation, type Document, operationsOf, type Schema } from "./document.ts";
import { type Direction, referenceOf, TypeWriter } from "./types.ts";

/** Where the generated files stand. */
export const GENERATED_FOLDER = "src/client/generated";
/** Writes the generated files anew, from the repository's root. */
export const GENERATE_COMMAND = "bun scripts/package-types.ts";

const HEADER = `// Written by \`${GENERATE_COMMAND}\` from test/golden/openapi.json. Change the schemas of the areas instead.\n`;

/** The client's types and its table of operations, by file name. */
export function generate(document: Document): Map<string, string> {
  const operations = operationsOf(document);
  const writer = new TypeWriter();
  const uses = usesOf(document, operations);
  const parts = Map.groupBy(uses, ([, { file }]) => file);
  const fileOf = new Map([...uses].map(([name, { file }]) => [name, file]));
  const files = new Map<string, string>();
  for (const [file, named] of parts) {
    const text = named.map(([name, use]) => declaration(name, document, use, writer)).join("\n");
    files.set(file, HEADER + importsFor(text, file, fileOf) + text);
  }
  const table = operationTypes(operations, writer);
  files.set(
    "types.ts",
    HEADER +
      [...parts.keys()]
        .sort()
        .map((file) => `export type * from "./${file}";\n`)
        .join(""),
  );
  files.set("operations.ts", HEADER + importsFor(table, "operations.ts", fileOf) + table);
  files.set("routes.ts", HEADER + routes(operations));
  files.set("codes.ts", HEADER + codes(document));
  return files;
}

function importsFor(text: string, here: string, fileOf: ReadonlyMap<string, string>): string {
  // Names in comments and texts are none of types.
  const words = new Set(text.replaceAll(/`[^`]*`|"[^"]*"|\/\*\*.*?\*\//gs, "").match(/\w+/g));
  const used = [...fileOf].filter(([name, file]) => file !== here && words.has(name));
  return [...Map.groupBy(used, ([, file]) => file)]
    .map(
      ([file, names]) =>
        `import type { ${names
          .map(([name]) => name)
          .sort()
          .join(", ")} } from "./${file}";\n`,
    )
    .sort()
    .join("");
}

/** Where a component stands: in what it goes out or comes in, and in words. */
interface Use {
  /** The file of the part of the API that uses it first. */
  readonly file: string;
  readonly direction: Direction;
  readonly note: string;
}

/** The first use of each component; what is sent anywhere is of the form that is sent. */
function usesOf(document: Document, operations: readonly ApiOperation[]): Map<string, Use> {
  const uses = new Map<string, Use>();
  const visit = (schema: Schema | null, file: string, direction: Direction, note: string): void => {
    if (schema === null) return;
    const name = referenceOf(schema);
    const known = name === null ? undefined : uses.get(name);
    if (known !== undefined && (known.direction === "sent" || direction === "answered")) return;
    if (name !== null) uses.set(name, { file: known?.file ?? file, direction, note });
    const target = name === null ? schema : document.components.schemas[name];
    for (const [part, inner] of partsOf(target)) {
      visit(inner, file, direction, `${note.replace(/\.$/, "")}, \`${part}\`.`);
    }
  };
  for (const { method, path, tag, body, answers } of operations) {
    const file = `${tag.toLowerCase()}.ts`;
    visit(body, file, "sent", `The body of \`${method} ${path}\`.`);
    for (const answer of Object.values(answers)) {
      visit(answer, file, "answered", `What \`${method} ${path}\` answers.`);
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

function declaration(name: string, document: Document, use: Use, writer: TypeWriter): string {
  const schema = document.components.schemas[name];
  if (schema === undefined) throw new Error(`the document has no schema ${name}`);
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
