import { slices } from "../../kernel/background/time-slices.ts";
import type { OpenCall } from "../../kernel/http/requests/call.ts";
import type { NotaryService } from "./service.ts";

/** Bytes of a page of an export: a receipt with the largest log takes a quarter of it. */
export const EXPORT_BYTES_MAX = 8 * 1024 * 1024;

/** A page of an export. `next`: the position of the first receipt after it; null on the last page. */
interface ExportPage {
  readonly text: string;
  readonly next: number | null;
}

/** Renders receipts from a position in ascending order, in slices. */
export async function exportPage(
  notary: NotaryService,
  projectRef: number,
  from: number,
  limit: number,
  call: Pick<OpenCall, "request" | "holdForResponse">,
): Promise<ExportPage> {
  const lines: string[] = [];
  let bytes = 0;
  for (let sequence = from; !call.request.signal.aborted; sequence += 1) {
    if (slices.isOver) await slices.next();
    const line = notary.receiptText(projectRef, sequence);
    if (line === null) break;
    const lineBytes = Buffer.byteLength(line) + 1;
    bytes += lineBytes;
    if (lines.length === limit || (lines.length > 0 && bytes > EXPORT_BYTES_MAX))
      return { text: lines.join(""), next: sequence };
    call.holdForResponse(lineBytes);
    lines.push(`${line}\n`);
  }
  return { text: lines.join(""), next: null };
}
