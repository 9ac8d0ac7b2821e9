import { type Static, Type } from "@sinclair/typebox";
import { named, orNull } from "../../kernel/data/schema.ts";
import { NextCursor } from "../../kernel/http/requests/pagination.ts";
import { DURATION_MS_DEFAULT, DURATION_MS_MAX, DURATION_MS_MIN } from "./domain.ts";

/** A token, for examples that go together. */
export const EXAMPLE_TOKEN = "6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10";

/** Path of a lock. */
export const LockParams = Type.Object({
  key: Type.String({
    pattern: "^[A-Za-z0-9_:-]{1,256}$",
    errorMessage: "must be 1 to 256 letters, digits, dashes, underscores or colons",
    examples: ["invoice:42"],
  }),
});

function duration(description: string) {
  return Type.Optional(
    Type.Integer({
      minimum: DURATION_MS_MIN,
      maximum: DURATION_MS_MAX,
      default: DURATION_MS_DEFAULT,
      errorMessage: `must be an integer from ${DURATION_MS_MIN} to ${DURATION_MS_MAX} (milliseconds)`,
      description,
    }),
  );
}

/** Body of an acquire. All of it is optional. */
export const AcquireBody = named("AcquireBody", {
  ttl: duration("How long the lock is held unless it is released before, in milliseconds."),
  timeout: duration("How long to wait for it, in milliseconds."),
  token: Type.Optional(
    Type.String({
      pattern: "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
      errorMessage: "must be a UUID",
      description:
        "Becomes the lock's token. With the token of the holder the answer comes at once, and the TTL starts anew.",
      examples: [EXAMPLE_TOKEN],
    }),
  ),
});
export type AcquireBody = Static<typeof AcquireBody>;

/** Body of a release. */
export const ReleaseBody = named("ReleaseBody", {
  token: Type.String({
    errorMessage: "must be the token of the lock's holder, a string",
    examples: [EXAMPLE_TOKEN],
  }),
});

/** A lock that was acquired. */
export const AcquiredLock = named("AcquiredLock", {
  status: Type.Literal("acquired"),
  key: Type.String({ examples: ["invoice:42"] }),
  token: Type.String({ examples: [EXAMPLE_TOKEN] }),
  fencing_token: Type.Integer({
    description: "Rises with every grant of the lock, for ever.",
    examples: [7],
  }),
  expires_at: Type.Integer({ description: "Epoch milliseconds." }),
  reentrant: Type.Boolean({ description: "Whether the token held the lock already.", examples: [false] }),
});
export type AcquiredLock = Static<typeof AcquiredLock>;

/** A lock that was released. */
export const ReleasedLock = named("ReleasedLock", { status: Type.Literal("released") });

/** A lock's state. */
export const LockStatus = named("LockStatus", {
  locked: Type.Boolean(),
  queue_depth: Type.Integer({ description: "Requests that wait for it.", examples: [0] }),
  ttl_remaining: orNull(Type.Integer({ examples: [8_500] }), {
    description: "Milliseconds until it expires; null when it is free.",
  }),
});
export type LockStatus = Static<typeof LockStatus>;

/** Body of a forced release. */
export const ForceReleaseBody = named("ForceReleaseBody", {
  fencing_token: Type.Integer({
    minimum: 1,
    errorMessage: "must be the fencing token of the lock's holder, an integer",
    examples: [7],
  }),
});

/** A lock that is held. */
const HeldLock = named("HeldLock", {
  key: Type.String({ examples: ["invoice:42"] }),
  fencing_token: Type.Integer({ examples: [7] }),
  acquired_at: Type.Integer({
    description:
      "Epoch milliseconds: its grant or last refresh; the server's start for one held longer than that.",
  }),
  expires_at: Type.Integer({ description: "Epoch milliseconds." }),
  queue_depth: Type.Integer({ description: "Requests that wait for it.", examples: [0] }),
});
export type HeldLock = Static<typeof HeldLock>;

/** A page of locks that are held, by key. */
export const LockPage = named("LockPage", { locks: Type.Array(HeldLock), cursor: NextCursor });
export type LockPage = Static<typeof LockPage>;
