import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Kernel } from "../../../src/kernel/kernel.ts";
import { WebhookSecrets } from "../../../src/kernel/outbound/webhook-secrets.ts";
import { TestKernel } from "../../support/kernel.ts";

const HOUR = 3_600_000;

let opened: TestKernel;
let kernel: Kernel;
beforeEach(() => {
  opened = new TestKernel();
  kernel = opened.kernel;
});
afterEach(() => opened.close());

function secretsWith(inMemoryMax?: number): WebhookSecrets {
  return new WebhookSecrets(kernel, "relay_project_secrets", inMemoryMax);
}

const signature = async (secrets: WebhookSecrets, owner: number): Promise<string | undefined> =>
  (await secrets.headers(owner, "id", kernel.clock.now(), ""))["webhook-signature"];

test("a limited number is cached, and dropped ones are read again", async () => {
  const secrets = secretsWith(2);
  const first = await signature(secrets, 1);
  await signature(secrets, 2);
  expect(secrets.inMemory).toBe(2);
  await signature(secrets, 3);
  expect(secrets.inMemory).toBe(2);
  expect(await signature(secrets, 1)).toBe(first as string);
  expect(await signature(secretsWith(), 1)).toBe(first as string);
});

test("a rotation that is not committed is not cached", async () => {
  const secrets = secretsWith();
  const before = await signature(secrets, 1);
  const failing = kernel.writer.submit((tx) => {
    secrets.rotate(tx, 1, HOUR);
    throw new Error("taken back");
  });
  await expect(failing).rejects.toThrow("taken back");
  expect(await signature(secrets, 1)).toBe(before as string);
  const made = kernel.writer.submit((tx) => {
    secrets.current(tx, 2);
    throw new Error("taken back");
  });
  await expect(made).rejects.toThrow("taken back");
  const later = await signature(secrets, 2);
  expect(await signature(secretsWith(), 2)).toBe(later as string);
});

test("a sealed secret can be opened only for its owner", async () => {
  await signature(secretsWith(), 1);
  const copy = kernel.db.change(
    "INSERT INTO relay_project_secrets SELECT 2, number, sealed, created_at, expires_at FROM relay_project_secrets",
  );
  await kernel.writer.submit((tx) => void copy(tx));
  await expect(signature(secretsWith(), 2)).rejects.toThrow();
});
