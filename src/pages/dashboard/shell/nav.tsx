import { useEffect } from "preact/hooks";
import { isLive } from "../core/changes.ts";
import { place } from "../core/route.ts";
import { chooseProject, logOut, mayChooseProject, projectId, projects, session } from "../core/session.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { paletteOpen } from "./commands.ts";
import { type PageEntry, visiblePages } from "./pages.ts";

const GROUPS = ["", "Services", "Server"] as const;

/** The sidebar: project, pages and session. On narrow screens a bar of icons. */
export function Nav() {
  const pages = visiblePages();
  const { page } = place.value;
  useEffect(() => {
    // On narrow screens the bar is wider than the screen.
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [page]);
  return (
    <header class="side">
      <div class="brand">
        <a href="#/overview">
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
      <ProjectSwitch />
      <button
        type="button"
        class="jump"
        onClick={() => {
          paletteOpen.value = true;
        }}
      >
        <Icon name="search" />
        <span>Go to…</span>
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

function Group({ name, pages }: { name: string; pages: readonly PageEntry[] }) {
  return (
    <>
      {name === "" ? null : <p class="group">{name}</p>}
      <ul>
        {pages.map(({ path, title, icon }) => (
          <li key={path}>
            <a href={`#/${path}`} aria-current={place.value.page === path ? "page" : undefined} title={title}>
              <Icon name={icon} />
              <span>{title}</span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

function ProjectSwitch() {
  if (projects.value.length === 0) return null;
  const own = session.value?.project_id ?? null;
  return (
    <select
      class="project"
      aria-label="Project"
      value={own ?? projectId.value ?? ""}
      disabled={!mayChooseProject()}
      onChange={(event) => chooseProject(event.currentTarget.value === "" ? null : event.currentTarget.value)}
    >
      {own === null ? <option value="">Default project</option> : null}
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
  return (
    <div class="person">
      <div class="who">
        <strong>{who.key_name ?? who.email}</strong>
        <span class="quiet">{who.operator ? "operator" : `${who.tier} tier`}</span>
      </div>
      <a class="button quiet" href="../docs" title="API reference" aria-label="API reference">
        <Icon name="link" />
      </a>
      <Button icon="logout" kind="quiet" label="Log out" onClick={logOut}>
        {null}
      </Button>
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
