import licenses from "../../build/licenses/licenses.txt" with { type: "file" };
import type { Arguments } from "./arguments.ts";
import { print } from "./output.ts";

/** A part of the executable and its licence. */
interface License {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  readonly text: string;
}

/** `ninefold licenses`: prints the licences of everything that the executable contains. Resolves to the exit code. */
export async function printLicenses(args: Arguments): Promise<number> {
  const parts = (await Bun.file(licenses).json()) as readonly License[];
  if (args.has("--json")) {
    print(`${JSON.stringify(parts)}\n`);
    return 0;
  }
  const width = Math.max(...parts.map((part) => titleOf(part).length));
  const list = parts.map((part) => `${titleOf(part).padEnd(width)}  ${part.license}\n`);
  const texts = parts.map((part) => `\n${RULE}\n${titleOf(part)}\n\n${part.text}\n`);
  print(`${list.join("")}${texts.join("")}`);
  return 0;
}

const RULE = "-".repeat(78);

function titleOf({ name, version }: License): string {
  return `${name} ${version}`;
}
