import { version } from "../package.json" with { type: "json" };
import type { Archive } from "./archive/archive.ts";
import { type AccountsArea, createAccounts } from "./areas/accounts/index.ts";
import { createAlerts } from "./areas/alerts/index.ts";
import { createAudit } from "./areas/audit/index.ts";
import { createCatch } from "./areas/catch/index.ts";
import { createChanges } from "./areas/changes/index.ts";
import { createCheck } from "./areas/check/index.ts";
import { createFlags } from "./areas/flags/index.ts";
import { createIncidents, openIncidents } from "./areas/incidents/index.ts";
import { createKeys } from "./areas/keys/index.ts";
import { createLocks } from "./areas/locks/index.ts";
import { createLoginPages } from "./areas/login/index.ts";
import type { createMcp } from "./areas/mcp/index.ts";
import { createMeter } from "./areas/meter/index.ts";
import { createMonitors, openMonitors } from "./areas/monitors/index.ts";
import { createNotary } from "./areas/notary/index.ts";
import { createOverview } from "./areas/overview/index.ts";
import { createPeople, openPeople } from "./areas/people/index.ts";
import { createProjects, openProjectDirectory } from "./areas/projects/index.ts";
import { createRelay } from "./areas/relay/index.ts";
import { backupsCard, createServerArea, mailCard, type ServerArea } from "./areas/server/index.ts";
import { createSessions, type SessionPeople } from "./areas/session/index.ts";
import { createStatusPages } from "./areas/status-pages/index.ts";
import type { Replication } from "./cluster/replication.ts";
import type { Config } from "./config.ts";
import { roleOfGroups } from "./kernel/callers/role.ts";
import { errorText, isUnavailable } from "./kernel/errors.ts";
import { Readiness, WriteProbe } from "./kernel/health/readiness.ts";
import { Guard, limitClock } from "./kernel/http/access/guard.ts";
import { Peers } from "./kernel/http/access/peers.ts";
import type { ApiArea } from "./kernel/http/api.ts";
import { Http } from "./kernel/http/http.ts";
import { FreeResponses } from "./kernel/http/operations/free-responses.ts";
import { IdempotencyStore } from "./kernel/http/operations/idempotency.ts";
import { OpenClaims } from "./kernel/http/operations/open-claims.ts";
import { Performing } from "./kernel/http/operations/perform.ts";
import { createCors } from "./kernel/http/responses/response.ts";
import { monitoringGate, systemRoutes } from "./kernel/http/system-routes.ts";
import type { Kernel } from "./kernel/kernel.ts";
import { declareEventLoopLag, declareKernelMetrics } from "./kernel/kernel-metrics.ts";
import type { Logger } from "./kernel/log.ts";
import { createOutbox, declareMailMetrics } from "./kernel/mail/outbox.ts";
import { RecentLoad } from "./kernel/metrics/recent-load.ts";
import { extraAuthorities } from "./kernel/outbound/authorities.ts";
import { OutboundClient, type OutboundOverrides } from "./kernel/outbound/client.ts";
import type { EventLoopWatch } from "./kernel/outbound/event-loop.ts";
import type { AreaExport } from "./kernel/projects/account-export.ts";
import type { OverviewCard } from "./kernel/projects/overview-card.ts";
import type { ProjectContents, ProjectResources, RemoveAccountRows } from "./kernel/projects/resources.ts";
import { takeRestoreMark } from "./kernel/storage/restored.ts";
import type { Tx } from "./kernel/storage/tx.ts";
import { type ManualClock, monotonicMs } from "./kernel/time/clock.ts";
import { LiveConfig } from "./live-config.ts";
import { dashboardPages } from "./pages/dashboard.ts";
import { docsPages } from "./pages/docs.ts";
import { guidePages } from "./pages/guides.ts";
import { portalPages } from "./pages/portal.ts";
import { rootPage } from "./pages/root.ts";
import { STATUS_STYLE, statusStylePage } from "./pages/status.ts";

/** The server before it listens. */
export interface App {
  readonly http: Http;
  /** Time of the last scheduled backup, epoch milliseconds; null if there is none. */
  readonly lastBackupAt: () => number | null;
  readonly accounts: Pick<
    AccountsArea,
    "operator" | "operatorKey" | "markOperatorAnnounced" | "exportedTables"
  >;
  /**
   * Creates a link that logs a person in, once. Only for whoever has the folder of the stopped server. Returns what follows the
   * server's URL in it.
   */
  readonly createLoginLink: (email: string, account: string | null) => Promise<PersonLink>;
  /** Makes people what the configuration file says. Call before anything listens. */
  readonly applyPeople: () => Promise<void>;
  /** Creates a link that logs in a browser with a key. Returns what follows the server's URL in it. */
  readonly createSetupLink: (key: string) => Promise<string>;
  /** Starts background work: it begins with the next turn of the event loop. */
  readonly start: () => Promise<void>;
  /** Stops background work and commits what is pending. */
  readonly finish: () => Promise<void>;
}

/** A link that logs a person in, without the server's URL. */
export interface PersonLink {
  readonly path: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/** An area: its routes, and what else of the server concerns it. */
interface Area extends ApiArea {
  readonly card?: OverviewCard;
  /** What it has in projects and overviews count, or else what it has in them. */
  readonly resources?: ProjectResources;
  readonly contents?: ProjectContents;
  readonly exported?: AreaExport;
  readonly removeRows?: RemoveAccountRows;
}

/** What an app is built with besides kernel and configuration. */
export interface AppDeps {
  /** The configuration with stored settings; made of `config` without it. */
  readonly live?: LiveConfig;
  readonly testClock?: ManualClock | null;
  readonly overrides?: OutboundOverrides;
  readonly archive?: Archive | null;
  readonly cluster?: Pick<Replication, "status"> | null;
  /** Null: agents are not served. Loaded on use. */
  readonly createMcp?: typeof createMcp | null;
}

/** Loads the server of tools for agents, which a start without it leaves out. */
export async function loadMcp(): Promise<typeof createMcp> {
  return (await import("./areas/mcp/index.ts")).createMcp;
}

/** Builds every area on the kernel and declares its endpoints. The composition root. */
export function createApp(
  kernel: Kernel,
  config: Config,
  {
    live = new LiveConfig(kernel, config),
    testClock = null,
    overrides = {},
    archive = null,
    cluster = null,
    createMcp = null,
  }: AppDeps = {},
): App {
  const areas = { ...createAreas(kernel, config, live, testClock, overrides), archive, cluster, createMcp };
  const { accounts, projects, keys, meter, monitors, flags, locks, buckets, outbound, sessions, notary } =
    areas;
  const { scheduler, log } = kernel;
  const lastBackupAt = (): number | null => live.backups()?.lastBackupAt ?? null;
  const { http, readiness, performing, server } = createHttp(kernel, config, areas);
  declareKernelMetrics(kernel, { requestsInFlight: () => http.inFlight, lastBackupAt });
  return {
    http,
    accounts,
    lastBackupAt,
    createLoginLink: (email, account) =>
      kernel.writer.submit((tx) => {
        const { token, expiresAt } = areas.people.logins.createLink(tx, email, account);
        return { path: `/dashboard/#/setup/${token}`, expiresAt };
      }),
    applyPeople: () => areas.people.applyFile(config.people),
    createSetupLink: sessions.createSetupLink,
    start: async () => {
      await refundAbandoned(performing, accounts, log);
      await buckets.resume();
      await notary.resume();
      await scheduler.start();
      meter.start();
      await endForbiddenSessions(sessions, log);
      await noteStart(kernel, areas.audit, config);
      server.start();
      readiness.begin();
    },
    finish: async () => {
      server.stop();
      accounts.stop();
      projects.stop();
      buckets.stop();
      await live.stop();
      await scheduler.stop();
      outbound.close();
      locks.finish();
      await sessions.finish();
      await meter.finish();
      await monitors.finish();
      await keys.finish();
      await flags.finish();
      await projects.finish();
    },
  };
}

/** On a full disk the server still serves reads: the refunds stay stored for the next start. */
async function refundAbandoned(
  performing: Performing,
  accounts: Areas["accounts"],
  log: Logger,
): Promise<void> {
  try {
    await performing.refundAbandoned(accounts.account);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    log.warn("refunds for interrupted requests are postponed: the database is not writable", {
      error: errorText(error),
    });
  }
}

/** On a full disk they stay stored, and are accepted no more all the same. */
async function endForbiddenSessions(sessions: Areas["sessions"], log: Logger): Promise<void> {
  await sessions.start().catch((error) =>
    log.warn("sessions of keys could not be ended: the database is not writable", {
      error: errorText(error),
    }),
  );
}

/** On a full disk the server starts without it. */
async function noteStart(
  { db, writer, log }: Kernel,
  { trail }: Areas["audit"],
  { optionsSet }: Config,
): Promise<void> {
  const target = { type: "server", id: "ninefold" };
  const started = `Server started, version ${version}`;
  const noted = writer.submit((tx) => {
    const note = (action: string, summary: string, after: object) =>
      trail.recordSystem(tx, action, null, { summary, target, before: null, after: { ...after } });
    const mark = takeRestoreMark(db, tx);
    if (mark !== null) note("server.restore", `Server restored from ${mark.file}`, mark);
    note("server.start", started, { version, options: optionsSet });
  });
  await noted.catch((error) =>
    log.warn("the start could not be written to the audit log", { error: errorText(error) }),
  );
}

function openOutbound(
  { gate }: Kernel,
  { allowPrivateTargets, extraCaPath }: Config,
  overrides: OutboundOverrides,
  watch: EventLoopWatch,
): OutboundClient {
  return new OutboundClient(
    allowPrivateTargets,
    { ...extraAuthorities(extraCaPath), ...overrides },
    watch,
    gate,
  );
}

type Areas = ReturnType<typeof createAreas> & Required<Pick<AppDeps, "archive" | "cluster" | "createMcp">>;

/** Every area with its ports. */
function createAreas(
  kernel: Kernel,
  config: Config,
  live: LiveConfig,
  testClock: ManualClock | null,
  overrides: OutboundOverrides,
) {
  const { tiers, signup, rotationGraceMs } = config;
  const { publicUrl } = live;
  const outbox = createOutbox({ ...kernel, mailer: live.mailer });
  live.onChange = () => outbox.settingsChanged();
  declareMailMetrics(kernel.metrics, outbox);
  const load = new RecentLoad(monotonicMs);
  const observeLag = declareEventLoopLag(kernel);
  const outbound = openOutbound(kernel, config, overrides, {
    onTick: (lateMs, ticks) => {
      observeLag(lateMs);
      load.tick(lateMs, ticks);
    },
    isIdle: () => load.isIdle(),
  });
  const directory = openProjectDirectory(kernel);
  const audit = createAudit(kernel, config.audit, {
    keyOf: (credential) => keys.auditedKey(credential),
    accounts: {
      refOfUser: (userId) => accounts.refOfUser(userId),
      tierOf: (ref) => accounts.account(ref).tier,
    },
    tiers,
  });
  const { trail } = audit;
  const settings = { signup, rotationGraceMs, tiers, testClock };
  const answers = new IdempotencyStore(kernel.db, kernel.vault, new FreeResponses(kernel.db, tiers));
  const claims = new OpenClaims(kernel.db);
  const accounts = createAccounts(kernel, settings, {
    projects: directory,
    outbox,
    trail,
    contents: () => ({
      projects: projects.ofDeletedAccounts,
      rows: [answers, claims, ...list].flatMap(({ removeRows }) => removeRows ?? []),
      exports: list.flatMap(({ exported }) => exported ?? []),
      projectExport: projects.exportedTable,
    }),
  });
  const { charger } = accounts;
  const keys = createKeys(kernel, { accounts, projects: directory, tiers, charger });
  const authenticator = keys.authenticatorWith(accounts.authenticator);
  const flags = createFlags(kernel, {
    keys: {
      nameOf: (credential) => keys.keyNames.nameOf(credential) ?? accounts.keyNames.nameOf(credential),
      callerOf: (name) => {
        const digest = keys.keyNames.digestOf(name) ?? accounts.keyNames.digestOf(name);
        return digest === null ? null : authenticator.authenticate(digest);
      },
    },
    charger,
    publicUrl,
    trail,
    projects: directory,
    identityOf: ({ person, session, credential, account }) =>
      person === undefined
        ? (keys.holderOf(session?.credential ?? credential) ?? `account:${account.ref}`)
        : `person:${person.id}`,
    notice: (...notice) => relay.notice(...notice),
  });
  const locks = createLocks(kernel);
  const emailOf = (accountRef: number) => accounts.account(accountRef).email;
  const limits = limitClock(kernel.clock, config.testClock);
  const portal = {
    keys: authenticator,
    findProject: directory.find,
    accountKey: (ref: number) => accounts.signingKey(ref),
  };
  const relay = createRelay(kernel, outbound, {
    accounts,
    charger,
    tiers,
    outbox,
    emailOf,
    settings: config.relay,
    portal,
  });
  const peopleDirectory = openPeople(kernel);
  const watched = createWatch(kernel, config, {
    isTestClock: testClock !== null,
    outbound,
    outbox,
    publicUrl,
    brand: live.brand,
    owners: accounts,
    people: peopleDirectory,
    notifier: relay,
    projectIdOf: directory.idOf,
    timeZoneOf: directory.timeZoneOf,
    keyName: (credential) => keys.auditedKey(credential)?.name ?? null,
    trail,
  });
  const { monitors, incidents, alerts, statusPages } = watched;
  const meter = createMeter(kernel, {
    alerts,
    projects: directory,
    policy: outbound.policy,
    tiers,
    charger,
  });
  const { activity } = directory;
  const buckets = createCatch(kernel, {
    accounts,
    charger,
    activity,
    outbound,
    tiers,
    secrets: relay.secrets,
    endpoints: relay.events,
    notices: {
      failed(tx, { accountRef, projectRef, name, facts }) {
        const { bucket_id, event_id, attempts, error } = facts;
        alerts.notifyProject(tx, {
          projectRef,
          event: "catch.failed",
          title: name,
          text: `The event ${event_id} failed after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: ${error}`,
          page: `/catch/${bucket_id}?event=${event_id}`,
          facts,
        });
        relay.notice(tx, { accountRef, projectRef }, "ninefold.catch.failed", facts);
      },
    },
    publicUrl,
    certificateHosts: config.certificateHosts,
  });
  const notary = createNotary(kernel, outbound, directory, {
    checkpointDelayMs: config.checkpointDelayMs,
    peer: config.peerWitness,
  });
  const sessions = createSessions(kernel, {
    keys: authenticator,
    keyLogins: config.login.keys,
    headerSettings: config.login.header,
    fetchOfIssuer: fetcherOf(outbound),
    emailLinks: config.login.emailLinks,
    dashboard: config.dashboard,
    outbox,
    accounts,
    people: peopleOfSessions(peopleDirectory, {
      area: () => people,
      refOf: accounts.refOf,
      config,
      publicUrl,
    }),
    findProject: directory.find,
    isDeleted: directory.isDeleted,
    idOf: directory.idOf,
    trail,
    keyOf: keys.auditedKey,
    limitClock: limits,
  });
  const people = createPeople(kernel, peopleDirectory, {
    accounts,
    projects: directory,
    keys: keys.ofPeople,
    sessions: sessions.ofPeople,
    sessionSchema: sessions.schema,
    outbox,
    trail,
    tiers,
    limitClock: limits,
  });
  // In the order of the API document. What a project contains is removed in this order, too: channels go after the
  // monitors, whose reminders they name.
  const services: readonly Area[] = [
    meter, //       /v1/meter
    keys, //        /v1/keys, /v1/projects/{id}/keys
    flags, //       /v1/gate, /ofrep/v1
    checkOf(kernel, { keys, meter, flags, directory, accounts }), // /v1/check
    locks, //       /v1/latch
    monitors, //    /v1/pulse
    incidents, //   /v1/pulse/incidents
    alerts, //      /v1/pulse/channels
    statusPages, // /v1/pulse/pages, /status
    relay, //       /v1/relay
    buckets, //     /v1/catch
    notary, //      /v1/witness
    people, //      /v1/people, /v1/session/passkey, /v1/session/invitation
  ];
  const projects = createProjects(kernel, directory, {
    accounts: {
      balance: (accountRef) => accounts.account(accountRef).balance,
      setDefaultProject: accounts.setDefaultProject,
    },
    tiers,
    trail,
    resources: services.flatMap(({ resources }) => resources ?? []),
    contents: services.flatMap(({ resources, contents }) => resources ?? contents ?? []),
  });
  const changes = createChanges(kernel);
  // Projects count what the services have in them, and come second in the document.
  const shown: readonly Area[] = services.toSpliced(1, 0, projects); // /v1/projects
  const overview = createOverview(kernel, {
    cards: [...shown.flatMap(({ card }) => card ?? []), backupsCard(live.backups), mailCard(outbox)],
    recent: audit.recent,
    incidents: { area: "pulse", open: incidents.openCount },
  });
  const list: readonly Area[] = [
    ...shown,
    sessions, // /v1/session, /v1/sessions, /v1/admin/login-links
    changes, //  /v1/changes
    overview, // /v1/overview
    audit, //    /v1/audit, /v1/admin/audit
  ];
  return {
    list,
    changes,
    directory,
    outbound,
    audit,
    accounts,
    projects,
    keys,
    meter,
    people,
    sessions,
    authenticator,
    flags,
    locks,
    relay,
    ...watched,
    buckets,
    notary,
    live,
    load,
    outbox,
    answers,
    claims,
  };
}

/** Largest document of an issuer. */
const ISSUER_BYTES_MAX = 1_048_576;
/** The longest wait for one. */
const ISSUER_TIMEOUT_MS = 10_000;

/** Fetches documents of the issuer of a header, through the guarded client; null for any status but 200. */
function fetcherOf(outbound: OutboundClient): (url: string) => Promise<unknown> {
  return async (url) => {
    const outcome = await outbound.send({
      // The operator has named the issuer, which can be in the own network.
      ofOperator: true,
      account: null,
      method: "GET",
      url,
      headers: { accept: "application/json" },
      body: null,
      timeoutMs: ISSUER_TIMEOUT_MS,
      bodyBytesMax: ISSUER_BYTES_MAX,
      keepsBody: true,
      longerBody: "fail",
      redirectsMax: 0,
      reuseConnection: false,
    });
    if (!outcome.answered) throw outcome.failure;
    return outcome.status === 200 ? JSON.parse(Buffer.from(outcome.body).toString("utf8")) : null;
  };
}

/** The people of sessions. */
function peopleOfSessions(
  people: ReturnType<typeof openPeople>,
  {
    area,
    refOf,
    config,
    publicUrl,
  }: {
    readonly area: () => ReturnType<typeof createPeople>;
    readonly refOf: AccountsArea["refOf"];
    readonly config: Config;
    readonly publicUrl: () => string | null;
  },
): SessionPeople {
  const { header } = config.login;
  /** The only account whose people the header logs in; null: any. */
  const accountOfHeader = () => (header === null || header.account === null ? null : refOf(header.account));
  const providers = () => {
    const prefix = new URL(publicUrl() ?? "http://localhost").pathname.replace(/\/$/, "");
    return config.oidc.map(({ name, label }) => ({
      type: "oidc" as const,
      name: label,
      url: `${prefix}/login/oidc/${name}`,
    }));
  };
  return {
    person: (ref) => people.person(ref),
    scopesOf: (role) => people.scopesOf(role),
    consumeLoginLink: (tx, token) => area().logins.useLink(tx, token),
    logInByHeader: (tx, { groups, ...login }, request) => {
      const roles = header?.roles ?? new Map<string, never>();
      const role = roles.size === 0 || groups === null ? null : roleOfGroups(roles, groups);
      const rejection = roles.size > 0 && role === null ? "no group with a role" : null;
      const accountRef = accountOfHeader();
      return area().addresses.logIn(tx, { ...login, accountRef, role, rejection }, request);
    },
    logInByEmail: (tx, login, request) =>
      area().addresses.logIn(tx, { ...login, accountRef: null, role: null, rejection: null }, request),
    createEmailLink: (tx, email, link) => area().addresses.createLink(tx, email, link),
    useEmailLink: (tx, token, browserHash) => area().addresses.useLink(tx, token, browserHash),
    createLoginLink: (tx, personRef, expiresAt) =>
      people.createLink(tx, { personRef, kind: "login", expiresAt }),
    provenBy: (proof) =>
      proof.type === "oidc"
        ? people.activeWithIdentity(proof.issuer, proof.subject)
        : people.activeWithAddress(proof.email).filter(({ accountRef }) => {
            const only = proof.type === "header" ? accountOfHeader() : null;
            return only === null || accountRef === only;
          }),
    recordSeen: (tx, personRef) => people.recordSeen(tx, personRef),
    offeredMethods: () => [
      ...(people.store.anyPasskey() === 1 ? [{ type: "passkey" as const }] : []),
      ...providers(),
    ],
  };
}

/** What monitors, incidents, alerts and status pages need of the other areas. */
type WatchDeps = Pick<
  Parameters<typeof createAlerts>[1] &
    Parameters<typeof createIncidents>[2] &
    Parameters<typeof createMonitors>[2],
  | ("owners" | "people" | "outbound" | "outbox" | "notifier" | "publicUrl" | "projectIdOf" | "timeZoneOf")
  | ("keyName" | "isTestClock" | "trail")
> &
  Pick<LiveConfig, "brand">;

/** Monitors, the incidents that they open, the channels that are alerted, and the pages that show them. */
function createWatch(
  kernel: Kernel,
  { observerTargets, rdapBootstrap, tiers }: Config,
  {
    isTestClock,
    outbound,
    outbox,
    owners,
    people,
    notifier,
    publicUrl,
    brand,
    projectIdOf,
    timeZoneOf,
    keyName,
    trail,
  }: WatchDeps,
) {
  const monitorLog = openMonitors(kernel);
  const incidentLog = openIncidents(kernel);
  const { checkChanges, isStopped, maintenance } = monitorLog;
  const statusPages = createStatusPages(kernel, {
    monitors: monitorLog,
    incidents: incidentLog,
    statusStyle: STATUS_STYLE,
    isStopped,
    maintenance,
    owners,
    tiers,
    outbox,
    publicUrl,
    brand,
    timeZoneOf,
  });
  const alerts = createAlerts(kernel, {
    incidents: incidentLog,
    owners,
    people,
    notifier,
    outbox,
    outbound,
    publicUrl,
    projectIdOf,
    timeZoneOf,
    isStopped,
  });
  const incidents = createIncidents(kernel, incidentLog, {
    monitors: monitorLog,
    pages: statusPages.ofIncidents,
    followIncidents: (tx, monitorIds) => monitors.followIncidents(tx, monitorIds),
    checkChanges,
    alerts,
    keyName,
    owners,
    timeZoneOf,
    isStopped,
    trail,
    statusStyle: STATUS_STYLE,
    publicUrl,
  });
  const monitors = createMonitors(kernel, monitorLog, {
    alerting: {
      ...alerts,
      carryOut: incidents.carryOut,
      openIncidentOf: incidentLog.openOf,
      impactsIn: incidentLog.impactsIn,
      resolveIncident: incidents.resolve,
      outagesOf: incidentLog.outagesOf,
      monitorRemoved(tx, monitor) {
        alerts.monitorRemoved(tx, monitor);
        incidents.resolve(tx, monitor.ref);
      },
    },
    attention: { newestIncidents: incidentLog.newest, failingChannels: alerts.failingChannels },
    exportedChannels: alerts.exportOfMonitor,
    observerTargets,
    rdapBootstrap,
    owners,
    outbound,
    outbox,
    projectIdOf,
    timeZoneOf,
    tiers,
    version,
    isTestClock,
  });
  alerts.followUp((ref, now) => {
    const down = monitors.downMonitor(ref, now);
    const reminder = down && incidents.reminderOf(down, now);
    const silentUntil = down?.silentUntil ?? reminder?.silentUntil ?? null;
    return reminder && { ...reminder, monitor: down.monitor, silentUntil };
  });
  return { monitors, incidents, alerts, statusPages };
}

/** `/v1/check`: keys, meters and flags in one call. */
function checkOf(
  { changes }: Kernel,
  {
    keys,
    meter,
    flags,
    directory,
    accounts,
  }: Pick<Areas, "keys" | "meter" | "flags" | "directory" | "accounts">,
): ApiArea {
  const { admission } = keys;
  const { inUnit } = meter;
  const changed = (tx: Tx, projectRef: number, meterId: string) => {
    directory.activity.changed(tx, projectRef);
    changes.inProject(tx, projectRef, "meter", meterId);
  };
  return createCheck({
    keys: {
      ...admission,
      requestOf: (asked) => ({ ...admission.requestOf(asked), inProject: true as const }),
    },
    meters: {
      ...inUnit,
      deduct(tx, projectRef, meterId, amount, requestId) {
        changed(tx, projectRef, meterId);
        return inUnit.deduct(tx, projectRef, meterId, amount, requestId);
      },
      hold(tx, projectRef, terms, requestId) {
        changed(tx, projectRef, terms.meter_id);
        return inUnit.hold(tx, projectRef, terms, requestId);
      },
    },
    flags: {
      key: flags.flagKey,
      context: flags.context,
      contextBody: flags.contextBody,
      // The caller of a check is a server.
      evaluator: () => {
        const evaluate = flags.flags.evaluator();
        return (projectRef, flagKeys, context, now) =>
          evaluate(projectRef, flagKeys, context, { now, seesServerOnly: true });
      },
    },
    charger: accounts.charger,
  });
}

/** The operator's endpoints about the server itself. */
function serverOf(kernel: Kernel, { load, live, outbox, archive, cluster }: Areas, http: Http): ServerArea {
  const requestsInFlight = () => http.inFlight;
  return createServerArea({
    kernel,
    load,
    backups: live.backups,
    archive,
    cluster,
    outbox,
    options: live,
    requestsInFlight,
    requests: http.requests.recent,
  });
}

/** The HTTP side, with every endpoint declared. */
function createHttp(kernel: Kernel, config: Config, areas: Areas) {
  const { db, writer, clock, ids, log, vault, metrics } = kernel;
  const { accounts, directory } = areas;
  const { answers, claims } = areas;
  answers.registerPurge(kernel.housekeeping);
  const { authenticator, sessions, relay } = areas;
  const guard = new Guard(
    authenticator,
    config.tiers,
    clock,
    config.testClock,
    sessions.authenticator,
    relay.portalAuthenticator,
    directory,
  );
  const performing = new Performing(
    writer,
    accounts.charger,
    answers,
    claims,
    directory.activity,
    areas.audit.trail,
    kernel.changes,
  );
  const http = new Http({
    clock,
    ids,
    log,
    guard,
    performing,
    confirmationFor: (account) => writer.confirmationFor(account),
    cors: createCors(config.corsOrigins),
    peers: new Peers({ ...config, publicUrl: areas.live.publicUrl }, log),
    vault,
  });
  http.requests.declareIn(metrics);
  areas.load.requests = () => http.requests.answered;
  const probe = new WriteProbe(db, writer);
  const readiness = new Readiness({
    probe: () => probe.run(),
    commits: writer.stats,
    shutdown: http.shutdown,
  });
  const { publicUrl } = areas.live;
  const monitoring = {
    ...monitoringGate(config.metricsAccess, guard, http.paths),
    readiness,
    metrics,
    publicUrl,
  };
  const system = { name: "System", description: "The server itself." };
  const server = serverOf(kernel, areas, http);
  const contained = areas.createMcp === null ? null : http.contain();
  for (const area of areas.list) http.use(area);
  http.use(server); //   /v1/admin/backups, /v1/admin/status, /v1/admin/history, /v1/admin/options
  http.use(accounts); // /v1/signup, /v1/admin, /v1/keys/rotate, /v1/meter of the account balance
  http.use({ parts: [system], routes: (api) => systemRoutes(api, http, monitoring) });
  if (areas.createMcp !== null && contained !== null)
    http.use(
      areas.createMcp({
        config: { ...config, publicUrl: areas.live.publicUrl },
        routes: http.routes,
        contained,
        guard,
      }),
    );
  else http.paths.addAbsent("/v1/mcp", "The MCP server is off: start the server with --mcp.");
  noteOperations(http, areas);
  endWaiting(http, areas);
  rootPage(http, config.dashboard ? "dashboard/" : "docs");
  docsPages(http); //                    /docs
  guidePages(http); //                   /docs/guides/
  statusStylePage(http); //              /status/style-….css
  portalPages(http, config.portalOrigins); // /portal/
  if (config.dashboard) {
    dashboardPages(http);
    loginPages(http, kernel, config, areas); // /login/oidc/
  }
  return { http, readiness, performing, server };
}

/** The ways to the providers of logins, and back. */
function loginPages(
  http: Http,
  kernel: Kernel,
  { oidc: providers }: Config,
  { sessions, people, accounts, outbound }: Areas,
): void {
  const deps = { providers, sessions: sessions.ofPeople, people: people.identities, accounts, outbound };
  for (const { path, serve } of createLoginPages(kernel, deps)) http.page(path, serve);
}

/** Tells the areas that need to know them which operations there are. */
function noteOperations({ routes }: Http, { accounts, keys, people }: Areas): void {
  const operations = routes.map(({ operation }) => operation);
  accounts.countCredits(operations.filter(({ cost }) => cost > 0));
  keys.setRequiredScopes(operations.flatMap(({ access }) => (access.includes(":") ? access : [])));
  people.setOperations(routes);
}

/** Waiting requests and streams end when the server stops. */
function endWaiting({ shutdown }: Http, { changes, flags, locks, buckets, monitors }: Areas): void {
  const streams = [flags.stopStreams, buckets.endStreams, monitors.endStreams];
  for (const stop of [changes.stop, locks.rejectWaiters, ...streams])
    shutdown.addEventListener("abort", stop, { once: true });
}
