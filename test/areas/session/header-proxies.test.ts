import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { freePort } from "../../harness/processes/ports.ts";
import { Scratch } from "../../kernel/support.ts";
import { expectError } from "../../support/errors.ts";
import { Proxies } from "../../support/proxies.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { Browser } from "./support.ts";

const scratch = new Scratch();
const proxies: Proxies[] = [];
let server: TestServer;
/** The login service of the proxies: it knows who has this cookie. */
const service = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: ({ headers }) => {
    const isAnn = headers.get("cookie")?.includes("sso=ann") === true;
    return isAnn
      ? new Response(null, { headers: { "remote-email": "ann@example.com", "remote-name": "Ann" } })
      : new Response(null, { status: 401 });
  },
});
let caddy = "";
let nginx = "";

beforeAll(async () => {
  const path = scratch.path("proxies.toml");
  writeFileSync(
    path,
    'trust_proxy = ["127.0.0.1"]\n[login.header]\nemail = "Remote-Email"\nname = "Remote-Name"\n',
  );
  server = await startTestServer({ args: ["--config", path] });
  for (const name of ["ann", "bob"])
    await server.operator.post("/v1/people", { email: `${name}@example.com`, role: "owner" });
  const { host } = new URL(server.url);
  const [authenticating, adding, passing] = [await freePort(), await freePort(), await freePort()];
  const run = async (name: string): Promise<Proxies> => {
    mkdirSync(scratch.path(name));
    const made = new Proxies(scratch.path(name));
    proxies.push(made);
    return made;
  };
  caddy = `http://127.0.0.1:${authenticating}`;
  await (await run("caddy")).caddy(
    [
      `${caddy} {\nforward_auth 127.0.0.1:${service.port} {\nuri /\ncopy_headers Remote-Email Remote-Name\n}`,
      `reverse_proxy ${host}\n}`,
      // A proxy that adds its header to that of the client.
      `http://127.0.0.1:${adding} {\nrequest_header +Remote-Email bob@example.com\nreverse_proxy ${host}\n}`,
    ].join("\n"),
    authenticating,
  );
  nginx = `http://127.0.0.1:${passing}`;
  const second = await freePort();
  await (await run("nginx")).nginx(
    [
      `server { listen 127.0.0.1:${passing}; location / { auth_request /sso; auth_request_set $email $upstream_http_remote_email;`,
      `proxy_set_header Remote-Email $email; proxy_set_header Host $http_host; proxy_pass http://${host}; }`,
      `location = /sso { internal; proxy_pass http://127.0.0.1:${service.port}; proxy_pass_request_body off; proxy_set_header Content-Length ""; } }`,
      // Another proxy, which Ninefold does not trust, and which passes everything on.
      `server { listen 127.0.0.1:${second}; location / { proxy_bind 127.0.0.2; proxy_set_header Host $http_host; proxy_pass http://${host}; } }`,
    ].join("\n"),
    passing,
  );
  added = `http://127.0.0.1:${adding}`;
  untrusted = `http://127.0.0.1:${second}`;
});
afterAll(async () => {
  for (const made of proxies) await made.stop();
  await server.stop();
  await service.stop();
  scratch.remove();
});
let added = "";
let untrusted = "";

/** A browser at a proxy, with headers of its own. */
class ProxiedBrowser extends Browser {
  constructor(
    readonly at: string,
    readonly more: Record<string, string> = {},
  ) {
    super(server);
    Object.assign(this, { url: at });
  }

  enter(): ReturnType<Browser["post"]> {
    return this.post("/v1/session", { proxy: true });
  }

  override async send(...[method, path, body, options]: Parameters<Browser["send"]>) {
    const sso = this.more["cookie"];
    const cookies = [this.cookie, sso].filter(Boolean).join("; ");
    const headers = { ...this.more, ...options?.headers, ...(cookies === "" ? {} : { cookie: cookies }) };
    return super.send(method, path, body, { ...options, headers });
  }
}

test.each([["Caddy"], ["nginx"]])(
  "%s logs in whom its service knows, whatever the client sends",
  async (name) => {
    const at = name === "Caddy" ? caddy : nginx;
    const spoofed = { "remote-email": "bob@example.com", remote_email: "bob@example.com", cookie: "sso=ann" };
    const ann = new ProxiedBrowser(at, spoofed);
    const { status, body } = await ann.enter();
    expect(status).toBe(201);
    expect(body).toMatchObject({ method: "header", person: { email: "ann@example.com", role: "owner" } });
    expect((await ann.get("/v1/gate")).status).toBe(200);
    // The cookie of the session is worth nothing past the proxy, or with another header.
    const direct = Object.assign(new Browser(server), { cookie: ann.cookie });
    expectError(await direct.get("/v1/gate"), "unauthorized");
    direct.headers["remote-email"] = "bob@example.com";
    expectError(await direct.get("/v1/gate"), "unauthorized");
  },
);

test("a proxy that adds its header to the client's logs nobody in", async () => {
  expect((await new ProxiedBrowser(added).enter()).body).toMatchObject({
    person: { email: "bob@example.com" },
  });
  expectError(await new ProxiedBrowser(added, { "remote-email": "ann@example.com" }).enter(), "unauthorized");
});

test("another proxy, which is not trusted, logs nobody in", async () => {
  const eve = new ProxiedBrowser(untrusted, { "remote-email": "ann@example.com" });
  expectError(await eve.enter(), "unauthorized");
  const { text } = await server.operator.get("/metrics");
  expect(text).toMatch(/^ninefold_login_header_ignored_total [1-9]/m);
});
