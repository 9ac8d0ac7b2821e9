import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { givenDateTime, idParams, named, oneOf, text } from "../../../kernel/data/schema.ts";
import { invalidField } from "../../../kernel/errors.ts";
import type { Api } from "../../../kernel/http/api.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { timestampOf } from "../../../kernel/time/date-time.ts";
import type { PageRow } from "../store.ts";
import { IMPORT_REJECTIONS, IMPORTED_MAX, type Subscriptions } from "./subscriptions.ts";

/** Characters of an address with spaces around it, which are ignored. */
const ADDRESS_LENGTH_MAX = 300;

const Body = named("StatusPageSubscribersImportBody", {
  subscribers: Type.Array(
    Type.Object(
      {
        email: text({
          min: 1,
          max: ADDRESS_LENGTH_MAX,
          description: "E-mail address, whose owner has confirmed it elsewhere.",
          examples: ["ann@example.com"],
        }),
        confirmed_at: Type.Optional(
          givenDateTime({
            description: "Time of that confirmation, now by default.",
            examples: ["2025-01-31T12:00:00Z"],
          }),
        ),
      },
      { errorMessage: "must be an object with email" },
    ),
    {
      minItems: 1,
      maxItems: IMPORTED_MAX,
      errorMessage: `must be 1 to ${IMPORTED_MAX} subscribers, each with email`,
      description: "Subscribers of another status page.",
    },
  ),
});

const Imported = named("StatusPageSubscribersImported", {
  imported: Type.Integer({ description: "Number of new subscribers.", examples: [2] }),
  known: Type.Integer({ description: "Number of addresses that had subscribed already.", examples: [0] }),
  rejected: Type.Array(
    Type.Object({
      index: Type.Integer({ description: "Position in `subscribers`, from 0.", examples: [1] }),
      reason: oneOf(IMPORT_REJECTIONS, {
        description:
          "`page_full`: the page has the maximum number of subscribers. `unsubscribed`: its owner has unsubscribed from this page, and can only subscribe again themselves.",
      }),
    }),
    { description: "Addresses that were not imported." },
  ),
});

interface ImportDeps {
  readonly subscriptions: Subscriptions;
  /** @throws ApiError `not_found` */
  readonly find: (projectRef: number, pageId: string) => PageRow;
}

/** Declares the import of subscribers. */
export function subscriberImportRoutes(api: Api, { subscriptions, find }: ImportDeps) {
  return new Elysia({ tags: ["Monitors"] }).post(
    "/v1/pulse/pages/:page_id/subscribers/import",
    api.endpoint(
      {
        name: "monitors.pages.subscribers.import",
        access: "pulse:write",
        audit: "yes",
        cost: 1,
        limit: "monitor",
        summary: "Import confirmed subscribers of another status page",
        description: `Only for addresses whose owners have confirmed elsewhere that they want e-mails about incidents: they are not asked again, get no e-mail now, and can unsubscribe by the link in each. At most ${IMPORTED_MAX} in a request.`,
        errors: ["not_found"],
        example: { subscribers: [{ email: "ann@example.com" }] },
        params: idParams("page"),
        body: Body,
        response: Imported,
      },
      ({ call, params, body }) =>
        call.perform((tx: Tx) => {
          const page = find(call.caller.project.ref, params.page_id);
          const subscribers = body.subscribers.map(({ email, confirmed_at }, index) => ({
            email,
            confirmedAt: pastTime(`subscribers.${index}.confirmed_at`, confirmed_at, tx.now),
          }));
          const { rejected, ...counts } = subscriptions.import(tx, page, subscribers);
          tx.audit({
            summary: `Subscribers of status page ${page.slug} imported`,
            target: { type: "page", id: page.id },
            before: null,
            after: { ...counts, rejected: rejected.length },
          });
          return { ...counts, rejected: [...rejected] };
        }),
    ),
  );
}

/** @throws ApiError `validation_error` for a time that is yet to come */
function pastTime(field: string, time: string | undefined, now: number): number | null {
  const at = time === undefined ? null : timestampOf(field, time);
  if (at !== null && at > now) throw invalidField(field, "must not be in the future");
  return at;
}
