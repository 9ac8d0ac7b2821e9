import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Document, operationsOf } from "../../codegen/document.ts";
import { PYTHON_FILES } from "../../codegen/generate.ts";
import { objectsOf } from "../../codegen/methods.ts";
import { pythonFiles } from "../../codegen/python/files.ts";
import { snake } from "../../codegen/python/names.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { endOf } from "../support/ended.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { MYPY, PYTHON } from "./python.ts";

const TIMEOUT_MS = 120_000;
const FOLDER = join(ROOT, "python");
const document: Document = JSON.parse(readFileSync(join(ROOT, "test/golden/openapi.json"), "utf8"));

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(() => server.stop());

test("the generated files are those of the API's document", () => {
  for (const [path, text] of Object.entries(pythonFiles(document)))
    expect(readFileSync(join(ROOT, path), "utf8")).toBe(text);
});

test.each(["test_requests", "test_webhooks", "test_server"])(
  "python/tests/%s.py",
  async (name) => {
    const { key } = await server.account({ tier: "unlimited" });
    const methods = objectsOf(document).flatMap(({ path, methods: own }) =>
      own.map((method) => [snake(path), snake(method.name)]),
    );
    const { code, error } = await endOf(
      [PYTHON, "-W", "error::ResourceWarning", "-m", "unittest", `tests.${name}`],
      {
        cwd: FOLDER,
        environment: {
          NINEFOLD_URL: server.url,
          NINEFOLD_API_KEY: String(key),
          NINEFOLD_TEST_METHODS: JSON.stringify(methods),
          PYTHONDONTWRITEBYTECODE: "1",
        },
        timeoutMs: TIMEOUT_MS,
      },
    );
    expect(code === 0 ? "" : error).toBe("");
    expect(error).toMatch(/Ran \d+ tests/);
  },
  TIMEOUT_MS,
);

test(
  "the types of the package, and those of its tests, are right",
  async () => {
    // The option is the default of later versions of mypy.
    const options = [
      "--strict",
      "--python-version",
      "3.9",
      "--enable-incomplete-feature=Unpack",
      "--cache-dir=/dev/null",
    ];
    const { code, out } = await endOf([MYPY, ...options, "ninefold", "tests"], {
      cwd: FOLDER,
      timeoutMs: TIMEOUT_MS,
    });
    expect(code === 0 ? "" : out).toBe("");
  },
  TIMEOUT_MS,
);

test("requests that are written manually have the path of an operation", () => {
  const known = new Set(operationsOf(document).map(({ method, path }) => `${method} ${path}`));
  const generated: readonly string[] = Object.values(PYTHON_FILES);
  const written = [...new Bun.Glob("ninefold/*.py").scanSync(FOLDER)]
    .filter((file) => !generated.includes(`python/${file}`))
    .flatMap((file) => [
      ...readFileSync(join(FOLDER, file), "utf8").matchAll(/"((?:GET|POST|PUT|PATCH|DELETE) \/v1[^"]*)"/g),
    ])
    .map(([, operation = ""]) => operation);
  expect(written.length).toBeGreaterThan(10);
  expect(written.filter((operation) => !known.has(operation))).toEqual([]);
});
