import type { Static } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { isOperator } from "../../kernel/callers/caller.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Api } from "../../kernel/http/api.ts";
import { largeBody } from "../../kernel/http/operation.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import type { FileFacts } from "../../kernel/http/resource-facts.ts";
import { type Reply, reply, withJson } from "../../kernel/http/responses/response.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { type LogEntry, readLargeLogEntry, readLogEntry } from "./chain.ts";
import type { Checkpoints } from "./checkpoints/checkpoints.ts";
import { checkpointRoutes } from "./checkpoints/routes.ts";
import { type ShownChain, tlogRoutes } from "./checkpoints/tlog-routes.ts";
import { DESTINATIONS_PER_PROJECT_MAX } from "./domain.ts";
import { exportPage } from "./export-page.ts";
import type { AdmitAddress } from "./open-requests.ts";
import type { PeerWitness } from "./peer/peer.ts";
import { peerRoutes } from "./peer/routes.ts";
import type { Redactions } from "./redaction/redactions.ts";
import type { Restores } from "./restores.ts";
import {
  AcceptForkBody,
  ChainCreated,
  ChainExists,
  ChainParams,
  EXPORT_RECEIPTS_MAX,
  ExportQuery,
  ForkAccepted,
  IndexBody,
  IndexSettings,
  InitBody,
  LogBody,
  PublicKey,
  RECEIPTS_LIMIT,
  Receipt,
  ReceiptPage,
  ReceiptParams,
  ReceiptStorage,
  ReceiptsQuery,
  ReceiptVerdict,
  ReceiptVerifyBody,
  RedactBody,
  Redacted,
  StorageBody,
  StorageConfigured,
} from "./schema.ts";
import { jwkOf, type NotaryService } from "./service.ts";
import type { Appended, CopyStatus, ProjectOwners, Uploads } from "./uploads.ts";
import { verifyAgainst, verifyLargeAgainst } from "./verification.ts";
import { witnessRoutes } from "./witnesses/routes.ts";
import type { Witnesses } from "./witnesses/witnesses.ts";

const NDJSON = "application/x-ndjson";

/** How the storage stands in a configuration file. */
const STORAGE_FILE: FileFacts = {
  section: "notary.storage",
  name: "",
  isSingle: true,
  defaults: { prefix: "" },
};

interface NotaryServices {
  readonly notary: NotaryService;
  readonly uploads: Uploads;
  readonly checkpoints: Checkpoints;
  readonly restores: Restores;
  readonly witnesses: Witnesses;
  readonly peer: PeerWitness;
  readonly admit: AdmitAddress;
  readonly redactions: Redactions;
  readonly projects: ProjectOwners;
  readonly shownChain: ShownChain;
}

/** Declares the routes for chains, receipts, verification, public keys and storage. */
export function notaryRoutes(api: Api, services: NotaryServices) {
  const { notary, uploads, checkpoints, witnesses, peer, admit } = services;
  return [
    forkRoute(api, services),
    checkpointRoutes(api, checkpoints),
    ...tlogRoutes(api, notary, checkpoints, services),
    witnessRoutes(api, witnesses),
    peerRoutes(api, peer, admit),
    logRoutes(api, notary, uploads),
    verifyRoute(api, notary),
    receiptRoutes(api, services),
    redactionRoutes(api, services),
    storageRoutes(api, uploads),
  ];
}

function logRoutes(api: Api, notary: NotaryService, uploads: Uploads) {
  return new Elysia({ tags: ["Notary"] })
    .post(
      "/v1/witness/sys/init",
      api.endpoint(
        {
          name: "witness.init",
          audit: "yes",
          access: "witness:write",
          cost: 1,
          summary: "Create the project's chain and its key pair",
          description:
            "A project has one chain. If it exists, nothing changes and the response is 200 with `success: false`.",
          body: InitBody,
          response: { 200: ChainExists, 201: ChainCreated },
        },
        ({ call, body }) =>
          call.perform((tx) => {
            const { account, project } = call.caller;
            const chain = notary.init(tx, account.userId, project, body.origin ?? null);
            return chain.success ? reply(201, chain) : chain;
          }),
      ),
    )
    .post(
      "/v1/witness/log",
      api.endpoint(
        {
          name: "witness.log",
          access: "witness:write",
          cost: 1,
          summary: "Log an entry and append its signed receipt to the chain",
          description:
            "The content hash is computed over `JSON.stringify(log)`, the text that the response contains as `log`. With `content_hash` instead of `log`, the server never receives the text. A number that JSON parsers cannot represent exactly and a duplicate name in an object are rejected with 400. With a storage configured, 200 means that the copy has been delivered; 202 with the header `X-Witness-Status: buffered` means that its delivery is pending.",
          errors: ["conflict", "notary.fork_detected"],
          example: { log: { event: "invoice.paid", invoice: "in_1", amount: 4200 } },
          bodyLimits: largeBody(1),
          body: LogBody,
          response: { 200: Receipt, 202: Receipt },
        },
        ({ call, body }) => log(call, body, notary, uploads),
      ),
    );
}

/** Length of a body up to which it is read in one step, about a millisecond. */
const SMALL_BODY_LENGTH_MAX = 16 * 1024;

function log(call: Call, body: Static<typeof LogBody>, notary: NotaryService, uploads: Uploads) {
  const { bodyText } = call;
  const append = (entry: LogEntry) => appendEntry(call, entry, notary, uploads);
  return bodyText.length <= SMALL_BODY_LENGTH_MAX
    ? append(readLogEntry(body, bodyText))
    : readLargeLogEntry(body, bodyText).then(append);
}

function appendEntry(call: Call, entry: LogEntry, notary: NotaryService, uploads: Uploads) {
  const predicted = notary.predict(call.caller.project.ref, entry);
  // The project is read within the unit of work: one that is queued earlier may change the default project.
  const append = (tx: Tx) => uploads.append(tx, call.caller.project.ref, entry, predicted);
  const interim = (appended: Appended) => receiptReply(entry, appended, BUFFERED);
  if (!uploads.isConfigured(call.caller.project.ref)) return call.perform((tx) => interim(append(tx)));
  return call.performAcross({
    claim: append,
    interim,
    outside: (appended) => uploads.uploadImmediately(appended),
    settle: (tx, appended, outcome) => {
      const { receipt, upload } = appended;
      const status = upload === null ? null : uploads.record(tx, upload, outcome, receipt);
      return receiptReply(entry, appended, status);
    },
  });
}

const BUFFERED: CopyStatus = { storage_status: "buffered" };

/** Responds with a receipt. Its log goes out as the text that was hashed: writing a large one again takes long. */
function receiptReply(
  { text }: LogEntry,
  { receipt, upload }: Appended,
  status: CopyStatus | null,
): Reply<200 | 202, Receipt> {
  const { log, ...fields } = upload === null ? receipt : { ...receipt, ...status };
  const isBuffered = upload !== null && status?.storage_status === "buffered";
  const code = isBuffered ? 202 : 200;
  const headers = isBuffered ? { "x-witness-status": "buffered" } : undefined;
  return log === undefined ? reply(code, fields, headers) : withJson(code, fields, "log", text, headers);
}

function forkRoute(api: Api, { notary, restores, projects }: NotaryServices) {
  return new Elysia({ tags: ["Notary"] }).post(
    "/v1/witness/accept-fork",
    api.endpoint(
      {
        name: "witness.accept_fork",
        role: "owner",
        audit: "yes",
        access: "*",
        summary: "Continue a chain although others have seen a longer history",
        description:
          "When the storage or a witness has more receipts than the server, as after a restore, nothing is signed. Accepts the fork; those positions are reused. Checkpoints get another origin, and a receipt declares the fork in the chain. The operator can do it for any chain.",
        errors: ["not_found", "conflict"],
        example: { chain_id: "wc_u7Qk1xR0aZ3mB9cV5nL2pS8tY4hW6dEf" },
        body: AcceptForkBody,
        response: ForkAccepted,
      },
      ({ call, body: { chain_id } }) =>
        call.perform((tx) => {
          const { caller } = call;
          const { project_ref } = notary.chainById(chain_id);
          const isOwn = caller.projectBound
            ? project_ref === caller.project.ref
            : projects.accountOf(project_ref) === caller.account.ref;
          if (!isOwn && !isOperator(caller)) throw new ApiError("not_found", "No chain has this id.");
          const { chainId, sequence } = restores.accept(tx, project_ref);
          return { chain_id: chainId, sequence_id: String(sequence) };
        }),
    ),
  );
}

function verifyRoute(api: Api, notary: NotaryService) {
  return new Elysia({ tags: ["Notary"] }).post(
    "/v1/witness/verify",
    api.endpoint(
      {
        name: "witness.verify",
        access: "witness:read",
        summary: "Verify a receipt against the project's chain",
        description:
          "All three checks always run. The response to an invalid receipt, including a malformed one, is 200 with `valid: false`.",
        example: {
          receipt: {
            version: 1,
            sequence_id: "1",
            content_hash: "0ea94b7f1da05893c237f88afa7cfac04c5302a5bd433a3e885c24665ef8e23e",
            prev_hash: "0000000000000000000000000000000000000000000000000000000000000000",
            chain_hash: "ced3e6e41763f80a0db6fb193bf3bc9487b2e73ba70996025d9cfe954106a0ad",
            signature:
              "a5237a23e2344f677a4400778743924deb08f7efc66eb15d35cd86c5bce19704ac679c6ed0207f23aad87ead18de67f82b7d15fe7ec65640820e409815cf2208",
            timestamp: 1_760_000_000_000,
            public_key: { kty: "OKP", crv: "Ed25519", x: "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw" },
            log: { event: "user.login", user: 42 },
          },
        },
        bodyLimits: largeBody(2),
        body: ReceiptVerifyBody,
        response: ReceiptVerdict,
      },
      ({ call, body }) => {
        const verify = call.bodyText.length <= SMALL_BODY_LENGTH_MAX ? verifyAgainst : verifyLargeAgainst;
        return verify(notary, call.caller.project.ref, body, call.bodyText);
      },
    ),
  );
}

function receiptRoutes(api: Api, { notary, uploads, shownChain }: NotaryServices) {
  return new Elysia({ tags: ["Notary"] })
    .get(
      "/v1/witness/receipts",
      api.endpoint(
        {
          name: "witness.receipts.list",
          access: "witness:read",
          summary: "List the project's receipts, newest first",
          description:
            "With `field` and `value`, only receipts whose log has this value: the field must have been indexed when they were logged. A page also ends when its logs exceed 256 KiB.",
          query: ReceiptsQuery,
          response: ReceiptPage,
        },
        ({ call, query: { limit = RECEIPTS_LIMIT, cursor, ...search } }) => {
          const { ref } = call.caller.project;
          const page = notary.receipts(ref, limit, cursor, search);
          return {
            ...page,
            receipts: page.receipts.map((receipt) => uploads.withStatus(ref, receipt)),
          };
        },
      ),
    )
    .get(
      "/v1/witness/receipts/:sequence_id",
      api.endpoint(
        {
          name: "witness.receipts.read",
          exactResponse: true,
          access: "witness:read",
          summary: "Get a receipt",
          description:
            "The number is the position in the chain, from 1 without gaps. After a redaction the receipt has `redacted_at` in place of `log`, and still verifies.",
          errors: ["not_found"],
          params: ReceiptParams,
          response: Receipt,
        },
        ({ call, params: { sequence_id } }) => {
          const { ref } = call.caller.project;
          const receipt = notary.receipt(ref, Number(sequence_id));
          if (receipt !== null) return uploads.withStatus(ref, receipt);
          throw new ApiError("not_found", `This project's chain has no receipt ${sequence_id}.`);
        },
      ),
    )
    .get(
      "/v1/witness/export",
      api.endpoint(
        {
          name: "witness.export",
          access: "witness:read",
          summary: "Export the project's receipts, oldest first, one JSON object per line",
          description:
            "A page has at most 8 MiB. `X-Next-Cursor` is the `from` of the next page; the last page has none.",
          responseTypes: [NDJSON],
          query: ExportQuery,
        },
        async ({ call, query: { from = 1, limit = EXPORT_RECEIPTS_MAX } }) => {
          const { ref } = call.caller.project;
          const { text, next } = await exportPage(notary, ref, from, limit, call);
          const more = next === null ? {} : { "x-next-cursor": String(next) };
          return reply(200, text, { "content-type": NDJSON, ...more });
        },
      ),
    )
    .get(
      "/v1/witness/pubkey/:chainId",
      api.open(
        {
          name: "witness.pubkey",
          summary: "Get a chain's public key",
          description:
            "Needs no key, so that recipients of a receipt can verify it without trusting its sender. The key of a chain never changes, so it can be cached.",
          errors: ["not_found"],
          params: ChainParams,
          response: PublicKey,
        },
        ({ params }) => jwkOf(shownChain(params.chainId).public_key),
      ),
    );
}

function redactionRoutes(api: Api, { notary, redactions }: NotaryServices) {
  return new Elysia({ tags: ["Notary"] })
    .post(
      "/v1/witness/receipts/:sequence_id/redact",
      api.endpoint(
        {
          name: "witness.receipts.redact",
          role: "admin",
          stepUp: true,
          audit: "yes",
          access: "witness:write",
          cost: 1,
          summary: "Delete the text of a receipt's log",
          description:
            'Deletes the log, or the note of a receipt with only a hash, and its indexed values. Hashes, signature and checkpoints stay, and the chain is verified as before. A receipt `{"ninefold":"redacted","sequence_id":…,"reason":…}` logs it. The copy in the configured storage is replaced; backups keep the text.',
          errors: ["not_found", "conflict", "notary.fork_detected"],
          example: { reason: "erasure request 2026-117" },
          params: ReceiptParams,
          body: RedactBody,
          response: Redacted,
        },
        ({ call, params: { sequence_id }, body: { reason } }) =>
          call.perform((tx) => redactions.redact(tx, call.caller.project.ref, Number(sequence_id), reason)),
      ),
    )
    .put(
      "/v1/witness/index",
      api.endpoint(
        {
          name: "witness.index.set",
          audit: "yes",
          access: "witness:write",
          summary: "Set which values of logs are indexed, and how long logs are stored",
          description:
            "Fields that are omitted stay as they are. An index covers receipts that are logged from then on. `retain_days` deletes the texts of older logs, like a redaction, but without a receipt for each.",
          errors: ["conflict"],
          example: { fields: ["/invoice", "/customer/id"], retain_days: 0 },
          body: IndexBody,
          response: IndexSettings,
        },
        ({ call, body }) =>
          call.perform((tx) =>
            notary.search.configure(tx, notary.chainToUse(call.caller.project.ref, tx), body),
          ),
      ),
    )
    .get(
      "/v1/witness/index",
      api.endpoint(
        {
          name: "witness.index.read",
          access: "witness:read",
          summary: "Get the indexed fields and the retention of logs",
          description:
            "Says by which fields receipts can be found with `field` and `value`, and after how many days the texts of logs are deleted (0: never). A project without a chain has the defaults.",
          response: IndexSettings,
        },
        ({ call }) => notary.search.settings(notary.chain(call.caller.project.ref)),
      ),
    );
}

function storageRoutes(api: Api, uploads: Uploads) {
  return new Elysia({ tags: ["Notary"] })
    .post(
      "/v1/witness/config",
      api.endpoint(
        {
          name: "witness.config.set",
          audit: "yes",
          access: "witness:write",
          summary: "Set the storage that receipts are copied to",
          description: `The storage is an S3-compatible server at a public https URL. New receipts and those still buffered are copied to \`{prefix}/witness/receipts/{sequence_id}.json\`. A project can have ${DESTINATIONS_PER_PROJECT_MAX} destinations over time: a destination is a combination of endpoint, bucket and prefix, and each change from one to another counts.`,
          example: {
            endpoint: "https://s3.eu-central-1.amazonaws.com",
            bucket: "acme-receipts",
            region: "eu-central-1",
            accessKeyId: "AKIAIOSFODNN7EXAMPLE",
            secretAccessKey: "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY",
          },
          bodyLimits: largeBody(),
          file: STORAGE_FILE,
          body: StorageBody,
          response: StorageConfigured,
        },
        ({ call, body }) => {
          uploads.assertUsable(body);
          return call.perform((tx) => uploads.configure(tx, call.caller.project, body));
        },
      ),
    )
    .get(
      "/v1/witness/config",
      api.endpoint(
        {
          name: "witness.config.read",
          access: "witness:read",
          summary: "Get the storage configuration with masked credentials",
          description:
            "Use it to check where receipts are copied, and why copies fail. Returns only the ends of the credentials. 404 without a storage.",
          errors: ["not_found"],
          response: ReceiptStorage,
        },
        ({ call }) => uploads.view(call.caller),
      ),
    );
}
