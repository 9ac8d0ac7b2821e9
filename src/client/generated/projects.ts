// Written by `bun scripts/package-types.ts` from test/golden/openapi.json. Change the schemas of the areas instead.
/** The body of `POST /v1/projects`. */
export interface ProjectCreateBody {
  name: string;
  description?: string | null | undefined;
}

/** What `POST /v1/projects` answers. */
export interface Project {
  /** `proj_` and 20 letters and digits. */
  id: string;
  name: string;
  /** URL-safe, derived from the name; it never changes. */
  slug: string;
  description: string | null;
  created_at: string;
  updated_at: string;
}

/** What `DELETE /v1/projects/{id}` answers. */
export interface ProjectDeleted {
  success: true;
  deleted_at: string;
}

/** What `GET /v1/projects` answers. */
export interface ProjectPage {
  projects: ProjectItem[];
  /** Hand it in to get the next page. Absent on the last one. */
  cursor?: string;
}

/** What `GET /v1/projects` answers, `projects`, `[]`. */
export interface ProjectItem {
  /** `proj_` and 20 letters and digits. */
  id: string;
  name: string;
  /** URL-safe, derived from the name; it never changes. */
  slug: string;
  description: string | null;
  created_at: string;
}

/** What `GET /v1/projects/{id}/overview` answers. */
export interface ProjectOverview {
  project_id: string;
  project_name: string;
  /** Keys that are not revoked, relays still to be delivered, locks held, and all of the others. */
  resources: {
    flags: number;
    monitors: number;
    relays: number;
    buckets: number;
    keys: number;
    locks: number;
    chains: number;
    meters: number;
  };
  usage: {
    /** The account's credit balance. */
    meter_balance: number;
    /** The last change in the project. */
    last_activity: string | null;
  };
}

/** The body of `PATCH /v1/projects/{id}`. */
export interface ProjectUpdateBody {
  name?: string | undefined;
  description?: string | null | undefined;
}
