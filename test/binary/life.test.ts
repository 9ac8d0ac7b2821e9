import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { plainEnvironment } from "../harness/processes/server-process.ts";
import { Client } from "../support/client.ts";
import { until } from "../support/eventually.ts";
import { Binaries, connect, executable, modeOf, operatorOf, runToEnd, TIMEOUT_MS } from "./support.ts";

const binaries = new Binaries();
/** An operator's key that is known beforehand. */
const OPERATOR = { NINEFOLD_OPERATOR_KEY: `sm_${"0".repeat(43)}_92dff3c0` };
afterAll(() => binaries.close());

test(
  "signup, deduct and history; SIGTERM ends it with 0; the next start finds everything and prints no key",
  async () => {
    const data = binaries.data();
    const first = await binaries.start(["--data", data, "--signup", "open"]);
    expect(first.key).toMatch(/^sm_[A-Za-z0-9]{43}_[0-9a-f]{8}$/);
    const signup = await new Client(first.url, null).post("/v1/signup", {
      email: "ada@example.com",
      tier: "free",
    });
    expect(signup.status).toBe(201);
    const key = String(signup.body["api_key"]);
    const ada = new Client(first.url, key);
    expect((await ada.post("/v1/meter/m/refill", { amount: 10 })).body).toEqual({
      balance: 10,
      meter_id: "m",
    });
    expect((await ada.post("/v1/meter/m/deduct", { amount: 3 })).body).toEqual({ balance: 7, meter_id: "m" });
    expect((await ada.post("/v1/meter/m/deduct", { amount: 8 })).status).toBe(402);
    expect(await first.stop("SIGTERM")).toBe(0);

    const second = await binaries.start(["--data", data]);
    expect(second.key).toBeNull();
    const again = new Client(second.url, key);
    const history = (await again.get("/v1/meter/m/history")).body["entries"] as Record<string, unknown>[];
    expect(history.map(({ kind, amount, balance_after }) => [kind, amount, balance_after])).toEqual([
      ["deduct", -3, 7],
      ["refill", 10, 10],
    ]);
    expect((await again.get("/v1/meter/m/balance")).body["balance"]).toBe(7);
    expect((await again.get("/v1/meter/balance")).body["balance"]).toBe(9998);
    expect((await new Client(second.url, first.key).get("/v1/meter/balance")).status).toBe(200);
    expect(await second.stop("SIGINT")).toBe(0);
    // An orderly end leaves one file of the database, with everything in it.
    expect(readdirSync(data).sort()).toEqual(["master.key", "ninefold.db", "ninefold.lock"]);
  },
  TIMEOUT_MS,
);

test(
  "the banner of a first run shows commands that work when pasted; a later run says how to get a key",
  async () => {
    const data = binaries.data();
    const first = await bannerOf(data, async (text) => {
      const commands = text.split("\n").filter((line) => line.trimStart().startsWith("curl "));
      const shell = Bun.spawn(["sh", "-c", commands.join("\n")], {
        env: plainEnvironment(),
        stderr: "ignore",
      });
      expect(await shell.stdout.text()).toBe(
        '{"balance":100,"meter_id":"my-first-meter"}\n{"balance":99,"meter_id":"my-first-meter"}\n',
      );
    });
    expect(first).toMatch(/^Ninefold \d+\.\d+\.\d+ is ready\.\n/);
    expect(first).toMatch(/\n {2}Open {3}http:\/\/localhost:\d+\/dashboard\/#\/setup\/[A-Za-z0-9_-]{43}\n/);
    expect(first).toMatch(/URL {4}http:\/\/127\.0\.0\.1:\d+\n/);
    expect(first).toContain(data);
    expect(first).toMatch(/sm_[A-Za-z0-9]{43}_[0-9a-f]{8}/);
    const second = await bannerOf(data, () => Promise.resolve());
    expect(second).not.toContain("Open");
    expect(second).toContain(data);
    expect(second).not.toContain("sm_");
    expect(second).not.toContain("curl");
    expect(second).toContain(`ninefold key create --data ${data}\n`);
    for (const banner of [first, second])
      expect(banner).toMatch(/^ {2}Sends {2}to public addresses only .*$/m);
    const permitting = await bannerOf(data, () => Promise.resolve(), "--allow-private-targets", "loopback");
    expect(permitting).not.toContain("public addresses");
    const plain = await bannerOf(binaries.data(), () => Promise.resolve(), "--dashboard", "off");
    expect(plain).toContain("curl");
    expect(plain).not.toContain("Open");
  },
  TIMEOUT_MS,
);

test(
  "a server whose log nobody reads any more continues, and stops as usual",
  async () => {
    const folder = binaries.data();
    mkdirSync(folder);
    const pipe = join(folder, "log");
    expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
    const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = openSync(pipe, "w");
    const child = Bun.spawn([executable(), "serve", "--ephemeral", "--json"], {
      env: plainEnvironment(),
      stdin: "ignore",
      stdout: "pipe",
      stderr: writer,
    });
    // From here on, each write fails with EPIPE.
    closeSync(reader);
    closeSync(writer);
    try {
      const output = child.stdout.getReader();
      const { url } = JSON.parse(new TextDecoder().decode((await output.read()).value));
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
      child.kill("SIGTERM");
      expect(await child.exited).toBe(0);
    } finally {
      child.kill("SIGKILL");
    }
  },
  TIMEOUT_MS,
);

/** Starts the executable without `--json`, lets `use` work with its banner, and stops it. Returns the banner. */
async function bannerOf(
  data: string,
  use: (text: string) => Promise<void>,
  ...flags: readonly string[]
): Promise<string> {
  const child = Bun.spawn([executable(), "serve", "--port", "0", "--data", data, ...flags], {
    env: plainEnvironment(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  let text = "";
  try {
    const reader = child.stdout.getReader();
    const decoder = new TextDecoder();
    // The whole banner is one write; a first start's ends with the command.
    while (!(text.includes("/deduct\n") || (text !== "" && !text.includes("sm_")))) {
      const { value, done } = await reader.read();
      if (done) break;
      text += decoder.decode(value);
    }
    await use(text);
  } finally {
    child.kill("SIGTERM");
    await child.exited;
  }
  return text;
}

describe("whatever NODE_ENV says", () => {
  const environments: readonly (readonly [string, Record<string, string>])[] = [
    ["nothing", {}],
    ["development", { NODE_ENV: "development" }],
    ["test", { NODE_ENV: "test" }],
  ];
  test.each(environments)(
    "%s: errors are ours alone",
    async (_name, environment) => {
      const server = await binaries.start(["--data", binaries.data()], environment);
      const operator = operatorOf(server);
      const invalid = await operator.post("/v1/meter/m/deduct", { amount: "5" });
      expect(invalid.status).toBe(400);
      expect(Object.keys(invalid.body).sort()).toEqual(["code", "error", "fields", "request_id"]);
      expect(invalid.body["code"]).toBe("validation_error");
      expect(invalid.body["fields"]).toEqual({ amount: ["must be an integer from 1 to 9007199254740991"] });
      const broken = await operator.post("/v1/meter/m/deduct", "{");
      expect([broken.status, broken.body["code"]]).toEqual([400, "validation_error"]);
      const unknown = await operator.get("/nowhere");
      expect([unknown.status, unknown.body["code"]]).toEqual([404, "not_found"]);
      for (const { text } of [invalid, broken, unknown])
        expect(text).not.toMatch(/node_modules|\.ts:|\bat \w+ \(/);
      await server.stop();
    },
    TIMEOUT_MS,
  );
});

test(
  "everything it writes is its user's alone",
  async () => {
    const made = binaries.data();
    const server = await binaries.start(["--data", made]);
    await operatorOf(server).post("/v1/meter/m/refill", { amount: 1 });
    expect(modeOf(made)).toBe("700");
    const modes = Object.fromEntries(readdirSync(made).map((name) => [name, modeOf(join(made, name))]));
    expect(modes).toEqual({
      "master.key": "600",
      "ninefold.db": "600",
      "ninefold.db-shm": "600",
      "ninefold.db-wal": "600",
      "ninefold.lock": "600",
      "ninefold.lock-journal": "600",
    });
    await server.stop();

    const given = binaries.data();
    mkdirSync(given);
    chmodSync(given, 0o755);
    const second = await binaries.start(["--data", given]);
    expect(modeOf(given)).toBe("755");
    expect(readdirSync(given).map((name) => modeOf(join(given, name)))).not.toContain("644");
    await second.stop();
  },
  TIMEOUT_MS,
);

describe("--ephemeral", () => {
  test(
    "leaves nothing behind",
    async () => {
      const temporary = binaries.data();
      mkdirSync(temporary, { recursive: true });
      for (const signal of ["SIGTERM", "SIGINT", "SIGTERM"] as const) {
        const server = await binaries.start(["--ephemeral"], { TMPDIR: temporary });
        const [folder = "none"] = readdirSync(temporary);
        expect(existsSync(join(temporary, folder, "ninefold.db"))).toBe(true);
        expect(modeOf(join(temporary, folder))).toBe("700");
        expect(await server.stop(signal)).toBe(0);
        expect(readdirSync(temporary)).toEqual([]);
      }
    },
    TIMEOUT_MS,
  );

  test(
    "is open for signup",
    async () => {
      const server = await binaries.start(["--ephemeral"]);
      const body = { email: "grace@example.com", tier: "free" };
      expect((await new Client(server.url, null).post("/v1/signup", body)).status).toBe(201);
      await server.stop();
    },
    TIMEOUT_MS,
  );

  test(
    "with --test-clock time moves only when told to",
    async () => {
      const server = await binaries.start(["--ephemeral", "--test-clock"]);
      const operator = operatorOf(server);
      const before = Number((await operator.post("/v1/admin/clock", { advance_ms: 0 })).body["now"]);
      const after = await operator.post("/v1/admin/clock", { advance_ms: 86_400_000 });
      expect(after.body["now"]).toBe(before + 86_400_000);
      await server.stop();
    },
    TIMEOUT_MS,
  );
});

test(
  "a request in flight is finished at SIGTERM, a new one is rejected",
  async () => {
    const data = binaries.data();
    const server = await binaries.start(["--data", data]);
    const connection = await connect(server);
    const body = JSON.stringify({ amount: 42 });
    const headers = { Authorization: `Bearer ${server.key}`, "Content-Type": "application/json" };
    connection.write(connection.headOf({ method: "POST", path: "/v1/meter/m/refill", headers, body }));
    connection.write(body.slice(0, 5));
    // An answer on another connection: by then the server has read the first half.
    expect((await operatorOf(server).get("/v1/meter/m/balance")).body["balance"]).toBe(0);
    server.signal("SIGTERM");
    await refused(server.url);
    // A second one, as from a wrapper that passes on what the whole group got, does not cut the stopping short.
    server.signal("SIGTERM");
    connection.write(body.slice(5));
    const answer = await connection.answer();
    expect([answer.status, answer.text]).toEqual([200, '{"balance":42,"meter_id":"m"}']);
    expect(await server.exited).toBe(0);
    const next = await binaries.start(["--data", data]);
    const client = new Client(next.url, server.key);
    expect((await client.get("/v1/meter/m/balance")).body["balance"]).toBe(42);
    await next.stop();
  },
  TIMEOUT_MS,
);

/** Waits until nobody accepts connections at an address. */
async function refused(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  for (;;) {
    try {
      const socket = await Bun.connect({ hostname, port: Number(port), socket: { data: () => {} } });
      socket.end();
    } catch {
      return;
    }
    await Bun.sleep(10);
  }
}

/** Changes that fill about 100 MiB of log. */
const CHANGES = 6_000;

test(
  "an end in the middle of a load leaves one file with everything in it",
  async () => {
    const data = binaries.data();
    let balance = 0;
    for (let round = 0; round < 8; round += 1) {
      const server = await binaries.start(["--data", data, "--durability", "normal"], OPERATOR);
      const operator = new Client(server.url, OPERATOR.NINEFOLD_OPERATOR_KEY);
      let stopped = false;
      const load = async (): Promise<void> => {
        while (!stopped) {
          const answer = await operator.post("/v1/meter/m/refill", { amount: 1 }).catch(() => null);
          if (answer?.status === 200) balance += 1;
        }
      };
      const senders = [load(), load(), load(), load()];
      // Long enough for the checkpoint worker to be at it now and then.
      await Bun.sleep(230 + round * 10);
      const ended = server.stop("SIGTERM");
      expect(await ended).toBe(0);
      stopped = true;
      await Promise.all(senders);
      expect(readdirSync(data).sort()).toEqual(["master.key", "ninefold.db", "ninefold.lock"]);
    }
    const server = await binaries.start(["--data", data], OPERATOR);
    const operator = new Client(server.url, OPERATOR.NINEFOLD_OPERATOR_KEY);
    expect((await operator.get("/v1/meter/m/balance")).body["balance"]).toBe(balance);
    await server.stop();
  },
  TIMEOUT_MS,
);

test(
  "the checkpoint worker moves the write-ahead log into the file while the server runs",
  async () => {
    const data = binaries.data();
    const server = await binaries.start(["--data", data, "--durability", "normal"]);
    const operator = operatorOf(server);
    const file = join(data, "ninefold.db");
    const log = join(data, "ninefold.db-wal");
    const before = statSync(file).size;
    let largest = 0;
    let written = 0;
    const refillUpTo = async (changes: number): Promise<void> => {
      while (written < changes) {
        written += 1;
        // Answers are kept in the order of their keys: random ones touch pages all over the table.
        const headers = { "idempotency-key": crypto.randomUUID() };
        const answer = await operator.post(`/v1/meter/meter-${written}/refill`, { amount: 1 }, { headers });
        expect(answer.status).toBe(200);
        largest = Math.max(largest, statSync(log).size);
      }
    };
    // Far too little for the log's bound to matter: only the worker makes the file grow.
    await refillUpTo(300);
    expect(largest).toBeLessThan(32 * 1024 * 1024);
    await until(() => statSync(file).size > before);
    await Promise.all([1, 2, 3, 4].map(() => refillUpTo(CHANGES)));
    expect(largest).toBeLessThan(64 * 1024 * 1024);
    expect(server.log).not.toContain("checkpoint");
    expect(await server.stop()).toBe(0);
    expect(existsSync(log)).toBe(false);
  },
  TIMEOUT_MS,
);

test("help, version and a missing command", async () => {
  const help = await runToEnd(["--help"]);
  expect([help.code, help.error]).toEqual([0, ""]);
  expect(help.out).toContain("Usage: ninefold COMMAND [OPTIONS]");
  const version = await runToEnd(["--version"]);
  const lines = /^\d+\.\d+\.\d+\ncommit {2}\S+\ndate {4}\S+Z\nBun {5}\S+\nSQLite {2}\S+\n$/;
  expect(version).toEqual({ code: 0, out: expect.stringMatching(lines), error: "" });
  expect((await runToEnd([])).code).toBe(2);
  expect((await runToEnd(["juggle"])).error).toBe(
    'ninefold: there is no command "juggle". Try ninefold --help.\n',
  );
});

test(
  "restores a backup without its master key, with a new one",
  async () => {
    const [data, target] = [binaries.data(), binaries.data()];
    const first = await binaries.start(["--data", data]);
    const operator = new Client(first.url, first.key);
    const endpoint = await operator.post("/v1/relay/endpoints", { url: "https://example.com/hooks" });
    expect(endpoint.status).toBe(201);
    const backup = join(target, "..", `without-key-${process.pid}.db`);
    expect((await runToEnd(["backup", backup, "--data", data])).code).toBe(0);
    expect(await first.stop("SIGTERM")).toBe(0);
    const line = ["restore", backup, "--without-master-key", "--data", target];
    const restored = await runToEnd(line);
    expect(restored.code).toBe(0);
    expect(restored.out).toContain(`endpoint ${String(endpoint.body["endpoint_id"])} of operator@localhost`);
    const second = await binaries.start(["--data", target]);
    const again = new Client(second.url, first.key);
    const { body } = await again.get("/v1/relay/endpoints");
    expect((body["endpoints"] as object[]).length).toBe(1);
    expect(await second.stop("SIGTERM")).toBe(0);
    rmSync(backup, { force: true });
  },
  TIMEOUT_MS,
);
