import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { ATTACKS } from "../harness/storm/attacks.ts";
import { describeNeighbours, runNeighbours } from "../harness/storm/neighbours.ts";

/** Far above the usual duration, for a busy machine. */
const TIMEOUT_MS = 120_000;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-neighbours-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test(
  "a ping gets a response while another tenant sends expensive requests",
  async () => {
    const rows = await runNeighbours({ command: NINEFOLD_COMMAND, folder, seconds: 0.2, scale: 0.01 });
    for (const { name, clients, statuses } of ATTACKS) {
      const row = rows.find((row) => row.name === name);
      expect([name, row?.statuses.filter((status) => !statuses.includes(status))]).toEqual([name, []]);
      expect(row?.requests).toBeGreaterThanOrEqual(clients);
      expect(row?.pings).toBeGreaterThan(0);
      // How long they take depends on the machine: `scripts/harness storm` judges it, and test/api/event-loop.test.ts the turns.
      expect(row?.p99Ms).toBeGreaterThan(0);
      expect(describeNeighbours(rows)).toContain(name);
    }
  },
  TIMEOUT_MS,
);
