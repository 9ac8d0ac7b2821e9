import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { until } from "../support/eventually.ts";
import { isRunning, Project, RUNTIMES, TIMEOUT_MS } from "./support.ts";

const project = new Project();
beforeAll(() => project.create(), TIMEOUT_MS);
afterAll(() => project.remove());

const START = `
  import { startNinefold } from "ninefold/testing";
  const nf = await startNinefold();
  await nf.webhookSink();
  await nf.account();
  console.log(nf.pid);
`;

/** How a process that has started an instance ends, and the exit code it ends with. */
const ENDINGS = [
  ["it has nothing more to do", "", 0],
  ["process.exit", "process.exit(3);", 3],
  ["an exception", "setTimeout(() => { throw new Error('oh'); });", 1],
  ["SIGTERM", "process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000);", null],
  ["SIGKILL", "process.kill(process.pid, 'SIGKILL'); setInterval(() => {}, 1000);", null],
] as const;

describe.each(RUNTIMES.map((path) => [path.split("/").at(-1), path] as const))(
  "under %s",
  (name, runtime) => {
    test.each(ENDINGS)(
      "an instance stops when its process ends by %s",
      async (ending, code, exitCode) => {
        const script = project.write(`${name}-${ending.replaceAll(" ", "-")}.mjs`, START + code);
        const ended = await project.run([runtime, script]);
        expect(ended.code).toBe(exitCode);
        const pid = Number(/^\d+$/m.exec(ended.output)?.[0]);
        expect(pid).toBeGreaterThan(0);
        await until(() => !isRunning(pid), `the end of the server: ${ended.output}`);
        expect(project.leftFolders()).toEqual([]);
      },
      TIMEOUT_MS,
    );

    test(
      "a process that is killed during the start leaves nothing",
      async () => {
        const script = project.write(
          `${name}-early.mjs`,
          `import { startNinefold } from "ninefold/testing"; void startNinefold(); console.log("started");`,
        );
        const child = project.spawn([runtime, script]);
        await child.stdout.getReader().read();
        await until(() => project.leftFolders().length === 1, "the server's folder");
        child.kill("SIGKILL");
        await child.exited;
        await until(() => project.leftFolders().length === 0, "the folder's end");
      },
      TIMEOUT_MS,
    );
  },
);
