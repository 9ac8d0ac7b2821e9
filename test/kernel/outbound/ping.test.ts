import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { Deadline, OutboundFailure } from "../../../src/kernel/outbound/outcome.ts";
import { commandFor, PINGS_PER_ACCOUNT_MAX, Pings, statisticsIn } from "../../../src/kernel/outbound/ping.ts";
import { StubPing } from "../../support/stub-ping.ts";

const stub = new StubPing();
afterEach(() => stub.restore());
afterAll(() => stub.remove());

/** Summaries of several commands. */
const SUMMARIES: readonly (readonly [what: string, text: string, expected: unknown])[] = [
  [
    "iputils",
    "3 packets transmitted, 3 received, 0% packet loss, time 411ms\nrtt min/avg/max/mdev = 0.025/0.060/0.126/0.046 ms\n",
    { sent: 3, received: 3, times: { min: 0.025, avg: 0.06, max: 0.126 } },
  ],
  [
    "iputils with errors of routers",
    "2 packets transmitted, 0 received, +2 errors, 100% packet loss, time 205ms\n\n",
    { sent: 2, received: 0, times: null },
  ],
  [
    "iputils with duplicates",
    "2 packets transmitted, 3 received, +1 duplicates, 0% packet loss, time 201ms\nrtt min/avg/max/mdev = 1/2/3/1 ms\n",
    { sent: 2, received: 2, times: { min: 1, avg: 2, max: 3 } },
  ],
  [
    "BusyBox",
    "2 packets transmitted, 1 packets received, 50% packet loss\nround-trip min/avg/max = 0.042/0.044/0.046 ms\n",
    { sent: 2, received: 1, times: { min: 0.042, avg: 0.044, max: 0.046 } },
  ],
  [
    "BSD",
    "3 packets transmitted, 3 packets received, 0.0% packet loss\nround-trip min/avg/max/stddev = 0.1/0.2/0.3/0.0 ms\n",
    { sent: 3, received: 3, times: { min: 0.1, avg: 0.2, max: 0.3 } },
  ],
  ["no packet", "0 packets transmitted, 0 received\n", null],
  ["something else", "64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=0.046 ms\n", null],
  ["nothing", "", null],
];
for (const [what, text, expected] of SUMMARIES)
  test(`the summary of ${what} is read`, () => expect<unknown>(statisticsIn(text)).toEqual(expected));

test("each platform has its command", () => {
  const command = (platform: NodeJS.Platform, address: string) => {
    const { name, args } = commandFor(platform, address, 3, 1_500) ?? { name: null, args: [] };
    return [name, ...args].join(" ");
  };
  expect(command("linux", "::1")).toBe("ping -n -q -c 3 -i 0.2 -W 2 ::1");
  expect(command("darwin", "127.0.0.1")).toBe("ping -n -q -c 3 -i 0.2 -W 1500 127.0.0.1");
  expect(command("darwin", "::1")).toBe("ping6 -n -q -c 3 -i 0.2 ::1");
  expect(command("win32", "::1")).toBe("");
});

/** Sends packets. Returns the kind of the failure, or what became of them. */
async function sent(pings: Pings, account: number | null, timeoutMs: number, waitMs = timeoutMs) {
  const deadline = new Deadline(waitMs);
  try {
    return await pings.send(["127.0.0.1"], { account, packets: 1, timeoutMs }, deadline);
  } catch (error) {
    if (error instanceof OutboundFailure) return `${error.kind}: ${error.message}`;
    throw error;
  } finally {
    deadline.close();
  }
}

describe("pings", () => {
  test("run up to a limit for each account; others wait for a place, at most until their deadline", async () => {
    stub.runs('case "$*" in *"-W 1 "*) exec sleep 60;; esac; echo "1 packets transmitted, 1 received"');
    const pings = new Pings(stub.commandNamed);
    const hanging = Array.from({ length: PINGS_PER_ACCOUNT_MAX }, () => sent(pings, 1, 1_000));
    expect(await sent(pings, 1, 1_000, 10)).toBe("local: too many other pings run at the same time");
    expect(await sent(pings, 2, 10_000)).toMatchObject({ sent: 1, received: 1, address: "127.0.0.1" });
    const waiting = sent(pings, 1, 10_000);
    for (const result of await Promise.all(hanging))
      expect(result).toBe("timeout: ping has sent no packet in time");
    expect(await waiting).toMatchObject({ received: 1 });
  });

  test("read a bounded part of what the command prints, and end it", async () => {
    stub.runs("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; exit 2");
    expect(await sent(new Pings(stub.commandNamed), null, 10_000)).toMatch(/^connect: /);
  });

  test("go to the next address where there is no route to one", async () => {
    stub.runs(
      'for to; do :; done; case $to in *:*) echo "ping: connect: Network is unreachable" >&2; exit 2;; esac; echo "1 packets transmitted, 1 received"',
    );
    const deadline = new Deadline(10_000);
    const packets = { account: null, packets: 1, timeoutMs: 10_000 };
    expect(await new Pings(stub.commandNamed).send(["::1", "127.0.0.1"], packets, deadline)).toMatchObject({
      address: "127.0.0.1",
    });
    const failed = new Pings(stub.commandNamed).send(["::1"], packets, deadline);
    expect(await failed.catch((error: OutboundFailure) => `${error.kind}: ${error.message}`)).toBe(
      "connect: connect: Network is unreachable",
    );
    deadline.close();
  });

  test("run for nothing but an address", async () => {
    const deadline = new Deadline(10_000);
    const packets = { account: null, packets: 1, timeoutMs: 1_000 };
    for (const address of ["-f", "localhost", "127.0.0.1 -f", ""])
      expect(
        await new Pings(stub.commandNamed)
          .send([address], packets, deadline)
          .catch((error: OutboundFailure) => error.kind),
      ).toBe("invalid");
    deadline.close();
  });
});
