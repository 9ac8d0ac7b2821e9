import { ApiError, invalidField } from "../../../kernel/errors.ts";
import type { Ids } from "../../../kernel/ids.ts";
import type { Tiers } from "../../../kernel/limits/tiers.ts";
import type { ResourceContext } from "../../../kernel/resources/declaration.ts";
import { limitPerAccount } from "../../../kernel/resources/limit.ts";
import { resource } from "../../../kernel/resources/resource.ts";
import { keyDigest, mintKey } from "../../../kernel/secrets/key-format.ts";
import type { Database } from "../../../kernel/storage/database.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import { LOCAL } from "../options.ts";
import type { MonitorRow, MonitorStore } from "../store.ts";
import { LOCAL_REF, type VoteStore } from "../votes/store.ts";
import { isLocalOnly } from "../votes/votes.ts";
import type { ProbeRemoval } from "./removal.ts";
import { PROBES_PAGE, Probe, ProbeCreateBody, ProbeDeleted, ProbePatch } from "./schema.ts";
import type { ProbeRow, ProbeStore } from "./store.ts";
import { type ProbeWorkplace, TOKEN_PREFIX } from "./work.ts";

interface Deps {
  readonly db: Database;
  readonly ids: Ids;
  readonly tiers: Tiers;
  readonly probes: ProbeStore;
  readonly votes: VoteStore;
  readonly monitors: Pick<MonitorStore, "monitor">;
  readonly workplace: Pick<ProbeWorkplace, "changed" | "isOnline" | "removed" | "seenAt">;
  readonly removal: Pick<ProbeRemoval, "remove">;
}

/** Declares probes. */
export function probeResource({ db, ids, tiers, probes, votes, monitors, workplace, removal }: Deps) {
  /** Tokens of probes that are being created, which are shown once. */
  const minted = new WeakMap<ResourceContext, string>();

  function view(row: ProbeRow, context: ResourceContext): Probe {
    const token = minted.get(context);
    const isOnline = workplace.isOnline(row);
    return {
      id: row.id,
      name: row.name,
      location: row.location,
      status: isOnline === null ? "new" : isOnline ? "online" : "offline",
      last_seen_at: isoTimeOrNull(workplace.seenAt(row, context.tx.now)),
      version: row.version,
      queue: row.queue,
      clock_offset_ms: row.clockOffsetMs,
      ...(token === undefined ? {} : { token }),
      created_at: isoTime(row.createdAt),
      updated_at: isoTime(row.updatedAt),
    };
  }

  return resource(ids, {
    type: "probe",
    title: "probe",
    idPrefix: "prb",
    path: "/v1/pulse/probes",
    operations: "monitors.probes",
    tag: "Monitors",
    access: { area: "pulse", cost: 1, limit: "monitor" },
    file: { onceShown: "token", defaults: { location: null } },
    name: {
      field: "name",
      isFixed: true,
      taken: "probe_name_taken",
      holder: (row) => probes.named(row.projectRef, row.name),
      message: ({ id }) => `The probe ${id} of this project has this name. Use that probe, or another name.`,
    },
    limit: limitPerAccount({ db, tiers }, "probes", "probe_limit_exceeded"),
    store: probes,
    schema: Probe,
    view,
    summary: ({ name }, done) => `Probe ${name} ${done}`,
    audited: (_, { name, location }) => ({ name, location }),
    list: {
      summary: "List probes, newest first",
      description:
        "Use it to see which probes are online. The tokens are not returned. The server itself, `local`, is not listed.",
      key: "probes",
      schema: "ProbePage",
      limit: PROBES_PAGE,
    },
    read: {
      summary: "Get a probe",
      description:
        "Shows when the probe was last seen, and whether it is online. The token is not returned: it is shown once, when the probe is created.",
    },
    create: {
      summary: "Create a probe",
      description:
        "The response has the token with which `ninefold probe` calls the server. It is shown once. Tier starter and higher.",
      example: { name: "fra", location: "Frankfurt" },
      secret: true,
      body: ProbeCreateBody,
      row(context, { name, location = null }, identity) {
        if (name === LOCAL) throw invalidField("name", "must not be local, which is the server");
        const token = mintKey(TOKEN_PREFIX, ids);
        minted.set(context, token);
        return {
          ...identity,
          name,
          location,
          tokenDigest: keyDigest(token),
          lastSeenAt: null,
          offline: false,
          version: null,
          queue: 0,
          clockOffsetMs: null,
        };
      },
    },
    change: {
      verb: "update",
      summary: "Update a probe",
      description:
        "Only the `location`, which people read, can be changed. The name is fixed, because monitors refer to it: create another probe instead.",
      example: { location: "Frankfurt, second rack" },
      body: ProbePatch,
      row: ({ tx }, before, { location }) => ({
        ...before,
        location: location === undefined ? before.location : location,
        updatedAt: tx.now,
      }),
    },
    delete: {
      summary: "Delete a probe",
      description:
        "Its token stops working immediately. It leaves the `probes` of its monitors; the only probe of a monitor cannot be deleted.",
      errors: ["probe_in_use"],
      schema: ProbeDeleted,
      remove({ tx }, row) {
        const only = monitors.monitor(votes.onlyOf(row.ref));
        if (only !== null) {
          const message = `Only this probe checks the monitor ${only.monitorId}. Give it another probe first, or delete it.`;
          throw new ApiError("probe_in_use", message);
        }
        removal.remove(tx, row);
        workplace.removed(tx, row.ref);
      },
    },
  });
}

/** Which probes check which monitors. */
export class ProbeAssignments {
  constructor(
    private readonly deps: Pick<Deps, "probes" | "votes"> & {
      readonly workplace: Pick<ProbeWorkplace, "changed">;
    },
  ) {}

  /**
   * Gives a monitor to the probes of its settings. `isFresh`: what they saw before says nothing any more.
   * @throws ApiError `validation_error` for a name without a probe
   */
  assign(tx: Tx, { ref, projectRef, settings }: MonitorRow, isFresh: boolean): void {
    const { votes, workplace } = this.deps;
    const before = votes.voters(ref).map(({ probeRef }) => probeRef);
    if (before.length === 0 && isLocalOnly(settings.probes)) return;
    const wanted = isLocalOnly(settings.probes)
      ? []
      : settings.probes.map((name) => (name === LOCAL ? LOCAL_REF : this.refOf(projectRef, name)));
    for (const probeRef of before) if (!wanted.includes(probeRef)) votes.remove(tx, ref, probeRef);
    for (const probeRef of wanted) votes.add(tx, ref, probeRef);
    if (isFresh) votes.reset(tx, ref);
    workplace.changed(tx, new Set([...before, ...wanted]));
  }

  /** A monitor is removed. */
  forget(tx: Tx, ref: number): void {
    const { votes, workplace } = this.deps;
    const before = votes.voters(ref).map(({ probeRef }) => probeRef);
    if (before.length === 0) return;
    votes.removeAll(tx, ref);
    workplace.changed(tx, before);
  }

  private refOf(projectRef: number, name: string): number {
    const probe = this.deps.probes.named(projectRef, name);
    if (probe !== null) return probe.ref;
    throw invalidField(
      "probes",
      `must be local, or names of probes of this project: there is no probe ${name}`,
    );
  }
}
