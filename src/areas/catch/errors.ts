import { type ErrorMeaning, registerErrors } from "../../kernel/errors.ts";

const codes = registerErrors({
  "catch.bucket_not_found": [404, "There is no such bucket, or it is not yours."],
  "catch.event_not_found": [404, "The bucket has no such event."],
  "catch.provider_unsupported": [400, "The provider is not one of `stripe`, `github`, `shopify`, `svix`."],
  "catch.signature_invalid": [400, "The event's signature did not hold, so it is not sent on."],
  "catch.replay_failed": [500, "The target gave no answer. Nothing was charged."],
  bucket_limit_exceeded: [403, "The account has as many buckets as its tier allows."],
  bucket_paused: [400, "The bucket is paused; set its state to `live` first."],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}
