import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestKernel } from "../../../support/kernel.ts";

let kernel: TestKernel;
beforeAll(() => {
  kernel = new TestKernel();
});
afterAll(() => kernel.close());

/** The last columns of a table. */
function lastColumns(table: string, count: number): string[] {
  const { db } = kernel.kernel;
  const columns = db.all<{ name: string }>(`SELECT name FROM pragma_table_info('${table}') ORDER BY cid`)();
  return columns.slice(-count).map(({ name }) => name);
}

test("what is sent comes after all other columns: lists and counts must not walk over bodies of 1 MiB", () => {
  expect(lastColumns("relays", 3)).toEqual(["headers", "body", "body_bytes"]);
  expect(lastColumns("relay_messages", 1)).toEqual(["payload"]);
});
