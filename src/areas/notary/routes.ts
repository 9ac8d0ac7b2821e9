import { ApiError } from "../../kernel/errors.ts";
import { Reply } from "../../kernel/http/answer.ts";
import type { Http } from "../../kernel/http/http.ts";
import { pageQuery } from "../../kernel/http/pagination.ts";
import { isoTime } from "../../kernel/ledger-entry.ts";
import { readLogEntry } from "./log-entry.ts";
import {
  ChainParams,
  InitAgainAnswer,
  InitAnswer,
  LogBody,
  PublicKey,
  ReceiptPage,
  ReceiptParams,
  ReceiptView,
  VerifyAnswer,
  VerifyBody,
} from "./schema.ts";
import type { NotaryService } from "./service.ts";
import { verifyAgainst } from "./verification.ts";

/** Receipts on a page unless asked otherwise. */
const RECEIPTS_LIMIT = 50;

/** Declares chains, receipts, verification and public keys. */
export function notaryRoutes(http: Http, notary: NotaryService): void {
  initRoute(http, notary);
  logRoute(http, notary);
  verifyRoute(http, notary);
  receiptRoutes(http, notary);
  publicKeyRoute(http, notary);
}

function initRoute(http: Http, notary: NotaryService): void {
  http.route(
    "POST",
    "/v1/witness/sys/init",
    {
      operation: "witness.init",
      summary: "Make the project's chain and its key pair",
      description:
        "A project has one chain. A second call changes nothing and answers 200 with `success: false`.",
      status: 201,
      answers: { 200: InitAgainAnswer, 201: InitAnswer },
    },
    (call) =>
      call.perform<object>((tx) => {
        const { account, project } = call.caller;
        const made = notary.init(tx, account.userId, project);
        if (!made.created) return new Reply(200, { success: false, chain_id: made.chainId });
        const { publicKey, createdAt, chainId } = made;
        return { success: true, publicKey, createdAt: isoTime(createdAt), chain_id: chainId };
      }),
  );
}

function logRoute(http: Http, notary: NotaryService): void {
  http.route(
    "POST",
    "/v1/witness/log",
    {
      operation: "witness.log",
      summary: "Witness a log entry: append a signed receipt to the chain",
      description:
        "The receipt's hash is taken over `JSON.stringify(log)`, which is also how `log` stands in the answer. A number that JSON readers cannot carry exactly, or a name that stands twice in an object, is refused.",
      body: LogBody,
      answers: { 200: ReceiptView },
      errors: ["conflict"],
      example: { log: { event: "invoice.paid", invoice: "in_1", amount: 4200 } },
    },
    (call) => {
      const entry = readLogEntry(call.body, call.bodyText);
      return call.perform((tx) => notary.append(tx, call.caller.project.ref, entry).receipt);
    },
  );
}

function verifyRoute(http: Http, notary: NotaryService): void {
  http.route(
    "POST",
    "/v1/witness/verify",
    {
      operation: "witness.verify",
      summary: "Verify a receipt of the project's chain",
      description:
        "All three checks always run. Whatever is not a valid receipt of this chain, malformed ones included, answers 200 with `valid: false`.",
      body: VerifyBody,
      answers: { 200: VerifyAnswer },
    },
    (call) => {
      const projectRef = call.caller.project.ref;
      const record = {
        publicX: notary.chain(projectRef)?.publicX ?? null,
        receiptAt: (sequence: number) => notary.receipt(projectRef, sequence),
      };
      return verifyAgainst(record, call.body, call.bodyText);
    },
  );
}

function receiptRoutes(http: Http, notary: NotaryService): void {
  http.route(
    "GET",
    "/v1/witness/receipts",
    {
      operation: "witness.receipts.list",
      summary: "List the project's receipts, newest first",
      description: "A page ends early when its logs are large.",
      query: pageQuery(RECEIPTS_LIMIT),
      answers: { 200: ReceiptPage },
    },
    (call) => {
      const { limit = RECEIPTS_LIMIT, cursor } = call.query;
      return notary.receipts(call.caller.project.ref, limit, cursor);
    },
  );
  http.route(
    "GET",
    "/v1/witness/receipts/:sequenceId",
    {
      operation: "witness.receipts.read",
      summary: "Read one receipt",
      params: ReceiptParams,
      answers: { 200: ReceiptView },
      errors: ["not_found"],
    },
    (call) => {
      const { sequenceId } = call.params;
      const receipt = notary.receipt(call.caller.project.ref, Number(sequenceId));
      if (receipt === null)
        throw new ApiError("not_found", `This project's chain has no receipt ${sequenceId}.`);
      return receipt;
    },
  );
}

function publicKeyRoute(http: Http, notary: NotaryService): void {
  http.publicRoute(
    "GET",
    "/v1/witness/pubkey/:chainId",
    {
      operation: "witness.pubkey",
      summary: "Read a chain's public key",
      params: ChainParams,
      answers: { 200: PublicKey },
      errors: ["not_found"],
    },
    (call) => {
      const key = notary.publicKey(call.params.chainId);
      if (key === null) throw new ApiError("not_found", "No chain has this id.");
      return key;
    },
  );
}
