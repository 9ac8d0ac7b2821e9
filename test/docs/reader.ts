import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { freePort } from "../harness/processes/ports.ts";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import type { Step } from "./page.ts";

/** The result of a step. */
export interface Outcome {
  /** The exit code of its last command; null when the shell ended before. */
  readonly code: number | null;
  readonly out: string;
  readonly error: string;
  /** The statuses of its requests, and the body of the last one. */
  readonly statuses: readonly number[];
  readonly body: string;
}

/** Starts a server in the foreground of a separate shell, with its variables and arguments. */
const SERVE = /^((?:\w+=\S+ )*)(?:ninefold |scripts\/)serve\b(.*)$/;
/** The option that permits the reader's own endpoint, and its variable. */
const PERMIT = ["--allow-private-targets", "NINEFOLD_ALLOW_PRIVATE_TARGETS"] as const;

/** Records the status and the body of each request, and passes the body on. */
const CURL = `
curl() {
  : >"$OUT/$STEP.body"
  command curl --silent --show-error --output "$OUT/$STEP.body" --write-out '%{http_code}\n' "$@" >>"$OUT/$STEP.status" || return
  cat "$OUT/$STEP.body"
}`;

/**
 * `ninefold` from source. Commands for the folder of a stopped server stop it before and start it after, as pages
 * describe. The name that `doctor` looks up needs no network. An archive needs an object store: test/archive has one.
 */
const NINEFOLD = `#!/bin/sh
ninefold() { ${NINEFOLD_COMMAND.map((word) => `'${word}'`).join(" ")} "$@"; }
case "$*" in
  restore* | account*--data* | people*--data* | key*--data* | audit*--data* | dashboard*--data*)
    curl --silent --fail "$CONTROL/stop"
    ninefold "$@"
    code=$?
    curl --silent --fail "$CONTROL/start"
    exit $code ;;
  serve*) echo "a server is begun by a command of its own" >&2; exit 1 ;;
  archive*) ;;
  doctor*) ninefold "$@" --dns-name localhost ;;
  # A signal that a page sends reaches the program.
  *) exec ${NINEFOLD_COMMAND.map((word) => `'${word}'`).join(" ")} "$@" ;;
esac
`;

/** What pages have a reader create or install, and other tests cover: test/binary, test/client, test/python and test/deployment. */
const DONE_ELSEWHERE = [
  "work/scripts/build",
  "work/scripts/package",
  "bin/npm",
  "bin/npx",
  "bin/pip",
  "bin/docker",
];

/**
 * A reader who pastes a page into one shell, with a new server for each `serve`, or one without any. Placeholders that
 * a page leaves to its reader are filled in: the address, the key that the server printed, endpoints and folders.
 */
export class Reader implements AsyncDisposable {
  private readonly folder = mkdtempSync(join(tmpdir(), "ninefold-reader-"));
  private readonly out = join(this.folder, "out");
  private readonly endpoint = new WebhookSink();
  private readonly servers: TestServer[] = [];
  private readonly control = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async ({ url }) => {
      const server = this.servers.at(-1);
      await (url.endsWith("/stop") ? server?.halt() : server?.start());
      return new Response();
    },
  });

  /** Runs all steps of a page in order. Resolves to their results. */
  async paste(steps: readonly Step[]): Promise<[step: Step, outcome: Outcome][]> {
    if (!steps.some(({ command }) => SERVE.test(command))) await this.serve("", "");
    const lines = ["set -u", CURL];
    const filled: Step[] = [];
    for (const [at, { command, says }] of steps.entries()) {
      const [, variables, args] = SERVE.exec(command) ?? [];
      if (variables !== undefined && args !== undefined) await this.serve(variables, args);
      const step = { command: this.filledIn(command), says: says.map((line) => this.filledIn(line)) };
      filled.push(step);
      lines.push(
        `STEP=${at}`,
        `{ ${args === undefined ? step.command : ":"}\n} >"$OUT/$STEP.out" 2>"$OUT/$STEP.error"`,
        `echo $? >"$OUT/$STEP.code"`,
      );
    }
    await this.run(lines.join("\n"));
    return filled.map((step, at) => [step, this.outcome(at)]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.control.stop(true);
    for (const server of this.servers) await server.stop();
    this.endpoint.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Starts a server as a page describes, on its own port and folder. */
  private async serve(variables: string, given: string): Promise<void> {
    const [flag, variable] = PERMIT;
    const environment = Object.fromEntries(wordsOf(variables).map((word) => word.split("=")));
    const own = wordsOf(this.inFolder(given.replaceAll(/ --(port|data) \S+/g, "")));
    const args = own.includes(flag) || variable in environment ? own : [...own, flag, "127.0.0.1"];
    // A server that is restarted uses the same port.
    this.servers.push(await startTestServer({ args, environment, config: { port: freePort() } }));
  }

  private filledIn(text: string): string {
    const server = this.servers.at(-1);
    if (server === undefined) return text;
    return this.inFolder(text)
      .replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, server.url)
      .replaceAll(/--port \d+/g, `--port ${new URL(server.url).port}`)
      .replaceAll(/(Authorization: Bearer |NINEFOLD_API_KEY=)sm_…/g, `$1${server.key}`)
      .replaceAll(/https:\/\/example\.com|http:\/\/localhost:3000/g, this.endpoint.url(""))
      .replaceAll("/var/lib/ninefold", server.folder);
  }

  private inFolder(text: string): string {
    return text
      .replaceAll("/mnt/backups", join(this.folder, "backups"))
      .replaceAll("/srv/ninefold", join(this.folder, "restored"));
  }

  private async run(script: string): Promise<void> {
    const [bin, work] = [join(this.folder, "bin"), join(this.folder, "work")];
    for (const folder of [this.out, work, join(this.folder, "backups")])
      mkdirSync(folder, { recursive: true });
    this.program("bin/ninefold", NINEFOLD);
    for (const name of DONE_ELSEWHERE) this.program(name, "#!/bin/sh\n");
    const child = Bun.spawn(["sh", "-c", script], {
      cwd: work,
      env: {
        PATH: `${bin}:${process.env["PATH"]}`,
        HOME: work,
        OUT: this.out,
        CONTROL: this.control.url.origin,
      },
      stdin: "ignore",
      stdout: "inherit",
      stderr: "inherit",
    });
    await child.exited;
  }

  private program(name: string, text: string): void {
    const path = join(this.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    chmodSync(path, 0o755);
  }

  private outcome(at: number): Outcome {
    const read = (kind: string): string => {
      const path = join(this.out, `${at}.${kind}`);
      return existsSync(path) ? readFileSync(path, "utf8") : "";
    };
    const code = read("code");
    return {
      code: code === "" ? null : Number(code),
      out: read("out"),
      error: read("error"),
      statuses: read("status")
        .split("\n")
        .filter((line) => line !== "")
        .map(Number),
      body: read("body"),
    };
  }
}

function wordsOf(text: string): string[] {
  return text.split(" ").filter((word) => word !== "");
}
