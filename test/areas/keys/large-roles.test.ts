import { afterAll, beforeAll, expect, test } from "bun:test";
import { KEY_ROLES_MAX, ROLE_PERMISSIONS_MAX } from "../../../src/areas/keys/domain.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../support/processor-time.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { makeKey } from "./support.ts";

const ROLES = Array.from({ length: KEY_ROLES_MAX }, (_, index) => `role-${index}`);
/** 500 of these fill the 64 KiB of a role. */
const PERMISSION_LENGTH = 127;
const IMPORTED_MAX = 100;
const CHECKS_MAX = 20;

let server: TestServer;
let account: AccountClient;
let secret: string;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ tier: "unlimited" });
  await saveRoles();
  ({ secret } = await makeKey(account, { roles: ROLES }));
});
afterAll(() => server.stop());

/** Saves every role as large as it can be, with a star in each permission; memory has none of them then. */
async function saveRoles(): Promise<void> {
  for (const role of ROLES) {
    const permissions = Array.from(
      { length: ROLE_PERMISSIONS_MAX },
      (_, index) => `${`${role}.${index}.`.padEnd(PERMISSION_LENGTH - 1, "p")}*`,
    );
    const { status, text } = await account.send("PUT", `/v1/keys/roles/${role}`, { permissions });
    expect(status, text).toBeLessThan(300);
  }
}

const leastTurnMs = (work: () => Promise<unknown>): Promise<number> =>
  leastMs(TURN_MS_MAX, () => longestTurnMs(work));

test("an import of 100 keys with 20 roles each does not delay other requests", async () => {
  let run = 0;
  const least = await leastTurnMs(async () => {
    run += 1;
    const keys = Array.from({ length: IMPORTED_MAX }, (_, index) => ({
      hash: new Bun.CryptoHasher("sha256").update(`${run} ${index}`).digest("hex"),
      name: "k",
      roles: ROLES,
    }));
    const { status, text } = await account.post("/v1/keys/import", { keys });
    expect(status, text).toBe(201);
  });
  expect(least).toBeLessThanOrEqual(TURN_MS_MAX);
});

test("a verification with 20 of the largest roles does not delay other requests, also once they have changed", async () => {
  const verify = async () => {
    const { body } = await account.post("/v1/keys/verify", { secret, require: ["absent"] });
    expect(body["error"]).toBe("insufficient_scope");
    expect(body["permissions"]).toHaveLength(KEY_ROLES_MAX * ROLE_PERMISSIONS_MAX);
  };
  expect(await leastTurnMs(verify)).toBeLessThanOrEqual(TURN_MS_MAX);
  const cold = await leastMs(TURN_MS_MAX, async () => {
    await saveRoles();
    return longestTurnMs(verify);
  });
  expect(cold).toBeLessThanOrEqual(TURN_MS_MAX);
});

test("20 checks of a key with 20 of the largest roles do not delay other requests", async () => {
  const or = Array.from({ length: 20 }, (_, index) => `absent.${index}`);
  const checks = Array.from({ length: CHECKS_MAX }, () => ({ secret, require: { or } }));
  const least = await leastTurnMs(async () => {
    const { body } = await account.post("/v1/check", { checks });
    const codes = (body["results"] as { code: string }[]).map(({ code }) => code);
    expect(codes).toEqual(checks.map(() => "insufficient_permission"));
  });
  expect(least).toBeLessThanOrEqual(TURN_MS_MAX);
});
