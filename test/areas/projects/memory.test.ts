import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  ACTIVITIES_IN_MEMORY_MAX,
  ACTIVITY_WRITE_INTERVAL_MS,
  Activity,
  openProjectDirectory,
  type ProjectDirectory,
  REMOVED_IN_MEMORY_MAX,
} from "../../../src/areas/projects/directory.ts";
import {
  OVERVIEW_TTL_MS,
  OVERVIEWS_IN_MEMORY_MAX,
  Overviews,
  ProjectRemoval,
  REMOVAL_SLICE_ROWS,
} from "../../../src/areas/projects/service.ts";
import type { ProjectRow } from "../../../src/areas/projects/store.ts";
import { ApiError } from "../../../src/kernel/errors.ts";
import type { ProjectResources } from "../../../src/kernel/projects/resources.ts";
import { UNHEARD } from "../../support/audit.ts";
import { TEST_START_MS } from "../../support/server.ts";
import { KernelBench } from "./kernel-bench.ts";

let bench: KernelBench;
let directory: ProjectDirectory;
beforeEach(() => {
  bench = new KernelBench();
  directory = openProjectDirectory(bench.kernel);
});
afterEach(() => bench.close());

const NO_ACCOUNTS = { balance: () => 0, setDefaultProject: () => {} };

function make(name: string, account_ref = 1, of = directory) {
  const project = {
    account_ref,
    name,
    slug: name,
    description: null,
    time_zone: "UTC",
    is_default: 0,
    review: 0,
  };
  return bench.kernel.writer.submit((tx) => of.create(tx, project));
}

describe("overviews in memory", () => {
  let counted: number[];
  let overviews: Overviews;
  beforeEach(() => {
    counted = [];
    const resources: ProjectResources[] = [
      {
        name: "flags",
        count: (ref) => {
          counted.push(ref);
          return counted.length;
        },
        removeRows: () => 0,
      },
    ];
    overviews = new Overviews({
      ...bench.kernel,
      resources,
      accounts: NO_ACCOUNTS,
      directory,
      trail: UNHEARD,
    });
  });

  function rowOf(ref: number): ProjectRow {
    const [id, name] = [`proj_${ref}`, `P${ref}`];
    return {
      ref,
      id,
      account_ref: 1,
      name,
      slug: name,
      description: null,
      time_zone: "UTC",
      is_default: 0,
      review: 0,
      created_at: 0,
      updated_at: 0,
    };
  }

  test(`are at most ${OVERVIEWS_IN_MEMORY_MAX}; one that was dropped is counted again`, () => {
    for (let ref = 1; ref <= OVERVIEWS_IN_MEMORY_MAX; ref += 1) overviews.of(rowOf(ref));
    overviews.of(rowOf(1));
    expect(counted).toHaveLength(OVERVIEWS_IN_MEMORY_MAX);
    overviews.of(rowOf(OVERVIEWS_IN_MEMORY_MAX + 1));
    overviews.of(rowOf(1));
    expect(counted.slice(-2)).toEqual([OVERVIEWS_IN_MEMORY_MAX + 1, 1]);
  });

  test("are counted again after the clock was set back", async () => {
    await bench.clock.advance(OVERVIEW_TTL_MS);
    expect(overviews.of(rowOf(1)).resources["flags"]).toBe(1);
    expect(overviews.of(rowOf(1)).resources["flags"]).toBe(1);
    Reflect.set(bench.clock, "current", TEST_START_MS);
    expect(overviews.of(rowOf(1)).resources["flags"]).toBe(2);
  });
});

describe("the last activity of projects", () => {
  const changed = (activity: Activity, ...refs: number[]) =>
    bench.kernel.writer.submit((tx) => {
      for (const ref of refs) activity.changed(tx, ref);
    });

  /** The store, counting its reads of activities. */
  function counting() {
    const { store } = directory;
    const looked = { up: 0 };
    const lastActivity = (ref: number): number => {
      looked.up += 1;
      return store.lastActivity(ref);
    };
    return { store: { ...store, lastActivity }, looked };
  }

  test("is in memory for a limited number of projects; the others are read from their rows", async () => {
    const refs = await Promise.all(Array.from({ length: 40 }, (_, index) => make(`p${index}`))).then((made) =>
      made.map(({ ref }) => ref),
    );
    const { store, looked } = counting();
    const activity = new Activity(store, bench.kernel.writer, 10);
    for (const ref of refs) {
      await bench.clock.advance(1);
      await changed(activity, ref);
    }
    for (const [index, ref] of refs.entries())
      expect(activity.lastActivityOf(ref)).toBe(TEST_START_MS + 1 + index);
    // What is used repeatedly stays in memory while there is space for all of it.
    const lookUps = (projects: number): number => {
      for (let pass = 1; pass <= 5; pass += 1) {
        looked.up = 0;
        for (const ref of refs.slice(0, projects)) activity.lastActivityOf(ref);
      }
      return looked.up;
    };
    expect(lookUps(10)).toBe(0);
    expect(lookUps(11)).toBeGreaterThan(0);
  });

  test("has the documented default limit", () => {
    const { store, looked } = counting();
    const activity = new Activity(store, bench.kernel.writer);
    for (let ref = 1; ref <= ACTIVITIES_IN_MEMORY_MAX; ref += 1) activity.lastActivityOf(ref);
    activity.lastActivityOf(1);
    expect(looked.up).toBe(ACTIVITIES_IN_MEMORY_MAX);
    // One more replaces the first that was not used again.
    activity.lastActivityOf(ACTIVITIES_IN_MEMORY_MAX + 1);
    activity.lastActivityOf(1);
    expect(looked.up).toBe(ACTIVITIES_IN_MEMORY_MAX + 1);
    activity.lastActivityOf(2);
    expect(looked.up).toBe(ACTIVITIES_IN_MEMORY_MAX + 2);
  });

  test(`is written immediately after a pause, otherwise once in ${ACTIVITY_WRITE_INTERVAL_MS} ms`, async () => {
    const { ref } = await make("busy");
    const { activity, store } = directory;
    await changed(activity, ref);
    expect(store.lastActivity(ref)).toBe(TEST_START_MS);
    for (let second = 1; second < ACTIVITY_WRITE_INTERVAL_MS / 1_000; second += 1) {
      await bench.clock.advance(1_000);
      await changed(activity, ref);
    }
    await bench.clock.advance(999);
    await changed(activity, ref);
    expect(store.lastActivity(ref)).toBe(TEST_START_MS);
    expect(activity.lastActivityOf(ref)).toBe(TEST_START_MS + ACTIVITY_WRITE_INTERVAL_MS - 1);
    // It is pending since the second change and is written with the next batch of any request.
    await bench.clock.advance(1_001);
    await bench.kernel.writer.submit(() => {});
    expect(store.lastActivity(ref)).toBe(TEST_START_MS + ACTIVITY_WRITE_INTERVAL_MS - 1);
  });

  test("is written at shutdown, and rolled back with a failed unit", async () => {
    const { ref } = await make("busy");
    const { activity, store } = directory;
    await changed(activity, ref);
    await bench.clock.advance(5);
    await changed(activity, ref);
    await bench.clock.advance(5);
    const failing = bench.kernel.writer.submit((tx) => {
      activity.changed(tx, ref);
      throw new ApiError("conflict", "Rejected by this test, after the change.");
    });
    expect(await failing.catch((error: ApiError) => error.code)).toBe("conflict");
    expect(activity.lastActivityOf(ref)).toBe(TEST_START_MS + 5);
    await activity.finish();
    expect(store.lastActivity(ref)).toBe(TEST_START_MS + 5);
  });
});

describe("deleted projects", () => {
  test(`are in memory after their removal, at least the last ${REMOVED_IN_MEMORY_MAX / 2}`, async () => {
    const remove = (from: number, to: number) =>
      bench.kernel.writer.submit((tx) => {
        for (let ref = from; ref <= to; ref += 1) {
          directory.markDeleted(tx, ref);
          directory.remove(tx, ref);
        }
      });
    await remove(1, REMOVED_IN_MEMORY_MAX);
    expect(directory.isDeleted(1)).toBe(true);
    const last = REMOVED_IN_MEMORY_MAX + 1;
    await remove(last, last);
    const known = [1, REMOVED_IN_MEMORY_MAX / 2, REMOVED_IN_MEMORY_MAX / 2 + 1, last];
    expect(known.map((ref) => directory.isDeleted(ref))).toEqual([false, false, true, true]);
    const remembered = Array.from({ length: last }, (_, index) => directory.isDeleted(index + 1));
    expect(remembered.filter(Boolean)).toHaveLength(REMOVED_IN_MEMORY_MAX / 2 + 1);
    // A reference is never reused, also after a restart.
    expect((await make("next", 2)).ref).toBe(1);
    expect((await make("later", 2, openProjectDirectory(bench.kernel))).ref).toBe(last + 1);
  });

  test(`lose ${REMOVAL_SLICE_ROWS} rows in one unit of work, until fewer are left`, async () => {
    const { ref } = await make("large");
    let rows = 2 * REMOVAL_SLICE_ROWS;
    const slices: number[] = [];
    const resources: ProjectResources = {
      name: "flags",
      count: () => rows,
      removeRows: (_tx, projectRef, rowsMax) => {
        expect([projectRef, rowsMax]).toEqual([ref, REMOVAL_SLICE_ROWS]);
        const removed = Math.min(rows, rowsMax);
        rows -= removed;
        slices.push(removed);
        return removed;
      },
    };
    const { scheduler, writer } = bench.kernel;
    const deps = {
      ...bench.kernel,
      accounts: NO_ACCOUNTS,
      directory,
      trail: UNHEARD,
      resources: [resources],
      contents: [resources],
    };
    const removal = new ProjectRemoval(deps, new Overviews(deps));
    await scheduler.start();
    await writer.submit((tx) => {
      directory.markDeleted(tx, ref);
      removal.enqueue(tx, ref);
    });
    await bench.clock.advance(1);
    expect(slices).toEqual([REMOVAL_SLICE_ROWS, REMOVAL_SLICE_ROWS, 0]);
    expect(directory.store.deleted()).toEqual([]);
    await scheduler.stop();
  });
});
