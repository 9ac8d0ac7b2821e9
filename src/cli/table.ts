import { OPTIONS } from "../config/options.ts";
import { ROLES } from "../kernel/callers/role.ts";
import { TIER_NAMES } from "../kernel/limits/tiers.ts";

/** A positional argument of a command. */
export interface ArgumentSpec {
  /** As shown in the usage line; shells complete `FILE` and `FOLDER`. */
  readonly name: string;
  readonly help: string;
  readonly choices?: readonly string[];
  readonly optional?: boolean;
  /** The last argument, which can be given several times. */
  readonly several?: boolean;
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
  /** One to three words, such as `account create`. */
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** Further help, in lines of at most 100 characters. */
  readonly details?: string;
  readonly arguments: readonly ArgumentSpec[];
  readonly options: readonly CommandOption[];
  /** Whether it runs a command, given after `--`. */
  readonly runs?: true;
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

/** How `cluster` finds the commit log. */
const CLUSTER_OPTIONS: readonly CommandOption[] = SERVE_OPTIONS.filter(({ flag }) =>
  ["--commit-log", "--commit-log-trusted", "--cell", "--data", "--config"].includes(flag),
);

/** How `account` and `key` connect to a server. */
const API_OPTIONS: readonly CommandOption[] = [
  option("--url", "URL", "URL of the running server (http://127.0.0.1:9909)"),
  option("--api-key-file", "FILE", "File that contains the API key"),
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

/** Where an archive is. */
const ARCHIVE_OPTIONS: readonly CommandOption[] = SERVE_OPTIONS.filter(({ flag }) =>
  ["--archive-endpoint", "--archive-region", "--extra-ca"].includes(flag),
);

/** The variables of an archive. */
const ARCHIVE_VARIABLES = OPTIONS.filter(({ name }) =>
  ["archive", "archive_access_key_id", "archive_secret_access_key", "master_key"].includes(name),
).map(({ variable, help }) => [variable, help] as const);
const CONFIGURATION_FILE = {
  name: "FILE",
  help: "Configuration file (YAML or JSON); - for standard input",
} as const;
const PRUNE_OPTION: CommandOption = {
  flag: "--prune",
  help: "Delete what apply has created and the file does not name",
};

/** What all imports do. */
const IMPORT_DETAILS =
  "Calls no Ninefold server. Notes on standard error say what is lost, then what has changed, then which environment\n" +
  "variables stand for secrets; equal notes are counted. Read the file, then use plan and apply.";
const IMPORT_OPTIONS: readonly CommandOption[] = [
  option(
    "--env-out",
    "FILE",
    "New file that receives the environment variables, with the secrets of the source",
  ),
];
const KEEP_IDS_OPTION: CommandOption = {
  flag: "--keep-ids",
  help: "Keep the ids in the ping URLs, so that only their host changes",
};

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
    name: "plan",
    summary: "Print what apply would change",
    details:
      "Compares a configuration file with a server and changes nothing. The exit code is 0 without changes, 2 with\n" +
      "changes, and 1 after an error. Secrets are shown as (sensitive).",
    arguments: [CONFIGURATION_FILE],
    ...API_CALL,
    options: [PRUNE_OPTION, ...API_OPTIONS],
    example: "ninefold plan ninefold.yaml",
  },
  {
    name: "apply",
    summary: "Make a server match a configuration file",
    details:
      "Creates and changes resources by their names, in one project for each document. Resources that the file does not\n" +
      "name stay as they are. It stops at the first failure; run it again to continue. Prints the ping and ingest URLs that\n" +
      "it made. Changes of flags that the project reviews become proposals, which it prints. Asks on a terminal, and needs\n" +
      "--yes elsewhere. The exit code is 0 or 1, or 3 if it has made proposals.",
    arguments: [CONFIGURATION_FILE],
    ...API_CALL,
    options: [
      { flag: "--yes", help: "Do not ask" },
      { flag: "--dry-run", help: "Print the changes, and change nothing" },
      PRUNE_OPTION,
      option("--secrets-out", "FILE", "File that receives the secrets of new keys, and ping URLs, as JSON"),
      ...API_OPTIONS,
    ],
    example: "ninefold apply ninefold.yaml --yes",
  },
  {
    name: "export",
    summary: "Print a project as a configuration file",
    details:
      "Prints every resource with a name. Secrets become references to environment variables, which are listed on\n" +
      "standard error.",
    ...API_CALL,
    options: [
      { ...option("--project", "SLUG", "Slug of the project; repeatable (default)"), repeatable: true },
      ...API_OPTIONS.filter((option) => option !== JSON_OPTION),
    ],
    example: "ninefold export > ninefold.yaml",
  },
  {
    name: "import convoy",
    summary: "Print a project of Convoy as a configuration file",
    details: IMPORT_DETAILS,
    arguments: [{ name: "FILE", help: "Responses of the API, by name (JSON); - for standard input" }],
    options: IMPORT_OPTIONS,
    example: "ninefold import convoy convoy.json > ninefold.yaml",
  },
  {
    name: "import flagd",
    summary: "Print the flags of flagd as a configuration file",
    details: IMPORT_DETAILS,
    arguments: [{ name: "FILE", help: "Flag definitions (JSON or YAML); - for standard input" }],
    options: IMPORT_OPTIONS,
    example: "ninefold import flagd flags.flagd.json > ninefold.yaml",
  },
  {
    name: "import healthchecks",
    summary: "Print the checks of Healthchecks as a configuration file",
    details: IMPORT_DETAILS,
    arguments: [{ name: "SOURCE", help: "URL of the server, or a file with a response of its API" }],
    options: [
      option("--api-key-file", "FILE", "File that contains the API key of the Healthchecks project"),
      KEEP_IDS_OPTION,
      ...IMPORT_OPTIONS,
    ],
    variables: [
      ["HEALTHCHECKS_API_KEY", "API key of the Healthchecks project"],
      ["HEALTHCHECKS_API_KEY_FILE", "File that contains it"],
    ],
    example: "ninefold import healthchecks https://healthchecks.io > ninefold.yaml",
  },
  {
    name: "import hookdeck",
    summary: "Print the connections of Hookdeck as a configuration file",
    details: IMPORT_DETAILS,
    arguments: [{ name: "FILE", help: "Connections as the API lists them (JSON); - for standard input" }],
    options: IMPORT_OPTIONS,
    example: "ninefold import hookdeck connections.json > ninefold.yaml",
  },
  {
    name: "import kuma",
    summary: "Print the monitors of Uptime Kuma as a configuration file",
    details: IMPORT_DETAILS,
    arguments: [{ name: "FILE", help: "A backup (JSON), or the database kuma.db" }],
    options: [KEEP_IDS_OPTION, ...IMPORT_OPTIONS],
    example: "ninefold import kuma kuma.db > ninefold.yaml",
  },
  {
    name: "import qstash",
    summary: "Print the schedules of QStash as a configuration file",
    details: IMPORT_DETAILS,
    arguments: [{ name: "FILE", help: "Schedules as the API lists them (JSON); - for standard input" }],
    options: IMPORT_OPTIONS,
    example: "ninefold import qstash schedules.json > ninefold.yaml",
  },
  {
    name: "import statuspage",
    summary: "Print a page of Atlassian Statuspage as a configuration file",
    details: IMPORT_DETAILS,
    arguments: [
      {
        name: "FILE",
        several: true,
        help: "Responses of its API (JSON), or tables (CSV); - for standard input",
      },
    ],
    options: IMPORT_OPTIONS,
    example: "ninefold import statuspage page.json components.json incidents.json > ninefold.yaml",
  },
  {
    name: "import svix",
    summary: "Print the endpoints and event types of Svix as a configuration file",
    details: IMPORT_DETAILS,
    arguments: [{ name: "FILE", help: "Endpoints as the API lists them (JSON); - for standard input" }],
    options: [option("--owner", "ID", "owner_id of endpoints without an application"), ...IMPORT_OPTIONS],
    example: "ninefold import svix endpoints.json --owner acme > ninefold.yaml",
  },
  {
    name: "ping",
    summary: "Run a command and report its start and end to a heartbeat",
    details:
      "Reports the exit code and the last 10 kB of output, and passes on output, signals and exit code: 128 + n after a\n" +
      "signal, 127 if the command does not exist. A server that cannot be reached is a warning.",
    arguments: [{ name: "URL", optional: true, help: "Ping URL of the heartbeat; omit it with --slug" }],
    runs: true,
    options: [
      option("--slug", "SLUG", "Slug of the heartbeat, with NINEFOLD_PING_KEY"),
      option("--url", "URL", "URL of the server, with --slug (http://127.0.0.1:9909)"),
    ],
    variables: [
      ["NINEFOLD_PING_KEY", "Ping key of the project, with --slug"],
      ["NINEFOLD_URL", "Same as --url"],
    ],
    example: "ninefold ping --slug backup -- /usr/local/bin/backup.sh",
  },
  {
    name: "lock",
    summary: "Run a command while holding a lock",
    details:
      "Extends the lock while the command runs, and releases it afterwards. The exit code is that of the command, or 75\n" +
      "if the lock is not acquired. If the lock is lost, the command gets SIGTERM, and SIGKILL 10 seconds later. The\n" +
      "command finds the fencing token in NINEFOLD_FENCING_TOKEN.",
    arguments: [{ name: "KEY", help: "Key of the lock" }],
    runs: true,
    ...API_CALL,
    options: [
      option("--wait", "DURATION", "Longest wait for the lock, such as 30s, or 0 (1s)"),
      option("--ttl", "DURATION", "Time after which the lock expires without an extension (60s)"),
      ...API_OPTIONS.filter(({ flag }) => flag === "--url" || flag === "--api-key-file"),
    ],
    example: "ninefold lock nightly -- ./job",
  },
  {
    name: "login",
    summary: "Store a server's URL and an API key for later commands",
    details:
      "Asks for the key on a terminal, verifies it, and stores both in $XDG_CONFIG_HOME/ninefold/credentials, readable by\n" +
      "its owner only. NINEFOLD_API_KEY and --api-key-file take precedence, and another server never receives the key.",
    arguments: [{ name: "URL", optional: true, help: "URL of the server (http://127.0.0.1:9909)" }],
    options: [option("--api-key-file", "FILE", "File that contains the API key")],
    variables: [["XDG_CONFIG_HOME", "Folder of configuration files (~/.config)"]],
    example: "ninefold login https://ninefold.example.com",
  },
  {
    name: "logout",
    summary: "Remove the stored API key",
    variables: [["XDG_CONFIG_HOME", "Folder of configuration files (~/.config)"]],
    example: "ninefold logout",
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
    name: "account export",
    summary: "Print everything of an account as JSON lines",
    details:
      "Prints one JSON object per line, like GET /v1/admin/accounts/{user_id}/export. If it fails or is cut off, the exit\n" +
      "code is 1; a complete export ends with a line of the type end.",
    arguments: [USER],
    ...API_CALL,
    options: API_OPTIONS.filter((option) => option !== JSON_OPTION),
    example: "ninefold account export ada@example.com > ada.jsonl",
  },
  {
    name: "account delete",
    summary: "Delete an account with everything in it",
    details:
      "Its keys and sessions end immediately; the server then removes its data in the background. This cannot be\n" +
      "undone: export the account first. --yes is required. The operator's account cannot be deleted.",
    arguments: [USER],
    ...API_CALL,
    options: [{ flag: "--yes", help: "Confirm the deletion" }, ...API_OPTIONS],
    example: "ninefold account delete ada@example.com --yes",
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
    name: "key import",
    summary: "Import keys of Unkey by the hashes of their secrets",
    details:
      "FILE is a response of apis.listKeys with decrypt, or of permissions.listRoles, or rows of the table keys of an own\n" +
      "installation. Secrets are hashed on this machine, and only the hashes are sent. Notes begin with what is not carried\n" +
      "over. The exit code is 1 if a key was skipped; the others are imported. A second import changes nothing.",
    arguments: [{ name: "FILE", several: true, help: "JSON of Unkey; - for standard input" }],
    ...API_CALL,
    example: "ninefold key import roles.json keys-1.json keys-2.json",
  },
  {
    name: "people list",
    summary: "List the people of the account, newest first",
    ...API_CALL,
    example: "ninefold people list",
  },
  {
    name: "people invite",
    summary: "Invite a person",
    details:
      "The server sends the invitation by e-mail. Without a mail server it prints the link, which is valid for 7 days and works\n" +
      "once.",
    arguments: [{ name: "EMAIL", help: "E-mail address of the person" }],
    ...API_CALL,
    options: [
      choice("--role", ROLES, "Role"),
      option("--name", "NAME", "Name of the person (none)"),
      ...API_OPTIONS,
    ],
    example: "ninefold people invite ann@example.com --role editor",
  },
  {
    name: "people disable",
    summary: "Disable a person, and end their sessions",
    details: "Keys that the person has created continue to work.",
    arguments: [{ name: "PERSON", help: "The person's person_id or e-mail address" }],
    ...API_CALL,
    example: "ninefold people disable ann@example.com",
  },
  {
    name: "people login-link",
    summary: "Create a link that logs a person in, on a stopped server's folder",
    details:
      "For whoever is locked out, such as after the loss of the only passkey. Stop the server, create the link, start\n" +
      "the server, and open the link within 30 minutes. It works once, also for a person who has not accepted the\n" +
      "invitation yet.",
    arguments: [{ name: "EMAIL", help: "E-mail address of the person" }],
    options: [
      option("--account", "USER", "The person's account, by user_id or e-mail address (the operator's)"),
      ...FOLDER_OPTIONS,
      JSON_OPTION,
    ],
    example: "ninefold people login-link ann@example.com --data /var/lib/ninefold",
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
    name: "bucket list",
    summary: "List the buckets with their states and ingest URLs",
    details: "Lists the buckets of the key's project, newest first. With --json, prints the whole buckets.",
    ...API_CALL,
    example: "ninefold bucket list",
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
      ...API_OPTIONS.filter((option) => option !== JSON_OPTION),
    ],
    example: "ninefold catch export brave-otter-314159 > events.jsonl",
  },
  {
    name: "channel list",
    summary: "List the notification channels with the result of their last message",
    details:
      "Lists the channels of the key's project, newest first. last_error is the error of the last attempt, or - if it\n" +
      "succeeded. With --json, prints the whole channels.",
    ...API_CALL,
    example: "ninefold channel list",
  },
  {
    name: "page subscribers import",
    summary: "Import confirmed subscribers of another status page",
    details:
      "Only for addresses whose owners have confirmed there that they want these e-mails: they are not asked again, get\n" +
      "no e-mail now, and can unsubscribe by a link in each. Other ways than e-mail, and addresses that are not confirmed or\n" +
      "that failed, are skipped. The exit code is 1 if an address was rejected.",
    arguments: [
      { name: "SLUG", help: "Slug of the status page" },
      {
        name: "FILE",
        help: "Table (CSV) or JSON of Statuspage, or a list of addresses; - for standard input",
      },
    ],
    ...API_CALL,
    example: "ninefold page subscribers import acme subscribers.csv",
  },
  {
    name: "event-types import",
    summary: "Describe the types of messages by the webhooks of an OpenAPI document",
    details:
      "Creates or changes the event type of each webhook in the project of the key. The exit code is 1 if a webhook was\n" +
      "skipped, with the reasons on standard error; the others are imported.",
    arguments: [{ name: "FILE", help: "OpenAPI document (JSON or YAML); - for standard input" }],
    ...API_CALL,
    options: [{ flag: "--dry-run", help: "Print the result, and change nothing" }, ...API_OPTIONS],
    example: "ninefold event-types import openapi.yaml --dry-run",
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
    name: "probe",
    summary: "Check monitors of a server from this machine",
    details:
      "For monitors that name the probe, from another place or inside a private network. It has no data folder and no\n" +
      "open port: it calls the server. Results are kept in memory while the server cannot be reached, 10000 at most.",
    arguments: [],
    options: [
      option("--url", "URL", "URL of the server: https, or http to a private address"),
      option("--token-file", "FILE", "File that contains the token of the probe"),
      {
        ...option("--allow-private-targets", "TARGETS", "Private targets that may be checked; repeatable"),
        repeatable: true,
      },
      {
        ...option(
          "--observer-targets",
          "HOST:PORT",
          "Hosts that show whether this machine is online; repeatable",
        ),
        repeatable: true,
      },
      option("--extra-ca", "FILE", "Additional certificate authorities (PEM) for targets and the server"),
    ],
    variables: [],
    example: "ninefold probe --url https://ninefold.example.com --token-file /etc/ninefold/probe.token",
  },
  {
    name: "monitor list",
    summary: "List the monitors with their states and URLs",
    details:
      "Lists the monitors of the key's project, newest first. The URL of a heartbeat is its ping URL, which only keys with\n" +
      "the scope pulse:write see. With --json, prints the whole monitors.",
    ...API_CALL,
    example: "ninefold monitor list",
  },
  {
    name: "monitor pings",
    summary: "List the heartbeats with their states and ping URLs",
    details:
      "Lists the heartbeats of the key's project, newest first, with the ping URLs by id, by slug and by push token.\n" +
      "Only keys with the scope pulse:write see them. With --json, prints the whole monitors.",
    ...API_CALL,
    example: "ninefold monitor pings",
  },
  {
    name: "notary accept-fork",
    summary: "Continue a restored chain although others have seen a longer history",
    details:
      "After a restore, the server signs nothing in a chain whose storage has receipts that the backup does not have.\n" +
      "This command accepts the fork: those positions are reused. The chain declares it.",
    arguments: [{ name: "CHAIN", help: "Id of the chain" }],
    ...API_CALL,
    example: "ninefold notary accept-fork wc_u7Qk1xR0aZ3mB9cV5nL2pS8tY4hW6dEf",
  },
  {
    name: "notary export",
    summary: "Write all receipts of the project to a file",
    details:
      "Writes the receipts in ascending order, one JSON object per line, and a checkpoint over them as the last line,\n" +
      "so that ninefold verify proves that the file is complete. If it fails, the exit code is 1 and FILE is not created.",
    ...API_CALL,
    options: [
      option("--out", "FILE", "File to write"),
      ...API_OPTIONS.filter((option) => option !== JSON_OPTION),
    ],
    example: "ninefold notary export --out chain.jsonl",
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
      "FILE contains one receipt, or a chain as JSON lines in ascending order. A checkpoint proves where the chain\n" +
      "ends, and that nothing was removed or changed. The exit code is 0 if everything is valid.",
    arguments: [{ name: "FILE", optional: true, help: "File with the receipts; omit it with --bundle" }],
    options: [
      {
        ...option("--checkpoint", "FILE", "File with a checkpoint of the chain; repeatable"),
        repeatable: true,
      },
      option("--log", "FILE", "File with the log (JSON) of the one receipt, which may be issued without it"),
      option("--bundle", "FILE", "File with a bundle to verify"),
      option("--public-key", "X", "Expected public key of the chain"),
      option("--vkey", "VKEY", "Expected verifier key of the checkpoints: origin and public key"),
      { ...option("--witness", "VKEY", "Verifier key of a witness; repeatable"), repeatable: true },
      option("--quorum", "K", "Number of witnesses that must have signed (all of them)"),
    ],
    example: "ninefold verify receipts.jsonl --checkpoint checkpoint.txt",
  },
  {
    name: "verify-signature",
    summary: "Verify the signature of a webhook, and say why it is not valid",
    details:
      "FILE contains the exact bytes of the body. The provider is detected by the headers; without one it is\n" +
      "standard: Standard Webhooks, as Ninefold sends. No server is needed. The exit code is 0 if it is valid.",
    arguments: [{ name: "FILE", help: "File with the body" }],
    options: [
      {
        ...option("--header", "HEADER", "Header of the request, such as 'Webhook-Id: msg_1'; repeatable"),
        repeatable: true,
      },
      option("--secret-file", "FILE", "File with the signing secret"),
      option("--provider", "NAME", "Sender, such as stripe, github or standard"),
      option("--url", "URL", "URL that the sender calls, for providers that sign it (square, twilio)"),
      { flag: "--any-age", help: "Accept a timestamp of any age, for a stored request" },
    ],
    example:
      "ninefold verify-signature body.json --secret-file secret.txt --header Stripe-Signature:t=…,v1=…",
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
    summary: "Restore a backup or an archive while the server is stopped",
    details:
      "FILE is verified before anything is changed. Prints the effects on locks, keys, deliveries and notary chains,\n" +
      "and what is still needed to start the server. An archive needs the master key, and the access keys in\n" +
      "NINEFOLD_ARCHIVE_ACCESS_KEY_ID and NINEFOLD_ARCHIVE_SECRET_ACCESS_KEY.",
    arguments: [{ name: "FILE", help: "File of the backup, or an archive: s3://bucket/prefix" }],
    options: [
      option("--at", "TIME", "Restore an archive as it was at this time, such as 2026-11-22T18:00:00Z"),
      { flag: "--force", help: "Replace an existing database, which is kept under another name" },
      { flag: "--without-master-key", help: "Restore although master.key is lost: removes all secrets" },
      ...FOLDER_OPTIONS,
      ...ARCHIVE_OPTIONS,
    ],
    example: "ninefold restore /mnt/backups/ninefold.db --data /var/lib/ninefold",
  },
  {
    name: "archive status",
    summary: "Show what can be restored from an archive",
    details: "Without a URL it is the configured archive. The exit code is 1 if nothing can be restored.",
    arguments: [{ name: "URL", help: "The archive, such as s3://bucket/prefix", optional: true }],
    options: [...FOLDER_OPTIONS, ...ARCHIVE_OPTIONS],
    variables: ARCHIVE_VARIABLES,
    example: "ninefold archive status s3://backups/ninefold",
  },
  {
    name: "archive verify",
    summary: "Restore an archive to a temporary file and verify it",
    details:
      "Reads the newest base and everything after it into a temporary file in the data folder, and verifies it as\n" +
      "backup --verify does: integrity, every ledger, every notary chain. If that fails, the exit code is 1.",
    arguments: [{ name: "URL", help: "The archive, such as s3://bucket/prefix", optional: true }],
    options: [...FOLDER_OPTIONS, ...ARCHIVE_OPTIONS],
    variables: ARCHIVE_VARIABLES,
    example: "ninefold archive verify s3://backups/ninefold --data /var/lib/ninefold",
  },
  {
    name: "cluster status",
    summary: "Print the nodes of a cluster, who leads, and how far each is",
    options: [...CLUSTER_OPTIONS, JSON_OPTION],
    example: "ninefold cluster status --commit-log etcd://127.0.0.1:2379",
  },
  {
    name: "cluster forget",
    summary: "Remove a node that no longer runs",
    details:
      "Otherwise the log is kept for a node that never returns, when only one other is left. Stop the node first.",
    arguments: [{ name: "NODE", help: "URL or id of the node, as cluster status prints it" }],
    options: CLUSTER_OPTIONS,
    example: "ninefold cluster forget http://10.0.0.3:9909 --commit-log etcd://127.0.0.1:2379",
  },
  {
    name: "cluster hand-over",
    summary: "Let another node lead",
    details:
      "The leader finishes its requests, gives up the lease and ends with code 75: its supervisor starts it again,\n" +
      "and it follows.",
    options: CLUSTER_OPTIONS,
    example: "ninefold cluster hand-over --commit-log etcd://127.0.0.1:2379",
  },
  {
    name: "cluster reset-log",
    summary: "Begin a new commit log from the data of this node",
    details:
      "For a commit log whose engine has lost its data. Stop all nodes, run it on the node with the newest data, and start\n" +
      "that node first. The other nodes copy its database.",
    options: [
      { flag: "--accept", help: "What other nodes have and this one has not is lost" },
      ...CLUSTER_OPTIONS,
    ],
    example: "ninefold cluster reset-log --accept --data /var/lib/ninefold",
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
    name: "config init",
    summary: "Write a server's configuration file with every option at its default",
    arguments: [{ name: "PATH", help: "New file; an existing one is not replaced" }],
    example: "ninefold config init ninefold.toml",
  },
  {
    name: "config schema",
    summary: "Print the JSON Schema of configuration files",
    details: "For editors that complete and check YAML files, and for other programs.",
    example: "ninefold config schema > ninefold.schema.json",
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
    summary: "Print the version, its commit and date, and the versions of Bun and SQLite",
    options: [JSON_OPTION],
    example: "ninefold version --json",
  },
  {
    name: "upgrade",
    summary: "Check whether there is a newer version",
    details:
      "Loads a signed feed of releases and compares versions; nothing is installed. The exit code is 0 if this version\n" +
      "is up to date, 2 if there is a newer one, and 1 if the feed cannot be loaded or verified.",
    options: [
      { flag: "--check", help: "Check for a newer version (required)" },
      option("--feed", "URL", "URL of the feed; its signature is at URL.minisig"),
      option("--public-key", "KEY", "Public key of the feed, in the format of minisign"),
      JSON_OPTION,
    ],
    variables: [
      ["NINEFOLD_UPGRADE_FEED", "Same as --feed"],
      ["NINEFOLD_UPGRADE_PUBLIC_KEY", "Same as --public-key"],
    ],
    example: "ninefold upgrade --check --feed https://example.com/feed.json --public-key RWQ…",
  },
  {
    name: "licenses",
    summary: "Print the licences of everything that the executable contains",
    options: [JSON_OPTION],
    example: "ninefold licenses --json",
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
      { name: "SUBCOMMAND", optional: true, several: true, help: "Its subcommand, such as create" },
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

/** The command named by the first one to three words; null if there is none. */
export function commandAt(words: readonly string[]): CommandSpec | null {
  const named = (length: number) =>
    COMMANDS.find((command) => command.name === words.slice(0, length).join(" "));
  return named(1) ?? named(2) ?? named(3) ?? null;
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

/** The words that can follow those of a group such as `account`, or `page subscribers`; empty for any other words. */
export function commandsOf(group: string): readonly Word[] {
  const found = new Map<string, string>();
  for (const { name, summary } of COMMANDS) {
    if (!name.startsWith(`${group} `)) continue;
    const [word = ""] = name.slice(group.length + 1).split(" ");
    if (!found.has(word)) found.set(word, summary);
  }
  return [...found].map(([word, summary]) => ({ word, summary }));
}
