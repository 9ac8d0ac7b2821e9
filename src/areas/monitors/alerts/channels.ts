import { type AuditChange, changed } from "../../../kernel/audit/change.ts";
import { SECRET } from "../../../kernel/audit/redaction.ts";
import { prefixedId } from "../../../kernel/data/uuid.ts";
import { ApiError, type ErrorMeaning, invalidField, registerErrors } from "../../../kernel/errors.ts";
import type { Caller, CallerAccount } from "../../../kernel/http/access/caller.ts";
import type { Call } from "../../../kernel/http/requests/call.ts";
import { pageOf, pageStart } from "../../../kernel/http/requests/pagination.ts";
import { isUnlimited } from "../../../kernel/limits/tiers.ts";
import { isEmail } from "../../../kernel/mail/address.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import type { MonitorParts } from "../ports.ts";
import { assertFeature } from "../settings.ts";
import { CHANNEL_KINDS, isToken, redactedConfig } from "./channel-kinds.ts";
import type { Notifications } from "./notifications.ts";
import {
  CHANNELS_MAX,
  type Channel,
  type ChannelConfig,
  type ChannelCreateBody,
  type ChannelKind,
  type ChannelPage,
  type ChannelPatch,
  type ChannelQuery,
  type ChannelTested,
  DEFAULT_EVENTS,
} from "./schema.ts";
import type { ChannelRow } from "./store.ts";

const codes = registerErrors({
  channel_limit_exceeded: [403, "The project has the maximum number of channels."],
});

declare module "../../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

type Field = keyof ChannelConfig;

/** A Telegram chat: its number, or the name of a public channel. */
const CHAT = /^(-?[0-9]{1,20}|@[A-Za-z0-9_]{1,63})$/;

/** Manages notification channels. */
export class Channels {
  private nextRef: number;

  constructor(
    private readonly parts: Pick<MonitorParts, "ids" | "channels" | "outbound" | "outbox" | "owners">,
    private readonly notifications: Notifications,
  ) {
    this.nextRef = parts.channels.highestRef() + 1;
  }

  /** @throws ApiError `validation_error`, `forbidden` naming the tier it needs, `channel_limit_exceeded` */
  create(tx: Tx, { account, project }: Caller, given: ChannelCreateBody): Channel {
    const { channels, ids } = this.parts;
    const {
      name,
      kind,
      config,
      default: isDefault = true,
      events = DEFAULT_EVENTS,
      remind = "never",
    } = given;
    this.assertConfig(account, kind, config);
    if (channels.count(project.ref) >= CHANNELS_MAX)
      throw new ApiError(
        "channel_limit_exceeded",
        `A project has at most ${CHANNELS_MAX} channels. Delete one.`,
      );
    const channelId = prefixedId("chn", ids.uuidV7());
    const row: ChannelRow = {
      ref: this.nextRef++,
      channelId,
      accountRef: account.ref,
      projectRef: project.ref,
      name,
      kind,
      config: this.notifications.sealed(config, channelId),
      isDefault,
      events,
      remind,
      lastSentAt: null,
      lastError: null,
      createdAt: tx.now,
      updatedAt: tx.now,
    };
    channels.insert(tx, row);
    this.notifications.channelsChanged(tx, project.ref);
    tx.audit({ ...aboutChannel(row, "created"), before: null, after: this.view(row) });
    return this.view(row);
  }

  /** Lists a project's channels, newest first. @throws ApiError `validation_error` for an invalid cursor. */
  list(projectRef: number, { limit = CHANNELS_MAX, cursor }: ChannelQuery): ChannelPage {
    const rows = this.parts.channels.page(projectRef, pageStart(cursor), limit + 1);
    const { items, ...next } = pageOf(rows, limit, ({ ref }) => [ref]);
    return { channels: items.map((row) => this.view(row)), ...next };
  }

  /** @throws ApiError `not_found` */
  read(projectRef: number, channelId: string): Channel {
    return this.view(this.find(projectRef, channelId));
  }

  /** @throws ApiError `not_found`, `validation_error` */
  change(tx: Tx, { account, project }: Caller, channelId: string, given: ChannelPatch): Channel {
    const before = this.find(project.ref, channelId);
    const {
      name = before.name,
      config,
      default: isDefault = before.isDefault,
      events = before.events,
      remind = before.remind,
    } = given;
    if (config !== undefined) this.assertConfig(account, before.kind, config);
    const sealed = config === undefined ? before.config : this.notifications.sealed(config, channelId);
    const row: ChannelRow = { ...before, name, isDefault, events, remind, config: sealed, updatedAt: tx.now };
    this.parts.channels.update(tx, row);
    const change = {
      ...aboutChannel(row, "changed"),
      before: this.audited(before),
      after: this.audited(row),
    };
    // A new secret makes no visible difference, and is a change all the same.
    tx.audit(config === undefined ? changed(change) : change);
    return this.view(row);
  }

  /** @throws ApiError `not_found` */
  delete(tx: Tx, projectRef: number, channelId: string): { deleted: true } {
    const row = this.find(projectRef, channelId);
    this.parts.channels.remove(tx, row.ref);
    this.notifications.channelsChanged(tx, projectRef);
    tx.audit({ ...aboutChannel(row, "deleted"), before: this.audited(row), after: null });
    return { deleted: true };
  }

  /** Sends a test message once and returns its result. @throws ApiError `not_found` */
  test(call: Call, channelId: string): Promise<ChannelTested> {
    const { ref: projectRef } = call.caller.project;
    // A target can take longer than the timeout of idle connections.
    call.setIdleTimeout(0);
    return call.performAcross({
      claim: () => this.find(projectRef, channelId),
      outside: (channel) => this.notifications.sendTest(channel),
      settle: (tx, channel, { status: response_status, response, error }) => {
        this.parts.channels.recordTest(tx, error === null ? tx.now : null, error, channel.ref);
        return { status: error === null ? "sent" : "failed", response_status, response, error };
      },
    });
  }

  /** The references of channels by their ids. @throws ApiError `validation_error` for a channel of another project. */
  refsOf(projectRef: number, channelIds: readonly string[]): number[] {
    return channelIds.map((id) => {
      const row = this.parts.channels.find(id);
      if (row === null || row.projectRef !== projectRef)
        throw invalidField("channels", "must be ids of channels of this project");
      return row.ref;
    });
  }

  /** The ids of the channels of a monitor; null for the default channels. */
  idsFor(projectRef: number, monitorRef: number): string[] | null {
    const refs = this.parts.channels.chosen(monitorRef);
    if (refs === null) return null;
    const existing = this.parts.channels.idsOf(projectRef);
    const idOf = new Map(existing.map(({ ref, channelId }) => [ref, channelId]));
    return refs.flatMap((ref) => idOf.get(ref) ?? []);
  }

  private find(projectRef: number, channelId: string): ChannelRow {
    const row = this.parts.channels.find(channelId);
    if (row === null || row.projectRef !== projectRef)
      throw new ApiError("not_found", "There is no channel with this id in this project.");
    return row;
  }

  private assertConfig(account: CallerAccount, kind: ChannelKind, config: ChannelConfig): void {
    assertFeature(CHANNEL_KINDS[kind].feature, account.tier);
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
    const { url, token, chat_id: chat, to } = config;
    if (url !== undefined) this.parts.outbound.policy.assertUrl("config.url", url, { requireHttps: true });
    if (token !== undefined && !isToken(kind, token))
      throw invalidField("config.token", "must be a token in the format of its provider, without spaces");
    if (chat !== undefined && !CHAT.test(chat))
      throw invalidField("config.chat_id", "must be the number of a chat, or @ and the name of a channel");
    if (to !== undefined) this.assertRecipients(account, to);
  }

  /** The server sends e-mails to the address of the account only; the operator's channels can use any address. */
  private assertRecipients({ ref, tier }: CallerAccount, to: readonly string[]): void {
    const { outbox, owners } = this.parts;
    if (!outbox.available)
      throw invalidField("kind", "must be another kind: this server has no mail server configured");
    const accountEmail = owners.account(ref).email.toLowerCase();
    const isAllowed = (address: string) => isUnlimited(tier) || address.toLowerCase() === accountEmail;
    if (!to.every((address) => isEmail(address) && isAllowed(address)))
      throw invalidField("config.to", "must be the e-mail address of the account");
  }

  private view(row: ChannelRow): Channel {
    return {
      id: row.channelId,
      name: row.name,
      kind: row.kind,
      config: redactedConfig(row.kind, this.notifications.configOf(row)),
      default: row.isDefault,
      events: [...row.events],
      remind: row.remind,
      last_sent_at: isoTimeOrNull(row.lastSentAt),
      last_error: row.lastError,
      created_at: isoTime(row.createdAt),
      updated_at: isoTime(row.updatedAt),
    };
  }

  private audited(row: ChannelRow): NonNullable<AuditChange["after"]> {
    const { id, last_sent_at, last_error, created_at, updated_at, ...settings } = this.view(row);
    return settings;
  }
}

function aboutChannel(
  { channelId, name }: ChannelRow,
  what: string,
): Pick<AuditChange, "summary" | "target"> {
  return { summary: `Channel ${name} ${what}`, target: { type: "channel", id: channelId } };
}
