import { flagsGiven } from "../config/sources.ts";
import { resolveConfig, type Setting } from "../config.ts";
import type { Arguments } from "./arguments.ts";
import { printJson, printTable } from "./output.ts";

/** `ninefold config print`. Resolves to the exit code. */
export function configPrint(args: Arguments): number {
  const { settings } = resolveConfig(serveFlags(args));
  if (args.has("--json")) printJson({ settings });
  else {
    const rows = settings.map(({ name, value, source, origin }) => [
      name,
      textOf(value),
      originOf(source, origin),
    ]);
    printTable([["setting", "value", "from"], ...rows]);
  }
  return 0;
}

/** The flags of serve among those of the command: `--json` belongs to the command itself. */
export function serveFlags({ line }: Arguments): ReturnType<typeof flagsGiven> {
  const values = new Map(line.values);
  values.delete("--json");
  return flagsGiven({ values });
}

function textOf(value: Setting["value"]): string {
  if (value === null || (Array.isArray(value) && value.length === 0)) return "-";
  return Array.isArray(value) ? value.join(",") : String(value);
}

function originOf(source: Setting["source"], origin: string | null): string {
  if (origin === null) return source;
  return source === "flag" ? `flag ${origin}` : source === "file" ? `file ${origin}` : `variable ${origin}`;
}
