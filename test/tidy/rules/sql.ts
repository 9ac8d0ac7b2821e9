import type { Node } from "oxc-parser";
import { type Module, type Violation, violationAt, walk } from "./model.ts";
import { inZone, SQL_TEXT } from "./zones.ts";

/** Rule 3: SQL text only in stores and the kernel. */
export function checkSqlText(module: Module): Violation[] {
  if (!module.path.startsWith("src/") || inZone(module.path, SQL_TEXT)) return [];
  const found: Violation[] = [];
  walk(module.root, (node, place) => {
    const text = place.inType ? undefined : stringOf(node);
    if (text === undefined || !isSql(text)) return;
    found.push(
      violationAt(
        module,
        node.start,
        "sql-zone",
        "SQL text outside a store; move the query to the area's store.ts",
      ),
    );
  });
  return found;
}

function stringOf(node: Node): string | undefined {
  if (node.type === "Literal") return typeof node.value === "string" ? node.value : undefined;
  if (node.type !== "TemplateLiteral") return undefined;
  return node.quasis.map((quasi) => quasi.value.cooked ?? quasi.value.raw).join(" x ");
}

const NAME = String.raw`["'\`\[]?\w[\w.]*["'\`\]]?`;
const NEXT_CLAUSE = String.raw`(as|where|join|left|inner|cross|natural|order|group|limit|union|indexed|not)\b`;
const TABLE = String.raw`(\(|${NAME}\s*($|[,;()]|\b${NEXT_CLAUSE})|${NAME}\s+\w+\s*(,|\b${NEXT_CLAUSE}))`;

/**
 * The beginnings of SQL statements, with enough after the keyword to distinguish them from prose ("Select a plan from
 * the list" is not a query).
 */
const STATEMENTS = [
  String.raw`select\s[\s\S]*?\sfrom\s+${TABLE}`,
  String.raw`select\s+(\d+|[\w.]+\([^)]*\))\s*(;|,|$|as\b)`,
  String.raw`with\s+(recursive\s+)?${NAME}\s*(\([^)]*\)\s*)?as\s+(materialized\s+|not\s+materialized\s+)?\(`,
  String.raw`(insert(\s+or\s+\w+)?|replace)\s+into\s+${NAME}\s*(\(|select\b|values\b|default\s+values\b|as\b)`,
  String.raw`update\s+(or\s+\w+\s+)?${NAME}\s+set\s+${NAME}\s*=`,
  String.raw`delete\s+from\s+${NAME}\s*($|;|where\b|returning\b)`,
  String.raw`create\s+(temp(orary)?\s+)?(unique\s+index|index|table|view|trigger|virtual\s+table)\s+\w+[\s\S]*\(`,
  String.raw`(alter|drop)\s+(table|index|view|trigger)\s+(if\s+exists\s+)?${NAME}\s*($|;|add\b|drop\b|rename\b)`,
  String.raw`pragma\s+${NAME}\s*($|;|=|\()`,
  String.raw`begin\s+(immediate|exclusive|deferred|transaction)\b`,
  String.raw`(savepoint|release|rollback\s+to)\s+${NAME}\s*;?$`,
  String.raw`(vacuum|vacuum\s+into\s[\s\S]*|reindex|commit|rollback)\s*;?$`,
  String.raw`attach\s+(database\s+)?\S+\s+as\s`,
];

const SQL = new RegExp(String.raw`^\s*(${STATEMENTS.join("|")})`, "i");

/** A single word such as "commit" is also an ordinary string, so single words count only in capitals. */
function isSql(text: string): boolean {
  if (!SQL.test(text)) return false;
  return /\s/.test(text.trim()) || text === text.toUpperCase();
}
