import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { commandHelp } from "../../src/cli/help.ts";
import { COMMANDS } from "../../src/cli/table.ts";
import type { ServerProcess } from "../harness/processes/server-process.ts";
import { Client } from "../support/client.ts";
import { makeChain } from "../support/receipts.ts";
import { Binaries, operatorOf, runToEnd, TIMEOUT_MS } from "./support.ts";

const binaries = new Binaries();
let data = "";
let server: ServerProcess;
beforeAll(async () => {
  data = binaries.data();
  server = await binaries.start(["--data", data]);
}, TIMEOUT_MS);
afterAll(() => binaries.close());

/** Runs a command as the operator of the running server. */
function call(line: string) {
  return runToEnd(line.split(" "), {
    NINEFOLD_URL: server.url,
    NINEFOLD_API_KEY: operatorOf(server).key ?? "",
  });
}

// Every command is code of its own that is loaded when it is called: each must be in the executable.
describe("every command is in the executable", () => {
  test.each(COMMANDS)(
    "$name",
    async (command) => {
      const help = await runToEnd([...command.name.split(" "), "--help"]);
      expect(help).toEqual({ code: 0, out: commandHelp(command), error: "" });
      const wrong = await runToEnd([...command.name.split(" "), "--no-such-option"]);
      // Of these, 2 means that there is something to change.
      const usageError = ["plan", "apply"].includes(command.name) ? 1 : 2;
      expect([wrong.code, wrong.out]).toEqual([usageError, ""]);
      expect(wrong.error).toMatch(/^ninefold: [^\n]+\n$/);
    },
    TIMEOUT_MS,
  );
});

test(
  "account and key, on the running server and on the stopped one's folder",
  async () => {
    const created = await call("account create ada@example.com --tier pro --json");
    expect([created.code, created.error]).toEqual([0, ""]);
    const account = JSON.parse(created.out);
    expect((await new Client(server.url, account.api_key).get("/v1/meter/balance")).body["balance"]).toBe(
      1_000_000,
    );
    expect((await call("account list")).out).toContain("ada@example.com");
    const held = await runToEnd(["key", "create", "--data", data]);
    expect([held.code, held.error]).toEqual([
      1,
      `ninefold: A running server uses ${data}. Omit --data and use --url, or stop the server first.\n`,
    ]);
    await server.stop();
    const made = await runToEnd(["key", "create", "--data", data, "--json"]);
    expect([made.code, made.error]).toEqual([0, ""]);
    server = await binaries.start(["--data", data]);
    const operator = new Client(server.url, JSON.parse(made.out).secret);
    expect((await operator.get("/v1/admin/accounts")).status).toBe(200);
  },
  TIMEOUT_MS,
);

test(
  "doctor, config print, openapi, completions and verify",
  async () => {
    const doctor = await runToEnd([
      "doctor",
      "--data",
      data,
      "--port",
      "0",
      "--dns-name",
      "localhost",
      "--json",
    ]);
    expect([doctor.code, doctor.error, JSON.parse(doctor.out).ok]).toEqual([0, "", true]);
    const config = await runToEnd(["config", "print", "--json"], { NINEFOLD_PORT: "80" });
    expect(JSON.parse(config.out).settings).toContainEqual({
      name: "port",
      value: 80,
      source: "variable",
      origin: "NINEFOLD_PORT",
      secret: false,
    });
    const document = JSON.parse((await runToEnd(["openapi"])).out);
    expect(document).toEqual((await anyone().get("/openapi.json")).body);
    expect((await runToEnd(["__complete", "completions", ""])).out).toBe("bash\nzsh\nfish\n");
    const path = join(binaries.folder, "chain.jsonl");
    await Bun.write(
      path,
      makeChain([{ a: 1 }, { a: 2 }])
        .map((receipt) => JSON.stringify(receipt))
        .join("\n"),
    );
    expect((await runToEnd(["verify", path])).out).toStartWith("valid: receipts 1 to 2 (2)\n");
  },
  TIMEOUT_MS,
);

/** A client without a key. */
function anyone(): Client {
  return new Client(server.url, null);
}

test(
  "healthcheck of a port where nothing listens",
  async () => {
    const { code, error } = await runToEnd(["healthcheck"], { NINEFOLD_PORT: "1" });
    expect([code, error]).toEqual([
      1,
      "ninefold: No server is running at http://127.0.0.1:1: the connection was refused. Start it with ninefold serve, or set another URL with --url.\n",
    ]);
  },
  TIMEOUT_MS,
);
