import { Elysia } from "elysia";
import { invalidField } from "../../kernel/errors.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { reply, unkept } from "../../kernel/http/responses/response.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { DENIALS } from "./domain.ts";
import type { CheckPorts } from "./ports.ts";
import { clientRefusal, headersOf, proxyQuery, questionOf } from "./proxy.ts";
import { type CheckAnswer, type CheckBody, checkAnswer, checkBody } from "./schema.ts";
import type { CheckService, Claim, Question } from "./service.ts";

/** What both ways to ask have in common. Which project changes, if any, is for the meters to say. */
const CHECK = { access: "check:write", cost: 1, changesProject: false } as const;

/** Declares the endpoints of the check. */
export function checkRoutes<Asked>(api: Api, ports: CheckPorts<Asked>, service: CheckService<Asked>) {
  const answer = checkAnswer(ports.keys.facts);
  return [callRoute(api, ports, service, answer), proxyRoute(api, ports, service, answer)];
}

function callRoute<Asked>(
  api: Api,
  ports: CheckPorts<Asked>,
  service: CheckService<Asked>,
  response: ReturnType<typeof checkAnswer>,
) {
  return new Elysia({ tags: ["Check"] }).use(api).post(
    "/v1/check",
    ({ call, body }) => {
      const { flags = [], context } = body;
      const question = { key: ports.keys.askedOf(body), claim: claimOf(body), flags, context: context ?? {} };
      return checked(call, service, question, (answer) =>
        // Stored, a denial would go on for a day after what caused it has ended.
        answer.allowed ? answer : unkept(answer),
      );
    },
    {
      op: {
        ...CHECK,
        name: "check",
        bodyBounds: ports.flags.contextBody,
        summary: "Let a customer's request in",
        description:
          "One answer to key, scopes, addresses, rate limits, uses, credits and flags, and one transaction: unless everything passes, nothing is taken. Answers 200 for every well-formed request; `status` says what your client is to read. Under an `Idempotency-Key` only what was allowed is stored.",
        example: {
          secret: "acme_live_zyxw",
          meta: { ip: "203.0.113.7" },
          require: ["orders:read"],
          deduct: { amount: 5 },
          flags: ["new-checkout"],
        },
      },
      body: checkBody(ports),
      response,
    },
  );
}

/** Asks in one unit of work, durable where something may be taken that is written. */
function checked<Asked, Result extends object>(
  call: Call,
  service: CheckService<Asked>,
  question: Question<Asked>,
  answered: (answer: CheckAnswer) => Result,
): Result | Promise<Result> {
  const judge = (tx: Tx) => answered(service.check(tx, call, question));
  return service.mayWrite(call.caller, question) ? call.perform(judge) : call.read(judge);
}

/** @throws ApiError `validation_error` */
function claimOf({ deduct, hold }: CheckBody): Claim | null {
  if (deduct !== undefined && hold !== undefined)
    throw invalidField("hold", "cannot be asked for together with deduct");
  if (deduct !== undefined) return { kind: "deduct", ...deduct };
  return hold === undefined ? null : { kind: "hold", ...hold };
}

function proxyRoute<Asked>(
  api: Api,
  ports: CheckPorts<Asked>,
  service: CheckService<Asked>,
  response: ReturnType<typeof checkAnswer>,
) {
  return new Elysia({ tags: ["Check"] }).use(api).get(
    "/v1/check/http",
    async ({ call, query }) => {
      const question = questionOf(ports, call, query);
      const answer = await checked(call, service, question, (found) => found);
      if (!answer.allowed) throw clientRefusal(answer, query.deny, call.requestId);
      return reply(200, answer, headersOf(answer));
    },
    {
      op: {
        ...CHECK,
        name: "check.http",
        forProxies: true,
        summary: "Let a request in, asked by a reverse proxy",
        description:
          "The proxy's key is sent in `X-Ninefold-Key`, the client's as it came. Answers 200, or the refusal that the client is to read. What is no fault of the client's is 503, and logged: the request is not let in. Every answer, but that one, has all of the headers `X-Check-Code`, `X-Check-Status`, `X-Key-Id`, `X-Key-Owner`, `X-Key-Environment`, `X-Key-Scopes`, `X-Meter-Available` and `X-Flags`, with `-` for nothing. An `Idempotency-Key` is ignored: the client chooses it.",
        errors: DENIALS,
      },
      query: proxyQuery(ports),
      response,
    },
  );
}
