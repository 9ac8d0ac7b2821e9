import type { ImportDeclaration, ModuleExportName, Node } from "oxc-parser";
import { type Module, walk } from "./model.ts";

/** One import, re-export, `import()` or `import("…")` type of a module. */
export interface Import {
  readonly specifier: string;
  /** The file in the tree, if the specifier is relative and such a file exists. */
  readonly target: string | undefined;
  /** The imported names; "*" stands for all of them. */
  readonly names: readonly string[];
  readonly offset: number;
}

/** All imports of a module, in the order of the text. */
export function importsOf(module: Module, paths: ReadonlySet<string>): Import[] {
  const found: Import[] = [];
  walk(module.root, (node) => {
    const read = readImport(node);
    if (read)
      found.push({ ...read, target: resolve(module.path, read.specifier, paths), offset: node.start });
  });
  return found;
}

type Read = Pick<Import, "specifier" | "names">;

function readImport(node: Node): Read | undefined {
  switch (node.type) {
    case "ImportDeclaration":
      return { specifier: node.source.value, names: importedNames(node) };
    case "ExportAllDeclaration":
      return { specifier: node.source.value, names: ["*"] };
    case "ExportNamedDeclaration":
      if (node.source === null) return undefined;
      return {
        specifier: node.source.value,
        names: node.specifiers.map((specifier) => exportName(specifier.local)),
      };
    case "ImportExpression":
      return node.source.type === "Literal" && typeof node.source.value === "string"
        ? { specifier: node.source.value, names: ["*"] }
        : undefined;
    case "TSImportType":
      return { specifier: node.source.value, names: ["*"] };
    default:
      return undefined;
  }
}

function importedNames(node: ImportDeclaration): string[] {
  return node.specifiers.map((specifier) => {
    if (specifier.type === "ImportNamespaceSpecifier") return "*";
    return specifier.type === "ImportDefaultSpecifier" ? "default" : exportName(specifier.imported);
  });
}

/** The name in an import or export specifier, which may also be written as a string. */
export function exportName(name: ModuleExportName): string {
  return name.type === "Literal" ? name.value : name.name;
}

function resolve(from: string, specifier: string, paths: ReadonlySet<string>): string | undefined {
  if (!specifier.startsWith(".")) return undefined;
  const base = normalize(`${from.slice(0, from.lastIndexOf("/") + 1)}${specifier}`);
  return [base, `${base}.ts`, `${base}/index.ts`].find((path) => paths.has(path));
}

function normalize(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && part !== "") parts.push(part);
  }
  return parts.join("/");
}
