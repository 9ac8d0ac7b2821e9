import { type ApiOperation, type Document, follow, operationsOf, type Schema } from "./document.ts";
import { NAMES } from "./names.ts";
import { type Direction, shapeOf, TypeWriter } from "./types.ts";

/** Where the generated files stand. */
export const GENERATED_FOLDER = "src/client/generated";
/** Writes the generated files anew, from the repository's root. */
export const GENERATE_COMMAND = "bun scripts/package-types.ts";

const HEADER = `// Written by \`${GENERATE_COMMAND}\` from test/golden/openapi.json. Change the schemas of the areas instead.\n`;

interface Named {
  readonly name: string;
  readonly file: string;
  readonly schema: Schema;
  readonly direction: Direction;
  readonly note: string;
}

/** The client's types and its table of operations, by file name. */
export function generate(document: Document): Map<string, string> {
  const operations = operationsOf(document);
  const named = namedSchemas(operations);
  const byShape = new Map(named.map((one) => [keyOf(one.schema, one.direction), one.name]));
  const writer = new TypeWriter((schema, direction) => byShape.get(keyOf(schema, direction)));
  const files = new Map<string, string>();
  for (const file of Object.keys(NAMES)) {
    const here = named.filter((one) => one.file === file);
    const body = here.map((one) => declaration(one, writer)).join("\n");
    files.set(`${file}.ts`, HEADER + importsFor(body, file, named) + body);
  }
  const table = operationTypes(operations, writer);
  files.set("operations.ts", HEADER + importsFor(table, "operations", named) + table);
  files.set("routes.ts", HEADER + routes(operations));
  files.set("codes.ts", HEADER + codes(document));
  return files;
}

/** What is neither an object nor a choice is the same both ways. */
function keyOf(schema: Schema, direction: Direction): string {
  return schema.type === "object" ? `${direction} ${shapeOf(schema)}` : shapeOf(schema);
}

function namedSchemas(operations: readonly ApiOperation[]): Named[] {
  return Object.entries(NAMES).flatMap(([file, names]) =>
    Object.entries(names).map(([name, pointer]): Named => {
      const [id = "", part = "", ...way] = pointer.split(" ");
      const operation = operations.find((one) => one.id === id);
      const where = `\`${operation?.method} ${operation?.path}\``;
      const what =
        part === "body"
          ? `The body of ${where}`
          : part === "query"
            ? `The query of ${where}`
            : `What ${where} answers`;
      return {
        name,
        file,
        schema: follow(operations, pointer),
        direction: part === "body" || part === "query" ? "sent" : "answered",
        note: way.length === 0 ? `${what}.` : `${what}, \`${way.join(".").replaceAll(".[]", "[]")}\`.`,
      };
    }),
  );
}

function declaration({ name, schema, direction, note }: Named, writer: TypeWriter): string {
  const text = writer.written(schema, direction);
  const head = `/** ${note} */\nexport `;
  return text.startsWith("{") ? `${head}interface ${name} ${text}\n` : `${head}type ${name} = ${text};\n`;
}

function importsFor(text: string, file: string, named: readonly Named[]): string {
  const files = new Map<string, string[]>();
  for (const one of named) {
    if (
      one.file === file ||
      !new RegExp(`\\b${one.name}\\b(?!["\`])`).test(text.replaceAll(/`[^`]*`|\/\*\*.*?\*\//gs, ""))
    )
      continue;
    files.set(one.file, [...(files.get(one.file) ?? []), one.name]);
  }
  const lines = [...files]
    .sort()
    .map(([from, names]) => `import type { ${names.sort().join(", ")} } from "./${from}.ts";\n`);
  return lines.length === 0 ? "\n" : `${lines.join("")}\n`;
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
