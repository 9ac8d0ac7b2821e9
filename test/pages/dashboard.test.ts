import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expectError } from "../support/errors.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const BUILT = join(import.meta.dir, "../../build/dashboard");
/** The shell and the overview: other pages are loaded when they are opened. */
const FIRST_LOAD_MAX = 40_000;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

function raw(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> {
  return fetch(server.url + path, { method, headers, redirect: "manual", decompress: false });
}

async function html(): Promise<string> {
  return (await raw("/dashboard/", { "accept-encoding": "identity" })).text();
}

/** The files that the page names, as paths of the server. */
async function linked(): Promise<string[]> {
  const found = [...(await html()).matchAll(/(?:href|src)="(\.\/[^"]+)"/g)];
  return found.map(([, address = ""]) => new URL(address, `${server.url}/dashboard/`).pathname);
}

describe("the console's page", () => {
  test("has a policy that allows only its own files and no markup from texts", async () => {
    const answer = await raw("/dashboard/");
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; frame-src 'self'; " +
        "require-trusted-types-for 'script'; trusted-types 'none'",
    );
    expect(answer.headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("cache-control")).toBe("no-cache");
    expect(answer.headers.get("etag")).toMatch(/^"[\w-]+"$/);
  });

  test("has no inline script or style, and names no other host", async () => {
    const text = await html();
    expect(text).toContain("<title>Ninefold</title>");
    expect(text.replace("http://www.w3.org/2000/svg", "")).not.toMatch(/https?:/);
    expect(text).not.toMatch(/<script(?![^>]* src=)|<style|style=| on\w+=/);
  });

  test("loads only existing files, which are cached as immutable", async () => {
    const paths = await linked();
    expect(paths.map((path) => path.slice(path.lastIndexOf(".")))).toContainValues([".js", ".css"]);
    for (const path of paths) {
      const answer = await raw(path, { "accept-encoding": "gzip" });
      expect(answer.status, path).toBe(200);
      expect(answer.headers.get("cache-control"), path).toBe("public, max-age=31536000, immutable");
      expect(answer.headers.get("content-encoding"), path).toBe("gzip");
    }
  });

  test("redirects to the path with a slash, relative to a proxy's prefix", async () => {
    const answer = await raw("/dashboard");
    expect(answer.status).toBe(302);
    expect(answer.headers.get("location")).toBe("dashboard/");
  });

  test("accepts only GET and HEAD of its files", async () => {
    expectError(await server.client(null).post("/dashboard/"), "not_found");
    expect((await raw("/dashboard/", {}, "HEAD")).status).toBe(200);
    expectError(await server.client(null).get("/dashboard/files.js"), "not_found");
    expectError(await server.client(null).get("/dashboard/stamp"), "not_found");
  });
});

describe("the files of the console", () => {
  const files = readdirSync(BUILT).filter((name) => /\.(js|css|html)$/.test(name) && name !== "files.js");

  test(`have at most ${FIRST_LOAD_MAX} bytes at the first load`, async () => {
    const sizes = await Promise.all(
      ["/dashboard/", ...(await linked())].map(
        async (path) => (await (await raw(path, { "accept-encoding": "gzip" })).bytes()).length,
      ),
    );
    const sum = sizes.reduce((a, b) => a + b, 0);
    expect(sum).toBeGreaterThan(10_000);
    expect(sum).toBeLessThanOrEqual(FIRST_LOAD_MAX);
  });

  test("load every page, forms and the verifier on demand", async () => {
    const first = (await linked()).map((path) => path.slice("/dashboard/".length));
    const later = files.filter((name) => name.endsWith(".js") && !first.includes(name));
    const names = new Set(later.map((name) => name.replace(/-\w+\.js$/, "")));
    expect([...names].sort()).toEqual([
      ...[
        "audit",
        "backups",
        "catch",
        "channels",
        "check",
        "customers",
        "data-form",
        "endpoints",
        "event-types",
      ],
      ...[
        "flags",
        "heartbeat",
        "heartbeat-form",
        "incidents",
        "index",
        "invitation",
        "keys",
        "locks",
        "login",
      ],
      ...[
        "maintenance",
        "messages",
        "meters",
        "metrics",
        "monitor",
        "monitor-form",
        "monitor-probes",
        "monitors",
        "notary",
      ],
      ...[
        "overview",
        "palette",
        "people",
        "probe-states",
        "probes",
        "profile",
        "projects",
        "relay",
        "roles",
        "schedules",
        "secret",
      ],
      ...["settings", "start", "status-pages", "step-up"],
    ]);
  });

  test.each(files)("%s evaluates no code, creates no markup from texts, and names no other host", (name) => {
    const text = readFileSync(join(BUILT, name), "utf8");
    expect(text).not.toMatch(/\beval\(|new Function|\.outerHTML\s*=|document\.write|insertAdjacentHTML/);
    // Preact's own, behind dangerouslySetInnerHTML, which the console does not use.
    expect(text.match(/\.innerHTML\s*=[^=]/g)?.length ?? 0).toBeLessThanOrEqual(1);
    expect(text.match(/dangerouslySetInnerHTML:/g)).toBeNull();
    const addresses = text.match(/https?:\/\/[\w.-]+/g) ?? [];
    // Namespaces, examples of fields, and a warning of the library of passkeys.
    const known =
      /^http:\/\/www\.w3\.org$|^https:\/\/(simplewebauthn\.dev|hooks\.slack\.com|(\w+\.)?example\.com|\w+\.example)$/;
    expect(addresses.filter((address) => !known.test(address))).toEqual([]);
  });
});

describe("--dashboard off", () => {
  let without: TestServer;
  beforeAll(async () => {
    without = await startTestServer({ args: ["--dashboard", "off"] });
  });
  afterAll(() => without.stop());

  test("does not serve the console", async () => {
    for (const path of ["/dashboard", "/dashboard/"])
      expectError(await without.client(null).get(path), "not_found");
  });

  test("redirects a browser at the root to the API reference", async () => {
    const answer = await fetch(without.url, { headers: { accept: "text/html" }, redirect: "manual" });
    expect(answer.headers.get("location")).toBe("docs");
  });
});
