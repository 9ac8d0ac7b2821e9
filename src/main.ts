import { version } from "../package.json" with { type: "json" };
import { backup } from "./cli/backup.ts";
import { help } from "./cli/help.ts";
import { restore } from "./cli/restore.ts";
import { serve } from "./cli/serve.ts";
import { verify } from "./cli/verify.ts";
import { errorText, StartupError } from "./kernel/errors.ts";

async function main(args: readonly string[]): Promise<number> {
  const [command, ...rest] = args;
  if (command === undefined || command === "--help" || command === "help" || rest.includes("--help")) {
    process.stdout.write(help());
    return command === undefined ? 2 : 0;
  }
  if (command === "version" || command === "--version") {
    process.stdout.write(`${version}\n`);
    return 0;
  }
  if (command === "serve") return serve(rest);
  if (command === "verify") return verify(rest);
  if (command === "backup") return backup(rest);
  if (command === "restore") return restore(rest);
  process.stderr.write(`ninefold: there is no command "${command}". Try ninefold --help.\n`);
  return 2;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const text = error instanceof StartupError ? error.message : errorText(error);
  process.stderr.write(`ninefold: ${text}\n`);
  process.exitCode = 1;
}
// Timers and sockets that are still open are no reason to stay: everything durable has been written.
process.exit();
