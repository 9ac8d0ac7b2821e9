/** A group of the site tree, with its pages in their order. */
export interface Group {
  readonly title: string;
  readonly files: readonly string[];
}

/** Titles of the groups, in their order: what is in a folder, and the pages at the top level that belong to it. */
const GROUPS: readonly {
  readonly title: string;
  /** The folder whose other pages follow, by name. */
  readonly folder: string;
  /** Pages that come first, or that are elsewhere. */
  readonly first: readonly string[];
}[] = [
  {
    title: "Start",
    folder: "docs/start",
    first: ["docs/README.md", "README.md", "docs/guides/quick-starts.md", "docs/names.md"],
  },
  { title: "Guides", folder: "docs/guides", first: [] },
  { title: "Services", folder: "docs/api", first: ["docs/api/basics.md", "docs/errors.md"] },
  {
    title: "Clients",
    folder: "docs/clients",
    first: [
      "docs/console.md",
      "docs/client.md",
      "docs/guides/python.md",
      "docs/guides/languages.md",
      "docs/guides/generate-a-client.md",
      "docs/command-line.md",
      "docs/configuration.md",
      "docs/testing.md",
    ],
  },
  {
    title: "Operation",
    folder: "docs/operation",
    first: [
      "docs/deployment.md",
      "docs/operations.md",
      "docs/backup.md",
      "docs/high-availability.md",
      "docs/monitoring.md",
      "docs/monitoring-alerts.yml",
      "docs/monitoring-grafana.json",
      "docs/compatibility.md",
      "docs/troubleshooting.md",
    ],
  },
  { title: "Runbooks", folder: "docs/runbooks", first: ["docs/runbooks/README.md"] },
  { title: "Security", folder: "docs/security", first: ["SECURITY.md"] },
];
/** The group of every other page. */
const LAST = "Project";

/** The site tree of these files, each in one group. */
export function treeOf(files: readonly string[]): Group[] {
  const known = new Set(files);
  const claimed = new Set(GROUPS.flatMap(({ first }) => first));
  const groups = GROUPS.map(({ title, folder, first }) => ({
    title,
    files: [
      ...first.filter((file) => known.has(file)),
      ...files.filter((file) => file.startsWith(`${folder}/`) && !claimed.has(file)),
    ],
  }));
  const placed = new Set(groups.flatMap((group) => group.files));
  const rest = files.filter((file) => !placed.has(file));
  return [...groups, { title: LAST, files: rest }].filter((group) => group.files.length > 0);
}
