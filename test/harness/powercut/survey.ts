import { inParallel } from "../crash/target.ts";
import { bodyOf, type Target, type TargetRequest } from "../crash/workload.ts";

/** Connections used for reading. */
const READERS = 8;

/** A page of a list with acknowledged content. */
export interface Seen {
  readonly question: TargetRequest;
  /** The field of the response that contains the list. */
  readonly member: string;
  /** Its acknowledged id. */
  readonly requestId: string;
  /** Its acknowledged content, which is never changed or removed. */
  readonly facts: readonly string[];
}

/** For each kind of change: the list that shows it. */
const LISTS: readonly (readonly [path: RegExp, list: string, member: string])[] = [
  [/^\/v1\/meter\/([\w-]+)\/(?:deduct|refill|reset)$/, "/v1/meter/$1/history", "entries"],
  [/^\/v1\/meter\/(?:deduct|refill)$/, "/v1/meter/history", "entries"],
  [/^\/v1\/witness\/log$/, "/v1/witness/receipts", "receipts"],
  [/^\/v1\/catch\/(?!buckets$)([\w-]+)$/, "/v1/catch/$1/events", "events"],
];

/** Reads the newest items of every list that some requests can have changed, in order. */
export function survey(target: Target, requests: readonly TargetRequest[]): Promise<Seen[]> {
  const questions = new Map<string, { question: TargetRequest; member: string }>();
  for (const { method, path, key } of requests) {
    const list = LISTS.find(([changing]) => method === "POST" && changing.test(path));
    if (list === undefined) continue;
    const [changing, name, member] = list;
    const question: TargetRequest = { method: "GET", path: `${path.replace(changing, name)}?limit=100`, key };
    const id = `${key} ${question.path}`;
    if (!questions.has(id)) questions.set(id, { question, member });
  }
  return inParallel([...questions.values()], READERS, ({ question, member }) =>
    look(target, question, member),
  );
}

/** Reads the same from another server. Returns what was there before and is missing now. */
export async function compareSeen(target: Target, seen: readonly Seen[]): Promise<string[]> {
  const problems = await inParallel(seen, READERS, async ({ question, member, facts }) => {
    const now = new Set((await look(target, question, member)).facts);
    const missing = facts.filter((fact) => !now.has(fact));
    return missing.map((fact) => `${question.path}: ${fact} was read after the kill and is lost`);
  });
  return problems.flat();
}

async function look(target: Target, question: TargetRequest, member: string): Promise<Seen> {
  const response = await target.ask(question);
  if (response.status !== 200) throw new Error(`GET ${question.path}: ${response.status} ${response.text}`);
  const items = (bodyOf(response)[member] ?? []) as Record<string, unknown>[];
  return {
    question,
    member,
    requestId: response.headers.get("x-request-id") ?? "",
    facts: items.map(factOf),
  };
}

/** The part of a list's item that never changes. The processing of an accepted event is still open. */
function factOf(item: Record<string, unknown>): string {
  return "status" in item ? String(item["id"]) : JSON.stringify(item);
}
