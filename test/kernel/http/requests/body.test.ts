import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ApiError } from "../../../../src/kernel/errors.ts";
import { BODY_BYTES_MAX } from "../../../../src/kernel/http/operation.ts";
import {
  DISCARDED_BYTES_MAX,
  decodeBody,
  parseObject,
  readBody,
} from "../../../../src/kernel/http/requests/body.ts";
import { rejection, thrown } from "../../support.ts";

function read(request: Request): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  return readBody(request, { declared, bytesMax: BODY_BYTES_MAX, progress: null }, (bytes) => bytes);
}

/** Responds with the size and the SHA-256 of the body, or with the code of the error. */
async function echo(request: Request): Promise<Response> {
  try {
    const body = await read(request);
    return new Response(`${body.length} ${new Bun.CryptoHasher("sha256").update(body).digest("hex")}`);
  } catch (error) {
    return new Response(error instanceof ApiError ? error.code : String(error), { status: 400 });
  }
}

let server: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  server = Bun.serve({ port: 0, hostname: "127.0.0.1", maxRequestBodySize: 2 ** 30, fetch: echo });
});
afterAll(() => server.stop(true));

/** A stream of chunks: the client sends it without a length. */
function stream(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

function expected(bytes: Uint8Array): string {
  return `${bytes.length} ${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
}

async function send(body: NonNullable<RequestInit["body"]> | null): Promise<string> {
  const response = await fetch(server.url, { method: "POST", body });
  return response.text();
}

const exactly = new Uint8Array(BODY_BYTES_MAX).map((_, index) => index % 251);
const oneMore = new Uint8Array(BODY_BYTES_MAX + 1);

describe("reading a body from the network", () => {
  test("with a Content-Length: accepts at most BODY_BYTES_MAX", async () => {
    expect(await send(exactly)).toBe(expected(exactly));
    expect(await send(oneMore)).toBe("request_too_large");
  });

  test("in chunks, without a Content-Length: the same", async () => {
    const half = BODY_BYTES_MAX / 2;
    expect(await send(stream(exactly.subarray(0, half), exactly.subarray(half)))).toBe(expected(exactly));
    expect(await send(stream(exactly, new Uint8Array(1)))).toBe("request_too_large");
  });

  test("none, empty, one byte, any bytes", async () => {
    expect(await send(null)).toBe(expected(new Uint8Array()));
    expect(await send("")).toBe(expected(new Uint8Array()));
    expect(await send(stream())).toBe(expected(new Uint8Array()));
    expect(await send("x")).toBe(expected(new TextEncoder().encode("x")));
    const bytes = new Uint8Array([0, 255, 13, 10, 0xc3, 0x28]);
    expect(await send(stream(bytes.subarray(0, 1), bytes.subarray(1)))).toBe(expected(bytes));
  });
});

describe("a request object", () => {
  test("with a length too large to discard is rejected before a byte is read", async () => {
    let pulled = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          pulled += 1;
          controller.enqueue(new Uint8Array(10));
        },
      },
      { highWaterMark: 0 },
    );
    const headers = { "content-length": String(DISCARDED_BYTES_MAX + 1) };
    const error = await rejection(read(new Request("http://localhost/", { method: "POST", body, headers })));
    expect(error).toMatchObject({ code: "request_too_large", status: 413 });
    expect((error as ApiError).details.headers).toEqual({ connection: "close" });
    expect(pulled).toBe(0);
  });

  test("with endless chunks is read to the limit, and discarded up to another", async () => {
    let pulled = 0;
    let cancelled = false;
    const chunk = new Uint8Array(64 * 1024);
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled += 1;
        controller.enqueue(chunk);
      },
      cancel() {
        cancelled = true;
      },
    });
    const error = await rejection(read(new Request("http://localhost/", { method: "POST", body })));
    expect(error).toMatchObject({ code: "request_too_large" });
    expect(pulled).toBeLessThanOrEqual((BODY_BYTES_MAX + DISCARDED_BYTES_MAX) / chunk.length + 3);
    expect(cancelled).toBe(true);
  });

  test("with an incomplete body is a 400, not a 500", async () => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new Uint8Array(10));
        controller.error(new Error("connection reset"));
      },
    });
    const error = await rejection(read(new Request("http://localhost/", { method: "POST", body })));
    expect(error).toMatchObject({ code: "validation_error", status: 400 });
  });
});

describe("text", () => {
  test.each(["", "plain", "naïve ✓ 🚀", '{"a":1}'])("%p is read exactly", (text) => {
    expect(decodeBody(new TextEncoder().encode(text))).toBe(text);
  });

  test.each([[[0xff]], [[0xc3, 0x28]], [[0xed, 0xa0, 0x80]], [[0xc0, 0xaf]], [[0xf0, 0x9f, 0x9a]]])(
    "the bytes %p are not UTF-8: 400",
    (bytes) => {
      expect(thrown(() => decodeBody(new Uint8Array(bytes)))).toMatchObject({
        code: "validation_error",
        details: { fields: { body: ["must be UTF-8 text, not compressed"] } },
      });
    },
  );
});

describe("object", () => {
  test.each([
    ["", {}],
    ["{}", {}],
    [' { "a" : [1, "x", null] } ', { a: [1, "x", null] }],
  ])("%p", (text, value) => {
    expect(parseObject(text)).toEqual(value);
  });

  test.each(["[]", "null", "1", '"text"', "true"])("%s is JSON but not an object: 400", (text) => {
    expect(thrown(() => parseObject(text))).toMatchObject({
      code: "validation_error",
      message: "body must be a JSON object",
    });
  });

  test.each(["{", "{'a': 1}", '{"a": 1,}', "a=1", " ", "{} {}", "NaN", '{"a": 01}'])(
    "%p is not JSON: 400",
    (text) => {
      expect(thrown(() => parseObject(text))).toMatchObject({
        code: "validation_error",
        message: "body is not JSON: it must be one JSON object",
      });
    },
  );
});
