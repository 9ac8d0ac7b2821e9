import type { TargetPolicy } from "../../../kernel/outbound/target.ts";
import type { RelayItem } from "./schema.ts";
import type { CallbackUrls } from "./store.ts";

/** Shortest part of a path that may be a secret. */
const SECRET_LENGTH_MIN = 16;

/** Checks the callback URLs of a request. @throws ApiError `validation_error` naming the field */
export function assertCallbackUrls(
  urls: { readonly [Name in keyof CallbackUrls]?: string | null | undefined },
  policy: Pick<TargetPolicy, "assertUrl">,
): void {
  for (const name of ["callback_url", "failure_callback_url"] as const) {
    const url = urls[name];
    if (typeof url === "string") policy.assertUrl(name, url);
  }
}

/** Callback URLs as they are shown. */
export function shownCallbacks(urls: CallbackUrls | null): CallbackUrls {
  return {
    callback_url: shownOrNull(urls?.callback_url ?? null),
    failure_callback_url: shownOrNull(urls?.failure_callback_url ?? null),
  };
}

/** The URL of a delivery as it is shown: that of a callback may hold a secret. */
export function shownTarget({ kind, target_url }: Pick<RelayItem, "kind" | "target_url">): string {
  return kind === "callback" ? shownCallbackUrl(target_url) : target_url;
}

/** A callback URL as it is shown: its origin alone if the rest may hold a secret. */
export function shownCallbackUrl(url: string): string {
  const { origin, pathname, search, hash } = new URL(url);
  const mayHoldSecret =
    search !== "" || hash !== "" || pathname.split("/").some((part) => part.length >= SECRET_LENGTH_MIN);
  return mayHoldSecret ? `${origin}/[secret]` : url;
}

function shownOrNull(url: string | null): string | null {
  return url === null ? null : shownCallbackUrl(url);
}
