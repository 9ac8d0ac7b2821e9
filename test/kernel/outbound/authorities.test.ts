import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, rootCertificates, type Server } from "node:tls";
import { extraAuthorities } from "../../../src/kernel/outbound/authorities.ts";
import { CertificateAuthority } from "../../support/certificates.ts";
import { TestServer } from "../../support/server.ts";

let folder = "";
let authority: CertificateAuthority;
let site: Server;
let port = 0;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-authorities-"));
  authority = new CertificateAuthority();
  site = createServer(authority.issue("site", "IP:127.0.0.1"), (socket) => {
    socket.on("error", () => {});
    socket.on("data", () => socket.end("HTTP/1.1 204 Fine\r\nConnection: close\r\n\r\n"));
  });
  site.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  const address = site.address();
  port = typeof address === "object" && address !== null ? address.port : 0;
});
afterAll(() => {
  site.close();
  authority.remove();
  rmSync(folder, { recursive: true });
});

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe("--extra-ca", () => {
  test("a private authority is trusted only if it is configured", async () => {
    const found: unknown[] = [];
    for (const more of [["--extra-ca", file("ca.pem", `A comment\n${authority.pem}`)], []]) {
      const server = new TestServer({
        manualClock: true,
        args: ["--allow-private-targets", "127.0.0.0/8", ...more],
      });
      await server.start();
      try {
        const url = `https://127.0.0.1:${port}/`;
        const created = await server.operator.post("/v1/pulse", { url, interval: 300_000 });
        const checked = await server.operator.post(`/v1/pulse/${created.body["id"]}/check`);
        found.push(checked.body["status"]);
      } finally {
        await server.stop();
      }
    }
    expect(found).toEqual(["up", "down"]);
  });

  test("public authorities stay trusted, and a file can contain several", () => {
    const other = new CertificateAuthority();
    const { certificateAuthorities: all = [] } = extraAuthorities(
      file("two.pem", `${authority.pem}\n${other.pem}`),
    );
    other.remove();
    expect(all.slice(0, -2)).toEqual([...rootCertificates]);
    expect(all.slice(-2).map((pem) => pem.trim())).toEqual([authority.pem.trim(), other.pem.trim()]);
  });

  test("an unusable file is rejected at the start with its name", async () => {
    const broken = authority.pem.replace(/\n.{20}/, "\n");
    const files = [join(folder, "nowhere.pem"), folder, file("empty.pem", ""), file("broken.pem", broken)];
    for (const path of files) {
      const server = new TestServer({ args: ["--extra-ca", path] });
      const refusal = await server.start().then(
        () => null,
        (error: unknown) => error,
      );
      await server.stop();
      expect(refusal).toMatchObject({ name: "StartupError" });
      const { message } = refusal as Error;
      expect(message).toStartWith(`extra_ca: "${path}" cannot be used (`);
      expect(message).not.toContain("\n");
    }
  });
});
