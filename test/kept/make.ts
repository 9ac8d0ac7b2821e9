// Creates the data folders of this version for later tests: test/kept/<version>/{stopped,killed}.tar.zst, and next to
// each a JSON file with its keys and its responses. Run it once, with the code of a release, and then scripts/lint
// --write. The test starts the server on the folders of all releases.
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { TEST_START_MS } from "../support/server.ts";
import { pack, unpack } from "./archive.ts";
import { Filling } from "./fill.ts";
import { answerTo, readsOf } from "./reads.ts";
import { type Answered, FORMS, type Form, Receiver, type Recorded, serverAt } from "./world.ts";

type Filled = Omit<Recorded, "version" | "reads">;

/** Runs in a separate process: fills a folder, prints its content, and ends as `form` says. */
async function fill(form: Form): Promise<void> {
  const receiver = new Receiver();
  const server = serverAt(TEST_START_MS, receiver);
  await server.start();
  const filling = new Filling(server, (ms) => server.time.advance(ms));
  await filling.run();
  const { keys, things, stored } = filling;
  if (form === "stopped") await server.server.stop();
  const filled: Filled = { at: server.time.now(), keys, things, stored };
  await Bun.write(Bun.stdout, JSON.stringify({ folder: server.folder, filled }));
  process.kill(process.pid, "SIGKILL");
}

async function make(form: Form, version: string): Promise<void> {
  const child = Bun.spawn([process.execPath, "--no-env-file", import.meta.path, "fill", form], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { folder, filled } = JSON.parse(await child.stdout.text()) as { folder: string; filled: Filled };
  await child.exited;
  const archive = join(import.meta.dir, version, `${form}.tar.zst`);
  mkdirSync(join(import.meta.dir, version), { recursive: true });
  pack(folder, archive);
  rmSync(folder, { recursive: true });
  const recorded: Recorded = { version, ...filled, reads: await read(archive, filled) };
  await Bun.write(archive.replace(/\.tar\.zst$/, ".json"), `${JSON.stringify(recorded, null, 1)}\n`);
}

/** Responses of a server of this version on a copy of the folder. */
async function read(archive: string, filled: Filled): Promise<Answered[]> {
  const receiver = new Receiver();
  const server = serverAt(filled.at, receiver);
  unpack(archive, server.folder);
  await server.start();
  const reads: Answered[] = [];
  for (const asked of readsOf(filled))
    reads.push({ ...asked, ...(await answerTo(server.url, filled.keys, asked)) });
  await server.stop();
  await receiver.stop();
  return reads;
}

const [step, form] = Bun.argv.slice(2);
if (step === "fill") await fill(form as Form);
else {
  const { version } = JSON.parse(readFileSync(join(import.meta.dir, "../../package.json"), "utf8"));
  for (const each of FORMS) await make(each, version);
}
