import { afterEach, describe, expect, test } from "bun:test";
import { RawServer } from "../../support/raw-server.ts";
import { answeredWith, failureOf, get, LOOPBACK, Opened, textOf } from "./support.ts";

const opened = new Opened();
afterEach(() => opened.close());

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

function to(location: string, status = 302): string {
  return `HTTP/1.1 ${status} Elsewhere\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`;
}

/** A server with a response for each path. */
async function site(answers: (path: string) => string): Promise<RawServer> {
  const server = new RawServer((socket, request) => socket.write(answers(request.split(" ")[1] ?? "")));
  return opened.add(await server.start());
}

describe("redirects", () => {
  test("are returned unless they are followed", async () => {
    const server = await site(() => to("http://169.254.169.254/"));
    const outcome = await opened.client().send(get(`http://127.0.0.1:${server.port}/`));
    expect(answeredWith(outcome).status).toBe(302);
  });

  test("are followed up to the limit", async () => {
    const server = await site((path) => (path === "/0" ? OK : to(String(Number(path.slice(1)) - 1))));
    const outbound = opened.client();
    const ask = (hops: number) =>
      outbound.send(get(`http://127.0.0.1:${server.port}/${hops}`, { redirectsMax: 5 }));
    expect(textOf(await ask(5))).toBe("ok");
    expect(failureOf(await ask(6))).toBe("redirects");
  });

  test.each([
    ["in UTF-8", Buffer.from("/café?q=ü"), "/caf%C3%A9?q=%C3%BC"],
    ["in another charset", Buffer.from("/caf\xe9", "latin1"), "/caf%E9"],
    ["that is encoded", Buffer.from("/caf%C3%A9"), "/caf%C3%A9"],
    ["with blanks", Buffer.from("/a b"), "/a%20b"],
    ["relative to the path", Buffer.from("sub/é"), "/sub/%C3%A9"],
    ["that is a query", Buffer.from("?é"), "/?%C3%A9"],
    ["that is repeated", Buffer.from("/a\r\nLocation: /b"), "/a"],
  ])("to a location %s", async (_, location, expected) => {
    const server = new RawServer((socket, request) => {
      if (!request.startsWith("GET / ")) return void socket.write(OK);
      const head = Buffer.from("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: ");
      socket.write(Buffer.concat([head, location, Buffer.from("\r\n\r\n")]));
    });
    opened.add(await server.start());
    const outcome = await opened.client().send(get(`http://127.0.0.1:${server.port}/`, { redirectsMax: 1 }));
    expect(textOf(outcome)).toBe("ok");
    expect(server.requests[1]?.split(" ")[1]).toBe(expected);
  });

  test("keep the Host of the request within its origin only", async () => {
    const other = await site(() => OK);
    const hosts: string[] = [];
    const server = new RawServer((socket, request) => {
      hosts.push(/^host: (.*)$/im.exec(request)?.[1]?.trim() ?? "");
      socket.write(to(hosts.length === 1 ? "/next" : `http://127.0.0.1:${other.port}/`));
    });
    opened.add(await server.start());
    const headers = { Host: "shop.example.com" };
    await opened.client().send(get(`http://127.0.0.1:${server.port}/`, { redirectsMax: 2, headers }));
    expect(hosts).toEqual(["shop.example.com", "shop.example.com"]);
    expect(other.requests[0]).toContain(`Host: 127.0.0.1:${other.port}\r\n`);
  });

  test("in a loop end", async () => {
    const server = await site((path) => to(path === "/a" ? "/b" : "/a"));
    const outcome = await opened.client().send(get(`http://127.0.0.1:${server.port}/a`, { redirectsMax: 5 }));
    expect(failureOf(outcome)).toBe("redirects");
    expect(server.requests.length).toBe(6);
  });

  const refused: readonly (readonly [location: string, kind: "blocked" | "invalid"])[] = [
    ["http://169.254.169.254/latest/meta-data/", "blocked"],
    ["http://10.0.0.1/", "blocked"],
    ["//192.168.1.1/", "blocked"],
    ["http://[::ffff:169.254.169.254]/", "blocked"],
    ["http://0xa9fea9fe/", "blocked"],
    ["http://user:secret@127.0.0.1/", "invalid"],
    ["file:///etc/passwd", "invalid"],
    ["gopher://127.0.0.1:70/", "invalid"],
    ["http://", "invalid"],
  ];
  for (const [location, kind] of refused) {
    test(`to ${location} are ${kind}`, async () => {
      const server = await site(() => to(location));
      const outcome = await opened
        .client(["127.0.0.1"])
        .send(get(`http://127.0.0.1:${server.port}/`, { redirectsMax: 5 }));
      expect(failureOf(outcome)).toBe(kind);
    });
  }

  test("to a name are checked when the name is resolved", async () => {
    const server = await site(() => to("http://inner.example/"));
    const resolver = {
      resolve: async (host: string) => [host === "inner.example" ? "10.0.0.1" : "127.0.0.1"],
    };
    const outcome = await opened
      .client(["127.0.0.1"], { resolver })
      .send(get(`http://outer.example:${server.port}/`, { redirectsMax: 5 }));
    expect(failureOf(outcome)).toBe("blocked");
  });

  test("without a location are returned", async () => {
    const server = await site(() => "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n");
    const outcome = await opened.client().send(get(`http://127.0.0.1:${server.port}/`, { redirectsMax: 5 }));
    expect(answeredWith(outcome).status).toBe(302);
  });

  const methods: readonly (readonly [status: number, method: string, then: string])[] = [
    [301, "POST", "GET"],
    [302, "POST", "GET"],
    [303, "POST", "GET"],
    [303, "PUT", "GET"],
    [303, "HEAD", "HEAD"],
    [302, "PUT", "PUT"],
    [307, "POST", "POST"],
    [308, "POST", "POST"],
    [302, "HEAD", "HEAD"],
  ];
  for (const [status, method, then] of methods) {
    test(`${status} after ${method} becomes ${then}`, async () => {
      const server = await site((path) => (path === "/end" ? OK : to("/end", status)));
      await opened.client().send(
        get(`http://127.0.0.1:${server.port}/`, {
          method,
          body: method === "HEAD" ? null : Buffer.from("body"),
          redirectsMax: 5,
        }),
      );
      const last = server.requests.at(-1) ?? "";
      expect(last.startsWith(`${then} /end `)).toBe(true);
      expect(last.endsWith("body")).toBe(then === method && method !== "HEAD");
    });
  }

  test("to another origin carry no secrets", async () => {
    const other = await site(() => OK);
    const server = await site((path) =>
      path === "/near" ? to(`http://127.0.0.1:${other.port}/far`) : to("/near"),
    );
    const headers = {
      Authorization: "Bearer secret",
      Cookie: "secret",
      "X-Api-Key": "secret",
      "User-Agent": "Svc",
    };
    const url = `http://127.0.0.1:${server.port}/`;
    expect(textOf(await opened.client().send(get(url, { headers, redirectsMax: 5 })))).toBe("ok");
    expect(server.requests.map((request) => request.split("secret").length - 1)).toEqual([3, 3]);
    expect(other.requests.map((request) => request.split("secret").length - 1)).toEqual([0]);
    expect(other.requests[0]).toContain("User-Agent: Svc\r\n");
  });

  test("to plain HTTP are rejected if HTTPS is required", async () => {
    const server = await site(() => to("http://public.example/"));
    const resolver = { resolve: async () => ["93.184.215.14"] };
    const outcome = await opened
      .client(["127.0.0.1"], { resolver })
      .send(get(`http://127.0.0.1:${server.port}/`, { redirectsMax: 5, requireHttps: true }));
    expect(failureOf(outcome)).toBe("invalid");
  });
});

describe("names that resolve to other addresses", () => {
  test("are resolved once per request, and the connection goes to the address that was checked", async () => {
    const server = await site(() => OK);
    let asked = 0;
    // The address of the first lookup is permitted; that of a later one is not.
    const resolver = { resolve: async () => [asked++ === 0 ? "127.0.0.1" : "10.0.0.1"] };
    const outbound = opened.client(["127.0.0.1"], { resolver });
    const first = await outbound.send(get(`http://rebind.example:${server.port}/`));
    expect({ text: textOf(first), asked }).toEqual({ text: "ok", asked: 1 });
    // An open connection to the verified address is not used when the name now resolves to another one.
    expect(failureOf(await outbound.send(get(`http://rebind.example:${server.port}/`)))).toBe("blocked");
    expect({ asked, requests: server.requests.length }).toEqual({ asked: 2, requests: 1 });
  });

  test("are rejected if one of their addresses is not public", async () => {
    const server = await site(() => OK);
    for (const addresses of [
      ["93.184.215.14", "10.0.0.1"],
      ["127.0.0.1", "169.254.169.254"],
      ["2606:4700:4700::1111", "::ffff:10.0.0.1"],
      ["93.184.215.14", "not an address"],
    ]) {
      const outbound = opened.client(["127.0.0.1"], { resolver: { resolve: async () => addresses } });
      expect(failureOf(await outbound.send(get(`http://mixed.example:${server.port}/`)))).toBe("blocked");
    }
    expect(server.connections).toBe(0);
  });

  test("need HTTPS if it is required, unless every address is permitted", async () => {
    const server = await site(() => OK);
    const send = (addresses: string[]) =>
      opened
        .client(LOOPBACK, { resolver: { resolve: async () => addresses } })
        .send(get(`http://storage.example:${server.port}/`, { requireHttps: true }));
    expect(textOf(await send(["127.0.0.1"]))).toBe("ok");
    expect(failureOf(await send(["93.184.215.14"]))).toBe("invalid");
    expect(failureOf(await send(["127.0.0.1", "93.184.215.14"]))).toBe("invalid");
  });
});
