// The baseline: Bun.serve without any framework. It parses what the rows send, returns the same JSON as Ninefold in the
// fastest way possible, and stores nothing.
import { ANSWERS, JSON_HEADERS, partsOf } from "./answers.ts";

function answerToGet([, area, name = ""]: readonly string[]): object {
  if (area === "gate") return ANSWERS.flag;
  return name === "balance" ? ANSWERS.ownBalance : ANSWERS.meterState(name, 1_000_000_000);
}

/** The fields of a request's body that responses need. */
interface Sent {
  readonly amount: number;
  readonly hold_id: string;
  readonly token: string;
  readonly log: object;
}

/** The query of an evaluation of all flags contains their number. */
function evaluated(asked: string, query: string): object {
  return query === "" ? ANSWERS.evaluation(asked, FLAG_WITH_RULE) : ANSWERS.evaluations(Number(query));
}

const FLAG_WITH_RULE = 7;

function answerToPost(
  [first, area, name = "", action = "", asked = ""]: readonly string[],
  sent: Sent,
): object {
  if (first === "ofrep") return evaluated(asked, action.split("=")[1] ?? "");
  if (action === "holds") {
    const captured = asked === "" ? 0 : sent.amount;
    return ANSWERS.hold(name, asked === "" ? sent.hold_id : asked, 1_000_000_000 - captured, captured);
  }
  if (area === "meter") return ANSWERS.meter(name, 1_000_000_000 - sent.amount);
  if (area === "latch")
    return action === "release" ? ANSWERS.released : ANSWERS.acquired(name, sent.token, 1, 1_760_000_000_000);
  if (area === "keys") return ANSWERS.verified;
  if (area === "check") return ANSWERS.check();
  if (area === "relay") return ANSWERS.relay();
  return area === "catch" ? ANSWERS.event() : ANSWERS.receipt(sent.log);
}

async function answer(request: Request): Promise<Response> {
  const parts = partsOf(request.url);
  const body =
    request.method === "GET"
      ? answerToGet(parts)
      : answerToPost(parts, JSON.parse(await request.text()) as Sent);
  return new Response(JSON.stringify(body), { headers: JSON_HEADERS });
}

const server = Bun.serve({ hostname: "127.0.0.1", port: 0, development: false, fetch: answer });
console.log(server.url.origin);
