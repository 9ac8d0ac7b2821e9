import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import type { Api } from "../api/http-api.ts";
import { UsageError } from "../config/command-line.ts";
import { errorText, StartupError } from "../kernel/errors.ts";
import { writeAll } from "../kernel/storage/folders.ts";
import { printingResponse, withApi } from "./api.ts";
import type { Arguments } from "./arguments.ts";
import { print } from "./output.ts";

/** `ninefold notary accept-fork CHAIN`: continues a restored chain. */
export const notaryAcceptFork = printingResponse(["chain_id", "sequence_id"], (args) => {
  const body = { chain_id: args.words[0] ?? "" };
  return (api) => api.send("POST", "/v1/witness/accept-fork", body);
});

/** `ninefold notary export --out FILE`: writes all receipts, and a checkpoint over exactly these. */
export function notaryExport(args: Arguments): Promise<number> {
  const path = args.text("--out");
  if (path === null)
    throw new UsageError("notary export needs --out FILE. Try ninefold notary export --help.");
  return withApi(args, async (api) => {
    const { size, note } = await api.send("GET", "/v1/witness/checkpoint?format=json");
    const partial = `${path}.partial`;
    const file = opened(partial);
    try {
      await writeReceipts(api, Number(size), (text) => writeAll(file, Buffer.from(text)));
      writeAll(file, Buffer.from(`${JSON.stringify({ checkpoint: note })}\n`));
      fsyncSync(file);
      closeSync(file);
      renameSync(partial, path);
    } catch (error) {
      rmSync(partial, { force: true });
      throw error;
    }
    print(`written: ${size} ${size === 1 ? "receipt" : "receipts"} and a checkpoint to ${path}\n`);
    return 0;
  });
}

/** Reads the receipts up to a position, page by page. */
async function writeReceipts(api: Api, size: number, write: (text: string) => void): Promise<void> {
  for (let from = 1; from <= size; ) {
    const { text, cursor } = await api.read(
      `/v1/witness/export?from=${from}&limit=${Math.min(LIMIT, size - from + 1)}`,
    );
    write(text);
    const next = from + text.split("\n").length - 1;
    if (next === from || (cursor !== null && Number(cursor) !== next))
      throw new StartupError(`The server returned no receipt ${from}, so the export would not be complete.`);
    from = next;
  }
}

/** Receipts of a page: the maximum of the API. */
const LIMIT = 10_000;

function opened(path: string): number {
  try {
    return openSync(path, "w", 0o600);
  } catch (error) {
    throw new StartupError(`${path} cannot be written (${errorText(error)}).`);
  }
}
