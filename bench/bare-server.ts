// The baseline: Bun.serve without any framework. It parses what the rows send, returns the same JSON as Ninefold in the
// fastest way possible, and stores nothing.
import { JSON_HEADERS, partsOf, RESPONSES } from "./responses.ts";

function bodyOfGet([, area, name = ""]: readonly string[]): object {
  if (area === "gate") return RESPONSES.flag;
  return name === "balance" ? RESPONSES.accountBalance : RESPONSES.meterState(name, 1_000_000_000);
}

/** The fields of a request's body that responses need. */
interface Sent {
  readonly amount: number;
  readonly hold_id: string;
  readonly token: string;
  readonly log: object;
}

/** The query of an evaluation of all flags contains their number. */
function bodyOfEvaluation(id: string, query: string): object {
  return query === "" ? RESPONSES.evaluation(id, FLAG_WITH_RULE) : RESPONSES.evaluations(Number(query));
}

const FLAG_WITH_RULE = 7;

function bodyOfPost([first, area, name = "", action = "", id = ""]: readonly string[], sent: Sent): object {
  if (first === "ofrep") return bodyOfEvaluation(id, action.split("=")[1] ?? "");
  if (action === "holds") {
    const captured = id === "" ? 0 : sent.amount;
    return RESPONSES.hold(name, id === "" ? sent.hold_id : id, 1_000_000_000 - captured, captured);
  }
  if (area === "meter") return RESPONSES.meter(name, 1_000_000_000 - sent.amount);
  if (area === "latch")
    return action === "release"
      ? RESPONSES.released
      : RESPONSES.acquired(name, sent.token, 1, 1_760_000_000_000);
  if (area === "keys") return RESPONSES.verified;
  if (area === "check") return RESPONSES.check();
  if (area === "relay") return RESPONSES.relay();
  return area === "catch" ? RESPONSES.event() : RESPONSES.receipt(sent.log);
}

async function respond(request: Request): Promise<Response> {
  const parts = partsOf(request.url);
  const body =
    request.method === "GET" ? bodyOfGet(parts) : bodyOfPost(parts, JSON.parse(await request.text()) as Sent);
  return new Response(JSON.stringify(body), { headers: JSON_HEADERS });
}

const server = Bun.serve({ hostname: "127.0.0.1", port: 0, development: false, fetch: respond });
console.log(server.url.origin);
