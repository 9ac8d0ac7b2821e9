// Prints for each operation and area how many milliseconds of a start its mounting takes, in a process that has mounted
// nothing before.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "../src/app.ts";
import { loadConfig } from "../src/config.ts";
import { openDataFolder } from "../src/data-folder.ts";
import { closeKernel } from "../src/kernel/kernel.ts";
import { createLogger } from "../src/kernel/log.ts";
import { createSystemClock, monotonicMs } from "../src/kernel/time/clock.ts";

const folder = mkdtempSync(join(tmpdir(), "ninefold-mounting-"));
const config = loadConfig(["--data", folder], {});
const clock = createSystemClock();
const log = createLogger(clock, { level: "error" });
const { masterKey, durability } = config;
const kernel = openDataFolder(folder, { masterKey, durability, clock, log });
const startedAt = monotonicMs();
const { http } = createApp(kernel, config);
const tookMs = monotonicMs() - startedAt;
closeKernel(kernel);
rmSync(folder, { recursive: true });
process.stdout.write(`${tookMs / http.routes.length}\n`);
process.exit();
