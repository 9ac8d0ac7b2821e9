import { expect, test } from "bun:test";
import { join } from "node:path";

interface Media {
  readonly schema?: { readonly $ref?: string };
  readonly examples?: Readonly<Record<string, { readonly value: { readonly code: string } }>>;
}
interface ErrorResponse {
  readonly description: string;
  readonly content?: Readonly<Record<string, Media>>;
}
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly responses: Readonly<Record<string, ErrorResponse & { readonly $ref?: string }>>;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, ErrorResponse>> };
}

const document: Document = await Bun.file(join(import.meta.dir, "../golden/openapi.json")).json();
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));

/** The words of a text that carry its meaning. */
function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[a-z0-9_]{3,}/g) ?? []);
}

/** The description without the line of terms, which the server derives from the operation. */
function proseOf({ description }: Operation): string {
  return description
    .split("\n\n")
    .filter((paragraph) => !paragraph.startsWith("**Cost**"))
    .join(" ");
}

test("every operation has a description that says more than its summary", () => {
  expect(operations.length).toBeGreaterThan(250);
  const bare = operations.filter((operation) => {
    const known = wordsOf(operation.summary);
    return [...wordsOf(proseOf(operation))].filter((word) => !known.has(word)).length < 3;
  });
  expect(bare.map(({ operationId, description }) => `${operationId}: ${description}`)).toEqual([]);
});

test("every error of an operation has an example for each of its codes", () => {
  const errors = document.components.responses;
  const missing: string[] = [];
  for (const { operationId, responses } of operations) {
    for (const [status, response] of Object.entries(responses)) {
      if (Number(status) < 400) continue;
      const named = response.$ref?.split("/").at(-1);
      const { description, content } = named === undefined ? response : (errors[named] ?? response);
      const codes = [...description.matchAll(/^`([a-z._]+)`: /gm)].map(([, code = ""]) => code);
      const examples = content?.["application/json"]?.examples ?? {};
      const shown = Object.values(examples).map(({ value }) => value.code);
      // Other bodies, as of a webhook that a bucket did not accept, are no errors.
      const isError = content?.["application/json"]?.schema?.$ref === "#/components/schemas/Error";
      if (codes.some((code) => !shown.includes(code)) || (isError && shown.length === 0))
        missing.push(`${operationId} ${status}`);
    }
  }
  expect(missing).toEqual([]);
});
