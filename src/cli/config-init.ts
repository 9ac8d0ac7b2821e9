import { existsSync, writeFileSync } from "node:fs";
import { OIDC_EXAMPLE } from "../config/oidc.ts";
import { OPTIONS, type Option } from "../config/options.ts";
import { errorText, StartupError } from "../kernel/errors.ts";
import type { Arguments } from "./arguments.ts";
import { print } from "./output.ts";

/** `ninefold config init PATH`: writes a configuration file with every option at its default. Resolves to the exit code. */
export function configInit(args: Arguments): number {
  const [path = ""] = args.words;
  if (existsSync(path)) throw new StartupError(`${path} exists. Choose another path, or delete it first.`);
  try {
    writeFileSync(path, initialConfig(), { mode: 0o600, flag: "wx" });
  } catch (error) {
    throw new StartupError(`${path} cannot be written (${errorText(error)}).`);
  }
  print(`Wrote ${path}. Start the server with: ninefold serve --config ${path}\n`);
  return 0;
}

/** Every option as a comment, with its default, in sections. */
export function initialConfig(): string {
  const options = OPTIONS.filter(({ name, flagOnly }) => name !== "config" && flagOnly !== true);
  const sections = Map.groupBy(options, ({ section }) => section ?? "");
  const blocks = [...sections].map(([section, members]) => {
    const heading = section === "" ? [] : [`[${section}]`, ""];
    return [...heading, ...members.flatMap(linesOf)].join("\n");
  });
  const title =
    "# Configuration of Ninefold. Every option is at its default: remove the # before one to change it.\n";
  return `${title}\n${blocks.join("\n")}\n${OIDC_EXAMPLE}`;
}

function linesOf({ description, schema, default: value, fileName, placeholder }: Option): string[] {
  const name = fileName.split(".").at(-1) ?? fileName;
  const choices = schema.type === "string" && schema.enum !== undefined ? ` (${schema.enum.join(", ")})` : "";
  const set = schema.type === "table" ? "{}" : JSON.stringify(value);
  const shown = value === null ? `"${placeholder ?? "TEXT"}"` : set;
  return [
    `# ${description}${choices}.${value === null ? " Not set by default." : ""}`,
    `# ${name} = ${shown}`,
    "",
  ];
}
