import type { OperationEntry } from "../scripts/guides/operations.ts";
import type { Document } from "./document.ts";

/** The operations of the API reference as lines of JSON, in the order of the document: what guides link to. */
export function operationList(document: Document): string {
  const entries = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { operationId, tags, summary }]): OperationEntry => ({
        id: operationId,
        area: tags[0] ?? "System",
        method: method.toUpperCase(),
        path,
        summary,
      }),
    ),
  );
  return `${entries.map((entry) => JSON.stringify(entry)).join("\n")}\n`;
}
