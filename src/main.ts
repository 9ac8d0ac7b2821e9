import { type Arguments, readArguments } from "./cli/arguments.ts";
import { useUsualJitPolicy } from "./cli/jit-policy.ts";
import { BrokenPipe, print, printError } from "./cli/output.ts";
import { type CommandName, commandAt, HELP_OPTION } from "./cli/table.ts";
import { UsageError } from "./config/command-line.ts";
import { errorText, StartupError } from "./kernel/errors.ts";

/** Runs a command with its arguments. Resolves to the exit code. */
type Run = (args: Arguments) => number | Promise<number>;

/** The code of a command is loaded only when it is called. */
const LOADERS: Readonly<Record<CommandName, () => Promise<Run>>> = {
  serve: async () => (await import("./cli/serve.ts")).serve,
  plan: async () => (await import("./cli/configuration.ts")).plan,
  apply: async () => (await import("./cli/configuration.ts")).apply,
  export: async () => (await import("./cli/configuration.ts")).exportConfiguration,
  "import convoy": async () => (await import("./cli/import.ts")).importConvoyFile,
  "import flagd": async () => (await import("./cli/import.ts")).importFlagdFile,
  "import healthchecks": async () => (await import("./cli/import.ts")).importHealthchecksProject,
  "import hookdeck": async () => (await import("./cli/import.ts")).importHookdeckFile,
  "import kuma": async () => (await import("./cli/import.ts")).importKumaFile,
  "import qstash": async () => (await import("./cli/import.ts")).importQstashFile,
  "import statuspage": async () => (await import("./cli/import.ts")).importStatuspageFiles,
  "import svix": async () => (await import("./cli/import.ts")).importSvixFile,
  probe: async () => (await import("./cli/probe/probe.ts")).probe,
  ping: async () => (await import("./cli/wrapped/ping.ts")).ping,
  lock: async () => (await import("./cli/wrapped/lock.ts")).lock,
  login: async () => (await import("./cli/login.ts")).login,
  logout: async () => (await import("./cli/login.ts")).logout,
  "account create": async () => (await import("./cli/account.ts")).accountCreate,
  "account list": async () => (await import("./cli/account.ts")).accountList,
  "account set": async () => (await import("./cli/account.ts")).accountSet,
  "account export": async () => (await import("./cli/account.ts")).accountExport,
  "account delete": async () => (await import("./cli/account.ts")).accountDelete,
  "account reset-key": async () => (await import("./cli/account.ts")).accountResetKey,
  "key create": async () => (await import("./cli/key.ts")).keyCreate,
  "key list": async () => (await import("./cli/key.ts")).keyList,
  "key revoke": async () => (await import("./cli/key.ts")).keyRevoke,
  "key import": async () => (await import("./cli/key-import.ts")).keyImport,
  "page subscribers import": async () => (await import("./cli/page.ts")).pageSubscribersImport,
  "people list": async () => (await import("./cli/people.ts")).peopleList,
  "people invite": async () => (await import("./cli/people.ts")).peopleInvite,
  "people disable": async () => (await import("./cli/people.ts")).peopleDisable,
  "people login-link": async () => (await import("./cli/people.ts")).peopleLoginLink,
  audit: async () => (await import("./cli/audit.ts")).audit,
  "bucket list": async () => (await import("./cli/lists.ts")).bucketList,
  "catch export": async () => (await import("./cli/catch.ts")).catchExport,
  "channel list": async () => (await import("./cli/lists.ts")).channelList,
  "event-types import": async () => (await import("./cli/event-types.ts")).eventTypesImport,
  listen: async () => (await import("./cli/listen/listen.ts")).listen,
  "monitor list": async () => (await import("./cli/lists.ts")).monitorList,
  "monitor pings": async () => (await import("./cli/lists.ts")).monitorPings,
  "notary accept-fork": async () => (await import("./cli/notary.ts")).notaryAcceptFork,
  "notary export": async () => (await import("./cli/notary.ts")).notaryExport,
  dashboard: async () => (await import("./cli/dashboard.ts")).dashboard,
  verify: async () => (await import("./cli/verify.ts")).verify,
  "verify-signature": async () => (await import("./cli/verify-signature.ts")).verifySignature,
  backup: async () => (await import("./cli/backup.ts")).backup,
  restore: async () => (await import("./cli/restore.ts")).restore,
  "archive status": async () => (await import("./cli/archive.ts")).archiveStatus,
  "archive verify": async () => (await import("./cli/archive.ts")).archiveVerify,

  "cluster status": async () => (await import("./cli/cluster.ts")).clusterStatus,
  "cluster forget": async () => (await import("./cli/cluster.ts")).clusterForget,
  "cluster hand-over": async () => (await import("./cli/cluster.ts")).clusterHandOver,
  "cluster reset-log": async () => (await import("./cli/cluster.ts")).clusterResetLog,
  doctor: async () => (await import("./cli/doctor.ts")).doctor,
  "config print": async () => (await import("./cli/config-print.ts")).configPrint,
  "config init": async () => (await import("./cli/config-init.ts")).configInit,
  "config schema": async () => (await import("./cli/configuration.ts")).configSchema,
  openapi: async () => (await import("./cli/openapi.ts")).openapi,
  healthcheck: async () => (await import("./cli/healthcheck.ts")).healthcheck,
  version: async () => (await import("./cli/version.ts")).printVersion,
  upgrade: async () => (await import("./cli/upgrade/upgrade.ts")).upgrade,
  licenses: async () => (await import("./cli/licenses.ts")).printLicenses,

  completions: async () => (await import("./cli/completions.ts")).completions,
  help: async () => (args) => printHelp(args.words),
};

/** Failure. */
const EXIT_FAILURE = 1;
/** Invalid command line. */
const EXIT_USAGE = 2;
/** Commands whose exit code 2 has another meaning, or whose only other one is 1. */
const EXITS_WITH_FAILURE: ReadonlySet<string> = new Set(["plan", "apply"]);
/** The reader of the output closed it: the code of a program that SIGPIPE ends. */
const EXIT_BROKEN_PIPE = 141;

async function main(args: readonly string[]): Promise<number> {
  const [first, ...others] = args;
  // Called by shell completions.
  if (first === "__complete") {
    print((await import("./cli/completions.ts")).completionLines(others));
    return 0;
  }
  if (first === undefined) {
    print((await import("./cli/help.ts")).overview());
    return EXIT_USAGE;
  }
  const words = first === "--version" || first === "-V" ? ["version", ...others] : args;
  const command = commandAt(words);
  const rest = words.slice(command === null ? 0 : command.name.split(" ").length);
  if (asksForHelp(rest))
    return printHelp(command?.name.split(" ") ?? rest.filter((arg) => !arg.startsWith("-")));
  if (command === null) throw (await import("./cli/help.ts")).unknownCommand(words);
  // A server begins with it once it is ready.
  if (command.name !== "serve") useUsualJitPolicy();
  const run = await LOADERS[command.name as CommandName]();
  return run(readArguments(command, rest));
}

function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  const options = end < 0 ? args : args.slice(0, end);
  return options.includes(HELP_OPTION.flag) || options.includes("-h");
}

async function printHelp(words: readonly string[]): Promise<number> {
  print((await import("./cli/help.ts")).helpFor(words));
  return 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (error instanceof BrokenPipe) process.exitCode = EXIT_BROKEN_PIPE;
  else {
    printError(`ninefold: ${error instanceof StartupError ? error.message : errorText(error)}`);
    const isUsage = error instanceof UsageError && !EXITS_WITH_FAILURE.has(process.argv[2] ?? "");
    process.exitCode = isUsage ? EXIT_USAGE : EXIT_FAILURE;
  }
}
// Open timers and sockets do not keep the process alive: everything durable has been written.
process.exit();
