import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { plainEnvironment } from "../harness/processes/server-process.ts";
import { S3Server } from "../support/s3-server.ts";
import type { StartReport } from "./start-report.ts";

/** Of archives and clusters, every server loads what reads their options. */
const OF_OPTIONS = ["archive/place.ts", "cluster/settings.ts"];
const OF_ARCHIVES_AND_CLUSTERS = /\/src\/((?:archive|cluster)\/.*)/;
/** Nothing of an archive or a cluster runs without their options. */
const RUNS_WITH_OPTIONS = /\/src\/(?:archive|cluster|kernel\/storage\/replication)\//;
/** The files of a running server. SQLite makes those that begin with a database's name. */
const FILES = [
  "master.key",
  "ninefold.db",
  "ninefold.db-shm",
  "ninefold.db-wal",
  "ninefold.lock",
  "ninefold.lock-journal",
];

async function startReport(
  args: readonly string[] = [],
  environment: Record<string, string> = {},
): Promise<StartReport> {
  const program = join(import.meta.dir, "start-report.ts");
  return Bun.$`${process.execPath} --no-env-file --no-install ${program} ${args}`
    .env({ ...plainEnvironment(), ...environment })
    .json();
}

function ofArchivesAndClusters({ modules }: StartReport): string[] {
  return modules.flatMap((path) => OF_ARCHIVES_AND_CLUSTERS.exec(path)?.[1] ?? []).sort();
}

let plain: StartReport;
beforeAll(async () => {
  plain = await startReport();
});

test("a server without an archive and a commit log has no thread, timer or file of theirs", () => {
  expect(ofArchivesAndClusters(plain)).toEqual(OF_OPTIONS);
  expect(plain.files).toEqual(FILES);
  expect(plain.threads.filter((program) => !/\/(checkpoint|log-sync)-worker\.ts$/.test(program))).toEqual([]);
  expect(plain.timers.length).toBeGreaterThan(0);
  expect(plain.timers.filter((setBy) => RUNS_WITH_OPTIONS.test(setBy))).toEqual([]);
  expect(plain.makesEntries).toBeFalse();
});

test("the same report sees all of it of a server with an archive", async () => {
  const s3 = await new S3Server().start();
  try {
    const archiving = await startReport(["--archive", `s3://${s3.bucket}/prefix`], s3.archiveEnvironment);
    expect(archiving.files).toContain("ninefold.tail");
    expect(archiving.threads.some((program) => program.endsWith("/archive-worker.ts"))).toBeTrue();
    expect(archiving.timers.some((setBy) => RUNS_WITH_OPTIONS.test(setBy))).toBeTrue();
    expect(archiving.makesEntries).toBeTrue();
    expect(ofArchivesAndClusters(archiving)).toContain("archive/archive.ts");
  } finally {
    await s3.stop();
  }
});
