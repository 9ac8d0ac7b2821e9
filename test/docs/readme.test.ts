import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";

const README = readFileSync(join(import.meta.dir, "../../README.md"), "utf8");
const HEADING = "## Nine services in nine requests";

interface Example {
  readonly command: string;
  /** What is printed; `…` stands for anything. */
  readonly prints: string;
}

/** The commands of the section, each with the comment behind it. */
function examples(): Example[] {
  const section = README.slice(README.indexOf(HEADING)).split("\n## ")[0] ?? "";
  const blocks = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, text = ""]) => text);
  return blocks
    .filter((text) => !text.startsWith("export "))
    .flatMap((text) =>
      [...text.matchAll(/(curl .*?)\n# (.*?)\n/gs)].map(([, command = "", prints = ""]) => ({
        command,
        prints,
      })),
    );
}

/** A pattern for a text in which `…` stands for anything. */
function patternOf(text: string): RegExp {
  const parts = text.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`);
}

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account();
});
afterAll(() => server.stop());

describe("the README's examples", () => {
  const all = examples();
  test("are one for each of the nine services, and the notary's first step", () => {
    expect(all.length).toBe(10);
  });
  test.each(all.map((example) => [example.command.split(" ")[1] ?? "", example] as const))(
    "%s works as it stands",
    async (_, { command, prints }) => {
      const script = `curl() { command curl --silent --fail-with-body "$@"; }\n${command}`;
      const child = Bun.spawn(["sh", "-c", script], {
        env: {
          PATH: process.env["PATH"] ?? "",
          URL: server.url,
          AUTH: `Authorization: Bearer ${account.key}`,
        },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "inherit",
      });
      const out = await child.stdout.text();
      expect(out).toMatch(patternOf(prints));
      expect(await child.exited).toBe(0);
    },
  );
});

describe("what the patterns take", () => {
  test.each([
    ["{…}", '{"a":1}', true],
    ['{"a":…}', '{"a":1}', true],
    ['{"a":1}', '{"a":2}', false],
    ['{"a":…', '{"b":1}', false],
  ])("%p of %p: %p", (pattern, text, matches) => expect(patternOf(pattern).test(text)).toBe(matches));
});
