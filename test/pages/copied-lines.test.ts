import { describe, expect, test } from "bun:test";
import { filledPath } from "../../src/pages/dashboard/core/paths.ts";
import { curlLine, curlTo, quoted, quotedIfNeeded } from "../../src/pages/dashboard/core/shell.ts";

/** What bash makes of a word. */
async function read(word: string): Promise<string> {
  const child = Bun.spawn(["bash", "-c", `printf '%s' ${word}`], { stderr: "inherit" });
  return child.stdout.text();
}

describe("a text in a line that the console copies", () => {
  test.each([
    "plain",
    "it's",
    "@/etc/passwd",
    '$HOME `id` $(id) \\ "',
    "a\nrm -rf ~\n",
    "a\rb\tc",
    "\u001b[2J",
    "\u0000".replace("\u0000", "\u0001"),
    "it's \\ \u0007 and 7",
    "\u0085 \u2028 \u202e ü 🎉",
  ])("is quoted as one word: %j", async (text) => {
    const word = quoted(text);
    expect(word).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
    expect(await read(word)).toBe(text);
    expect(await read(quotedIfNeeded(text))).toBe(text);
  });

  test("is quoted also if it is empty", () => {
    expect(quotedIfNeeded("")).toBe("''");
  });
});

describe("a request as a line for curl", () => {
  test("sends its body unchanged", () => {
    const line = curlLine("http://n.example", {
      method: "POST",
      path: "/v1/gate?a=[1]",
      body: { note: "it's" },
    });
    expect(line).toBe(
      `curl --globoff -H "Authorization: Bearer $NINEFOLD_API_KEY" --data-raw '{"note":"it'\\''s"}' 'http://n.example/v1/gate?a=[1]'`,
    );
  });

  test("shows control characters of a caught event by escapes", () => {
    const line = curlTo("POST", "http://n.example/v1/in/a", { "x-a": "1" }, "@a\u001b[2J\nb");
    expect(line).toContain(String.raw`--data-raw $'@a\033[2J\nb'`);
    expect(line).not.toContain("\u001b");
  });
});

describe("a path of the console", () => {
  test("has its ids encoded", () => {
    expect(filledPath("/v1/latch/{key}/release", { key: "a/b ü" })).toBe("/v1/latch/a%2Fb%20%C3%BC/release");
  });

  test.each(["", ".", ".."])("rejects %j as an id", (key) => {
    expect(() => filledPath("/v1/latch/{key}", { key })).toThrow("is not a valid id");
  });
});
