import { type TObject, Type } from "@sinclair/typebox";
import type { AuditTrail } from "../../kernel/audit/trail.ts";
import { isAtLeast, ROLES, type Role } from "../../kernel/callers/role.ts";
import { registerErrorFields } from "../../kernel/errors.ts";
import type { ApiArea, DeclaredRoute } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { TierLimit } from "../../kernel/limits/tier-limits.ts";
import type { Tiers } from "../../kernel/limits/tiers.ts";
import type { MailQueue } from "../../kernel/mail/outbox.ts";
import type { AreaExport } from "../../kernel/projects/account-export.ts";
import type { ProjectContents, RemoveAccountRows } from "../../kernel/projects/resources.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { AddressLogins } from "./address-logins.ts";
import { PeopleDirectory } from "./directory.ts";
import { STATUSES } from "./domain.ts";
import { peopleExport } from "./export.ts";
import { FilePeople, type FilePerson } from "./from-file.ts";
import { GroupRoles } from "./group-roles.ts";
import { Identities } from "./identities.ts";
import { loginRoutes } from "./login-routes.ts";
import { PersonLogins } from "./logins.ts";
import { ownRoutes } from "./own-routes.ts";
import { Passkeys } from "./passkeys.ts";
import type { PeopleAccounts, PeopleKeys, PeopleProjects, PeopleSessions } from "./ports.ts";
import { ROLE_DESCRIPTIONS } from "./roles.ts";
import { peopleRoutes } from "./routes.ts";
import type { Roles } from "./schema.ts";
import { PeopleService } from "./service.ts";

registerErrorFields({
  methods: Type.Array(Type.String(), {
    description: "With `login_required`: how the person can log in again: `passkey`, `oidc`.",
  }),
});

/** People that are counted for the metrics: some milliseconds. */
const PEOPLE_COUNTED_MAX = 50_000;
/** Links removed in one unit of work. */
const PURGE_SLICE_ROWS = 200;

/** Opens the people of all accounts, before what needs them is built. */
export function openPeople(kernel: Pick<Kernel, "db" | "ids">): PeopleDirectory {
  return new PeopleDirectory(kernel);
}

/** What people need of other areas. */
export interface PeopleDeps {
  readonly accounts: PeopleAccounts;
  readonly projects: PeopleProjects;
  readonly keys: PeopleKeys;
  readonly sessions: PeopleSessions;
  /** The schema of a session. */
  readonly sessionSchema: TObject;
  readonly outbox: MailQueue;
  readonly trail: AuditTrail;
  readonly tiers: Tiers;
  readonly limitClock: Pick<Clock, "monotonic">;
}

/** What people provide to the server. */
export interface PeopleArea extends ApiArea {
  /** Sets the operations of the API, which the table of roles lists. */
  readonly setOperations: (routes: readonly DeclaredRoute[]) => void;
  readonly service: PeopleService;
  readonly logins: PersonLogins;
  readonly addresses: AddressLogins;
  /** Makes people what the configuration file says. Call at each start. */
  readonly applyFile: (people: readonly FilePerson[]) => Promise<void>;
  readonly identities: Identities;
  readonly exported: AreaExport;
  readonly removeRows: RemoveAccountRows;
  /** Roles in a project, which go with it. */
  readonly contents: ProjectContents;
}

/** Builds the area: people, their roles, and how they log in. */
export function createPeople(
  kernel: Kernel,
  directory: PeopleDirectory,
  { sessionSchema: schema, tiers, ...deps }: PeopleDeps,
): PeopleArea {
  const { store } = directory;
  const { sessions } = deps;
  const limit = new TierLimit(kernel.db, tiers, "people", "people_limit_exceeded");
  const service = new PeopleService({
    ...kernel,
    ...deps,
    directory,
    limit,
    endSessions: (tx, personRef) => sessions.endOfPerson(tx, personRef, {}),
  });
  const passkeys = new Passkeys(kernel, directory);
  const logins = new PersonLogins({ ...kernel, ...deps, directory, service, passkeys });
  const groupRoles = new GroupRoles({ ...kernel, ...deps, service });
  const identities = new Identities({ ...kernel, ...deps, directory, service, logins, groupRoles, limit });
  let roles: Roles = { roles: [], operations: [] };
  kernel.housekeeping.addPurge({
    name: "people.links.purge",
    rowsMax: PURGE_SLICE_ROWS,
    remove: (tx, rowsMax) => store.removeExpiredPersonLinks(tx, tx.now, rowsMax),
  });
  declareMetrics(kernel, directory);
  const addresses = new AddressLogins({ ...deps, directory, logins, groupRoles });
  const file = new FilePeople({ ...kernel, ...deps, directory, service });
  return {
    service,
    logins,
    addresses,
    applyFile: (people) => file.apply(people),
    identities,
    exported: peopleExport,
    removeRows: (tx, accountRef, rowsMax) => {
      const people = store.batchOfAccount(accountRef, rowsMax);
      for (const { ref } of people) service.remove(tx, ref);
      return people.length;
    },
    contents: {
      removeRows: (tx, projectRef, rowsMax) => {
        const people = store.peopleOfProject(projectRef, rowsMax);
        for (const { person_ref } of people) {
          store.removeProjectRole(tx, projectRef, person_ref);
          directory.changed(tx, person_ref);
        }
        return people.length;
      },
    },
    setOperations: (routes) => {
      roles = rolesOf(routes);
      directory.roleScopes = scopesOfRoles(routes);
    },
    parts: [
      {
        name: "People",
        description:
          "People of the account, their roles, sessions and passkeys. All requests are free of charge.",
      },
    ],
    alsoCalled: { people: ["users", "members", "team"] },
    routes: (api) => [
      ...peopleRoutes(api, service, () => roles),
      ...ownRoutes(api, { people: service, passkeys, directory, sessions }),
      loginRoutes(api, { logins, passkeys, sessions, schema }),
    ],
  };
}

/** The table of roles: the least role of each operation. */
function rolesOf(routes: readonly DeclaredRoute[]): Roles {
  const operations = routes
    .filter(({ operation }) => operation.access !== "public" && !operation.byPortal)
    .map(({ method, path, operation: { name, role, stepUp, ofAccount } }) => ({
      operation: name,
      method,
      path: path.replace(/:([A-Za-z_]+)/g, "{$1}"),
      role,
      step_up: stepUp,
      account: ofAccount,
    }));
  return {
    roles: ROLES.map((role) => ({ role, description: ROLE_DESCRIPTIONS[role] })),
    operations: operations.sort((a, b) => (a.operation < b.operation ? -1 : 1)),
  };
}

/**
 * The scopes that each role stands for, for what looks at scopes instead of operations: `*` for admins and owners, and for
 * others those of which they may call every operation.
 */
function scopesOfRoles(routes: readonly DeclaredRoute[]): ReadonlyMap<Role, ReadonlySet<string>> {
  const least = new Map<string, Role>();
  for (const { operation } of routes) {
    const { access } = operation;
    // A change that responders may make does not give them the scope of all changes.
    const usual = access.endsWith(":read") ? "viewer" : "editor";
    const { role } = operation;
    if (!access.includes(":") || role === null) continue;
    const known = least.get(access) ?? usual;
    least.set(access, access.startsWith("keys:") || access.startsWith("people:") ? role : known);
  }
  return new Map(
    ROLES.map((role) => {
      if (isAtLeast(role, "admin")) return [role, new Set(["*"])] as const;
      const scopes = [...least].filter(([, needed]) => isAtLeast(role, needed)).map(([scope]) => scope);
      return [role, new Set(scopes)] as const;
    }),
  );
}

function declareMetrics({ metrics }: Kernel, { store }: PeopleDirectory): void {
  metrics.declare({
    name: "ninefold_people",
    help: "People of all accounts, by status.",
    type: "gauge",
    labels: ["status"],
    samples: () => {
      const counts = new Map(store.counts(PEOPLE_COUNTED_MAX).map(({ status, n }) => [status, n]));
      return STATUSES.map((status) => ({ labels: { status }, value: counts.get(status) ?? 0 }));
    },
  });
}
