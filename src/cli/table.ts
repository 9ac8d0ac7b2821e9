import { OPTIONS } from "../config/options.ts";
import { TIER_NAMES } from "../kernel/tiers.ts";

/** A word that a command takes, in its place. */
export interface ArgumentSpec {
  /** As it stands in the usage line; shells complete a `FILE` and a `FOLDER`. */
  readonly name: string;
  readonly help: string;
  readonly choices?: readonly string[];
  readonly optional?: boolean;
}

/** An option of a command. */
export interface CommandOption {
  /** With its dashes. */
  readonly flag: string;
  /** What stands for the value, as the name of an argument does; none for an option that takes none. */
  readonly placeholder?: string;
  readonly help: string;
  readonly choices?: readonly string[];
  /** May be given several times, and all of them count. */
  readonly repeatable?: boolean;
}

/** A command: what help, usage errors, completions and the documentation's test are made of. */
export interface CommandSpec {
  /** Its words: `account create`. */
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** What else there is to know, in lines of at most 100 characters. */
  readonly details?: string;
  readonly arguments: readonly ArgumentSpec[];
  readonly options: readonly CommandOption[];
  /** What it reads of the environment, and what for. */
  readonly variables: readonly (readonly [name: string, help: string])[];
  readonly example: string;
}

/** What `--help` is, for every command. */
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

/** What commands take that look at a server's configuration: for them, `--json` is about their own output. */
const CONFIG_OPTIONS: readonly CommandOption[] = [
  ...SERVE_OPTIONS.filter(({ flag }) => flag !== JSON_OPTION.flag),
  JSON_OPTION,
];

/** How `account` and `key` reach a server. */
const API_OPTIONS: readonly CommandOption[] = [
  option("--url", "URL", "The running server (http://127.0.0.1:9909)"),
  option("--data", "FOLDER", "Work on the folder of a stopped server instead, as its operator"),
  option("--config", "FILE", "Configuration file of the stopped server, with --data"),
  JSON_OPTION,
];

/** What commands take that do nothing but call the API. */
const API_CALL = {
  options: API_OPTIONS,
  variables: [
    ["NINEFOLD_API_KEY", "The key to call with"],
    ["NINEFOLD_API_KEY_FILE", "A file that holds it"],
    ["NINEFOLD_URL", "As --url"],
  ],
} as const;

/** Where a command finds the data folder. */
const FOLDER_OPTIONS: readonly CommandOption[] = SERVE_OPTIONS.filter(({ flag }) =>
  ["--data", "--config"].includes(flag),
);

const USER = { name: "USER", help: "The account's user_id or e-mail address" } as const;

const DECLARED = [
  {
    name: "serve",
    summary: "Run the server",
    details:
      "Every option but --accept-damaged-log can also be set as NINEFOLD_… in the environment (such as\n" +
      "NINEFOLD_PORT) or in the configuration file (such as port = 9909). Flags win over the environment,\n" +
      "the environment over the file. Secrets can be read from a file named by NINEFOLD_…_FILE.",
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
      choice("--tier", TIER_NAMES, "Its tier (free)"),
      option("--balance", "CREDITS", "Its credits (the tier's monthly credits)"),
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
      option("--email", "ADDRESS", "Its new e-mail address"),
      choice("--tier", TIER_NAMES, "Its new tier"),
      option("--balance", "CREDITS", "Its new balance"),
      choice("--suspended", ["true", "false"], "Whether its keys are refused"),
      ...API_OPTIONS,
    ],
    example: "ninefold account set ada@example.com --suspended true",
  },
  {
    name: "account reset-key",
    summary: "End all platform keys of an account at once and print a new one",
    details:
      "For a key that has leaked or is lost; managed keys stay. With --data no key is needed, so the operator's\n" +
      "own can be reset, too: its e-mail address is operator@localhost, unless --operator-email has set another.",
    arguments: [USER],
    ...API_CALL,
    example: "ninefold account reset-key ada@example.com",
  },
  {
    name: "key create",
    summary: "Create a key and print its secret",
    details:
      "Without options: a key of the calling account with every scope. With --data this is the way back in for\n" +
      "an operator whose key is lost.",
    ...API_CALL,
    options: [
      option("--name", "NAME", "What it is for (command line)"),
      option("--prefix", "PREFIX", "What the secret begins with; sm calls this API (sm)"),
      { ...option("--scope", "SCOPE", "A scope, as often as needed (*)"), repeatable: true },
      option("--project", "PROJECT", "The id of the only project that it works in"),
      option("--environment", "TEXT", "Such as live or test"),
      option("--expires-at", "TIME", "When it ends, such as 2030-01-31T12:00:00Z (never)"),
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
    summary: "Revoke a key at once",
    arguments: [{ name: "KEY_ID", help: "The key's id, as key list prints it" }],
    ...API_CALL,
    example: "ninefold key revoke 0197a3b2-5c1e-7f00-8a9b-0c1d2e3f4a5b",
  },
  {
    name: "audit",
    summary: "Print who changed what, the newest last",
    details:
      "The last 100 entries of the calling account's log; with --all of all accounts, and what the server did by\n" +
      "itself, for the operator. With --json one entry a line.",
    ...API_CALL,
    options: [
      { flag: "--all", help: "Of all accounts, for the operator" },
      { flag: "--follow", help: "Go on with what comes, until it is interrupted" },
      ...API_OPTIONS,
    ],
    example: "ninefold audit --follow",
  },
  {
    name: "catch export",
    summary: "Print the events of a bucket, the oldest first",
    details:
      "Whole, one JSON object a line, as GET /v1/catch/{bucket_id}/events/export has them. What comes in meanwhile is\n" +
      "printed too. Exit code 1 when it ends early: what was printed until then are whole lines.",
    arguments: [{ name: "BUCKET", help: "The bucket's id" }],
    ...API_CALL,
    options: [
      option("--since", "TIME", "Only those received then or later, such as 2026-01-31T12:00:00Z"),
      option("--until", "TIME", "Only those received before then"),
      ...API_OPTIONS.filter((one) => one !== JSON_OPTION),
    ],
    example: "ninefold catch export brave-otter-314159 > events.jsonl",
  },
  {
    name: "listen",
    summary: "Hand what comes into a bucket to a program on this machine",
    details:
      "For machines that nobody can send to. Each event goes out as it came, its signature included, one at a time and\n" +
      "in order; without --forward-to it is only printed. A lost connection is tried again for ever.",
    arguments: [{ name: "BUCKET", optional: true, help: "The bucket's id; none with --create" }],
    ...API_CALL,
    options: [
      option("--forward-to", "URL", "Where to, such as http://localhost:3000/hook"),
      { flag: "--keep-path", help: "Put an event's own path and query behind those of the URL" },
      option("--after", "EVENT", "Begin after this event, or at now or beginning (now)"),
      option("--resume", "FILE", "Keep there how far it came, and go on from there"),
      { flag: "--ack", help: "Report results to the bucket, whose delivery must be pull" },
      option("--once", "N", "End after N events; exit code 1 when one of them failed"),
      option("--event-type", "TYPE", "Only events of this type"),
      { flag: "--skip-invalid", help: "Pass over events whose signature does not hold" },
      { ...option("--header", "HEADER", "Send it along, such as 'X-Tenant: acme'"), repeatable: true },
      option("--timeout", "SECONDS", "How long an answer may take (30)"),
      choice("--print", ["none", "headers", "body"], "What else is printed of an event (none)"),
      { flag: "--create", help: "Make a bucket for this session, and delete it at its end" },
      option("--url", "URL", "The running server (http://127.0.0.1:9909)"),
      JSON_OPTION,
    ],
    example: "ninefold listen brave-otter-314159 --forward-to http://localhost:3000/hook",
  },
  {
    name: "dashboard",
    summary: "Print a link that logs a browser in, once",
    details: "It works for 30 minutes, with the scopes of the calling key: the operator's.",
    ...API_CALL,
    example: "ninefold dashboard",
  },
  {
    name: "verify",
    summary: "Check a receipt, or a chain of them, without a server",
    details:
      "FILE holds one receipt, or a chain as JSON lines in ascending order. Exit code 0: all of it holds.",
    arguments: [{ name: "FILE", help: "The receipts" }],
    options: [option("--public-key", "X", "The chain's public key, as it must be")],
    example: "ninefold verify receipts.jsonl",
  },
  {
    name: "backup",
    summary: "Copy the database into a file, while the server runs or not",
    details:
      "FILE appears whole or not at all, and is readable by its owner alone. It does not hold master.key: keep that\n" +
      "somewhere else. Exit code 1 when something that was verified does not hold; there is no FILE then.",
    arguments: [{ name: "FILE", help: "The backup" }],
    options: [
      { flag: "--verify", help: "Check the copy: SQLite's own check, every ledger, every notary chain" },
      { flag: "--force", help: "Replace FILE if it is there" },
      ...FOLDER_OPTIONS,
    ],
    example: "ninefold backup /mnt/backups/ninefold.db --verify --data /var/lib/ninefold",
  },
  {
    name: "restore",
    summary: "Put a backup in the place of a stopped server's database",
    details:
      "FILE is checked before anything is changed. It prints what a restore means for locks, keys, deliveries and\n" +
      "notary chains, and what is missing for a start.",
    arguments: [{ name: "FILE", help: "The backup" }],
    options: [
      { flag: "--force", help: "Replace a database that is there; it is kept under another name" },
      ...FOLDER_OPTIONS,
    ],
    example: "ninefold restore /mnt/backups/ninefold.db --data /var/lib/ninefold",
  },
  {
    name: "doctor",
    summary: "Check that a server can run here, and say what to do where it cannot",
    details: "Takes the options, variables and configuration file of serve, and changes nothing.",
    options: [...CONFIG_OPTIONS, option("--dns-name", "NAME", "The name that is looked up (example.com)")],
    example: "ninefold doctor --config /etc/ninefold.toml",
  },
  {
    name: "config print",
    summary: "Print every setting and where it comes from",
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
    summary: "Ask a running server whether it is ready",
    details:
      "Exit code 0 when it is, 1 when not: fit for Docker's HEALTHCHECK. Without --url it asks the server that the\n" +
      "environment configures (NINEFOLD_PORT, NINEFOLD_HOST, NINEFOLD_TLS_CERT, NINEFOLD_CONFIG).",
    options: [
      option("--url", "URL", "The running server (the one that the environment configures)"),
      { flag: "--live", help: "Ask whether it lives (/healthz) instead of whether it is ready (/readyz)" },
      option("--timeout", "SECONDS", "How long it may take to answer (5)"),
    ],
    variables: [
      ["NINEFOLD_URL", "As --url"],
      ["NINEFOLD_API_KEY", "The operator's key, to ask a server on another machine"],
      ["NINEFOLD_API_KEY_FILE", "A file that holds it"],
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
    summary: "Print the completions of a shell",
    details:
      "bash: put `source <(ninefold completions bash)` into ~/.bashrc.\n" +
      "zsh: ninefold completions zsh > a file called _ninefold in a folder of $fpath.\n" +
      "fish: ninefold completions fish > ~/.config/fish/completions/ninefold.fish.",
    arguments: [{ name: "SHELL", choices: ["bash", "zsh", "fish"], help: "bash, zsh or fish" }],
    example: "ninefold completions bash",
  },
  {
    name: "help",
    summary: "Print what a command does and takes",
    arguments: [
      { name: "COMMAND", optional: true, help: "A command, such as serve" },
      { name: "SUBCOMMAND", optional: true, help: "Its second word, such as create" },
    ],
    example: "ninefold help account create",
  },
] as const satisfies readonly (Pick<CommandSpec, "name" | "summary" | "example"> & Partial<CommandSpec>)[];

/** The name of a command. */
export type CommandName = (typeof DECLARED)[number]["name"];

/** Every command, in the order of the help. */
export const COMMANDS: readonly CommandSpec[] = DECLARED.map((command) => ({
  arguments: [],
  options: [],
  variables: [],
  ...command,
}));

/** A command by its name. */
export function commandNamed(name: CommandName): CommandSpec {
  const found = COMMANDS.find((command) => command.name === name);
  if (found === undefined) throw new Error(`no command ${name}`);
  return found;
}

/** The command that the first words name; null when they name none. */
export function commandAt([first = "", second = ""]: readonly string[]): CommandSpec | null {
  const named = (name: string) => COMMANDS.find((command) => command.name === name);
  return named(first) ?? named(`${first} ${second}`) ?? null;
}

/** A word that can stand in a command's place, with what it does. */
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

/** The words of a group: what can follow `ninefold account`. None for what is no group. */
export function commandsOf(group: string): readonly Word[] {
  return COMMANDS.filter(({ name }) => name.startsWith(`${group} `)).map(({ name, summary }) => ({
    word: name.slice(group.length + 1),
    summary,
  }));
}
