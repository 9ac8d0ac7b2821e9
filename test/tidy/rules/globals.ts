import type { BindingPattern, MemberExpression, Node } from "oxc-parser";
import { type Module, type Place, type Violation, violationAt, walk } from "./model.ts";
import { GLOBAL_RULES, inZone } from "./zones.ts";

/** Rules 3 and 4: network, environment, time and randomness are used only in allowed files. */
export function checkGlobals(module: Module): Violation[] {
  if (!module.path.startsWith("src/")) return [];
  const found: Violation[] = [];
  for (const { name, offset } of globalUses(module)) {
    for (const rule of GLOBAL_RULES) {
      if (!rule.names.includes(name) || inZone(module.path, rule.zone)) continue;
      found.push(violationAt(module, offset, rule.rule, `${name} has no place here; ${rule.fix}`));
    }
  }
  return found;
}

interface Use {
  readonly name: string;
  readonly offset: number;
}

/** Every use of a global in running code, also through `globalThis` and destructuring. */
function globalUses(module: Module): Use[] {
  const own = declaredNames(module.root);
  const uses: Use[] = [];
  walk(module.root, (node, place) => {
    if (place.inType) return;
    for (const name of usedNames(node, place, own)) uses.push({ name, offset: node.start });
  });
  return uses;
}

function usedNames(node: Node, place: Place, own: ReadonlySet<string>): string[] {
  switch (node.type) {
    case "Identifier": {
      const name = isReference(node, place) ? dotted(node, own) : undefined;
      return name === undefined ? [] : [name];
    }
    case "MemberExpression": {
      const name = dotted(node, own);
      return name === undefined ? [] : [name];
    }
    case "NewExpression":
      return dotted(node.callee, own) === "Date" && node.arguments.length === 0 ? ["new Date()"] : [];
    case "CallExpression":
      return dotted(node.callee, own) === "Date" ? ["Date()"] : [];
    case "VariableDeclarator":
      return node.init ? takenOut(node.id, dotted(node.init, own)) : [];
    default:
      return [];
  }
}

/** `const { now } = Date` uses `Date.now`. */
function takenOut(pattern: BindingPattern, from: string | undefined): string[] {
  if (from === undefined || pattern.type !== "ObjectPattern") return [];
  return pattern.properties.flatMap((property) =>
    property.type === "Property" && property.key.type === "Identifier"
      ? [withoutGlobalThis(`${from}.${property.key.name}`)]
      : [],
  );
}

/** `a.b.c` as it is written, if it starts at a global; undefined otherwise. */
function dotted(node: Node, own: ReadonlySet<string>): string | undefined {
  if (node.type === "Identifier") return own.has(node.name) ? undefined : node.name;
  if (node.type === "MetaProperty") return `${node.meta.name}.${node.property.name}`;
  if (node.type !== "MemberExpression") return undefined;
  const object = dotted(node.object, own);
  const property = propertyName(node);
  return object === undefined || property === undefined
    ? undefined
    : withoutGlobalThis(`${object}.${property}`);
}

function propertyName(node: MemberExpression): string | undefined {
  const property: Node = node.property;
  if (!node.computed) return property.type === "Identifier" ? property.name : undefined;
  return property.type === "Literal" && typeof property.value === "string" ? property.value : undefined;
}

function withoutGlobalThis(name: string): string {
  return name.replace(/^(globalThis|global|self|window)\./, "");
}

/** False for names that are only labels of something: properties, keys, members. */
function isReference(node: Node, { parent, key }: Place): boolean {
  if (!parent) return true;
  if (parent.type === "MemberExpression") return key === "object" || parent.computed;
  if (parent.type === "Property" && key === "key") return parent.computed;
  const labelled = ["MethodDefinition", "PropertyDefinition", "AccessorProperty", "TSEnumMember"];
  if (labelled.includes(parent.type)) return key !== "key" && key !== "id";
  const named = [
    "ImportSpecifier",
    "MetaProperty",
    "LabeledStatement",
    "BreakStatement",
    "ContinueStatement",
  ];
  if (named.includes(parent.type)) return false;
  return parent.type !== "ExportSpecifier" || parent.local === node;
}

/** All names that a module declares: they hide the globals of the same name. */
function declaredNames(root: Node): Set<string> {
  const names = new Set<string>();
  walk(root, (node, place) => {
    if (place.inType) return;
    for (const pattern of declaredPatterns(node)) collectBound(pattern, names);
  });
  return names;
}

function declaredPatterns(node: Node): (Node | null | undefined)[] {
  switch (node.type) {
    case "VariableDeclarator":
      return [node.id];
    case "FunctionDeclaration":
    case "FunctionExpression":
      return [node.id, ...node.params];
    case "ArrowFunctionExpression":
      return node.params;
    case "ClassDeclaration":
    case "ClassExpression":
      return [node.id];
    case "CatchClause":
      return [node.param];
    case "ImportSpecifier":
    case "ImportDefaultSpecifier":
    case "ImportNamespaceSpecifier":
      return [node.local];
    default:
      return [];
  }
}

function collectBound(pattern: Node | null | undefined, into: Set<string>): void {
  switch (pattern?.type) {
    case "Identifier":
      into.add(pattern.name);
      return;
    case "ObjectPattern":
      for (const property of pattern.properties) {
        collectBound(property.type === "RestElement" ? property.argument : property.value, into);
      }
      return;
    case "ArrayPattern":
      for (const element of pattern.elements) collectBound(element, into);
      return;
    case "AssignmentPattern":
      collectBound(pattern.left, into);
      return;
    case "RestElement":
      collectBound(pattern.argument, into);
      return;
    case "TSParameterProperty":
      collectBound(pattern.parameter, into);
      return;
    default:
  }
}
