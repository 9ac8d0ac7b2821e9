import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Document } from "../../codegen/document.ts";
import { examplesOf, LANGUAGES, type Language } from "../../codegen/languages/pages.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { PYTHON } from "../python/python.ts";
import { endOf } from "../support/ended.ts";
import { startTestServer } from "../support/server.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { readPage } from "./page.ts";

const TIMEOUT_MS = 180_000;
const GO = "/usr/bin/go";
const PHP = "/usr/bin/php";

const document: Document = JSON.parse(readFileSync(join(ROOT, "test/golden/openapi.json"), "utf8"));
const PAGES = [...new Bun.Glob("docs/{guides,api}/*.md").scanSync(ROOT)].sort().flatMap((page) => {
  const examples = examplesOf(readPage(page), document).filter((one) => one !== null);
  return examples.length === 0 ? [] : [{ page, name: page.replace(/\W/g, "_"), examples }];
});

/** The functions that the examples in Go and PHP use. */
const [HELPERS_GO = "", HELPERS_PHP = ""] = ["go", "php"].map((language) => {
  const blocks = readPage("docs/guides/languages.md").matchAll(
    new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms"),
  );
  return [...blocks].map(([, text = ""]) => text).join("\n");
});

const folder = mkdtempSync(join(tmpdir(), "ninefold-languages-"));
const sink = new WebhookSink();

beforeAll(async () => {
  mkdirSync(join(folder, "program"));
  // One program for all pages: the compiler takes a while.
  const functions = PAGES.map(({ name, examples }) => {
    const body = examples
      .map(({ go }) => go)
      .join("\n")
      .replace(/^connect\(.*\)$/gm, "");
    return `func ${name}() {\n${body}\n}\n`;
  });
  const cases = PAGES.map(({ name }) => `case "${name}":\n${name}()\n`);
  const main = `func main() {\nconnect(os.Args[2], os.Args[3])\nswitch os.Args[1] {\n${cases.join("")}}\n}\n`;
  const program = [HELPERS_GO.replace('"net/http"', '"net/http"\n"os"'), ...functions, main].join("\n");
  // Pages name a receiver of webhooks.
  writeFileSync(join(folder, "program/main.go"), filledIn(program));
  writeFileSync(join(folder, "program/go.mod"), "module examples\n\ngo 1.18\n");
  const environment = {
    GOFLAGS: "-mod=mod",
    GOPROXY: "off",
    GOCACHE: join(folder, "cache"),
    HOME: folder,
    CGO_ENABLED: "0",
  };
  const { code, error } = await endOf([GO, "build", "-o", join(folder, "examples"), "."], {
    cwd: join(folder, "program"),
    environment,
    timeoutMs: TIMEOUT_MS,
  });
  expect(code === 0 ? "" : error).toBe("");
}, TIMEOUT_MS);
afterAll(() => {
  sink.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A program with the receiver of webhooks that pages leave to their readers. */
function filledIn(text: string): string {
  return text.replaceAll(/https:\/\/example\.com|http:\/\/localhost:3000/g, sink.url(""));
}

/** How the examples of a page are run, by language. */
function commandOf(
  language: Language,
  name: string,
  texts: readonly string[],
  url: string,
  key: string,
): string[] {
  const text = filledIn(texts.join("\n"));
  const write = (file: string, program: string): string => {
    writeFileSync(join(folder, file), program);
    return join(folder, file);
  };
  switch (language) {
    case "ts": {
      const body = text.replace(/^import .*|^const nf = new .*$/gm, "");
      const setup = `import { Ninefold } from ${JSON.stringify(join(ROOT, "src/client/index.ts"))};\nconst nf = new Ninefold(${JSON.stringify({ url, apiKey: key })});`;
      return [process.execPath, write(`${name}.ts`, `${setup}\n${body}`)];
    }
    case "python": {
      const body = text.replace(/^from ninefold import .*$|^nf = .*$/gm, "");
      const setup = `import sys\nsys.path.insert(0, ${JSON.stringify(join(ROOT, "python"))})\nfrom ninefold import Ninefold\nnf = Ninefold(${JSON.stringify(url)}, ${JSON.stringify(key)})`;
      return [PYTHON, "-B", write(`${name}.py`, `${setup}\n${body}`)];
    }
    case "go":
      return [join(folder, "examples"), name, url, key];
    case "php": {
      const body = text.replace(/^connect\(.*$/gm, "");
      return [PHP, write(`${name}.php`, `${HELPERS_PHP}\nconnect('${url}', '${key}');\n${body}`)];
    }
  }
}

describe.each(Object.keys(LANGUAGES) as Language[])("examples in %s", (language) => {
  test.each(PAGES)(
    "$page",
    async ({ name, examples }) => {
      const server = await startTestServer({ args: ["--allow-private-targets", "loopback"] });
      try {
        const texts = examples.map((example) => example[language]);
        const command = commandOf(language, name, texts, server.url, server.key);
        const { code, out, error } = await endOf(command, { timeoutMs: TIMEOUT_MS, cwd: folder });
        expect(code === 0 ? "" : out + error).toBe("");
      } finally {
        await server.stop();
      }
    },
    TIMEOUT_MS,
  );
});

test("most blocks of commands have other languages", () => {
  const all = PAGES.reduce((sum, { examples }) => sum + examples.length, 0);
  expect(all).toBeGreaterThan(100);
});
