import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OPTIONS } from "../../src/config/options.ts";
import { readConfigFile } from "../../src/config/sources.ts";
import { loadConfig } from "../../src/config.ts";
import { ROOT } from "../harness/processes/server-process.ts";

const folder = mkdtempSync(join(tmpdir(), "ninefold-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const PACKAGING = "packaging";

/** Every variable that configures the server, secrets also by file. */
const VARIABLES = OPTIONS.flatMap(({ variable, secret }) =>
  secret === true ? [variable, `${variable}_FILE`] : [variable],
);

/** The settings of a unit's section, each with all of its values. */
function settingsOf(unit: string): Map<string, string[]> {
  const settings = new Map<string, string[]>();
  for (const line of unit.split("\n")) {
    const [, name, value = ""] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined) settings.set(name, [...(settings.get(name) ?? []), value]);
  }
  return settings;
}

/** The first version of systemd that verifies unit files. */
const OFFLINE_SINCE = 250;

function systemdVersion(analyze: string): number {
  return Number(/^systemd (\d+)/.exec(Bun.spawnSync([analyze, "--version"]).stdout.toString())?.[1] ?? 0);
}

describe("the service", () => {
  const text = read(`${PACKAGING}/ninefold.service`);
  const settings = settingsOf(text);

  test("has its data folder and its secrets where the server reads them", () => {
    const environment = Object.fromEntries(
      (settings.get("Environment") ?? []).map((pair) => pair.split("=") as [string, string]),
    );
    expect(Object.keys(environment).filter((name) => !VARIABLES.includes(name))).toEqual([]);
    expect(environment["NINEFOLD_DATA"]).toBe(`/var/lib/${settings.get("StateDirectory")?.[0]}`);
    const credentials = (settings.get("LoadCredential") ?? []).map((pair) => pair.split(":")[0]);
    expect(credentials).toEqual(["master_key", "operator_key"]);
    for (const credential of credentials) {
      expect(environment[`NINEFOLD_${credential?.toUpperCase()}_FILE`]).toBe(
        `/run/credentials/ninefold.service/${credential}`,
      );
    }
  });

  test("gives a stop more than the ten seconds that requests get", () => {
    expect(Number(settings.get("TimeoutStopSec")?.[0])).toBeGreaterThan(10 + 5);
  });

  test("is accepted and found well confined by systemd, where that is there", () => {
    const analyze = Bun.which("systemd-analyze");
    // The most important rules are in the text in any case.
    expect(settings.get("NoNewPrivileges")).toEqual(["yes"]);
    expect(settings.get("ProtectSystem")).toEqual(["strict"]);
    expect(settings.get("CapabilityBoundingSet")).toEqual([""]);
    expect(settings.has("MemoryDenyWriteExecute")).toBe(false);
    if (analyze === null || systemdVersion(analyze) < OFFLINE_SINCE) return;
    const unit = join(folder, "ninefold.service");
    // The executable need not be installed here.
    writeFileSync(unit, text.replace("/usr/local/bin/ninefold", "/bin/sh"));
    const verified = Bun.spawnSync([analyze, "verify", unit]);
    expect(verified.exitCode).toBe(0);
    // Messages about other units of the machine are ignored.
    expect(`${verified.stdout}${verified.stderr}`).not.toContain("ninefold.service");
    const judged = Bun.spawnSync([analyze, "security", "--offline=true", unit]);
    expect(judged.stdout.toString()).toMatch(/Overall exposure level for ninefold\.service: [01]\.\d OK/);
  });

  test("starts with a configuration that the server takes", () => {
    const file = join(ROOT, PACKAGING, "ninefold.toml");
    expect([...readConfigFile(file).values.keys()].sort()).toEqual(["host", "port", "signup", "trust_proxy"]);
    expect(loadConfig(["--config", file], {})).toMatchObject({
      host: "127.0.0.1",
      signup: "closed",
      trustProxy: ["127.0.0.1/32", "::1/128"],
    });
  });
});

describe("the image", () => {
  const lines = read("Dockerfile").replaceAll("\\\n", " ").split("\n");
  const of = (instruction: string): string[] =>
    lines
      .filter((line) => line.startsWith(`${instruction} `))
      .map((line) => line.slice(instruction.length + 1));

  test("is built from files that exist and are part of the context", () => {
    const admitted = read(".dockerignore")
      .split("\n")
      .filter((line) => line.startsWith("!"))
      .map((line) => line.slice(1));
    const copied = of("COPY")
      .filter((line) => !line.startsWith("--from"))
      .flatMap((line) => line.split(" ").slice(0, -1));
    expect(copied.length).toBeGreaterThan(5);
    expect(copied.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    expect(copied.filter((path) => !admitted.includes(path.split("/")[0] ?? ""))).toEqual([]);
  });

  test("runs as nobody, on a volume that nobody owns", () => {
    const [user = ""] = of("USER");
    expect(user).toBe("65532:65532");
    expect(of("VOLUME")).toEqual(["/data"]);
    expect(of("COPY")).toContain(`--from=build --chown=${user} /build/out/data /data`);
    expect(of("FROM").at(-1)).toEndWith(":nonroot");
  });

  test("sets variables that the server knows", () => {
    const pairs = of("ENV")
      .flatMap((line) => line.split(" "))
      .map((pair) => pair.split("=") as [string, string]);
    expect(pairs.map(([name]) => name).filter((name) => !VARIABLES.includes(name))).toEqual([]);
    expect(loadConfig([], Object.fromEntries(pairs))).toMatchObject({
      host: "0.0.0.0",
      port: Number(of("EXPOSE")[0]),
      dataFolder: "/data",
    });
  });
});

interface Compose {
  readonly services: Record<
    "ninefold" | "caddy",
    {
      readonly environment: Record<string, string>;
      readonly networks: { readonly inside: { readonly ipv4_address: string } };
      readonly ports?: readonly string[];
    }
  >;
  readonly configs: { readonly caddyfile: { readonly content: string } };
  readonly networks: {
    readonly inside: { readonly ipam: { readonly config: readonly { subnet: string }[] } };
  };
}

describe("the composition", () => {
  const { services, configs, networks } = Bun.YAML.parse(read("compose.yaml")) as Compose;
  const { ninefold, caddy } = services;

  test("trusts only Caddy, which has a fixed address in their common network", () => {
    const address = caddy.networks.inside.ipv4_address;
    expect(ninefold.environment).toEqual({
      NINEFOLD_PUBLIC_URL: "${PUBLIC_URL:-https://${DOMAIN}}",
      NINEFOLD_TRUST_PROXY: `${address}/32`,
    });
    const subnet = networks.inside.ipam.config[0]?.subnet ?? "";
    expect(subnet).toMatch(/\.0\/29$/);
    for (const { networks: joined } of [ninefold, caddy]) {
      expect(Object.keys(joined)).toEqual(["inside"]);
      expect(joined.inside.ipv4_address).toStartWith(subnet.replace(/0\/29$/, ""));
    }
  });

  test("lets nobody in but through Caddy, which goes to the port that the image listens on", () => {
    expect(ninefold.ports).toBeUndefined();
    expect(caddy.ports).toEqual(["80:80", "443:443", "443:443/udp"]);
    expect(configs.caddyfile.content).toContain("reverse_proxy ninefold:9909 {");
    // Compose would replace it if it were not escaped.
    expect(configs.caddyfile.content).toContain("{$$DOMAIN} {");
    expect(configs.caddyfile.content).not.toMatch(/flush_interval -/);
  });
});
