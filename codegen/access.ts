import { type Document, operationsOf } from "./document.ts";
import { GENERATE_COMMAND } from "./generate.ts";

const HEADER = `// Written by \`${GENERATE_COMMAND}\` from test/golden/openapi.json. Change the operations of the areas instead.
import type { Operations } from "./api.ts";

/**
 * Who may call each operation: the scope that a key needs, the least role of people (\`-\` for none), and \`account\` for
 * those that people with roles in single projects may not call.
 */
export const ACCESS: Readonly<Record<string, readonly (keyof Operations)[]>> = {
`;

/** Who may call the operations, as a module that the console reads. */
export function access(document: Document): string {
  const groups = new Map<string, string[]>();
  for (const { id, scope, role, isOfAccount } of operationsOf(document)) {
    if (scope === null) continue;
    const group = `${scope} ${role ?? "-"}${isOfAccount ? " account" : ""}`;
    groups.set(group, [...(groups.get(group) ?? []), id]);
  }
  const rows = [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
  return `${HEADER}${rows.map(([group, ids]) => `${JSON.stringify(group)}: ${JSON.stringify(ids)},\n`).join("")}};\n`;
}
