import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram } from "../../scripts/steps/debian.ts";
import { eventually } from "./eventually.ts";

/** Reverse proxies of this machine with configurations of the documentation, until {@link stop}. */
export class Proxies {
  private readonly running: Bun.Subprocess[] = [];

  /** `folder`: an empty one, where they store their files. */
  constructor(private readonly folder: string) {}

  /** Runs nginx with the blocks of its `http` context, and waits until it accepts connections. */
  nginx(http: string, port: number): Promise<void> {
    mkdirSync(join(this.folder, "tmp"), { recursive: true });
    const places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path tmp/${name};`,
    );
    const asRoot = process.getuid?.() === 0 ? "user root;" : "";
    const around = `${asRoot} daemon off; pid nginx.pid; error_log err; events {}\nhttp { access_log off; ${places.join(" ")}\n`;
    writeFileSync(join(this.folder, "nginx.conf"), `${around}${http}}\n`);
    return this.run(port, ["nginx", "-p", this.folder, "-e", "err", "-c", "nginx.conf"]);
  }

  /** Runs Caddy with the sites of its configuration, and waits until it accepts connections. */
  caddy(sites: string, port: number, environment: Record<string, string> = {}): Promise<void> {
    writeFileSync(join(this.folder, "Caddyfile"), `{\nadmin off\nauto_https off\n}\n${sites}\n`);
    const command = ["caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile"];
    return this.run(port, command, environment);
  }

  /** Runs a program that listens on a port of this machine, and waits until it accepts connections. */
  async run(
    port: number,
    [name = "", ...args]: readonly string[],
    environment: Record<string, string> = {},
  ): Promise<void> {
    const path = findProgram(name);
    if (path === null) throw new Error(`there is no ${name}: scripts/test installs it`);
    const errors = join(this.folder, "errors");
    const child = Bun.spawn([path, ...args], {
      cwd: this.folder,
      env: { PATH: String(process.env["PATH"]), HOME: this.folder, ...environment },
      stdout: "ignore",
      stderr: Bun.file(errors),
    });
    this.running.push(child);
    await eventually(async () => {
      if (child.exitCode === null && !(await accepts(port)))
        throw new Error(`${name} does not listen: ${await Bun.file(errors).text()}`);
    });
    if (child.exitCode !== null) throw new Error(`${name} has ended: ${await Bun.file(errors).text()}`);
  }

  async stop(): Promise<void> {
    for (const child of this.running.splice(0)) {
      child.kill();
      await child.exited;
    }
  }
}

function accepts(port: number): Promise<boolean> {
  return Bun.connect({ hostname: "127.0.0.1", port, socket: { data: () => {} } }).then(
    (socket) => {
      socket.end();
      return true;
    },
    () => false,
  );
}
