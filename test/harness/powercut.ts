// Cuts the power of a simulated machine: records what a server under load writes, syncs and returns, rebuilds disks as
// they can be after a power cut, starts a server on each, and checks that nothing was lost, doubled, or done although
// it was rejected. Also lets syncs and writes fail, and the disk be full or read-only. Needs Linux on x86-64 and gcc.
//   scripts/harness powercut                300 images, with the server from source
//   scripts/harness powercut --images N     number of images (300)
//   scripts/harness powercut --only KIND    only images of one kind: dropped, kept, torn-512, torn-4096, reordered, names (folders that
//                                   were not synced), first (cuts during the first start), second (a kill, a start that
//                                   responds, then the cut), fault (cuts after something failed), room (cuts while space is
//                                   preallocated in the log, or soon after)
//   scripts/harness powercut --steps N      steps of load between a start and the next end of the server (400)
//   scripts/harness powercut --seed N       repeats the choices of an earlier run (not its timing)
//   scripts/harness powercut --binary       runs the executable dist/ninefold instead of the source
// Disks with a problem are stored, and their folder is printed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildShim, missingForShim } from "./powercut/build-shim.ts";
import { type Kind, TURNS } from "./powercut/images.ts";
import { simulate } from "./powercut/simulation.ts";
import { describeImage, summaryOf } from "./powercut/verdict.ts";
import { Cleanup } from "./processes/cleanup.ts";
import { BINARY_COMMAND, SOURCE_COMMAND } from "./processes/server-process.ts";

const { values } = parseArgs({
  options: {
    images: { type: "string", default: "300" },
    only: { type: "string" },
    steps: { type: "string", default: "400" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    binary: { type: "boolean", default: false },
  },
});

function positive(name: string, text: string): number {
  const number = Number(text);
  if (!(Number.isSafeInteger(number) && number > 0))
    throw new Error(`--${name} must be a whole number above 0, not "${text}"`);
  return number;
}

function kindOf(text: string): Kind {
  const kind = TURNS.find((turn) => turn === text);
  if (kind === undefined) throw new Error(`--only must be one of ${[...new Set(TURNS)].join(", ")}`);
  return kind;
}

const cleanup = new Cleanup();
try {
  const missing = missingForShim();
  if (missing !== null) throw new Error(`${missing}`);
  const folder = cleanup.folder("powercut");
  const failedFolder = mkdtempSync(join(tmpdir(), "ninefold-powercut-failed-"));
  const images = positive("images", values.images);
  const seed = positive("seed", values.seed);
  console.log(`${images} images, seed ${seed}`);
  const results = await simulate({
    command: values.binary ? BINARY_COMMAND : SOURCE_COMMAND,
    shim: buildShim(folder),
    folder,
    failedFolder,
    images,
    seed,
    acts: positive("steps", values.steps),
    ...(values.only === undefined ? {} : { only: kindOf(values.only) }),
    report: (result) => {
      if (result.problems.length > 0) console.log(describeImage(result));
    },
  });
  const { line, isGood } = summaryOf(results);
  if (isGood) rmSync(failedFolder, { recursive: true });
  else console.log(`seed ${seed}; the disks are in ${failedFolder}`);
  console.log(line);
  process.exitCode = isGood ? 0 : 1;
} catch (error) {
  if (!cleanup.interrupted)
    console.error(`scripts/harness powercut: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await cleanup.run();
}
process.exit();
