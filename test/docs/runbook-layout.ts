import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { freePort } from "../harness/processes/ports.ts";
import { NINEFOLD_COMMAND, ServerProcess } from "../harness/processes/server-process.ts";
import { Client } from "../support/client.ts";
import { type Ended, endOf } from "../support/ended.ts";

/** How Ninefold is installed on the machine of a runbook. */
export type Installation = "systemd" | "docker" | "bare";

/** The user of the service, and of the container. */
export const SERVICE_USER = 65_532;
const TIMEOUT_MS = 120_000;
const AS_SERVICE = ["setpriv", `--reuid=${SERVICE_USER}`, `--regid=${SERVICE_USER}`, "--clear-groups"];
const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(" ");
const NINEFOLD = quoted(NINEFOLD_COMMAND);

/** Programs in place of those that need a machine of their own. They run commands as the same users, on the same files. */
const PROGRAMS: Readonly<Record<string, string>> = {
  "bin/ninefold": `exec ${NINEFOLD} "$@"`,
  "bin/sudo": 'exec env "$@"',
  "bin/systemctl": `case $1 in
  stop | start | restart) exec curl -sf "$CONTROL/$1" ;;
  disable) exec curl -sf "$CONTROL/stop" ;;
  *) exit 1 ;;
esac`,
  // A new machine has the copied files, and data of its own that is not needed.
  "bin/scp": `for file; do case $file in root@*) ;; *) cp "$file" "$PLACE/root/" ;; esac; done
exec curl -sf "$CONTROL/fresh"`,
  "bin/docker": `command=$1
shift
case $command in
  stop | start | restart) exec curl -sf "$CONTROL/$command" ;;
  exec) shift 2; as=exec ;;
  run)
    while [ "$1" != ninefold ] && [ "$1" != ninefold:previous ]; do
      [ "$1" != -d ] || exec curl -sf "$CONTROL/start"
      case $1 in *:/backup:ro) backup=\${1%:/backup:ro} ;; esac
      shift
    done
    shift ;;
  cp)
    [ "$1" != --archive ] || shift
    case $1 in
      ninefold:/data/*)
        cp "$PLACE/data/\${1#ninefold:/data/}" "$2"
        mkdir -p "$PLACE/root/move"
        cp "$PLACE/data/\${1#ninefold:/data/}" "$PLACE/root/move/"
        case $1 in */master.key) curl -sf "$CONTROL/fresh" ;; esac ;;
      *) cp -p "$1" "$PLACE/data/\${2#ninefold:/data/}" ;;
    esac
    exit ;;
  *) exit 0 ;;
esac
for word; do
  shift
  case $word in
    /data*) word=$PLACE/data\${word#/data} ;;
    /backup*) word=\${backup:-}\${word#/backup} ;;
  esac
  set -- "$@" "$word"
done
export NINEFOLD_DATA="$PLACE/data"
exec ${quoted(AS_SERVICE)} ${NINEFOLD} "$@"`,
  // test/deployment covers both.
  "work/scripts/build": "",
  "work/scripts/install": 'curl -sf "$CONTROL/restart"',
};

/** A machine on which Ninefold is installed, in a folder: users and files are those of the installation. */
export class RunbookLayout implements AsyncDisposable {
  readonly place = mkdtempSync(join(tmpdir(), "ninefold-runbook-"));
  private readonly port = freePort();
  private server: ServerProcess | null = null;
  private key = "";
  private readonly control = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async ({ url }) => {
      const order = new URL(url).pathname.slice(1);
      if (order !== "start") await this.stop();
      if (order === "fresh") this.makeFresh();
      if (order !== "stop" && order !== "fresh") await this.start();
      return new Response();
    },
  });

  constructor(readonly installation: Installation) {
    chmodSync(this.place, 0o755);
    for (const folder of ["backups", "root", "work", "out"]) mkdirSync(join(this.place, folder));
    this.makeFresh();
    for (const [name, text] of Object.entries(PROGRAMS)) {
      const path = join(this.place, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, `#!/bin/sh\n${text}\n`);
      chmodSync(path, 0o755);
    }
  }

  /** The path of a file of the data folder. */
  data(name: string): string {
    return join(this.place, "data", name);
  }

  /** The file with the master key. */
  get masterKey(): string {
    return this.installation === "systemd" ? join(this.place, "etc/master.key") : this.data("master.key");
  }

  /** Starts the server, if it does not run. */
  async start(): Promise<void> {
    if (this.server !== null) return;
    const isService = this.installation !== "bare";
    const environment: Record<string, string> = { NINEFOLD_DATA: join(this.place, "data") };
    if (this.installation === "systemd")
      environment["NINEFOLD_MASTER_KEY_FILE"] = this.credential("master.key");
    this.server = await ServerProcess.start({
      command: isService ? [...AS_SERVICE, ...NINEFOLD_COMMAND] : NINEFOLD_COMMAND,
      args: ["--port", String(this.port)],
      environment,
    });
    this.key ||= this.server.key ?? "";
  }

  /** Stops the server, if it runs. */
  async stop(): Promise<void> {
    const { server } = this;
    this.server = null;
    await server?.stop();
  }

  /** A client with the operator's key. */
  get client(): Client {
    return new Client(`http://127.0.0.1:${this.port}`, this.key);
  }

  /** Runs a command of a page, with the paths of this machine. */
  run(command: string): Promise<Ended> {
    return endOf(["sh", "-c", this.filledIn(command)], {
      cwd: join(this.place, "work"),
      environment: {
        PATH: `${join(this.place, "bin")}:${process.env["PATH"]}`,
        PLACE: this.place,
        CONTROL: this.control.url.origin,
      },
      timeoutMs: TIMEOUT_MS,
    });
  }

  /** A text of a page with the paths, the user and the address of this machine. */
  filledIn(text: string): string {
    return text
      .replaceAll("/var/lib/ninefold", join(this.place, "data"))
      .replaceAll("/etc/ninefold", join(this.place, "etc"))
      .replaceAll("/var/backups/ninefold", join(this.place, "backups"))
      .replaceAll("/usr/local/bin/", `${join(this.place, "bin")}/`)
      .replaceAll("/root/", `${join(this.place, "root")}/`)
      .replaceAll("chown ninefold", `chown ${SERVICE_USER}`)
      .replaceAll("http://127.0.0.1:9909", `http://127.0.0.1:${this.port}`);
  }

  /** Files of the data folder that the server's user does not own. */
  foreignFiles(): string[] {
    const user = this.installation === "bare" ? process.getuid?.() : SERVICE_USER;
    return readdirSync(join(this.place, "data")).filter((name) => statSync(this.data(name)).uid !== user);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.control.stop(true);
    rmSync(this.place, { recursive: true, force: true });
  }

  /** A new installation: an empty data folder, and keys that are not those of the data. */
  private makeFresh(): void {
    for (const folder of ["data", "etc"]) {
      rmSync(join(this.place, folder), { recursive: true, force: true });
      mkdirSync(join(this.place, folder));
    }
    if (this.installation !== "bare") chownSync(join(this.place, "data"), SERVICE_USER, SERVICE_USER);
    chmodSync(join(this.place, "data"), 0o700);
    for (const name of ["master.key", "operator.key", "tls.crt", "tls.key", "ninefold.toml"])
      writeFileSync(join(this.place, "etc", name), "00".repeat(32), { mode: 0o600 });
  }

  /** A secret as systemd hands it to the service: a copy that its user can read. */
  private credential(name: string): string {
    const path = join(this.place, `credential-${name}`);
    if (existsSync(path)) rmSync(path);
    copyFileSync(join(this.place, "etc", name), path);
    chownSync(path, SERVICE_USER, SERVICE_USER);
    return path;
  }
}
