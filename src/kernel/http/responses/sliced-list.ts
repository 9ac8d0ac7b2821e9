import { slices, type TimeSlices } from "../../background/time-slices.ts";
import { additionalReply, type Reply } from "./response.ts";
import type { StreamedCall } from "./text-stream.ts";

/** Characters of JSON that are encoded together: a fraction of a millisecond. */
const CHUNK_LENGTH = 64 * 1024;

/** How a list is sent. */
export interface ListOptions<More extends object> {
  /** Fields that follow the list. */
  readonly more?: More;
  readonly headers?: Readonly<Record<string, string>>;
  /** Receives the bytes of the body, chunk by chunk. */
  readonly hash?: Pick<Bun.CryptoHasher, "update">;
  readonly timeSlices?: Pick<TimeSlices, "isOver" | "next">;
}

/**
 * The response `{ [name]: [...items], ...more }` for lists that are not divided into pages. Items are made and written one
 * by one, and other requests have their turn in between. It is typed as the value that its JSON has.
 *
 * @throws whatever `items` throws; ApiError `service_unavailable` as `holdForResponse`.
 */
export async function listReply<Name extends string, Item, More extends object = Record<never, never>>(
  call: Pick<StreamedCall, "holdForResponse">,
  name: Name,
  items: Iterable<Item>,
  { more, headers, hash, timeSlices = slices }: ListOptions<More> = {},
): Promise<Reply<200, { [Key in Name]: Item[] } & More>> {
  const chunks: Buffer[] = [];
  let text = `{${JSON.stringify(name)}:[`;
  const flush = (): void => {
    const chunk = Buffer.from(text);
    call.holdForResponse(chunk.length);
    hash?.update(chunk);
    chunks.push(chunk);
    text = "";
  };
  let separator = "";
  if (timeSlices.isOver) await timeSlices.next();
  for (const item of items) {
    text += separator + JSON.stringify(item);
    separator = ",";
    if (text.length >= CHUNK_LENGTH) flush();
    if (timeSlices.isOver) await timeSlices.next();
  }
  const rest = JSON.stringify(more ?? {}).slice(1);
  text += rest === "}" ? "]}" : `],${rest}`;
  flush();
  return additionalReply(200, Buffer.concat(chunks), headers);
}
