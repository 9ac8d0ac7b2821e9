import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { packDebian } from "../../scripts/releases/debian.ts";
import { runner } from "../../scripts/releases/executables.ts";
import { ownPlatform } from "../../scripts/releases/platforms.ts";
import { isBearerKey } from "../../src/kernel/secrets/key-format.ts";
import { plainEnvironment, ROOT, ServerProcess } from "../harness/processes/server-process.ts";
import { unpack } from "../kept/archive.ts";
import { Client } from "../support/client.ts";
import { executable, modeOf, TIMEOUT_MS } from "./support.ts";

const folder = mkdtempSync(join(tmpdir(), "ninefold-deb-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** dpkg sets owners, which only root can do; the maintainer scripts run with DPKG_ROOT, outside of a chroot. */
const canInstall = Bun.which("dpkg") !== null && process.getuid?.() === 0;
const canPack = Bun.which("dpkg-deb") !== null && ownPlatform().libc === "glibc";

const FILES = [
  "etc/ninefold/ninefold.toml",
  "usr/bin/ninefold",
  "usr/lib/systemd/system/ninefold.service",
  "usr/share/doc/ninefold/copyright",
  "usr/share/ninefold/install",
];

/** Packs the executable as a version. What is in the package counts here, and not its size. */
async function packed(version: string, name: string): Promise<string> {
  const at = join(folder, name);
  mkdirSync(at);
  const shop = { root: ROOT, folder: at, version, date: "2026-11-23T10:00:00Z" };
  const file = await packDebian({ ...shop, compression: "none", run: runner() }, ownPlatform(), executable());
  return join(at, file);
}

function run(...command: readonly string[]): { code: number; output: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], {
    env: { ...plainEnvironment(), DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" },
    stdin: "ignore",
  });
  return { code: exitCode, output: `${stdout}${stderr}` };
}

describe.if(canPack)("the Debian package", () => {
  let first = "";
  let newer = "";
  beforeAll(async () => {
    first = await packed("0.1.0", "first");
    newer = await packed("99.0.0", "newer");
  }, TIMEOUT_MS);

  test(
    "says what it is, has its files owned by root, and a configuration that belongs to the operator",
    () => {
      const control = run("dpkg-deb", "--field", first).output;
      expect(control).toContain("Package: ninefold\nVersion: 0.1.0\n");
      expect(run("dpkg-deb", "--info", first, "conffiles").output).toBe("/etc/ninefold/ninefold.toml\n");
      const lines = run("dpkg-deb", "--contents", first).output.trimEnd().split("\n");
      expect(lines.filter((line) => !line.includes(" root/root "))).toEqual([]);
      expect(lines.filter((line) => !line.includes(" 2026-11-23 "))).toEqual([]);
      const files = lines.filter((line) => line.startsWith("-")).map((line) => line.split(" ./")[1] ?? "");
      expect(files.sort()).toEqual(FILES);
    },
    TIMEOUT_MS,
  );

  test.if(canInstall)(
    "is installed on data of 0.1.0, used, upgraded, removed and purged",
    async () => {
      const root = join(folder, "root");
      const at = (path: string): string => join(root, path);
      for (const path of ["info", "updates", "triggers"])
        mkdirSync(at(`var/lib/dpkg/${path}`), { recursive: true });
      writeFileSync(at("var/lib/dpkg/status"), "");
      // Libraries and programs of this machine serve the installed executable.
      const options = ["--force-depends", "--force-script-chrootless", "--no-debsig"];
      const dpkg = (...args: readonly string[]) => run("dpkg", `--root=${root}`, ...options, ...args);
      const data = at("var/lib/ninefold");
      mkdirSync(data, { recursive: true });
      const kept = join(ROOT, "test/kept/0.1.0/stopped");
      unpack(`${kept}.tar.zst`, data);
      const { keys } = JSON.parse(readFileSync(`${kept}.json`, "utf8")) as { keys: Record<string, string> };

      /** Starts what is installed as its service does. */
      const serve = (): Promise<ServerProcess> =>
        ServerProcess.start({
          command: [at("usr/bin/ninefold")],
          args: ["--config", at("etc/ninefold/ninefold.toml"), "--port", "0"],
          environment: {
            NINEFOLD_DATA: data,
            NINEFOLD_MASTER_KEY_FILE: at("etc/ninefold/master.key"),
          },
        });
      const balance = async (server: ServerProcess): Promise<unknown> =>
        (await new Client(server.url, String(keys["scale"])).get("/v1/meter/customer-1/balance")).body[
          "balance"
        ];

      const installed = dpkg("--install", first);
      expect(installed.output).toContain(
        "ninefold: /etc/ninefold/master.key is copied from the data folder\n",
      );
      expect(installed.output).toContain("+ useradd --system ");
      expect(installed.code).toBe(0);
      expect(dpkg("--status", "ninefold").output).toContain("Status: install ok installed\n");
      expect(readFileSync(at(FILES[2] ?? ""), "utf8")).toContain(
        "\nExecStart=/usr/bin/ninefold serve --config ",
      );
      expect(
        ["etc/ninefold/master.key", "etc/ninefold/operator.key"].map((path) => modeOf(at(path))),
      ).toEqual(["600", "600"]);
      expect(isBearerKey(readFileSync(at("etc/ninefold/operator.key"), "utf8").trimEnd())).toBe(true);
      const server = await serve();
      const before = Number(await balance(server));
      const client = new Client(server.url, String(keys["scale"]));
      expect((await client.post("/v1/meter/customer-1/refill", { amount: 5 })).status).toBe(200);
      expect(await server.stop()).toBe(0);

      writeFileSync(at("etc/ninefold/ninefold.toml"), 'host = "127.0.0.1"\nsignup = "free"\n');
      const secrets = ["master.key", "operator.key"].map((name) =>
        readFileSync(at(`etc/ninefold/${name}`), "utf8"),
      );
      expect(dpkg("--install", newer).code).toBe(0);
      expect(dpkg("--status", "ninefold").output).toContain("\nVersion: 99.0.0\n");
      expect(readFileSync(at("etc/ninefold/ninefold.toml"), "utf8")).toContain('signup = "free"');
      expect(
        ["master.key", "operator.key"].map((name) => readFileSync(at(`etc/ninefold/${name}`), "utf8")),
      ).toEqual(secrets);
      const upgraded = await serve();
      expect(await balance(upgraded)).toBe(before + 5);
      expect(await upgraded.stop()).toBe(0);

      mkdirSync(at("var/backups/ninefold"), { recursive: true });
      writeFileSync(at("var/backups/ninefold/a.db"), "");
      expect(dpkg("--remove", "ninefold").code).toBe(0);
      expect(existsSync(at("usr/bin/ninefold"))).toBe(false);
      expect(existsSync(join(data, "ninefold.db"))).toBe(true);
      expect(readdirSync(at("etc/ninefold")).sort()).toEqual(["master.key", "ninefold.toml", "operator.key"]);

      expect(dpkg("--purge", "ninefold").code).toBe(0);
      expect([
        existsSync(data),
        existsSync(at("etc/ninefold")),
        existsSync(at("var/backups/ninefold/a.db")),
      ]).toEqual([false, false, true]);
      expect(existsSync(at(dirname(FILES[4] ?? "")))).toBe(false);
    },
    2 * TIMEOUT_MS,
  );
});
