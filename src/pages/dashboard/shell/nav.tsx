import { useEffect } from "preact/hooks";
import type { Overview } from "../../../client/generated/api.ts";
import { isLive } from "../core/changes.ts";
import { formatNumber } from "../core/format.ts";
import { chooseProject, logOut, switchAccount } from "../core/login.ts";
import { useOverview } from "../core/overview.tsx";
import { href, place } from "../core/route.ts";
import { mayChooseProject, ownProjects, projectId, projects, session, showError } from "../core/session.ts";
import { startShown } from "../core/start.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { paletteOpen } from "./commands.ts";
import { visiblePages } from "./pages.ts";
import type { PageFacts } from "./sitemap.ts";

const GROUPS = ["", "Services", "Server"] as const;

/** The sidebar: project, pages and session. On narrow screens a bar that scrolls. */
export function Nav() {
  const pages = visiblePages().filter(({ path }) => path !== "start" || startShown.value);
  const { page, rest } = place.value;
  useEffect(() => {
    // On narrow screens the bar is wider than the screen.
    document
      .querySelector("nav [aria-current=page]")
      ?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [page, rest[0]]);
  return (
    <header class="side">
      <div class="brand">
        <a href={href(["overview"])}>
          <Mark />
          <span>Ninefold</span>
        </a>
        <span
          class={`live ${isLive.value ? "on" : ""}`}
          title={isLive.value ? "Live: changes appear immediately" : "Changes appear every few seconds"}
        >
          {isLive.value ? "live" : "polling"}
        </span>
      </div>
      <AccountSwitch />
      <ProjectSwitch />
      <button
        type="button"
        class="jump"
        onClick={() => {
          paletteOpen.value = true;
        }}
      >
        <Icon name="search" />
        <span>Find…</span>
        <kbd>{navigator.platform.startsWith("Mac") ? "⌘K" : "Ctrl K"}</kbd>
      </button>
      <nav aria-label="Pages">
        {GROUPS.map((group) => (
          <Group key={group} name={group} pages={pages.filter((page) => page.group === group)} />
        ))}
      </nav>
      <Person />
    </header>
  );
}

function Group({ name, pages }: { name: string; pages: ReturnType<typeof visiblePages> }) {
  const { data } = useOverview();
  return (
    <>
      {name === "" ? null : <p class="group">{name}</p>}
      <ul>
        {pages.map(({ path, title, parts = [] }) => {
          const isOpen = place.value.page === path;
          return (
            <li key={path}>
              <a
                href={href([path])}
                aria-current={isOpen ? (parts.length === 0 ? "page" : "true") : undefined}
              >
                <Icon name={path} />
                <span>{title}</span>
                <Attention of={data} page={path} />
              </a>
              {isOpen && parts.length > 0 ? <Parts of={parts} path={path} /> : null}
            </li>
          );
        })}
      </ul>
    </>
  );
}

/** The parts of the open page. */
function Parts({ of: parts, path }: { of: NonNullable<PageFacts["parts"]>; path: string }) {
  const [segment = ""] = place.value.rest;
  const open = parts.some(([name]) => name === segment) ? segment : "";
  return (
    <ul>
      {parts.map(([name, title]) => (
        <li key={name}>
          <a
            href={href(name === "" ? [path] : [path, name])}
            aria-current={name === open ? "page" : undefined}
          >
            {title}
          </a>
        </li>
      ))}
    </ul>
  );
}

/** The number of things of a page that need attention. */
const ATTENTION: Readonly<
  Record<string, (all: Overview) => readonly [number: number | undefined, what: string]>
> = {
  monitors: ({ pulse }) => [pulse?.down, "down"],
  relay: ({ relay }) => [relay?.failed, "failed in 24 h"],
  catch: (all) => [all.catch?.failed, "failed"],
};

function Attention({ of: overview, page }: { of: Overview | null; page: string }) {
  const [number = 0, what] = (overview && ATTENTION[page]?.(overview)) ?? [];
  if (number === 0) return null;
  return (
    <span class="count">
      {formatNumber(number)}
      <span class="unseen"> {what}</span>
    </span>
  );
}

/** The accounts that the login of the user opens; on narrow screens the profile lists them. */
function AccountSwitch() {
  const { user_id = "", email = "", accounts = [] } = session.value ?? {};
  if (accounts.length === 0) return null;
  return (
    <select
      class="project wide"
      aria-label="Account"
      value={user_id}
      onChange={({ currentTarget: { value } }) => {
        switchAccount(value).catch(showError);
      }}
    >
      {[{ user_id, email }, ...accounts].map((account) => (
        <option key={account.user_id} value={account.user_id}>
          {account.email}
        </option>
      ))}
    </select>
  );
}

function ProjectSwitch() {
  if (projects.value.length === 0) return null;
  const permitted = ownProjects();
  return (
    <select
      class="project"
      aria-label="Project"
      value={projectId.value ?? permitted?.[0] ?? ""}
      disabled={!mayChooseProject()}
      onChange={(event) => chooseProject(event.currentTarget.value === "" ? null : event.currentTarget.value)}
    >
      {permitted === null ? <option value="">Default project</option> : null}
      {projects.value.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}

function Person() {
  const who = session.value;
  if (!who) return null;
  const { person } = who;
  return (
    <div class="person">
      <a class="who" href={href(["profile"])} title="Your profile">
        <strong>{person?.name ?? person?.email ?? who.key_name ?? who.email}</strong>
        <span class="quiet">
          {person !== undefined
            ? (person.role ?? "in single projects")
            : who.operator
              ? "operator"
              : `${who.tier} tier`}
        </span>
      </a>
      <a class="button quiet phone" href={href(["profile"])} title="Your profile" aria-label="Your profile">
        <Icon name="profile" />
      </a>
      <a class="button quiet" href="../docs" title="API reference" aria-label="API reference">
        <Icon name="link" />
      </a>
      <Button icon="logout" kind="quiet" label="Log out" onClick={logOut} />
    </div>
  );
}

/** The logo: nine squares. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 30 30" aria-hidden="true">
      {[0, 11, 22].flatMap((y) =>
        [0, 11, 22].map((x) => <rect key={`${x} ${y}`} x={x} y={y} width="8" height="8" rx="1.5" />),
      )}
    </svg>
  );
}
