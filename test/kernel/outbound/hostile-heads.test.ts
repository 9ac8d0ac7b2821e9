import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { HEAD_BYTES_MAX, ResponseReader } from "../../../src/kernel/outbound/response-reader.ts";
import { createRandom, type Random } from "../../harness/crash/random.ts";
import { leastMs, longestTurnMs, processorMs, TURN_MS_MAX } from "../../support/processor-time.ts";
import { RawServer } from "../../support/raw-server.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const NO_BODY = { bodyBytesMax: 0, keepsBody: false };
const STATUS = "HTTP/1.1 200 OK\r\n";
const END = "\r\n\r\n";
const HEADS = 400;

/** Heads with which a target responds to checks. */
const HOSTILE_HEADS = 51;

/** Pieces of hostile heads, which are expensive for a parser in long repetitions. */
const PIECES: readonly string[] = [
  " ",
  "\t",
  " \t",
  ":",
  ": ",
  ",",
  "a:",
  "\r\n",
  "\r\na:",
  "\r\na: ",
  "\r\n\t",
  "\r",
  "\n",
  "\0",
  "\xff",
  "close ",
  "x",
];

/** A head of the maximum length, made of repeated pieces. */
function hostileHead(random: Random): Buffer {
  let head = `${STATUS}X:${random.chance(0.5) ? " " : ""}`;
  const room = HEAD_BYTES_MAX - 16;
  while (head.length < room) {
    const piece = PIECES[random.below(PIECES.length)] ?? "";
    const run = random.chance(0.2) ? room : 1 + random.below(4_000);
    head += piece.repeat(Math.max(1, Math.min(run, Math.floor((room - head.length) / piece.length))));
  }
  return Buffer.from(`${head.slice(0, room)}${random.chance(0.5) ? "x" : ""}${END}`, "latin1");
}

function repeat(times: number, run: () => void): void {
  for (let time = 0; time < times; time += 1) run();
}

function byteByByte(bytes: Buffer): void {
  const reader = new ResponseReader("GET", NO_BODY);
  for (let at = 0; at < bytes.length; at += 1) reader.push(bytes.subarray(at, at + 1));
}

function readAtOnce(head: Buffer): void {
  try {
    new ResponseReader("HEAD", NO_BODY).push(head);
  } catch {
    // Most of them are not HTTP.
  }
}

describe("the time to parse a head", () => {
  test(`is linear in its length: ${HEADS} heads of 64 KiB of any bytes`, async () => {
    const random = createRandom(1_911);
    const plain = Buffer.from(`${STATUS}${`X-Name: ${"some value ".repeat(5)}\r\n`.repeat(990)}\r\n`);
    repeat(20, () => readAtOnce(plain));
    const plainMs = await processorMs(() => repeat(HEADS, () => readAtOnce(plain)));
    const heads = Array.from({ length: HEADS }, () => hostileHead(random));
    const hostile = () => processorMs(() => heads.forEach(readAtOnce));
    expect(await leastMs(5 * plainMs, hostile)).toBeLessThanOrEqual(5 * plainMs);
  }, 60_000);

  test("is linear in its length, also byte by byte", async () => {
    const head = (length: number): Buffer => Buffer.from(`${STATUS}X: ${"a".repeat(length)}`);
    const trailers = (length: number): Buffer =>
      Buffer.from(`${STATUS}Transfer-Encoding: chunked${END}0\r\nX: ${"a".repeat(length)}`);
    for (const of of [head, trailers]) {
      const [long, short] = [of(64_000), of(8_000)];
      byteByByte(long);
      const most = 3 * (await processorMs(() => repeat(8, () => byteByByte(short))));
      const reading = () => processorMs(() => byteByByte(long));
      expect(await leastMs(most, reading)).toBeLessThanOrEqual(most);
    }
  });

  test("a value is trimmed", () => {
    const read = (line: string): string | undefined => {
      const reader = new ResponseReader("HEAD", NO_BODY);
      reader.push(Buffer.from(`${STATUS}${line}${END}`, "latin1"));
      return reader.headers["x"];
    };
    for (const [line, value] of [
      ["X:", ""],
      ["X: \t \t", ""],
      ["x:a", "a"],
      ["X: \t a  b: \t", "a  b:"],
      ["X: \xe9\x7f", "\xe9\x7f"],
      ["X: a\r\nX: b", "a, b"],
    ]) {
      expect([line, read(String(line))]).toEqual([line, value]);
    }
    for (const line of [
      "X",
      "X :a",
      " X: a",
      ": a",
      "X: a\r\n b",
      "X: a\r\n\tb",
      "é: a",
      "X: a\rb",
      "X: a\nb",
      "X: a\0b",
    ]) {
      expect([line, failsOn(() => read(line))]).toEqual([line, true]);
    }
    expect(
      failsOn(() => new ResponseReader("HEAD", NO_BODY).push(Buffer.from(`HTTP/1.1 200 O\nK${END}`))),
    ).toBe(true);
  });
});

describe("a target that responds to a check with 64 KiB of any bytes", () => {
  let server: TestServer;
  let target: RawServer;

  beforeAll(async () => {
    const random = createRandom(2_026);
    const blanks = Buffer.from(`${STATUS}X: a${" ".repeat(62_000)}a${END}`);
    const heads = [blanks, ...Array.from({ length: HOSTILE_HEADS - 1 }, () => hostileHead(random))];
    let answers = 0;
    target = await new RawServer((socket) => {
      socket.end(heads[answers % heads.length] ?? blanks);
      answers += 1;
    }).start();
    server = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
  });
  afterAll(async () => {
    target.stop();
    await server.stop();
  });

  test("does not hold the event loop", async () => {
    const hostile = await server.account();
    const { body } = await hostile.post("/v1/pulse", {
      url: `http://127.0.0.1:${target.port}/`,
      interval: 300_000,
    });
    const checking = async (): Promise<void> => {
      for (let number = 0; number < HOSTILE_HEADS; number += 1)
        expect((await hostile.post(`/v1/pulse/${body["id"]}/check`)).status).toBe(200);
    };
    const turn = await leastMs(TURN_MS_MAX, () => longestTurnMs(checking));
    expect(turn).toBeLessThanOrEqual(TURN_MS_MAX);
  });
});

function failsOn(run: () => unknown): boolean {
  try {
    run();
    return false;
  } catch {
    return true;
  }
}
