import type { Static } from "@sinclair/typebox";
import { invalidField } from "../../kernel/errors.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { ANY_TARGET } from "../../kernel/outbound/target.ts";
import { limitPerProject } from "../../kernel/resources/limit.ts";
import { resource } from "../../kernel/resources/resource.ts";
import { isoTime, isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { assertConfig, assertFields } from "./channel-config.ts";
import { redactedConfig, secretsIn } from "./channel-kinds.ts";
import { assertAscending, escalationOf, stepsOf } from "./escalation-steps.ts";
import { assertHours } from "./held-alerts.ts";
import type { Notifications } from "./notifications.ts";
import type { AlertDeps } from "./ports.ts";
import {
  CHANNELS_MAX,
  Channel,
  ChannelCreateBody,
  ChannelDeleted,
  ChannelPatch,
  type ChannelTested,
  DEFAULT_EVENTS,
} from "./schema.ts";
import type { ChannelRow, ChannelStore } from "./store.ts";

type Deps = Pick<Kernel, "ids" | "digests"> &
  Pick<AlertDeps, "outbound" | "outbox" | "owners" | "people"> & { readonly channels: ChannelStore };

/** Declares notification channels. */
function channelResource(deps: Deps, notifications: Notifications) {
  const { channels } = deps;

  function view(row: ChannelRow): Channel {
    return {
      id: row.id,
      name: row.name,
      kind: row.kind,
      config: redactedConfig(row.kind, notifications.configOf(row)),
      default: row.isDefault,
      events: [...row.events],
      remind: row.remind,
      escalate: escalationOf(channels, row),
      quiet_hours: row.quietHours,
      group_ms: row.groupMs,
      last_sent_at: isoTimeOrNull(row.lastSentAt),
      last_error: row.lastError,
      created_at: isoTime(row.createdAt),
      updated_at: isoTime(row.updatedAt),
    };
  }

  return resource(deps.ids, {
    type: "channel",
    title: "channel",
    idPrefix: "chn",
    path: "/v1/pulse/channels",
    operations: "monitors.channels",
    tag: "Monitors",
    access: { area: "pulse", cost: 1, limit: "monitor" },
    file: {
      flattened: "config",
      check({ kind, config, escalate = [], quiet_hours = null }: Static<typeof ChannelCreateBody>) {
        assertFields(ANY_TARGET, kind, config);
        assertAscending(escalate);
        assertHours(quiet_hours);
      },
      defaults: {
        default: true,
        events: DEFAULT_EVENTS,
        remind: "never",
        escalate: [],
        quiet_hours: null,
        group_ms: 0,
      },
    },
    name: { field: "name", taken: null },
    limit: limitPerProject(
      "channel_limit_exceeded",
      CHANNELS_MAX,
      channels.count,
      `A project has at most ${CHANNELS_MAX} channels. Delete one.`,
    ),
    store: channels,
    schema: Channel,
    view,
    secrets: {
      digests: deps.digests,
      of: (row) => secretsIn(row.kind, notifications.configOf(row)),
    },
    summary: ({ name }, done) => `Channel ${name} ${done}`,
    audited(shown, _, done) {
      const { id, last_sent_at, last_error, created_at, updated_at, ...settings } = shown;
      return done === "created" ? shown : settings;
    },
    list: {
      summary: "List notification channels, newest first",
      description:
        "`last_error` says why the last message to a channel could not be delivered. Secrets in `config` are returned as `[secret]`.",
      key: "channels",
      schema: "ChannelPage",
      limit: CHANNELS_MAX,
    },
    read: {
      summary: "Get a notification channel",
      description:
        "Use it to see why alerts do not arrive: `last_error` is the reason the last message failed. Secrets in `config` are returned as `[secret]`, and an update of `config` must contain them again.",
    },
    create: {
      summary: "Create a notification channel",
      description: "Tier starter and higher; the kind `email` requires the tier pro.",
      example: { name: "Team chat", kind: "slack", config: { url: "https://example.com/hooks/T0/B0/x" } },
      body: ChannelCreateBody,
      row({ caller }, body, identity) {
        const { quiet_hours: quietHours = null, group_ms: groupMs = 0 } = body;
        assertConfig(deps, caller, body.kind, body.config);
        assertHours(quietHours);
        return {
          ...identity,
          name: body.name,
          kind: body.kind,
          config: notifications.sealed(body.config, identity.id),
          isDefault: body.default ?? true,
          events: body.events ?? DEFAULT_EVENTS,
          remind: body.remind ?? "never",
          escalate: stepsOf(channels, identity, body.escalate ?? []),
          quietHours,
          groupMs,
          lastSentAt: null,
          lastError: null,
        };
      },
      created: ({ tx }, { projectRef }) => notifications.channelsChanged(tx, projectRef),
    },
    change: {
      verb: "change",
      summary: "Update a notification channel",
      description: "Omitted fields stay unchanged. `config` is replaced as a whole, including its secrets.",
      example: { default: false },
      body: ChannelPatch,
      row({ tx, caller }, before, body) {
        const { config, quiet_hours: quietHours = before.quietHours } = body;
        if (config !== undefined) assertConfig(deps, caller, before.kind, config);
        assertHours(quietHours);
        return {
          ...before,
          name: body.name ?? before.name,
          config: config === undefined ? before.config : notifications.sealed(config, before.id),
          isDefault: body.default ?? before.isDefault,
          events: body.events ?? before.events,
          remind: body.remind ?? before.remind,
          escalate: body.escalate === undefined ? before.escalate : stepsOf(channels, before, body.escalate),
          quietHours,
          groupMs: body.group_ms ?? before.groupMs,
          updatedAt: tx.now,
        };
      },
      changed({ tx }, row, { quiet_hours, group_ms }) {
        if (quiet_hours !== undefined || group_ms !== undefined) notifications.held.settingsChanged(tx, row);
      },
      isHidden: ({ config }) => config !== undefined,
    },
    delete: {
      summary: "Delete a notification channel",
      description:
        "Monitors that used it notify their other channels, and nobody if it was the only one: check their `channels` first.",
      schema: ChannelDeleted,
      remove({ tx }, { ref, projectRef }) {
        channels.remove(tx, ref);
        notifications.channelsChanged(tx, projectRef);
      },
    },
  });
}

/** Manages notification channels. */
export class Channels {
  readonly resource;

  constructor(
    private readonly deps: Deps,
    private readonly notifications: Notifications,
  ) {
    this.resource = channelResource(deps, notifications);
  }

  /** Sends a test message once and returns its result. @throws ApiError `not_found` */
  test(call: Call, channelId: string): Promise<ChannelTested> {
    // A target can take longer than the timeout of idle connections.
    call.setIdleTimeout(0);
    return call.performAcross({
      claim: () => this.resource.find(call.caller.project.ref, channelId),
      outside: (channel) => this.notifications.sendTest(channel),
      settle: (tx, channel, { status: response_status, response, error }) => {
        this.deps.channels.recordTest(tx, error === null ? tx.now : null, error, channel.ref);
        return { status: error === null ? "sent" : "failed", response_status, response, error };
      },
    });
  }

  /** The references of channels by their ids. @throws ApiError `validation_error` for a channel of another project. */
  refsOf(projectRef: number, channelIds: readonly string[]): number[] {
    return channelIds.map((id) => {
      const row = this.deps.channels.find(id);
      if (row === null || row.projectRef !== projectRef)
        throw invalidField("channels", "must be ids of channels of this project");
      return row.ref;
    });
  }

  /** The ids of the channels of a monitor; null for the default channels. */
  idsFor(projectRef: number, monitorRef: number): string[] | null {
    const refs = this.deps.channels.chosen(monitorRef);
    if (refs === null) return null;
    const existing = this.deps.channels.idsOf(projectRef);
    const idOf = new Map(existing.map(({ ref, id }) => [ref, id]));
    return refs.flatMap((ref) => idOf.get(ref) ?? []);
  }
}
