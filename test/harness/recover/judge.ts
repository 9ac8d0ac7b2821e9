import type {
  AcceptedMessage,
  Arrival,
  EndpointRecord,
  Kill,
  RecordedDelivery,
  RecordedRun,
  RecoverTerms,
} from "./record.ts";

/** What is measured of an endpoint's arrivals. */
export interface Measurements {
  /** Requests that arrived again after a kill. */
  readonly repeated: number;
  /** Most older messages that had not arrived when a newer one did. */
  readonly overtaken: number;
  /** Longest time between two first arrivals of keys that do not fail, without the times in which the server was down. */
  readonly longestPauseMs: number;
}

/** The result of a comparison: what is wrong, one per line, and what was measured. */
export interface Verdict extends Measurements {
  readonly problems: readonly string[];
}

/** Names at most so many of one kind of problem. */
const NAMED_MAX = 5;

/**
 * Compares what one endpoint got with what it has missed:
 *
 * - every message arrives, and has one delivery: delivered by one attempt, or, of a key that fails, failed by all;
 * - it arrives again only if its request was in flight at a kill: each kill repeats at most `concurrency` requests;
 * - the messages of a key arrive first in the order of acceptance, and those behind a failing one after `order_wait_ms`;
 * - when a message arrives, at most `concurrency - 1` older ones have not: they are in flight. Those that their key may
 *   hold do not count: their predecessor arrived when the recovery was at most two seconds' messages before them, or later;
 * - each recovery has sent all that it matched, and skipped none.
 */
export function judge(record: EndpointRecord, kills: readonly Kill[], terms: RecoverTerms): Verdict {
  const arrivals = arrivalsById(record);
  const problems = [
    ...problemsOfArrivals(record, arrivals),
    ...problemsOfDeliveries(record, terms),
    ...problemsOfKeys(record, arrivals),
    ...problemsOfWaits(record, terms),
    ...record.runs.flatMap(problemsOfRun),
  ];
  const repeats = repetitions(record, arrivals, kills, terms);
  const order = overtaking(record, arrivals, terms);
  return {
    problems: [...problems, ...repeats.problems, ...order.problems],
    repeated: repeats.count,
    overtaken: order.most,
    longestPauseMs: longestPause(record, arrivals, kills, terms),
  };
}

type ArrivalsById = ReadonlyMap<string, readonly Arrival[]>;

function arrivalsById({ arrivals }: EndpointRecord): ArrivalsById {
  return Map.groupBy(arrivals, ({ id }) => id);
}

/** The first few of some problems, and how many more there are. */
function some(problems: readonly string[]): string[] {
  const more = problems.length - NAMED_MAX;
  return more > 0 ? [...problems.slice(0, NAMED_MAX), `… and ${more} more like the last`] : [...problems];
}

function problemsOfArrivals({ messages }: EndpointRecord, arrivals: ArrivalsById): string[] {
  const known = new Set(messages.map(({ id }) => id));
  return [
    ...some(messages.filter(({ id }) => !arrivals.has(id)).map(({ id }) => `${id} has not arrived`)),
    ...some([...arrivals.keys()].filter((id) => !known.has(id)).map((id) => `${id} was never sent`)),
  ];
}

function problemsOfDeliveries(
  { messages, deliveries }: EndpointRecord,
  { failingKeys, attemptsMax }: RecoverTerms,
): string[] {
  const byMessage = Map.groupBy(deliveries, ({ messageId }) => messageId);
  const wrong = messages.flatMap(({ id, key }) => {
    const expected = failingKeys.has(key) ? `failed after ${attemptsMax}` : "delivered after 1";
    const found = (byMessage.get(id) ?? []).map(({ status, attempts }) => `${status} after ${attempts}`);
    const isRight = found.length === 1 && found[0] === expected;
    return isRight ? [] : [`${id} has the deliveries [${found.join(", ")}], not [${expected}]`];
  });
  return some(wrong);
}

function problemsOfRun({ messages, status, matched, resent, skipped }: RecordedRun): string[] {
  if (status === "done" && matched === messages && resent === messages && skipped === 0) return [];
  return [
    `the recovery of ${messages} messages is ${status}: matched ${matched}, sent ${resent}, skipped ${skipped}`,
  ];
}

function problemsOfKeys({ messages }: EndpointRecord, arrivals: ArrivalsById): string[] {
  const wrong = predecessorsOf(messages).flatMap(({ message, predecessor }) => {
    const [first] = arrivals.get(message.id) ?? [];
    const [before] = arrivals.get(predecessor.id) ?? [];
    const isWrong = first !== undefined && before !== undefined && first.at < before.at;
    return isWrong
      ? [`${message.id} arrived before ${predecessor.id}, which is older and has the same key`]
      : [];
  });
  return some(wrong);
}

/** By the server's record of its attempts: the receiver does not know when they began. */
function problemsOfWaits(
  { messages, deliveries }: EndpointRecord,
  { failingKeys, orderWaitMs }: RecoverTerms,
): string[] {
  const byMessage = new Map<string, RecordedDelivery>(deliveries.map((one) => [one.messageId, one]));
  const failing = messages.filter(({ key }) => failingKeys.has(key));
  const wrong = predecessorsOf(failing).flatMap(({ message, predecessor }) => {
    const [at, before] = [message, predecessor].map(({ id }) => byMessage.get(id)?.firstAttemptAt);
    if (at !== undefined && before !== undefined && at - before >= orderWaitMs) return [];
    return [`${message.id} was not held for ${orderWaitMs} ms after the first attempt of ${predecessor.id}`];
  });
  return some(wrong);
}

/** Requests that arrived more than once, by the kill that caused it. */
function repetitions(
  { messages }: EndpointRecord,
  arrivals: ArrivalsById,
  kills: readonly Kill[],
  { failingKeys, attemptsMax, concurrency }: RecoverTerms,
): { readonly count: number; readonly problems: string[] } {
  const problems: string[] = [];
  const byKill = new Map<number, number>();
  let count = 0;
  for (const { id, key } of messages) {
    const all = arrivals.get(id) ?? [];
    if (failingKeys.has(key)) {
      count += Math.max(0, all.length - attemptsMax);
      continue;
    }
    for (const [at, again] of all.entries()) {
      const before = all[at - 1];
      if (before === undefined) continue;
      count += 1;
      const kill = kills.findIndex(({ startedAt }) => startedAt > before.at && startedAt <= again.at);
      if (kill < 0) problems.push(`${id} arrived twice without a kill in between`);
      else byKill.set(kill, (byKill.get(kill) ?? 0) + 1);
    }
  }
  const tooMany = [...byKill].filter(([, repeated]) => repeated > concurrency);
  return {
    count,
    problems: [
      ...some(problems),
      ...some(
        tooMany.map(([kill, repeated]) => `kill ${kill + 1} repeated ${repeated} requests of ${concurrency}`),
      ),
      ...(count > kills.length * concurrency ? [`${kills.length} kills repeated ${count} requests`] : []),
    ],
  };
}

/** Walks through the first arrivals, and counts the older messages that have not arrived and are not held by their key. */
function overtaking(
  { messages, arrivals: inOrder }: EndpointRecord,
  arrivals: ArrivalsById,
  { concurrency, perSecond }: RecoverTerms,
): { readonly most: number; readonly problems: string[] } {
  const positions = new Map(messages.map(({ id }, at) => [id, at]));
  /** When a message at this position or after it first arrived. */
  const reachedAt: number[] = [];
  for (const { id, at } of inOrder) {
    const position = positions.get(id) ?? -1;
    while (reachedAt.length <= position) reachedAt.push(at);
  }
  const mayBeHeld = new Set<number>();
  for (const { message, predecessor } of predecessorsOf(messages)) {
    const position = positions.get(message.id) ?? 0;
    const last = arrivals.get(predecessor.id)?.at(-1);
    const reached = reachedAt[Math.max(0, position - 2 * perSecond)] ?? Number.POSITIVE_INFINITY;
    if (last === undefined || last.isRejected || last.at >= reached) mayBeHeld.add(position);
  }
  const outstanding = new Set<number>();
  let [next, most] = [0, 0];
  const problems: string[] = [];
  for (const arrival of inOrder) {
    const { id } = arrival;
    const position = positions.get(id);
    // A repeated request proves nothing about the order.
    if (position === undefined || arrivals.get(id)?.[0] !== arrival) continue;
    for (; next <= position; next += 1) if (!mayBeHeld.has(next)) outstanding.add(next);
    outstanding.delete(position);
    const older = [...outstanding].filter((other) => other < position).length;
    most = Math.max(most, older);
    if (older >= concurrency) problems.push(`${id} arrived before ${older} older messages`);
  }
  return { most, problems: some(problems) };
}

function longestPause(
  { messages }: EndpointRecord,
  arrivals: ArrivalsById,
  kills: readonly Kill[],
  { failingKeys }: RecoverTerms,
): number {
  const times = messages
    .filter(({ key }) => !failingKeys.has(key))
    .flatMap(({ id }) => arrivals.get(id)?.slice(0, 1) ?? [])
    .map(({ at }) => at)
    .sort((a, b) => a - b);
  const pauses = times.slice(1).map((end, at) => {
    const begin = times[at] ?? end;
    const down = kills.map(({ at: from, readyAt }) =>
      Math.max(0, Math.min(end, readyAt) - Math.max(begin, from)),
    );
    return end - begin - down.reduce((sum, ms) => sum + ms, 0);
  });
  return pauses.reduce((most, pause) => Math.max(most, pause), 0);
}

/** The messages that have an older one of the same key, with that one. */
function predecessorsOf(messages: readonly AcceptedMessage[]) {
  const last = new Map<string, AcceptedMessage>();
  return messages.flatMap((message) => {
    const predecessor = last.get(message.key);
    last.set(message.key, message);
    return predecessor === undefined ? [] : [{ message, predecessor }];
  });
}
