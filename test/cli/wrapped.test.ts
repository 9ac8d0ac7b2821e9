import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { initialConfig } from "../../src/cli/config-init.ts";
import { readConfigFile } from "../../src/config/sources.ts";
import { loadConfig } from "../../src/config.ts";
import { freePort } from "../harness/processes/ports.ts";
import { NINEFOLD_COMMAND, plainEnvironment } from "../harness/processes/server-process.ts";
import { until } from "../support/eventually.ts";
import { type AccountClient, startTestServer, useTestServer } from "../support/server.ts";
import { ninefold } from "./run.ts";

/** Commands run others; busy machines take longer. */
setDefaultTimeout(60_000);

const server = useTestServer();
let account: AccountClient;
let folder: string;
beforeAll(async () => {
  account = await server.account({ tier: "unlimited" });
  folder = mkdtempSync(join(tmpdir(), "ninefold-wrapped-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** An environment without this machine's settings. */
const isolated = () => ({ HOME: folder, XDG_CONFIG_HOME: join(folder, "config") });
const called = () => ({ ...isolated(), NINEFOLD_URL: server.url, NINEFOLD_API_KEY: account.key ?? "" });

/** A command that runs another one, without waiting for it. */
function begin(args: readonly string[], environment: Record<string, string> = called()) {
  return Bun.spawn([...NINEFOLD_COMMAND, ...args], {
    env: plainEnvironment(environment),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

describe("ping", () => {
  async function heartbeat(): Promise<{ id: string; url: string }> {
    const slug = `s-${crypto.randomUUID().slice(0, 8)}`;
    const { body } = await account.post("/v1/pulse", { type: "heartbeat", slug });
    return { id: String(body["id"]), url: String(body["ping_url"]) };
  }
  const pingsOf = async (id: string) =>
    (await account.get(`/v1/pulse/${id}/pings`)).body["pings"] as {
      kind: string;
      exit: number | null;
      rid: string;
      body: string | null;
      duration_ms: number | null;
    }[];

  test.each([
    ["success", ["true"], 0, "success"],
    ["a failure", ["sh", "-c", "exit 3"], 3, "fail"],
    ["the highest exit code", ["sh", "-c", "exit 255"], 255, "fail"],
    ["a signal", ["sh", "-c", "kill -KILL $$"], 137, "fail"],
    ["a missing command", ["/nowhere/at-all"], 127, "fail"],
    ["a command that cannot be executed", ["/etc/hostname"], 126, "fail"],
  ] as const)("passes the exit code on: %s", async (_, command, exit, kind) => {
    const { id, url } = await heartbeat();
    const ended = await ninefold(["ping", url, "--", ...command], { environment: isolated() });
    expect([ended.code, ended.out]).toEqual([exit, ""]);
    if (exit === 126 || exit === 127) expect(ended.error).toContain(`${command[0]} could not be run (E`);
    else expect(ended.error).toBe("");
    const [last, first] = await pingsOf(id);
    expect(first).toMatchObject({ kind: "start" });
    expect(last).toMatchObject({ kind, exit, rid: first?.rid ?? "" });
    expect(last?.duration_ms).not.toBeNull();
  });

  test("passes output on, and reports its last 10 kB", async () => {
    const { id, url } = await heartbeat();
    const script = "i=0; while [ $i -lt 3000 ]; do echo line-$i; i=$((i+1)); done; echo problem >&2";
    const ended = await ninefold(["ping", url, "--", "sh", "-c", script], { environment: isolated() });
    expect(ended.out.length).toBeGreaterThan(20_000);
    expect(ended.error).toBe("problem\n");
    const [last] = await pingsOf(id);
    expect(last?.body).toContain("line-2999\n");
    expect(last?.body).toHaveLength(10_000);
  });

  test("passes signals on to the command", async () => {
    const { id, url } = await heartbeat();
    const ready = join(folder, "ready");
    const script = `trap 'exit 9' TERM; : > ${ready}; while :; do sleep 0.05; done`;
    const child = begin(["ping", url, "--", "sh", "-c", script], isolated());
    await until(() => existsSync(ready));
    child.kill("SIGTERM");
    expect(await child.exited).toBe(9);
    expect((await pingsOf(id))[0]).toMatchObject({ kind: "fail", exit: 9 });
  });

  test("by slug, with the ping key of the project", async () => {
    await account.post("/v1/pulse", { type: "heartbeat", slug: "by-slug", name: "By slug" });
    const { body } = await account.post("/v1/pulse/ping-key");
    const environment = {
      ...isolated(),
      NINEFOLD_URL: server.url,
      NINEFOLD_PING_KEY: String(body["ping_key"]),
    };
    const ended = await ninefold(["ping", "--slug", "by-slug", "--", "echo", "done"], { environment });
    expect(ended).toEqual({ code: 0, out: "done\n", error: "" });
    const { monitors } = (await account.get("/v1/pulse?name=By%20slug")).body as {
      monitors: { status: string }[];
    };
    expect(monitors[0]?.status).toBe("up");
  });

  test("a ping that is not accepted is a warning", async () => {
    const url = `${server.url}/ping/${crypto.randomUUID()}`;
    const ended = await ninefold(["ping", url, "--", "echo", "done"], { environment: isolated() });
    expect([ended.code, ended.out]).toEqual([0, "done\n"]);
    expect(ended.error).toContain("ninefold: the ping could not be sent: the server returned 404");
  });

  test.each([
    [["ping", "--", "true"], "ping needs a URL, or --slug SLUG."],
    [["ping", "https://example.com/ping/x"], "ping needs a command after --."],
    [["ping", "--slug", "A", "--", "true"], "--slug must be"],
    [["ping", "ftp://x", "--", "true"], "URL must be a ping URL"],
  ])("usage: %p", async (args, message) => {
    const ended = await ninefold(args, { environment: isolated() });
    expect(ended.code).toBe(2);
    expect(ended.error).toContain(message);
  });
});

describe("lock", () => {
  const isLocked = async (key: string) => (await account.get(`/v1/latch/${key}`)).body["locked"] === true;

  test("runs the command with a fencing token, passes its exit code on, and releases the lock", async () => {
    const ended = await ninefold(["lock", "job", "--", "sh", "-c", "echo $NINEFOLD_FENCING_TOKEN; exit 4"], {
      environment: called(),
    });
    expect(ended.code).toBe(4);
    expect(Number(ended.out)).toBeGreaterThan(0);
    expect(await isLocked("job")).toBe(false);
  });

  test("exit code 75 when others hold the lock; with --wait it waits", async () => {
    await account.post("/v1/latch/taken/acquire", { ttl: 4_000 });
    const once = ["lock", "taken", "--wait", "0", "--", "echo", "never"];
    const rejected = await ninefold(once, { environment: called() });
    expect(rejected).toEqual({
      code: 75,
      out: "",
      error: "ninefold: the lock taken is held by another process.\n",
    });
    const waited = await ninefold(["lock", "taken", "--wait", "15s", "--", "echo", "now"], {
      environment: called(),
    });
    expect([waited.code, waited.out]).toEqual([0, "now\n"]);
  });

  test("the lock is extended while the command runs", async () => {
    const child = begin(["lock", "long", "--ttl", "4s", "--", "sleep", "6"]);
    await until(() => isLocked("long"));
    const { body } = await account.get("/v1/latch");
    const [first] = (body["locks"] as { key: string; fencing_token: number }[]).filter(
      ({ key }) => key === "long",
    );
    expect(await child.exited).toBe(0);
    expect(await new Response(child.stderr).text()).toBe("");
    expect(first?.fencing_token).toBeGreaterThan(0);
    expect(await isLocked("long")).toBe(false);
  });

  test("a lost lock stops the command", async () => {
    const child = begin(["lock", "lost", "--ttl", "2s", "--", "sleep", "60"]);
    await until(() => isLocked("lost"));
    const { body } = await account.get("/v1/latch");
    const [held] = (body["locks"] as { key: string; fencing_token: number }[]).filter(
      ({ key }) => key === "lost",
    );
    await account.post("/v1/latch/lost/force-release", { fencing_token: held?.fencing_token });
    await account.post("/v1/latch/lost/acquire", { ttl: 60_000 });
    expect(await child.exited).toBe(143);
    expect(await new Response(child.stderr).text()).toContain("ninefold: the lock is lost:");
  });

  test("a restarted server does not end the command", async () => {
    const separateServer = await startTestServer({ args: ["--port", String(freePort())] });
    try {
      const environment = {
        ...isolated(),
        NINEFOLD_URL: separateServer.url,
        NINEFOLD_API_KEY: separateServer.key,
      };
      const go = join(folder, "go");
      const script = `while [ ! -e ${go} ]; do sleep 0.05; done`;
      const child = begin(["lock", "job", "--ttl", "30s", "--", "sh", "-c", script], environment);
      const held = async () => (await separateServer.operator.get("/v1/latch/job")).body["locked"] === true;
      await until(held);
      await separateServer.restart();
      expect(await held()).toBe(true);
      writeFileSync(go, "");
      expect(await child.exited).toBe(0);
      expect(await held()).toBe(false);
    } finally {
      await separateServer.stop();
    }
  });

  test("a server that stays away ends the command before the lock expires", async () => {
    const separateServer = await startTestServer();
    try {
      const environment = {
        ...isolated(),
        NINEFOLD_URL: separateServer.url,
        NINEFOLD_API_KEY: separateServer.key,
      };
      const held = async () => (await separateServer.operator.get("/v1/latch/job")).body["locked"] === true;
      const child = begin(["lock", "job", "--ttl", "3s", "--", "sleep", "60"], environment);
      await until(held);
      await separateServer.halt();
      expect(await child.exited).toBe(143);
      expect(await new Response(child.stderr).text()).toContain("it could not be extended in time");
    } finally {
      await separateServer.stop();
    }
  });

  test.each([
    [["lock", "a", "--ttl", "5", "--", "true"], "--ttl must be from 1s to 15m"],
    [["lock", "a", "--wait", "16m", "--", "true"], "--wait must be from 1s to 15m"],
    [["lock", "a"], "lock needs a command after --."],
  ])("usage: %p", async (args, message) => {
    const ended = await ninefold(args, { environment: called() });
    expect(ended.code).toBe(2);
    expect(ended.error).toContain(message);
  });
});

describe("login", () => {
  const credentials = () => join(folder, "config", "ninefold", "credentials");

  test("later commands use the stored server and key; the environment comes first", async () => {
    const environment = isolated();
    const key = join(folder, "key");
    writeFileSync(key, `${account.key}\n`);
    const done = await ninefold(["login", server.url, "--api-key-file", key], { environment });
    expect(done.code, done.error).toBe(0);
    expect(statSync(credentials()).mode & 0o777).toBe(0o600);
    const listed = await ninefold(["key", "list"], { environment });
    expect(listed.code, listed.error).toBe(0);
    // A key of the environment or of a file is used with the stored server.
    const own = { ...environment, NINEFOLD_API_KEY: account.key ?? "" };
    expect((await ninefold(["key", "list"], { environment: own })).code).toBe(0);
    expect((await ninefold(["key", "list", "--api-key-file", key], { environment })).code).toBe(0);
    const elsewhere = { ...own, NINEFOLD_URL: "http://127.0.0.1:9" };
    expect((await ninefold(["key", "list"], { environment: elsewhere })).error).toContain(
      "http://127.0.0.1:9",
    );
    // Another server never receives the stored key.
    const other = await ninefold(["key", "list", "--url", "http://127.0.0.1:9"], { environment });
    expect(other.error).toContain("Set NINEFOLD_API_KEY");
    const received: (string | null)[] = [];
    const stranger = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        received.push(request.headers.get("authorization"));
        return new Response("{}", { status: 404 });
      },
    });
    try {
      const url = `http://127.0.0.1:${stranger.port}`;
      const forwarding = ["listen", "--bucket", "b", "--forward", "http://127.0.0.1:9", "--url", url];
      expect((await ninefold(forwarding, { environment })).code).not.toBe(0);
      expect((await ninefold(["healthcheck", "--url", url], { environment })).code).toBe(1);
      expect(received).toEqual([null]);
    } finally {
      await stranger.stop(true);
    }
    const wrong = { ...environment, NINEFOLD_API_KEY: "sm_x", NINEFOLD_URL: server.url };
    expect((await ninefold(["key", "list"], { environment: wrong })).error).toContain(
      "not a well-formed API key",
    );
    const byFile = ["key", "list", "--api-key-file", key, "--url", server.url];
    expect((await ninefold(byFile, { environment: wrong })).code).toBe(0);
    const out = await ninefold(["logout"], { environment });
    expect([out.code, existsSync(credentials())]).toEqual([0, false]);
    expect((await ninefold(["key", "list"], { environment })).code).toBe(1);
  });

  test("a key that is not valid is not stored; without a terminal, a file is required", async () => {
    const environment = isolated();
    const asked = await ninefold(["login", server.url], { environment });
    expect([asked.code, asked.error]).toEqual([
      2,
      "ninefold: login needs --api-key-file FILE where nobody can be asked.\n",
    ]);
    const key = join(folder, "wrong-key");
    const { body } = await account.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["gate:read"] });
    await account.delete(`/v1/keys/${body["key_id"]}`);
    writeFileSync(key, String(body["secret"]));
    const rejected = await ninefold(["login", server.url, "--api-key-file", key], { environment });
    expect([rejected.code, existsSync(credentials())]).toEqual([1, false]);
  });
});

describe("config init", () => {
  test("writes every option as a comment, and replaces no file", async () => {
    const path = join(folder, "ninefold.toml");
    const result = await ninefold(["config", "init", path], { environment: isolated() });
    expect(result.code, result.error).toBe(0);
    expect(readFileSync(path, "utf8")).toBe(initialConfig());
    const again = await ninefold(["config", "init", path], { environment: isolated() });
    expect([again.code, again.error]).toEqual([
      1,
      `ninefold: ${path} exists. Choose another path, or delete it first.\n`,
    ]);
    expect(loadConfig(["--config", path], {})).toMatchObject({ port: 9909 });
  });

  test("the options that have a default are at it", () => {
    const path = join(folder, "all.toml");
    // The tables of a list, such as `[[people]]`, have no defaults: they are examples up to the next empty line.
    const isExample = (before: readonly string[]): boolean =>
      before.findLast((line) => line === "" || line.startsWith("# [["))?.startsWith("# [[") ?? false;
    const set = initialConfig()
      .split("\n")
      .map((line, at, lines) =>
        /^# (?!backup)\w+ = /.test(line) &&
        !isExample(lines.slice(0, at)) &&
        !/Not set by default\.$/.test(lines[at - 1] ?? "")
          ? line.slice(2)
          : line,
      );
    writeFileSync(path, set.join("\n"));
    expect(readConfigFile(path).values.size).toBeGreaterThan(20);
    // Without what names the file, and where each value is from.
    const { settings: _, values: __, ...plain } = loadConfig([], {});
    const { settings: ___, values: ____, ...loaded } = loadConfig(["--config", path], {});
    expect({ ...loaded, optionsSet: plain.optionsSet }).toEqual(plain);
  });
});
