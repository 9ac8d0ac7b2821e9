import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { commandHelp, groupHelp, overview } from "../../src/cli/help.ts";
import { oneLine } from "../../src/cli/output.ts";
import { COMMANDS } from "../../src/cli/table.ts";
import { sqliteVersion } from "../../src/kernel/storage/examine.ts";
import { NINEFOLD_COMMAND, SOURCE_COMMAND } from "../harness/processes/server-process.ts";
import vectors from "../vectors/keys-and-signatures.json" with { type: "json" };
import { ninefold, runToEnd } from "./run.ts";

/** Each command is a process, which starts slowly on a busy machine. */
setDefaultTimeout(60_000);

/** First words of commands that have two. */
const GROUPS = ["account", "key", "config"];

const folder = mkdtempSync(join(tmpdir(), "ninefold-usage-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const KEY = vectors.keys[0]?.key ?? "";
/** A closed port. */
const NOWHERE = "http://127.0.0.1:1";
const withKey = { NINEFOLD_API_KEY: KEY };

const notDatabase = join(folder, "diary");
const emptyReceipts = join(folder, "empty.jsonl");
writeFileSync(emptyReceipts, "");
writeFileSync(notDatabase, "Dear diary");
const endless = join(folder, "endless");
symlinkSync(endless, endless);

type Case = readonly [args: readonly string[], error: string, environment?: Readonly<Record<string, string>>];

const USAGE: readonly Case[] = [
  [["juggle"], 'there is no command "juggle". Try ninefold --help.'],
  [["sevre"], 'there is no command "sevre". Did you mean serve? Try ninefold --help.'],
  [["juggle", "--help"], 'there is no command "juggle". Try ninefold --help.'],
  [["help", "juggle"], 'there is no command "juggle". Try ninefold --help.'],
  [["help", "a", "b", "c"], 'there is no command "a". Try ninefold --help.'],
  [
    ["account"],
    "account needs a command: create, list, set, export, delete, reset-key. Try ninefold account --help.",
  ],
  [
    ["account", "--json"],
    "account needs a command: create, list, set, export, delete, reset-key. Try ninefold account --help.",
  ],
  [
    ["account", "crate"],
    'there is no command "account crate". Did you mean account create? Try ninefold account --help.',
  ],
  [["account", "create"], "account create needs EMAIL. Try ninefold account create --help."],
  [
    ["account", "create", "a@b.c", "d@e.f"],
    "Unexpected argument 'd@e.f'. Try ninefold account create --help.",
  ],
  [
    ["account", "create", "a@b.c", "--tier", "gold"],
    "--tier must be one of free, starter, pro, scale, unlimited.",
  ],
  [
    ["account", "create", "a@b.c", "--balance", "many"],
    "--balance must be an integer from 0 to 9007199254740991.",
    withKey,
  ],
  [
    ["account", "create", "a@b.c", "--balance=-5"],
    "--balance must be an integer from 0 to 9007199254740991.",
    withKey,
  ],
  [
    ["account", "create", "a@b.c", "--balance", "-5"],
    "--balance needs a value; one that begins with a dash is given as --balance=-5.",
  ],
  [["account", "list", "all"], "Unexpected argument 'all'. Try ninefold account list --help."],
  [["account", "set"], "account set needs USER. Try ninefold account set --help."],
  [
    ["account", "set", "a@b.c"],
    "account set needs at least one of --email, --tier, --balance and --suspended.",
  ],
  [["account", "set", "a@b.c", "--suspended", "maybe"], "--suspended must be one of true, false."],
  [
    ["key", "create", "--nme", "x"],
    "Unknown option '--nme'. Did you mean --name? Try ninefold key create --help.",
  ],
  [["key", "create", "--name"], "--name needs a value. Try ninefold key create --help."],
  [["key", "list", "--json=yes"], "--json takes no value. Try ninefold key list --help."],
  [
    ["key", "list", "--data", folder, "--url", NOWHERE],
    "--url is for a running server and --data for a stopped one. Use one of them.",
  ],
  [
    ["key", "list", "--config", "x.toml"],
    "--config requires --data: a running server has its configuration already.",
  ],
  [["key", "revoke"], "key revoke needs KEY_ID. Try ninefold key revoke --help."],
  [["key", "revoke", ""], "KEY_ID must not be empty. Try ninefold key revoke --help.", withKey],
  [["backup", ""], "FILE must not be empty. Try ninefold backup --help."],
  // Otherwise the path would be that of another endpoint, which creates a key of the whole account.
  [["key", "create", "--project", ".."], '--project must be an id, not "..".', withKey],
  [["key", "create", "--project", ""], '--project must be an id, not "".', withKey],
  [["key", "revoke", ".."], 'KEY_ID must be an id, not "..".', withKey],
  [["account", "set", ".", "--tier", "pro"], 'USER must be an id, not ".".', withKey],
  [["a\u001b[31mb\n\u202ec"], 'there is no command "a\\u001b[31mb\\u000a\\u202ec". Try ninefold --help.'],
  [["verify"], "verify needs FILE or --bundle. Try ninefold verify --help."],
  [["verify", "a", "b"], "Unexpected argument 'b'. Try ninefold verify --help."],
  [["verify", "a", "--public-key"], "--public-key needs a value. Try ninefold verify --help."],
  [["doctor", "--port", "99999"], "--port must be a port from 0 to 65535."],
  [["doctor", "now"], "Unexpected argument 'now'. Try ninefold doctor --help."],
  [["config"], "config needs a command: print, init, schema. Try ninefold config --help."],
  [["config", "print", "--signup", "maybe"], "--signup must be one of closed, free, open."],
  [["openapi", "--json"], "Unknown option '--json'. Try ninefold openapi --help."],
  [["healthcheck", "--timeout", "0"], "--timeout must be a number of seconds from 1 to 3600."],
  [["healthcheck", "--timeout", "3601"], "--timeout must be a number of seconds from 1 to 3600."],
  [["version", "--all"], "Unknown option '--all'. Try ninefold version --help."],
  [["completions"], "completions needs SHELL. Try ninefold completions --help."],
  [["completions", "tcsh"], "SHELL must be one of bash, zsh, fish."],
  [["serve", "--colour", "red"], "Unknown option '--colour'. Try ninefold serve --help."],
  [["serve", "now"], "Unexpected argument 'now'. Try ninefold serve --help."],
  [
    ["serve", "--data", "--json"],
    "--data needs a value; one that begins with a dash is given as --data=--json.",
  ],
];

const FAILURES: readonly Case[] = [
  [["verify", join(folder, "missing")], `There is no file ${join(folder, "missing")}.`],
  [["verify", folder], `${folder} is not a file.`],
  [
    ["verify", endless],
    `${endless} cannot be read (Error: ELOOP: too many symbolic links encountered, stat '${endless}').`,
  ],
  [
    ["key", "list", "--data", endless],
    `${endless}/ninefold.db cannot be accessed (Error: ELOOP: too many symbolic links encountered, stat '${endless}/ninefold.db').`,
  ],
  [
    ["config", "print", "--config", "/dev/zero"],
    "--config: /dev/zero is larger than 1048576 bytes: that is another file.",
  ],
  [
    ["key", "list"],
    "NINEFOLD_API_KEY_FILE: /dev/zero is larger than 1048576 bytes: that is another file.",
    { NINEFOLD_API_KEY_FILE: "/dev/zero" },
  ],
  [
    ["account", "list"],
    "Set NINEFOLD_API_KEY or NINEFOLD_API_KEY_FILE to call the server, run ninefold login, or work on the folder of a stopped one with --data FOLDER.",
  ],
  [
    ["account", "list"],
    "NINEFOLD_API_KEY is not a well-formed API key (sm_…, 43 characters, checksum).",
    { NINEFOLD_API_KEY: "hunter2" },
  ],
  [
    ["key", "list"],
    "NINEFOLD_API_KEY_FILE: /nowhere/key cannot be read (Error: ENOENT: no such file or directory, open '/nowhere/key').",
    { NINEFOLD_API_KEY_FILE: "/nowhere/key" },
  ],
  ...["account list", "key list", "key create"].map(
    (command): Case => [
      [...command.split(" "), "--url", NOWHERE],
      `No server is running at ${NOWHERE}: the connection was refused. Start it with ninefold serve, or set another URL with --url.`,
      withKey,
    ],
  ),
  [
    ["key", "list"],
    `No server is running at ${NOWHERE}: the connection was refused. Start it with ninefold serve, or set another URL with --url.`,
    { ...withKey, NINEFOLD_URL: `${NOWHERE}/` },
  ],
  ...["ftp://127.0.0.1", "127.0.0.1:9909", "http://user:pw@127.0.0.1", "http://127.0.0.1/?a=b"].map(
    (url): Case => [
      ["key", "list", "--url", url],
      "The server's URL must look like http://127.0.0.1:9909, without a password or query.",
      withKey,
    ],
  ),
  [
    ["key", "create", "--data", join(folder, "missing")],
    `There is no Ninefold database in ${join(folder, "missing")}. --data names the data folder of a server.`,
  ],
  [
    ["healthcheck", "--url", NOWHERE],
    `No server is running at ${NOWHERE}: the connection was refused. Start it with ninefold serve, or set another URL with --url.`,
  ],
  [
    ["doctor", "--config", "/nowhere/n.toml"],
    "--config: /nowhere/n.toml cannot be read (Error: ENOENT: no such file or directory, open '/nowhere/n.toml').",
  ],
  [["config", "print"], "NINEFOLD_PORT must be a port from 0 to 65535.", { NINEFOLD_PORT: "http" }],
  [["serve"], "--test-clock needs --ephemeral.", { NINEFOLD_TEST_CLOCK: "true" }],
];

/** The rest of a command line, as a title. */
function titled(cases: readonly Case[]) {
  return cases.map(
    ([args, error, environment]) => [oneLine(args.join(" ")), args, error, environment] as const,
  );
}

describe.each([
  [2, "a command line that cannot be read", USAGE],
  [1, "what fails", FAILURES],
] as const)("exit code %d and one line: %s", (code, _, cases) => {
  test.concurrent.each(titled(cases))("ninefold %s", async (_title, args, error, environment) => {
    const ended = await ninefold(args, { cwd: folder, environment: environment ?? {} });
    expect(ended).toEqual({ code, out: "", error: `ninefold: ${error}\n` });
    // The command has not created the default data folder.
    expect(existsSync(join(folder, "ninefold-data"))).toBe(false);
  });
});

test("verify prints invalid receipts on standard output", async () => {
  expect(await ninefold(["verify", emptyReceipts])).toEqual({
    code: 1,
    out: "not valid: the file holds no receipt\n",
    error: "",
  });
});

describe("help", () => {
  test.each(["--help", "-h", "help"])("ninefold %s", async (arg) => {
    expect(await ninefold([arg])).toEqual({ code: 0, out: overview(), error: "" });
  });

  test("help is printed for a command line without a command", async () => {
    expect(await ninefold([])).toEqual({ code: 2, out: overview(), error: "" });
  });

  test.concurrent.each(COMMANDS)("of $name", async (command) => {
    const text = commandHelp(command);
    const words = command.name.split(" ");
    expect(await ninefold([...words, "--help"])).toEqual({ code: 0, out: text, error: "" });
    expect(await ninefold(["help", ...words])).toEqual({ code: 0, out: text, error: "" });
    for (const { flag } of command.options) expect(text).toMatch(new RegExp(`  ${flag}[ \n].*`));
    for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(120);
  });

  test("takes precedence over other errors, but not after --", async () => {
    const [serve] = COMMANDS;
    if (serve === undefined) throw new Error("no commands");
    expect((await ninefold(["serve", "--colour", "-h"])).out).toBe(commandHelp(serve));
    expect((await ninefold(["verify", "--", "--help"])).error).toBe("ninefold: There is no file --help.\n");
  });

  test.each(GROUPS)("of the group %s", async (group) => {
    const expected = { code: 0, out: groupHelp(group), error: "" };
    expect(await ninefold([group, "--help"])).toEqual(expected);
    expect(await ninefold(["help", group])).toEqual(expected);
  });

  test("help lists every command", () => {
    for (const { name, summary } of COMMANDS)
      expect(overview()).toMatch(new RegExp(`  ${name} .*${summary}\n`));
  });
});

test.each(["version", "--version", "-V"])("ninefold %s", async (arg) => {
  const { code, out, error } = await ninefold([arg, "--json"]);
  expect([code, error]).toEqual([0, ""]);
  const known = JSON.parse(out);
  const parts = { bun: Bun.version, sqlite: sqliteVersion() };
  expect(known).toEqual({ version, commit: known.commit, date: known.date, ...parts });
  // Only an executable contains its commit.
  if (NINEFOLD_COMMAND === SOURCE_COMMAND) expect(known).toMatchObject({ commit: null, date: null });
  const lines = [
    version,
    `commit  ${known.commit ?? "unknown"}`,
    ...(known.date === null ? [] : [`date    ${known.date}`]),
    `Bun     ${parts.bun}`,
    `SQLite  ${parts.sqlite}`,
  ];
  expect(await ninefold([arg])).toEqual({ code: 0, out: `${lines.join("\n")}\n`, error: "" });
});

describe("a reader that closes the output", () => {
  test.each(["openapi", "--help", "completions bash"])(
    "ends ninefold %s quietly, as SIGPIPE would",
    async (args) => {
      const command = [...NINEFOLD_COMMAND, ...args.split(" ")].map((word) => `'${word}'`).join(" ");
      // The reader has ended before the first word is written.
      const script = `{ sleep 0.05; ${command}; echo "code $?" >&2; } | true`;
      expect((await runToEnd(["bash", "-c", script])).error).toBe("code 141\n");
    },
  );

  test("a slow reader receives everything", async () => {
    const command = [...NINEFOLD_COMMAND, "openapi"].map((word) => `'${word}'`).join(" ");
    const { out } = await runToEnd(["bash", "-c", `${command} | { sleep 0.3; cat; }`]);
    expect(JSON.parse(out)).toMatchObject({ openapi: "3.1.0" });
  });
});
