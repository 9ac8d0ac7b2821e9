import { OPTIONS } from "../config/options.ts";
import { TIER_NAMES } from "../kernel/limits/tiers.ts";

/** A positional argument of a command. */
export interface ArgumentSpec {
  /** As shown in the usage line; shells complete `FILE` and `FOLDER`. */
  readonly name: string;
  readonly help: string;
  readonly choices?: readonly string[];
  readonly optional?: boolean;
}

/** An option of a command. */
export interface CommandOption {
  /** With its dashes. */
  readonly flag: string;
  /** Stands for the value in the usage line; absent for an option without a value. */
  readonly placeholder?: string;
  readonly help: string;
  readonly choices?: readonly string[];
  /** Can be given several times; all values are used. */
  readonly repeatable?: boolean;
}

/** A command: the source of help, usage errors, completions and the test of the documentation. */
export interface CommandSpec {
  /** One or two words, such as `account create`. */
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** Further help, in lines of at most 100 characters. */
  readonly details?: string;
  readonly arguments: readonly ArgumentSpec[];
  readonly options: readonly CommandOption[];
  /** Environment variables that it reads, and their meaning. */
  readonly variables: readonly (readonly [name: string, help: string])[];
  readonly example: string;
}

export const HELP_OPTION = { flag: "--help", help: "Print this text" } as const satisfies CommandOption;

const JSON_OPTION = { flag: "--json", help: "Print JSON, for programs" } as const satisfies CommandOption;

function option(flag: string, placeholder: string, help: string): CommandOption {
  return { flag, placeholder, help };
}

function choice(flag: string, choices: readonly string[], help: string): CommandOption {
  return { flag, placeholder: choices.join("|"), choices, help };
}

/** The options of `serve`, from the table of settings. */
const SERVE_OPTIONS: readonly CommandOption[] = OPTIONS.flatMap(({ flag, placeholder, help, schema }) => {
  if (flag === null) return [];
  const choices = schema.type === "string" ? schema.enum : undefined;
  return [{ flag, help, ...(placeholder && { placeholder }), ...(choices && { choices }) }];
});

/** Options of commands that read a server's configuration: there, `--json` refers to their own output. */
const CONFIG_OPTIONS: readonly CommandOption[] = [
  ...SERVE_OPTIONS.filter(({ flag }) => flag !== JSON_OPTION.flag),
  JSON_OPTION,
];

/** How `account` and `key` connect to a server. */
const API_OPTIONS: readonly CommandOption[] = [
  option("--url", "URL", "URL of the running server (http://127.0.0.1:9909)"),
  option("--data", "FOLDER", "Use the data folder of a stopped server instead, as its operator"),
  option("--config", "FILE", "Configuration file of the stopped server, with --data"),
  JSON_OPTION,
];

/** Options and variables of commands that only call the API. */
const API_CALL = {
  options: API_OPTIONS,
  variables: [
    ["NINEFOLD_API_KEY", "API key"],
    ["NINEFOLD_API_KEY_FILE", "File that contains the API key"],
    ["NINEFOLD_URL", "Same as --url"],
  ],
} as const;

const FOLDER_OPTIONS: readonly CommandOption[] = SERVE_OPTIONS.filter(({ flag }) =>
  ["--data", "--config"].includes(flag),
);

const USER = { name: "USER", help: "The account's user_id or e-mail address" } as const;

const DECLARED = [
  {
    name: "serve",
    summary: "Run the server",
    details:
      "Every option except --accept-damaged-log can also be set in the environment (such as NINEFOLD_PORT) or\n" +
      "in the configuration file (such as port = 9909). Flags take precedence over the environment, and the\n" +
      "environment over the file. Secrets can be read from a file named by NINEFOLD_…_FILE.",
    options: SERVE_OPTIONS,
    variables: OPTIONS.flatMap(({ flag, variable, help }) =>
      flag === null ? [[variable, help] as const] : [],
    ),
    example: "ninefold serve --port 8080 --data /var/lib/ninefold",
  },
  {
    name: "account create",
    summary: "Create an account and print its API key",
    arguments: [{ name: "EMAIL", help: "The account's e-mail address" }],
    ...API_CALL,
    options: [
      choice("--tier", TIER_NAMES, "Tier (free)"),
      option("--balance", "CREDITS", "Initial balance (the monthly credits of the tier)"),
      ...API_OPTIONS,
    ],
    example: "ninefold account create ada@example.com --tier pro",
  },
  {
    name: "account list",
    summary: "List all accounts, newest first",
    ...API_CALL,
    example: "ninefold account list",
  },
  {
    name: "account set",
    summary: "Change e-mail address, tier, balance or suspension of an account",
    arguments: [USER],
    ...API_CALL,
    options: [
      option("--email", "ADDRESS", "New e-mail address"),
      choice("--tier", TIER_NAMES, "New tier"),
      option("--balance", "CREDITS", "New balance"),
      choice("--suspended", ["true", "false"], "Whether the account is suspended"),
      ...API_OPTIONS,
    ],
    example: "ninefold account set ada@example.com --suspended true",
  },
  {
    name: "account reset-key",
    summary: "Revoke all platform keys of an account and print a new one",
    details:
      "Use it for a key that has leaked or is lost. Managed keys stay valid. With --data no key is needed, so the\n" +
      "operator's own key can be reset, too (operator@localhost, unless --operator-email has set another address).",
    arguments: [USER],
    ...API_CALL,
    example: "ninefold account reset-key ada@example.com",
  },
  {
    name: "key create",
    summary: "Create a key and print its secret",
    details:
      "Without options, the key belongs to the calling account and has every scope. If the operator's key is lost,\n" +
      "stop the server and use --data.",
    ...API_CALL,
    options: [
      option("--name", "NAME", "Name (command line)"),
      option("--prefix", "PREFIX", "Prefix of the secret; a key with the prefix sm can call this API (sm)"),
      { ...option("--scope", "SCOPE", "Scope; repeatable (*)"), repeatable: true },
      option("--project", "PROJECT", "Limit the key to the project with this id"),
      option("--environment", "TEXT", "Environment, such as live or test"),
      option("--expires-at", "TIME", "Expiry, such as 2030-01-31T12:00:00Z (never)"),
      ...API_OPTIONS,
    ],
    example: "ninefold key create --name backups --scope 'meter:read' --scope 'witness:read'",
  },
  {
    name: "key list",
    summary: "List the calling account's keys, newest first",
    ...API_CALL,
    example: "ninefold key list --json",
  },
  {
    name: "key revoke",
    summary: "Revoke a key immediately",
    arguments: [{ name: "KEY_ID", help: "Id of the key, as printed by key list" }],
    ...API_CALL,
    example: "ninefold key revoke 0197a3b2-5c1e-7f00-8a9b-0c1d2e3f4a5b",
  },
  {
    name: "audit",
    summary: "Print the audit log, newest last",
    details:
      "Prints the last 100 entries of the calling account. With --all (operator only), prints those of all accounts\n" +
      "and of the server itself. With --json, prints one entry per line.",
    ...API_CALL,
    options: [
      { flag: "--all", help: "Entries of all accounts (operator only)" },
      { flag: "--follow", help: "Continue with new entries until interrupted" },
      ...API_OPTIONS,
    ],
    example: "ninefold audit --follow",
  },
  {
    name: "catch export",
    summary: "Print the events of a bucket, oldest first",
    details:
      "Prints one JSON object per line, like GET /v1/catch/{bucket_id}/events/export, including events received\n" +
      "meanwhile. If it fails, the exit code is 1; the lines printed so far are complete.",
    arguments: [{ name: "BUCKET", help: "Id of the bucket" }],
    ...API_CALL,
    options: [
      option("--since", "TIME", "Only events received at or after this time, such as 2026-01-31T12:00:00Z"),
      option("--until", "TIME", "Only events received before this time"),
      ...API_OPTIONS.filter((one) => one !== JSON_OPTION),
    ],
    example: "ninefold catch export brave-otter-314159 > events.jsonl",
  },
  {
    name: "listen",
    summary: "Forward a bucket's events to a local server",
    details:
      "For machines that cannot be reached from outside. Events are forwarded unchanged, including their signature,\n" +
      "one at a time and in order. Without --forward-to they are only printed. Lost connections are retried forever.",
    arguments: [{ name: "BUCKET", optional: true, help: "Id of the bucket; omit it with --create" }],
    ...API_CALL,
    options: [
      option("--forward-to", "URL", "URL of the local server, such as http://localhost:3000/hook"),
      { flag: "--keep-path", help: "Append the path and query of the event to the URL" },
      option("--after", "EVENT", "Start after this event id, or at now or beginning (now)"),
      option("--resume", "FILE", "Store the position in this file, and continue from it"),
      { flag: "--ack", help: "Report results to the bucket (delivery must be pull)" },
      option("--once", "N", "Exit after N events, with code 1 if one of them failed"),
      option("--event-type", "TYPE", "Only events of this type"),
      { flag: "--skip-invalid", help: "Skip events with an invalid signature" },
      {
        ...option("--header", "HEADER", "Additional header, such as 'X-Tenant: acme'; repeatable"),
        repeatable: true,
      },
      option("--timeout", "SECONDS", "Timeout of a response (30)"),
      choice("--print", ["none", "headers", "body"], "Additional parts of an event to print (none)"),
      { flag: "--create", help: "Create a temporary bucket and delete it at exit" },
      option("--url", "URL", "URL of the running server (http://127.0.0.1:9909)"),
      JSON_OPTION,
    ],
    example: "ninefold listen brave-otter-314159 --forward-to http://localhost:3000/hook",
  },
  {
    name: "dashboard",
    summary: "Print a single-use link that logs in a browser",
    details:
      "The link is valid for 30 minutes and has the scopes of the calling key, which must be the operator's.",
    ...API_CALL,
    example: "ninefold dashboard",
  },
  {
    name: "verify",
    summary: "Verify receipts of the notary without a server",
    details:
      "FILE contains one receipt, or a chain as JSON lines in ascending order. The exit code is 0 if everything is valid.",
    arguments: [{ name: "FILE", help: "File with the receipts" }],
    options: [option("--public-key", "X", "Expected public key of the chain")],
    example: "ninefold verify receipts.jsonl",
  },
  {
    name: "backup",
    summary: "Back up the database, whether the server is running or not",
    details:
      "FILE is created completely or not at all, and is readable only by its owner. It does not contain master.key:\n" +
      "store that separately. If verification fails, the exit code is 1 and FILE is not created.",
    arguments: [{ name: "FILE", help: "File of the backup" }],
    options: [
      { flag: "--verify", help: "Verify the copy: integrity, every ledger, every notary chain" },
      { flag: "--force", help: "Replace an existing FILE" },
      ...FOLDER_OPTIONS,
    ],
    example: "ninefold backup /mnt/backups/ninefold.db --verify --data /var/lib/ninefold",
  },
  {
    name: "restore",
    summary: "Restore a backup while the server is stopped",
    details:
      "FILE is verified before anything is changed. Prints the effects on locks, keys, deliveries and notary chains,\n" +
      "and what is still needed to start the server.",
    arguments: [{ name: "FILE", help: "File of the backup" }],
    options: [
      { flag: "--force", help: "Replace an existing database, which is kept under another name" },
      ...FOLDER_OPTIONS,
    ],
    example: "ninefold restore /mnt/backups/ninefold.db --data /var/lib/ninefold",
  },
  {
    name: "doctor",
    summary: "Check whether a server can run here, and print how to fix problems",
    details: "Takes the options, variables and configuration file of serve, and changes nothing.",
    options: [...CONFIG_OPTIONS, option("--dns-name", "NAME", "Name for the DNS check (example.com)")],
    example: "ninefold doctor --config /etc/ninefold.toml",
  },
  {
    name: "config print",
    summary: "Print every setting and its source",
    details: "Takes the options, variables and configuration file of serve. Secrets are masked.",
    options: CONFIG_OPTIONS,
    example: "ninefold config print --config /etc/ninefold.toml",
  },
  {
    name: "openapi",
    summary: "Print the OpenAPI document of the API",
    example: "ninefold openapi > openapi.json",
  },
  {
    name: "healthcheck",
    summary: "Check whether a server is ready",
    details:
      "The exit code is 0 if it is ready, else 1, as for Docker's HEALTHCHECK. Without --url, checks the server that\n" +
      "the environment configures (NINEFOLD_PORT, NINEFOLD_HOST, NINEFOLD_TLS_CERT, NINEFOLD_CONFIG).",
    options: [
      option("--url", "URL", "URL of the server (the one that the environment configures)"),
      { flag: "--live", help: "Check liveness (/healthz) instead of readiness (/readyz)" },
      option("--timeout", "SECONDS", "Timeout (5)"),
    ],
    variables: [
      ["NINEFOLD_URL", "Same as --url"],
      ["NINEFOLD_API_KEY", "The operator's key, for a server on another machine"],
      ["NINEFOLD_API_KEY_FILE", "File that contains the API key"],
    ],
    example: "ninefold healthcheck --timeout 2",
  },
  {
    name: "version",
    summary: "Print the version",
    example: "ninefold version",
  },
  {
    name: "completions",
    summary: "Print shell completions",
    details:
      "bash: add `source <(ninefold completions bash)` to ~/.bashrc.\n" +
      "zsh: write ninefold completions zsh to a file _ninefold in a folder of $fpath.\n" +
      "fish: ninefold completions fish > ~/.config/fish/completions/ninefold.fish.",
    arguments: [{ name: "SHELL", choices: ["bash", "zsh", "fish"], help: "bash, zsh or fish" }],
    example: "ninefold completions bash",
  },
  {
    name: "help",
    summary: "Print help for a command",
    arguments: [
      { name: "COMMAND", optional: true, help: "A command, such as serve" },
      { name: "SUBCOMMAND", optional: true, help: "Its subcommand, such as create" },
    ],
    example: "ninefold help account create",
  },
] as const satisfies readonly (Pick<CommandSpec, "name" | "summary" | "example"> & Partial<CommandSpec>)[];

export type CommandName = (typeof DECLARED)[number]["name"];

/** Every command, in the order of the help. */
export const COMMANDS: readonly CommandSpec[] = DECLARED.map((command) => ({
  arguments: [],
  options: [],
  variables: [],
  ...command,
}));

export function commandNamed(name: CommandName): CommandSpec {
  const found = COMMANDS.find((command) => command.name === name);
  if (found === undefined) throw new Error(`no command ${name}`);
  return found;
}

/** The command named by the first one or two words; null if there is none. */
export function commandAt([first = "", second = ""]: readonly string[]): CommandSpec | null {
  const named = (name: string) => COMMANDS.find((command) => command.name === name);
  return named(first) ?? named(`${first} ${second}`) ?? null;
}

/** A word that completes a command line, with its summary. */
export interface Word {
  readonly word: string;
  readonly summary: string;
}

/** The words that can follow `ninefold`. */
export function firstWords(): readonly Word[] {
  const named = Map.groupBy(COMMANDS, ({ name }) => name.split(" ")[0] ?? name);
  return [...named].map(([word, commands]) => ({
    word,
    summary: commands
      .map(({ name, summary }) => (name === word ? summary : name.slice(word.length + 1)))
      .join(", "),
  }));
}

/** The subcommands of a group such as `account`; empty for any other word. */
export function commandsOf(group: string): readonly Word[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${group} `)).map(({ name, summary }) => ({
    word: name.slice(group.length + 1),
    summary,
  }));
}
