import { inParallel } from "../crashes/target.ts";
import { bodyOf, type Target, type TargetRequest } from "../crashes/workload.ts";

/** Connections used for reading. */
const READERS = 8;

/** A page of a list, as it was acknowledged. */
export interface Seen {
  readonly question: TargetRequest;
  /** The member of the response that has the list. */
  readonly member: string;
  /** Under which id it was acknowledged. */
  readonly requestId: string;
  /** What stands on it. It never changes, and is never removed. */
  readonly facts: readonly string[];
}

/** For each way to change something: which list shows it. */
const LISTS: readonly (readonly [path: RegExp, list: string, member: string])[] = [
  [/^\/v1\/meter\/([\w-]+)\/(?:deduct|refill|reset)$/, "/v1/meter/$1/history", "entries"],
  [/^\/v1\/meter\/(?:deduct|refill)$/, "/v1/meter/history", "entries"],
  [/^\/v1\/witness\/log$/, "/v1/witness/receipts", "receipts"],
  [/^\/v1\/catch\/(?!buckets$)([\w-]+)$/, "/v1/catch/$1/events", "events"],
];

/** Reads the newest of everything that some requests may have changed, in their order. */
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

/** Asks again, of another server. Returns what had been seen and is not there. */
export async function compareSeen(target: Target, seen: readonly Seen[]): Promise<string[]> {
  const problems = await inParallel(seen, READERS, async ({ question, member, facts }) => {
    const now = new Set((await look(target, question, member)).facts);
    const missing = facts.filter((fact) => !now.has(fact));
    return missing.map((fact) => `${question.path}: ${fact} was read after the kill and is lost`);
  });
  return problems.flat();
}

async function look(target: Target, question: TargetRequest, member: string): Promise<Seen> {
  const answer = await target.ask(question);
  if (answer.status !== 200) throw new Error(`GET ${question.path}: ${answer.status} ${answer.text}`);
  const items = (bodyOf(answer)[member] ?? []) as Record<string, unknown>[];
  return { question, member, requestId: answer.headers.get("x-request-id") ?? "", facts: items.map(factOf) };
}

/** What will always be so of an item of a list. An event's way is not ended when it is accepted. */
function factOf(item: Record<string, unknown>): string {
  return "status" in item ? String(item["id"]) : JSON.stringify(item);
}
