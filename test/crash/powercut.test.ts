import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildShim, missingForShim } from "../harness/powercut/build-shim.ts";
import type { Kind } from "../harness/powercut/images.ts";
import { type ImageResult, simulate } from "../harness/powercut/simulation.ts";
import { describeImage, summaryOf } from "../harness/powercut/verdict.ts";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { repeated } from "../support/long-form.ts";

const IMAGES = repeated(8, 40);
/** Changes of an image that the simulation has to notice: each takes a recording of its own. */
const TAMPERED_RUNS = repeated(1, 4);
const SEED = 20_261_121;
/** Far above what a run takes: a machine that is busy with other things must not fail it. */
const TIMEOUT_MS = 600_000;

let folder = "";
let shim = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-powercut-test-"));
  if (missingForShim() === null) shim = buildShim(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Short {
  readonly images: number;
  readonly faults: number;
  readonly only?: Kind;
  readonly tamper?: (data: string) => void;
}

function run(short: Short): Promise<ImageResult[]> {
  const own = mkdtempSync(join(folder, "run-"));
  const failedFolder = join(own, "failed");
  mkdirSync(failedFolder);
  return simulate({
    command: NINEFOLD_COMMAND,
    shim,
    folder: own,
    failedFolder,
    seed: SEED,
    acts: 120,
    ...short,
  });
}

const missing = missingForShim();

if (missing !== null) {
  test(`power cuts are not simulated here: ${missing}`, () => {
    console.log(`power cuts are not simulated here: ${missing}`);
    expect(missing).not.toBe("");
  });
} else {
  test(
    `${IMAGES} power cuts: nothing that was answered is lost, doubled, or there though it was refused`,
    async () => {
      const results = await run({ images: IMAGES, faults: 3 });
      expect(results.filter(({ problems }) => problems.length > 0).map(describeImage)).toEqual([]);
      expect(summaryOf(results).isGood).toBe(true);
      // Otherwise the cuts have hit an idle server, and the test has shown nothing.
      const acknowledged = results.reduce((sum, result) => sum + result.acknowledged, 0);
      expect(acknowledged).toBeGreaterThan(IMAGES * 50);
    },
    TIMEOUT_MS,
  );

  describe("the simulation notices", () => {
    const edit = (sql: string) => (data: string) => {
      const db = new Database(join(data, "ninefold.db"));
      db.run(sql);
      db.close();
    };
    const cases: readonly (readonly [name: string, tamper: (data: string) => void, wanted: RegExp])[] = [
      [
        "a log that has lost its end",
        (data) => truncateSync(join(data, "ninefold.db-wal"), 0),
        /[1-9]\d* lost/,
      ],
      [
        "a change that is there twice",
        edit(
          "INSERT INTO meter_entries (sequence, meter_ref, previous, kind, amount, balance_after, at, request_id) SELECT 1 + (SELECT max(sequence) FROM meter_entries), meter_ref, sequence, kind, amount, balance_after + amount, at, request_id FROM meter_entries WHERE kind = 2 AND meter_ref IN (SELECT ref FROM meters WHERE meter_id LIKE 'meter-%') ORDER BY sequence DESC LIMIT 1",
        ),
        /[1-9]\d* doubled/,
      ],
      [
        "a change that nobody was granted",
        edit(
          "INSERT INTO meter_entries (sequence, meter_ref, previous, kind, amount, balance_after, at, request_id) SELECT 1 + (SELECT max(sequence) FROM meter_entries), meter_ref, sequence, kind, 987654, balance_after + 987654, at, request_id FROM meter_entries WHERE kind = 2 AND meter_ref IN (SELECT ref FROM meters WHERE meter_id LIKE 'meter-%') ORDER BY sequence DESC LIMIT 1",
        ),
        /[1-9]\d* refused but applied/,
      ],
      ["a server that does not start", (data) => truncateSync(join(data, "master.key"), 10), /[1-9]\d* lost/],
    ];
    test.each(cases.slice(0, TAMPERED_RUNS))(
      "%s",
      async (_name, tamper, wanted) => {
        const results = await run({ images: 2, faults: 0, only: "dropped", tamper });
        expect(summaryOf(results).isGood).toBe(false);
        expect(summaryOf(results).line).toMatch(wanted);
      },
      TIMEOUT_MS,
    );
  });
}
