// Proves that deductions are exact: many clients deduct 1 from one meter, each deduction under an Idempotency-Key, over
// connections that break, against a separate server process. Prints the result; exit code 1 if it is not exact.
//   scripts/harness exact [--clients 64] [--deducts 100000] [--balance 50000]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type ExactResult, type ExactSize, runExact } from "../areas/meter/exact-run.ts";

const MAIN = join(import.meta.dir, "../../src/main.ts");

function readSize(): ExactSize {
  const { values } = parseArgs({
    options: {
      clients: { type: "string", default: "64" },
      deducts: { type: "string", default: "100000" },
      balance: { type: "string", default: "50000" },
    },
  });
  const read = (name: keyof typeof values): number => {
    const number = Number(values[name]);
    if (!Number.isSafeInteger(number) || number < 1) throw new Error(`--${name} must be a positive integer`);
    return number;
  };
  return { clients: read("clients"), deducts: read("deducts"), balance: read("balance") };
}

async function runOnOwnServer(size: ExactSize): Promise<ExactResult> {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-exact-"));
  const command = [process.execPath, MAIN, "serve", "--json", "--port", "0", "--data", folder];
  const server = Bun.spawn(command, { stdout: "pipe", stderr: "inherit" });
  try {
    const { value } = await server.stdout.getReader().read();
    const { url, api_key } = JSON.parse(new TextDecoder().decode(value)) as { url: string; api_key: string };
    return await runExact(url, api_key, size);
  } finally {
    server.kill("SIGTERM");
    await server.exited;
    rmSync(folder, { recursive: true, force: true });
  }
}

const size = readSize();
const result = await runOnOwnServer(size);
const expected = Math.min(size.deducts, size.balance);
console.log(JSON.stringify({ ...size, ...result, wrong: result.wrong.slice(0, 5) }, null, 2));
const exact =
  result.succeeded === expected &&
  result.rejected === size.deducts - expected &&
  result.wrong.length === 0 &&
  result.balanceAfter === size.balance - expected &&
  result.ledgerDeducts === expected;
console.log(exact ? `exact: ${expected} of ${size.deducts} succeeded` : "NOT exact");
process.exit(exact ? 0 : 1);
