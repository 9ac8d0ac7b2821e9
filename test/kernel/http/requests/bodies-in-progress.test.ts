import { describe, expect, mock, test } from "bun:test";
import { ApiError } from "../../../../src/kernel/errors.ts";
import {
  BodiesInProgress,
  PROGRESS_LIMITS,
} from "../../../../src/kernel/http/requests/bodies-in-progress.ts";
import { rejection, thrown } from "../../support.ts";

const MIB = 1024 * 1024;

function code(run: () => unknown): string | null {
  const error = thrown(run);
  return error instanceof ApiError ? error.code : null;
}

describe("bodies in progress", () => {
  test("of one sender have 64 MiB in total, without an effect on others", () => {
    expect(PROGRESS_LIMITS.senderBytesMax).toBe(64 * MIB);
    const all = new BodiesInProgress();
    const bodies = Array.from({ length: 64 }, () => all.begin(1));
    for (const body of bodies) body.grow(MIB);
    expect(code(() => all.begin(1).grow(1))).toBe("service_unavailable");
    all.begin(2).grow(MIB);
    bodies[0]?.close();
    all.begin(1).grow(MIB);
    expect(code(() => all.begin(1).grow(1))).toBe("service_unavailable");
  });

  test("of all senders have 256 MiB in total", () => {
    const all = new BodiesInProgress();
    const bodies = Array.from({ length: 4 }, (_, sender) => all.begin(sender));
    for (const body of bodies) body.grow(64 * MIB);
    expect(code(() => all.begin("203.0.113.7").grow(1))).toBe("service_unavailable");
    bodies[3]?.close();
    all.begin("203.0.113.7").grow(64 * MIB);
  });

  test("that take too long are aborted and free their memory", async () => {
    const all = new BodiesInProgress({
      ...PROGRESS_LIMITS,
      senderBytesMax: 10,
      bytesMax: 10,
      durationMsMax: 1,
    });
    const body = all.begin(1);
    body.grow(10);
    const { promise: reading, resolve } = Promise.withResolvers<Uint8Array>();
    const take = mock();
    const error = await rejection(body.within(reading, take));
    expect(error).toMatchObject({ code: "timeout", details: { headers: { connection: "close" } } });
    all.begin(1).grow(10);
    resolve(new Uint8Array(10));
    await reading;
    expect(take).not.toHaveBeenCalled();
  });

  test("end with their bytes, with an error of theirs, and with an error of what takes them", async () => {
    const all = new BodiesInProgress({
      ...PROGRESS_LIMITS,
      senderBytesMax: 10,
      bytesMax: 10,
      durationMsMax: 1_000,
    });
    const bytes = new Uint8Array([1, 2]);
    const next = () => {
      const body = all.begin(1);
      body.grow(10);
      return body;
    };
    expect(await next().within(Promise.resolve(bytes), ({ length }) => length)).toBe(2);
    const broken = next().within(Promise.reject(new Error("connection reset")), (read) => read);
    expect(await rejection(broken)).toMatchObject({
      code: "validation_error",
      details: { fields: { body: ["ended before it was complete"] } },
    });
    const refused = next().within(Promise.resolve(bytes), () => {
      throw new RangeError("too short");
    });
    expect(await rejection(refused)).toEqual(new RangeError("too short"));
    // Each has freed its memory.
    next();
  });
});
