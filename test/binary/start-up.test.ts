import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { TIMESTAMP_EXPECTED } from "../../src/kernel/time/date-time.ts";
import { residentMiB } from "../harness/processes/usage.ts";
import { leastMs, quietMs } from "../support/processor-time.ts";
import { Binaries, operatorOf, TIMEOUT_MS } from "./support.ts";

/**
 * Processor time of a start and a stop, in milliseconds of a quiet core: half as much again as they take.
 * `scripts/bench --only start-up` measures the time until a server is ready.
 */
const START_MS_MAX = 100;
/** Resident memory of an idle server. It hardly depends on what else the machine does, so there is little slack. */
const IDLE_MIB_MAX = 72;
const IDLE_MS = 1_000;
/** Share of the functions of a start that must stand together in the executable. */
const ORDERED_MIN = 0.8;

const binaries = new Binaries();
afterAll(() => binaries.close());

test(
  "a start takes little processor time",
  async () => {
    const starting = async (): Promise<number> => {
      const server = await binaries.start(["--ephemeral"]);
      await server.stop();
      return quietMs(server.processorMs ?? Number.NaN);
    };
    expect(await leastMs(START_MS_MAX, starting)).toBeLessThanOrEqual(START_MS_MAX);
  },
  TIMEOUT_MS,
);

test(
  "an idle server holds little memory",
  async () => {
    const server = await binaries.start(["--ephemeral"]);
    await Bun.sleep(IDLE_MS);
    const mib = residentMiB(server.pid);
    // Only Linux tells.
    if (process.platform === "linux") expect(mib).toBeGreaterThan(20);
    expect(mib ?? 0).toBeLessThan(IDLE_MIB_MAX);
    await server.stop();
  },
  TIMEOUT_MS,
);

test(
  "the functions of a start stand together in the executable",
  async () => {
    const recorded = join(binaries.folder, "order");
    const server = await binaries.start(["--ephemeral"], { BUN_BYTECODE_ORDER_OUT: recorded });
    await server.stop();
    const functionsIn = (path: string) =>
      new Set(
        readFileSync(path, "utf8")
          .split("\n")
          .filter((line) => line.startsWith("F ")),
      );
    const used = functionsIn(recorded);
    const ordered = functionsIn(join(import.meta.dir, "../../scripts/bytecode.order"));
    expect(used.size).toBeGreaterThan(1_000);
    // Below, run: scripts/build --order
    expect(used.intersection(ordered).size / used.size).toBeGreaterThan(ORDERED_MIN);
  },
  TIMEOUT_MS,
);

test(
  "the first request of a server is checked like any other",
  async () => {
    const server = await binaries.start(["--ephemeral"]);
    const client = operatorOf(server);
    const terms = { name: "First", prefix: "sm", scopes: ["pulse:read"] };
    const { body, status } = await client.post("/v1/keys", { ...terms, expires_at: "tomorrow" });
    expect(status).toBe(400);
    expect(body.error).toMatchObject({
      code: "validation_error",
      message: `expires_at ${TIMESTAMP_EXPECTED}`,
    });
    expect((await client.post("/v1/keys", { ...terms, expires_at: "2099-01-31T12:00:00Z" })).status).toBe(
      201,
    );
    await server.stop();
  },
  TIMEOUT_MS,
);
