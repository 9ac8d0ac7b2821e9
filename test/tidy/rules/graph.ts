import type { Node } from "oxc-parser";
import { exportName, type Import } from "./imports.ts";
import { type Module, type Violation, violationAt, walk } from "./model.ts";
import { ENTRY_POINTS, inZone, MAIN } from "./zones.ts";

/** A module with its imports. */
export interface Linked {
  readonly module: Module;
  readonly imports: readonly Import[];
}

/**
 * Exports of `src/` that no other file imports. A type that its own file uses may stay exported: it belongs to the
 * signatures there. Without the program's entry point it is unknown which exports are used.
 */
export function checkUnusedExports(tree: readonly Linked[]): Violation[] {
  if (!tree.some(({ module }) => module.path === MAIN)) return [];
  const used = new Map<string, Set<string>>();
  for (const { imports } of tree) {
    for (const { target, names } of imports) {
      if (!target) continue;
      const known = used.get(target) ?? new Set();
      for (const name of names) known.add(name);
      used.set(target, known);
    }
  }
  return tree.flatMap(({ module }) => {
    if (!module.path.startsWith("src/") || inZone(module.path, ENTRY_POINTS)) return [];
    return unusedIn(module, used.get(module.path) ?? new Set());
  });
}

function unusedIn(module: Module, used: ReadonlySet<string>): Violation[] {
  if (used.has("*")) return [];
  return exportsOf(module.root)
    .filter(({ name, isType }) => !used.has(name) && !(isType && countName(module.root, name) > 1))
    .map(({ name, offset }) =>
      violationAt(
        module,
        offset,
        "unused-export",
        `nothing imports ${name}; drop the word export, or the code`,
      ),
    );
}

interface Exported {
  readonly name: string;
  readonly isType: boolean;
  readonly offset: number;
}

function exportsOf(root: Node): Exported[] {
  if (root.type !== "Program") return [];
  return root.body.flatMap((node) => {
    if (node.type !== "ExportNamedDeclaration") return [];
    const listed = node.specifiers.map((specifier) => ({
      name: exportName(specifier.exported),
      isType: false,
      offset: specifier.start,
    }));
    return [...listed, ...(node.declaration ? declared(node.declaration) : [])];
  });
}

function declared(node: Node): Exported[] {
  switch (node.type) {
    case "VariableDeclaration":
      return node.declarations.flatMap(({ id }) => named(id, false));
    case "FunctionDeclaration":
    case "ClassDeclaration":
    case "TSEnumDeclaration":
      return named(node.id, false);
    case "TSInterfaceDeclaration":
    case "TSTypeAliasDeclaration":
      return named(node.id, true);
    default:
      return [];
  }
}

function named(id: Node | null, isType: boolean): Exported[] {
  return id?.type === "Identifier" ? [{ name: id.name, isType, offset: id.start }] : [];
}

function countName(root: Node, name: string): number {
  let count = 0;
  walk(root, (node) => {
    if (node.type === "Identifier" && node.name === name) count += 1;
  });
  return count;
}
