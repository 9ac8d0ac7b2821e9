import { SECRET } from "../../kernel/audit/redaction.ts";
import type { Caller } from "../../kernel/callers/caller.ts";
import { invalidField } from "../../kernel/errors.ts";
import { assertFeature, type Feature } from "../../kernel/limits/feature.ts";
import { isEmail } from "../../kernel/mail/address.ts";
import type { TargetPolicy } from "../../kernel/outbound/target.ts";
import { CHANNEL_KINDS, isToken } from "./channel-kinds.ts";
import { allowedRecipients } from "./mail-recipients.ts";
import type { AlertDeps } from "./ports.ts";
import type { ChannelConfig, ChannelKind } from "./schema.ts";

type Deps = Pick<AlertDeps, "outbound" | "outbox" | "owners" | "people">;
type Field = keyof ChannelConfig;

const FEATURES = {
  channels: { tier: "starter", noun: "a channel" },
  email_channels: { tier: "pro", noun: "a channel of kind email" },
} as const satisfies Readonly<Record<string, Feature>>;

/** A Telegram chat: its number, or the name of a public channel. */
const CHAT = /^(-?[0-9]{1,20}|@[A-Za-z0-9_]{1,63})$/;

/** @throws ApiError `validation_error`, `forbidden` naming the tier that the kind needs */
export function assertConfig(deps: Deps, caller: Caller, kind: ChannelKind, config: ChannelConfig): void {
  assertFeature(FEATURES[CHANNEL_KINDS[kind].feature], caller.account.tier);
  assertFields(deps.outbound.policy, kind, config);
  if (config.to !== undefined) assertRecipients(deps, caller, config.to);
}

/** The same as far as account and server do not matter. @throws ApiError `validation_error` */
export function assertFields(
  policy: Pick<TargetPolicy, "assertUrl">,
  kind: ChannelKind,
  config: ChannelConfig,
): void {
  const { requiredFields, optionalFields = [] } = CHANNEL_KINDS[kind];
  const missing = requiredFields.find((field) => config[field] === undefined);
  if (missing !== undefined) throw invalidField(`config.${missing}`, `is required for the kind ${kind}`);
  const known: readonly Field[] = [...requiredFields, ...optionalFields];
  const unknown = (Object.keys(config) as Field[]).find((field) => !known.includes(field));
  if (unknown !== undefined)
    throw invalidField(`config.${unknown}`, `is not a field of the kind ${kind}: omit it`);
  const shown = (["url", "token"] as const).find((field) => config[field]?.includes(SECRET));
  // A redacted configuration that is sent back would replace the secret.
  if (shown !== undefined)
    throw invalidField(`config.${shown}`, `must contain the secret itself, not ${SECRET}`);
  const { url, token, chat_id: chat } = config;
  if (url !== undefined) policy.assertUrl("config.url", url, { requireHttps: true });
  if (token !== undefined && !isToken(kind, token))
    throw invalidField("config.token", "must be a token in the format of its provider, without spaces");
  if (chat !== undefined && !CHAT.test(chat))
    throw invalidField("config.chat_id", "must be the number of a chat, or @ and the name of a channel");
}

/** The server sends e-mails to the account and its people only; the operator's channels can use any address. */
function assertRecipients(deps: Deps, { account, project }: Caller, to: readonly string[]): void {
  if (!deps.outbox.available)
    throw invalidField("kind", "must be another kind: this server has no mail server configured");
  const owner = { accountRef: account.ref, projectRef: project.ref };
  const areAllowed = to.every(
    (address) => isEmail(address) && allowedRecipients(deps, owner, [address]).length === 1,
  );
  if (!areAllowed)
    throw invalidField(
      "config.to",
      "must be the e-mail address of the account, or those of its people: of people who have logged in, are not disabled, and have a role in this project",
    );
}
