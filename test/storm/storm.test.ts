import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { runStorm } from "../harness/storm/storm.ts";
import { type Grant, Resource, Witness } from "../harness/storm/witness.ts";

/** Far above the usual duration, for a busy machine. */
const TIMEOUT_MS = 180_000;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-storm-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test(
  "locks under many clients, dropped connections and kills: one holder at a time, in order, nothing lost",
  async () => {
    const result = await runStorm({
      command: NINEFOLD_COMMAND,
      folder,
      seconds: 5,
      clients: 200,
      keys: 10,
      kills: 2,
      seed: 20_260_310,
    });
    expect(result.problems).toEqual([]);
    // The run must have caused contention, otherwise it shows nothing.
    expect(result.grants).toBeGreaterThan(200);
    expect(result.dropped).toBeGreaterThan(5);
    expect(result.releasesFound).toBeGreaterThan(5);
  },
  TIMEOUT_MS,
);

describe("the witness reports", () => {
  const now = 1_000_000;
  const grant: Grant = {
    client: 1,
    key: "k",
    token: "t",
    fencingToken: 5,
    expiresAt: now + 1_000,
    requestId: "00000000-0005-7000-8000-000000000000",
  };
  const next: Grant = {
    ...grant,
    client: 2,
    fencingToken: 6,
    requestId: "00000000-0006-7000-8000-000000000000",
  };
  const cases: readonly (readonly [name: string, act: (witness: Witness) => void, problem: RegExp | null])[] =
    [
      [
        "two holders at the same time",
        (witness) => witness.granted(next),
        /client 2 acquired it while client 1 held it/,
      ],
      [
        "no problem when the first holder is about to release",
        (witness) => {
          witness.releasing(grant);
          witness.granted(next);
        },
        null,
      ],
      [
        "a fencing token that does not increase",
        (witness) => {
          witness.releasing(grant);
          witness.granted({ ...next, fencingToken: 5 });
        },
        /fencing token 5 after 5/,
      ],
      [
        "a waiter that was overtaken",
        (witness) => {
          witness.releasing(grant);
          witness.granted({ ...next, requestId: "00000000-0004-7000-8000-000000000000" });
        },
        /was overtaken by 00000000-0005/,
      ],
      [
        "no order across a restart of the server",
        (witness) => {
          witness.releasing(grant);
          witness.restarted();
          witness.granted({ ...next, requestId: "00000000-0004-7000-8000-000000000000" });
        },
        null,
      ],
      [
        "a refresh with another fencing token",
        (witness) => witness.refreshed(grant, { ...grant, fencingToken: 6 }),
        /refreshed from fencing token 5 to 6/,
      ],
      [
        "a second holder within a refreshed lease",
        (witness) => {
          witness.refreshed({ ...grant }, { ...grant });
          witness.granted(next);
        },
        /client 2 acquired it while client 1 held it/,
      ],
    ];
  test.each(cases)("%s", (_name, act, problem) => {
    const witness = new Witness(() => now);
    witness.granted(grant);
    act(witness);
    if (problem === null) expect(witness.problems).toEqual([]);
    else expect(witness.problems.join("\n")).toMatch(problem);
  });

  test("no problem when the lease has expired", () => {
    let time = now;
    const witness = new Witness(() => time);
    witness.granted(grant);
    expect(witness.holders(999)).toEqual([grant]);
    expect(witness.holders(1_000)).toEqual([]);
    time = grant.expiresAt;
    witness.granted(next);
    expect(witness.problems).toEqual([]);
  });

  test("the resource rejects a token below the highest one of earlier writes", () => {
    const resource = new Resource();
    expect([5, 5, 7, 6, 7].map((token) => resource.write("k", token))).toEqual([
      true,
      true,
      true,
      false,
      true,
    ]);
    expect(resource.write("other", 1)).toBe(true);
    expect(resource.rejected).toBe(1);
  });
});
