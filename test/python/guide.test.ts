import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { readPage } from "../docs/page.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { endOf } from "../support/ended.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { PYTHON } from "./python.ts";

const TIMEOUT_MS = 60_000;
/** The programs of the page and of the package's README, which continue the first one. */
const BLOCKS = ["docs/guides/python.md"].flatMap((page) =>
  [...readPage(page).matchAll(/^```python\n(.*?)^```$/gms)].map(([, text = ""]) => text),
);
const PRELUDE = "from ninefold import Ninefold\nnf = Ninefold()\n";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(() => server.stop());

test("the page has examples", () => expect(BLOCKS.length).toBeGreaterThan(8));

test.each(BLOCKS.map((block, at) => [at, block] as const))(
  "example %i prints its documented output",
  async (_, block) => {
    const { key } = await server.account({ tier: "unlimited" });
    const { code, out, error } = await endOf([PYTHON, "-W", "error", "-c", PRELUDE + block], {
      cwd: join(ROOT, "python"),
      environment: { NINEFOLD_URL: server.url, NINEFOLD_API_KEY: String(key), PYTHONDONTWRITEBYTECODE: "1" },
      timeoutMs: TIMEOUT_MS,
    });
    expect({ error, code }).toEqual({ error: "", code: 0 });
    const printed = [...block.matchAll(/# → (.*)$/gm)].map(([, text = ""]) => text);
    expect(out.trimEnd().split("\n")).toEqual(printed);
  },
  TIMEOUT_MS,
);
